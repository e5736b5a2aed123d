"""One corpus as text lines, JSON lines, CSV, TSV, Parquet and Arrow, some of them compressed."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import random
import tempfile
from functools import partial
from pathlib import Path
from typing import Callable

import pytest

WORDS = [f"w\u00f6rd{i}" for i in range(300)]
FLAGS = ["--threshold=0.6"]


def corpus() -> list[tuple[str, str]]:
    """Return (id, text) of 400 records; every fourth is a near-copy, with quotes and a comma."""
    dice = random.Random(3)
    texts: list[str] = []
    for i in range(400):
        words = dice.choices(WORDS, k=dice.randint(5, 30))
        if i % 4 == 3:
            words = texts[dice.randrange(len(texts))].split()
            words[dice.randrange(len(words))] = 'a,"new" one;'
        texts.append(" ".join(words))
    return [(f"id {i:03d}", text) for i, text in enumerate(texts)]


CORPUS = corpus()
TEXT = "".join(f"{id_}\t{text}\n" for id_, text in CORPUS).encode()
JSONL = "".join(
    json.dumps({"n": i, "text": text, "id": id_}, ensure_ascii=i % 2 == 0) + "\n"
    for i, (id_, text) in enumerate(CORPUS)
).encode()


def rows_of_table(separator: str, end: str, quoting: int = csv.QUOTE_MINIMAL) -> list[bytes]:
    """Return a table's rows, the header first; in a CSV, an extra column contains line ends."""
    more = "\n2" * (separator == ",")
    rows = [["text", "a, b", "id"]]
    rows += [[text, f"line {i}{more}", id_] for i, (id_, text) in enumerate(CORPUS)]
    found = []
    for row in rows:
        sink = io.StringIO(newline="")
        csv.writer(sink, delimiter=separator, lineterminator=end, quoting=quoting).writerow(row)
        found.append(sink.getvalue().encode())
    return found


def typed_table(name: str, rows: list[tuple[str, str]] = CORPUS) -> bytes:
    files = pytest.importorskip("tests.support.typed_tables")
    ids, texts = zip(*rows)
    numbers = list(range(len(rows)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        files.write_table(files.arrow.table({"n": numbers, "id": ids, "text": texts}), path, 150)
        return path.read_bytes()


ROWS = {
    "a.jsonl": JSONL.splitlines(keepends=True),
    "a.ndjson.gz": JSONL.splitlines(keepends=True),
    "a.csv": rows_of_table(",", "\r\n"),
    "b.csv": rows_of_table(",", "\n", csv.QUOTE_ALL),
    "a.csv.bz2": rows_of_table(",", "\n"),
    "a.tsv": rows_of_table("\t", "\n"),
}
# The name of a file, and what is in it.
FORMS: dict[str, Callable[[], bytes]] = {
    "a.jsonl": lambda: JSONL,
    "a.ndjson.gz": lambda: gzip.compress(JSONL),
    "a.csv": lambda: b"".join(ROWS["a.csv"]),
    "b.csv": lambda: b"\xef\xbb\xbf" + b"".join(ROWS["b.csv"]),
    "a.csv.bz2": lambda: bz2.compress(b"".join(ROWS["a.csv.bz2"])),
    "a.tsv": lambda: b"".join(ROWS["a.tsv"]),
    **{name: partial(typed_table, name) for name in ("a.parquet", "a.arrow", "stream.feather")},
}
forms = pytest.mark.parametrize("name", FORMS)


def made(name: str, folder: Path) -> Path:
    path = folder / name
    path.write_bytes(FORMS[name]())
    return path
