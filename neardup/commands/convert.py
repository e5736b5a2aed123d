"""`convert`: write tables and texts as JSON lines, which every engine can read line by line."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from neardup.options import table
from neardup.options.command_parser import FILES, VERBOSITY
from neardup.options.settings import Settings
from neardup.reading import text_rows
from neardup.reading.blocks import Block, numbered, read_files
from neardup.reading.compressed import ROWS
from neardup.reading.input_check import NO_ID, BadLine
from neardup.reading.input_files import check_files
from neardup.reading.input_format import InputFormat
from neardup.reading.table_rows import json_text
from neardup.reading.text_rows import DEFAULT_ID, DEFAULT_TEXT, Row
from neardup.runtime.counters import Counters
from neardup.runtime.program import UsageError, write_all
from neardup.stages.pairs import check_start, reject

FLAGS = (*table.READING, "--max-line", "--max-bad", "--strict")
OWN = (FILES, *VERBOSITY)
TEXTS = {
    "--input": "format of the files: text (lines of an ID, a tab or else a blank, and a text), or "
    f"rows: {', '.join(ROWS)} (default: by the extension)",
    "--encoding": table.OF_READERS["--encoding"],
}
DESCRIPTION = """Write rows of CSV, TSV, Parquet and Arrow files, or lines of text, as JSON lines.

All columns are written, or those that --id and --text name by number in a table without a header.
A row without an id gets its number, as in a run on this machine.  A cluster can read the result:

    python3 -m neardup convert corpus.parquet > corpus.jsonl
    ./run_hadoop.sh --input jsonl corpus.jsonl /data/pairs
"""


def main() -> None:
    parser = table.parser("python3 -m neardup convert", DESCRIPTION, FLAGS, OWN, TEXTS)
    args = parser.parse_args()
    settings = Settings.of(table.Options.of(args))
    if settings.form.shingle is None:
        raise UsageError(
            f"lines of {settings.form.input} need no conversion; convert is for tables and texts; "
            "name their format, as in --input text"
        )
    check_files(args.files)
    counters = Counters("convert", progress="records", verbosity=args.verbosity)
    counters.add("records", 0)
    counters.max_bad = settings.max_bad
    form = settings.form
    if form.fields and not form.fields.numbered:
        form = form._replace(fields=replace(form.fields, texts=()))
    blocks = read_files(numbered(args.files), settings.max_line, pieces=form.pieces)
    rows = (row for block in blocks for row in _rows(block, form, settings, counters))
    # A lone surrogate, such as \\ud83d, stays escaped; 1e400, which is infinite here, becomes null.
    lines = (json_text(row) + "\n" for row in rows)
    write_all(line.encode("utf-8", "backslashreplace") for line in lines)
    counters.report()


def _rows(block: Block, form: InputFormat, settings: Settings, counters: Counters) -> Iterator[Row]:
    """Yield the rows of a block, each with an id; count bad lines, or raise an error if strict."""
    found: Iterable[Row | BadLine] = _of_rows(block, form) if form.fields else _of_text(block)
    if block.line == 1 and not block.flaw:
        found = list(found)
        bad = [row for row in found if isinstance(row, BadLine)]
        check_start(block, len(found) - len(bad), bad, settings, counters)
    for row in [BadLine(0, block.data, block.flaw)] if block.flaw else found:
        if isinstance(row, BadLine):
            reject(block, row, settings, counters)
        else:
            counters.add("records", 1)
            yield row


def _of_text(block: Block) -> "Iterator[Row | BadLine]":
    for number, id_, text, flaw, line in text_rows.text_lines(block.data):
        bad = BadLine(number, line, flaw)
        yield bad if flaw else {DEFAULT_ID: id_.decode(), DEFAULT_TEXT: text}


def _of_rows(block: Block, form: InputFormat) -> "Iterator[Row | BadLine]":
    assert form.fields
    fields, id_field = form.fields, form.fields.id or DEFAULT_ID
    for number, line in text_rows.lines_in(block.data):
        try:
            row = text_rows.row_of(line)
            id_ = fields.value(row, fields.id)
            if id_ in (None, ""):
                if fields.needs_id:
                    raise text_rows.FlawError(NO_ID)
                others = {name: value for name, value in row.items() if name != id_field}
                row = {id_field: block.row_id(number).decode(), **others}
            elif type(id_) in (str, int):
                given = str(id_).encode("utf-8", "surrogatepass")
                text_rows.with_row_ids([given], [number], block, fields)
        except text_rows.FlawError as flaw:
            yield BadLine(number, text_rows.json_line(line), str(flaw))
            continue
        if fields.numbered:  # no header: the default names
            text = "\n".join(row[name] for name in fields.texts)
            row = {DEFAULT_ID: row[id_field], DEFAULT_TEXT: text}
        yield row
