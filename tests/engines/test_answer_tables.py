"""Pairs, links, removed records and clusters written as rows have the values of the lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neardup.reading.compressed import unpacked
from tests.support.engines import RUN_LOCAL, succeed

NEW = b"b 1 2 3 4\na 1 2 3 4\nc\xc3\xa9 1 2 3 4 5\n\nbad x\nd 7 8 9\n=1 7 8 9\n"
OLD = b"o 1 2 3 4\np 7 8 9 10\n"
PAIR, INTERVAL = ["a", "b", "similarity"], ["a", "b", "low", "high"]
ACROSS = ["new", "other", "similarity", "collection"]
CASES = {  # options: the names of the fields
    "--output=pairs": PAIR,
    "--output=links": PAIR,
    "--measure=containment --scheme=prefix": PAIR,
    "--verify=sketch:16": INTERVAL,
    "--against=old.txt": ACROSS,
    "--against=old.txt --measure=containment --scheme=prefix": [*ACROSS, "direction"],
    "--against=old.txt --measure=tversky:1,0.5": [*ACROSS, "direction"],
    "--output=removed": ["id", "kept", "similarity"],
    "--output=removed --rule=cluster": ["id", "kept", "similarity"],
    "--output=removed --against=old.txt": ["id", "kept", "similarity"],
    "--output=clusters": ["cluster", "id"],
}


def of_json(data: bytes) -> list[dict[str, Any]]:
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def of_csv(data: bytes) -> list[dict[str, Any]]:
    text = io.StringIO(data.decode(), newline="")
    rows = list(csv.DictReader(text, strict=True))
    for row in rows:
        for name in set(row) & {"similarity", "low", "high"}:
            row[name] = float(row[name]) if row[name] else None
    return rows


def of_table(data: bytes) -> list[dict[str, Any]]:
    table = pytest.importorskip("tests.support.typed_tables").read_table(data)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


READERS: dict[str, Callable[[bytes], list[dict[str, Any]]]] = {
    "x.jsonl": of_json,
    "x.ndjson.gz": of_json,
    "x.csv": of_csv,
    "x.csv.xz": of_csv,
    "x.parquet": of_table,
    "x.arrow": of_table,
}


def rows_of(lines: bytes, names: list[str]) -> list[dict[str, Any]]:
    """Return the expected rows: the fields between tabs, with an interval split into two fields."""
    rows = []
    for line in lines.decode().splitlines():
        values: list[Any] = []
        for field in line.split("\t"):
            values += field[1:].split("..") if field[0] == "~" else [field]
        row = dict(zip(names, values))
        for name in {"similarity", "low", "high"} & set(row):
            row[name] = None if row[name] == "-" else float(row[name])
        assert len(values) == len(names)
        rows.append(row)
    return rows


def written(name: str, flags: list[str], tmp_path: Path, option: str = "-o") -> bytes:
    """Return what a run writes to a file with this name."""
    answer = tmp_path / "answer" / name
    answer.parent.mkdir(exist_ok=True)
    words = [*RUN_LOCAL, "--threshold=0.6", *flags, option, answer, "new.txt"]
    succeed(words, tmp_path, cwd=tmp_path)
    return b"".join(unpacked(str(answer)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "new.txt").write_bytes(NEW)
    (tmp_path / "old.txt").write_bytes(OLD)
    return tmp_path


@pytest.mark.first_case
@pytest.mark.parametrize("case", CASES)
def test_the_rows_are_those_of_the_lines(case: str, folder: Path) -> None:
    flags = case.split()
    words = [*RUN_LOCAL, "--threshold=0.6", *flags, "new.txt"]
    lines = succeed(words, folder, cwd=folder).out
    expected = rows_of(lines, CASES[case])
    assert expected
    for name in list(READERS)[list(CASES).index(case) % 2 :: 2]:  # one of each kind
        found = READERS[name](written(name, flags, folder))
        assert found == expected
        assert all(list(row) == CASES[case] for row in found)


@pytest.mark.slow
def test_a_chain_has_no_similarity(tmp_path: Path) -> None:
    """The ends of a chain are in one cluster but are not a pair, so their similarity is null."""
    (tmp_path / "new.txt").write_bytes(b"a 1 2 3 4\nb 2 3 4 5\nc 3 4 5 6\n")
    flags = ["--output=removed", "--rule=cluster"]
    expected = [("b", "a", 0.6), ("c", "a", None)]
    for name, read in READERS.items():
        rows = read(written(name, flags, tmp_path))
        assert [tuple(row.values()) for row in rows] == expected


@pytest.mark.first_case
@pytest.mark.parametrize("name", READERS)
def test_removed_records_in_a_file_of_their_own(name: str, folder: Path) -> None:
    removed = written("removed.tsv", ["--output=kept"], folder, "--removed")
    packed = written("removed.tsv.gz", ["--output=kept"], folder, "--removed")
    rows = READERS[name](written(name, ["--output=kept"], folder, "--removed"))
    assert rows == rows_of(removed, ["id", "kept", "similarity"])
    assert len(rows) > 1
    assert packed == removed


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("lines", [b"", b"a 1 2\nb 3 4\n"])
def test_no_rows(name: str, lines: bytes, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_bytes(lines)
    data = written(name, [], tmp_path)
    assert READERS[name](data) == []
    if name == "x.csv":
        assert data == b"a,b,similarity\n"
    if name in ("x.parquet", "x.arrow"):
        schema = pytest.importorskip("tests.support.typed_tables").read_table(data).schema
        kinds = {field.name: str(field.type) for field in schema}
        assert kinds == {"a": "string", "b": "string", "similarity": "double"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.ndjson.gz", "x.csv", "x.parquet", "x.arrow"])
def test_many_rows(name: str, tmp_path: Path) -> None:
    """Rows in more than one batch are all written, in order."""
    copies = 300
    lines = "".join(f"r{i:03} 1 2 3\n" for i in range(copies))
    (tmp_path / "new.txt").write_text(lines)
    rows = READERS[name](written(name, [], tmp_path))
    pairs = [(f"r{i:03}", f"r{j:03}") for i in range(copies) for j in range(i + 1, copies)]
    assert [(row["a"], row["b"]) for row in rows] == pairs
