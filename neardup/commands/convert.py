"""`convert`: tables and texts as JSON lines, which every engine reads line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from neardup.evaluation.exact_options import check_files
from neardup.options import table
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.blocks import Block, read_files
from neardup.reading.input_check import NO_ID, BadLine
from neardup.reading.input_format import InputFormat
from neardup.reading.text_rows import (
    DEFAULT_ID,
    DEFAULT_TEXT,
    FLAW,
    OF_TABLES,
    ROW,
    Fields,
    FlawError,
    json_object,
    row_id,
    text_lines,
)
from neardup.runtime.counters import Counters
from neardup.runtime.errors import UsageError
from neardup.runtime.program import run, write_all
from neardup.stages.pairs import reject

NAME = "neardup convert"
FLAGS = ("--input", "--id", "--text", "--max-line", "--max-bad", "--strict")
DESCRIPTION = """Write the rows of CSV, TSV and Parquet files, or lines of text, as JSON lines.

All columns are written, or of a table without a header those that --id and --text tell by number; a
row without an id gets its number, as a run on this machine counts it.
Then a cluster reads it, a line at a time:

    python3 -m neardup convert corpus.parquet > corpus.jsonl
    ./run_hadoop.sh --input jsonl corpus.jsonl /data/pairs
"""


def main() -> int:
    return run(NAME, _convert)


def _convert() -> None:
    parser = table.parser(f"python3 -m {NAME}", DESCRIPTION, FLAGS)
    parser.add_argument("files", nargs="+", metavar="FILE", help="plain or packed; - is stdin")
    args = parser.parse_args()
    settings = Settings.of(Options.of(args))
    if settings.form.shingle is None:
        raise UsageError(
            "lines of shingles are read line by line everywhere; convert is for files that are "
            "csv, tsv, parquet or jsonl by their names, or with --input text"
        )
    check_files(args.files)
    counters = Counters("convert", progress="records")
    counters.add("records", 0)
    counters.max_bad = settings.max_bad
    form = settings.form
    if form.fields and not form.fields.numbered:
        form = form._replace(fields=replace(form.fields, texts=()))
    blocks = read_files(args.files, settings.max_line, pieces=form.pieces)
    rows = (row for block in blocks for row in _rows(block, form, settings, counters))
    write_all(map(_line, rows))
    counters.report()


def _rows(
    block: Block, form: InputFormat, settings: Settings, counters: Counters
) -> Iterator[dict[str, Any]]:
    """The rows of a block, each with an id; bad lines are counted, or fatal with --strict."""
    fields = form.fields
    id_field = (fields and fields.id) or DEFAULT_ID

    def bad(number: int, text: bytes, reason: str) -> None:
        reject(block, BadLine(number, text, reason), settings, counters)

    if block.flaw:
        bad(0, block.data, block.flaw)
    elif not fields:
        for line in text_lines(block.data):
            if line.flaw:
                bad(line.number, line.line, line.flaw)
            else:
                counters.add("records", 1)
                yield {DEFAULT_ID: line.id.decode(), DEFAULT_TEXT: line.text}
    else:
        for number, data in enumerate(block.data.splitlines()):
            if not data.strip():
                continue
            try:
                row = json_object(data)
            except FlawError as flaw:
                bad(number, data, str(flaw))
                continue
            missing = fields.value(row, fields.id) in (None, "")
            if row.get(FLAW) in OF_TABLES:
                bad(number, str(row.get(ROW)).encode("utf-8", "backslashreplace"), row[FLAW])
            elif missing and fields.needs_id:
                bad(number, data, NO_ID)
            else:
                counters.add("records", 1)
                if missing:
                    row = {id_field: row_id(block, number).decode(), **_without(row, id_field)}
                yield _named(row, fields) if fields.numbered else row


def _without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def _named(row: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Columns without names, by those that a run takes unless told."""
    text = "\n".join(row[name] for name in fields.texts)
    return {DEFAULT_ID: row[fields.id or DEFAULT_ID], DEFAULT_TEXT: text}


def _line(row: dict[str, Any]) -> bytes:
    """Half a character, as \\ud83d, stays escaped."""
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
