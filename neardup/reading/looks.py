"""Look at the first lines of a file: what they are, and the options that read them.

Options are named only if they were tried on these lines, and at least half of them are records.

    {"key": 7, "body": "to be"}     ─▶  JSON lines, --input jsonl --text body --id key
    id;text⏎1;to be                 ─▶  CSV, --input csv --delimiter ';'
    {"n": 7}                        ─▶  JSON lines, None: no field has a text
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import NamedTuple

from neardup.reading.input_check import SEEN_BYTES, look_of
from neardup.reading.missing_fields import SEEN_ROWS, options_for
from neardup.reading.shingle_lines import parse_shingle_lines, parse_weighted_lines
from neardup.reading.text_rows import FlawError, Row, row_of, text_lines
from neardup.runtime.program import StageError, typed_with
from neardup.runtime.summary import LOOKS

NAME = re.compile(r"[^\W\d]\w*")
JSON_LINES, TABLE = "JSON lines", "a table with the columns "
LISTED = 5


class Appearance(NamedTuple):
    like: str = ""  # "": unknown
    options: Sequence[str] | None = None  # that read the lines; None if nothing was found to

    def message(self) -> str:
        """Return what the lines look like, and the command to type if there is one."""
        if self.options is None:
            return f"it looks like {self.like}, in which no field has a text"
        return f"it looks like {self.like}; type: {typed_with(*self.options)}"


def seen(data: bytes, kind: str) -> Appearance:
    """Return what the first lines are, other than the kind of input that they were read as."""
    lines = [line for line in data.splitlines() if line.strip()][:SEEN_ROWS]
    if objects := _objects(lines):
        options = options_for(objects, ["--input", "jsonl"])
        return Appearance() if kind == "jsonl" else Appearance(JSON_LINES, options)
    for comma in ",;\t|":
        if rows := _table(lines, comma):
            flags = ["--input", "tsv" if comma == "\t" and kind != "csv" else "csv"]
            if comma in ";|" or (comma == "\t" and kind == "csv"):
                flags = flags * (kind != "csv") + ["--delimiter", comma.replace("\t", "\\t")]
            columns = " ".join([*rows[0]][:LISTED])
            same = flags == ["--input", kind]
            return (
                Appearance() if same else Appearance(f"{TABLE}{columns}", options_for(rows, flags))
            )
    block = b"\n".join(lines) + b"\n"
    looks = {look_of(line[:SEEN_BYTES], 0, kind) for line in lines}
    look = LOOKS.get(next(iter(looks))) if len(looks) == 1 else None
    if look and look.remedy.startswith("--"):
        reads = {"--input shingles": parse_shingle_lines, "--weights own": parse_weighted_lines}
        if look.remedy == "--input text":
            good = sum(not record.flaw for record in text_lines(block))
        elif look.remedy in reads:
            good = len(lines) - len(reads[look.remedy](block)[1])
        else:
            good = len(lines)  # fingerprints, by their pattern
        if 2 * good >= len(lines):
            return Appearance(look.like, look.remedy.split())
    return Appearance()


def _objects(lines: Sequence[bytes]) -> list[Row]:
    """Return the lines as JSON objects if nine in ten are, and the first one; else []."""
    rows = []
    for line in lines:
        try:
            rows.append(row_of(line))
        except FlawError:
            if not rows:
                return []
    return rows if 10 * len(rows) >= 9 * len(lines) else []


def _table(lines: Sequence[bytes], comma: str) -> list[Row]:
    """Return the rows of a table whose first line names its columns; [] if it is none."""
    text = (str(line, "utf-8", "replace") + "\n" for line in lines)
    try:
        header, *rows = filter(None, csv.reader(text, delimiter=comma))
    except (csv.Error, ValueError):
        return []
    rows = rows[:-1] if len(lines) == SEEN_ROWS else rows  # a quote may be open
    alike = rows and len(header) > 1 and all(len(row) == len(header) for row in rows)
    named = alike and all(map(NAME.fullmatch, header))
    return [dict(zip(header, row)) for row in rows] if named else []


def check_text(block: bytes, place: str) -> str:
    """Return what lines look like that were read as texts, with a command, or "".

    StageError if they are certainly no texts: rows of JSON or CSV, with their braces or commas in
    the ids.
    """
    first = seen(block, "text")
    if first.like == JSON_LINES or (first.like.startswith(TABLE) and _ids_have_commas(block)):
        raise StageError(f"{place or 'standard input: '}not lines of text: {first.message()}")
    return first.message() if first.like else ""


def _ids_have_commas(block: bytes) -> bool:
    ids = [record.id for record in text_lines(block[: 1 << 16]) if not record.flaw][:SEEN_ROWS]
    return bool(ids) and all(re.search(rb"[,;|]", id_) for id_ in ids)
