"""Fields of answers in JSON lines, CSV, Parquet or Arrow, and a reader of answers in any format.

    a, b, similarity                                pairs and links
    a, b, low, high[, estimate]                     pairs with --verify sketch, or of `similar`
    new, other, similarity, collection[, direction] pairs with --against
    id, kept, similarity[, doubt, change]           removed records; null where not a pair
    cluster, id                                     clusters

The lines are those of `answer_lines` and, with --against, of `verification.record_pairs`.  Programs
that read an answer read either, by `parsed_lines`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Callable, TypeVar

from neardup.reading.blocks import Pieces, line_pieces, read_files
from neardup.reading.compressed import kind_by_name, opened, table_kind
from neardup.reading.row_files import CSV, LineTable, fields_table, line_of_row
from neardup.reading.separated_rows import separated_pieces
from neardup.reading.table_files import TABLES, check_pyarrow
from neardup.reading.table_rows import typed_pieces
from neardup.reading.text_rows import Fields, FlawError, Line, Row, json_line, lines_in, row_of
from neardup.runtime.program import StageError, WireError, shown

MAX_LINE = 64 << 20  # bytes of a line, which has two ids
ALL_FIELDS = Fields("", (), needs_id=False)
Parsed = TypeVar("Parsed")

REMOVED = fields_table(id=str, kept=str, similarity=float)
DOUBTED = fields_table(**REMOVED.columns, doubt=str, change=str)  # of `neardup images`
CLUSTERS = fields_table(cluster=str, id=str)
PAIRS = fields_table(a=str, b=str, similarity=float)
ACROSS = fields_table(new=str, other=str, similarity=float, collection=str)
DIRECTED_ACROSS = fields_table(new=str, other=str, similarity=float, collection=str, direction=str)


def interval_row(line: bytes) -> Row:
    r"""Return the table row of a pair line that has an interval, and possibly an estimate.

    >>> interval_row(b"a\tb\t~0.871123..1.000000\n")
    {'a': 'a', 'b': 'b', 'low': 0.871123, 'high': 1.0}
    """
    a, b, interval, *estimate = line.decode().rstrip("\n").split("\t")
    low, high = map(float, interval[1:].split(".."))
    return dict(zip(ESTIMATES.columns, (a, b, low, high, *map(float, estimate))))


def interval_line(row: Row) -> bytes:
    r"""Return the pair line for a row of `interval_row`; an estimate is left out.

    >>> interval_line({"a": "a", "b": "b", "low": 0.871123, "high": 1.0})
    b'a\tb\t~0.871123..1.000000\n'
    """
    return "{a}\t{b}\t~{low:.6f}..{high:.6f}\n".format(**row).encode()


INTERVALS, ESTIMATES = (
    LineTable(
        {"a": str, "b": str, "low": float, "high": float, **more}, interval_row, interval_line
    )
    for more in ({}, {"estimate": float})
)
ALL_PAIRS = (DIRECTED_ACROSS, ACROSS, INTERVALS, PAIRS)  # those with more columns first


def answer_table(output: str, against: bool, directed: bool, estimated: bool) -> LineTable:
    """Return the table of an answer, given --output and the options that change its lines."""
    if output in ("kept", "marked", "removed"):  # records are also written beside the others
        return REMOVED
    if output == "clusters":
        return CLUSTERS
    if against:
        return DIRECTED_ACROSS if directed else ACROSS
    return INTERVALS if estimated else PAIRS


def parsed_lines(
    files: Sequence[str], parse: Callable[[bytes], Parsed], tables: Sequence[LineTable] = ()
) -> Iterator[Parsed]:
    """Yield the parsed lines of answers; a StageError names the file and the line that is wrong.

    A file may have rows of one of `tables` instead, which are parsed as their lines.
    """
    for name in files:
        for block in read_files([name], MAX_LINE, pieces=_pieces(name) if tables else line_pieces):
            if block.flaw:
                raise StageError(f"{block.place}{block.line}: {block.flaw}")
            for number, line in lines_in(block.data):
                try:
                    yield parse(_line(line, tables))
                except WireError as error:
                    raise StageError(f"{block.place}{block.line + number}: {error}") from None


def _pieces(name: str) -> Pieces:
    """Return the function that reads an answer's file as rows of a table, or as lines."""
    kind, start = kind_by_name(name), b""
    if os.path.isfile(name):
        with opened(name, name) as file:
            start = file.readline(MAX_LINE)
    typed = table_kind(start) or (kind if kind in TABLES else "")
    if typed:
        check_pyarrow(typed)
        return partial(typed_pieces, typed, ALL_FIELDS)
    if kind == CSV and b"\t" not in start:  # otherwise it has lines with tabs, in spite of its name
        return partial(separated_pieces, CSV, ALL_FIELDS)
    return line_pieces


def _line(line: Line, tables: Sequence[LineTable]) -> bytes:
    """Return a tab-separated line, converted if `line` is a row or a JSON object."""
    if type(line) is bytes and not (tables and line.startswith(b"{") and b"\t" not in line):
        return line
    try:
        return line_of_row(row_of(line), tables)[:-1]
    except FlawError as flaw:
        raise WireError(f"{flaw}: {shown(json_line(line))}") from None
