"""The records of a file that stay, in the form that the file has: lines, rows with their header, or
a Parquet file with all its columns.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from typing import IO, Callable

from neardup.decisions.keep_lines import kept_lines, records_from
from neardup.process.errors import StageError, UsageError, shown
from neardup.process.program import STDOUT
from neardup.reading.input_files import InputFile
from neardup.reading.input_kinds import LINES
from neardup.reading.line_form import LineForm
from neardup.reading.packed import opened, position, unpacked
from neardup.reading.places import LINE_BITS
from neardup.reading.tables.parquet_rows import kept_parquet
from neardup.reading.tables.separated import header_of, kept_rows, opened_table

FILE_PLACES = 1 << LINE_BITS  # from one file to the next
AGAIN = "name the same files in the same order, or run all of it again"


def nothing(_: int) -> None:
    """For those who do not ask how far it is."""


def keep_file(
    form: LineForm,
    file: InputFile,
    max_line: int,
    decided: IO[bytes],
    sink: IO[bytes],
    with_header: bool = True,
    passed: Callable[[int], None] = nothing,
) -> bool:
    """Write what stays of a file; `decided` are the lines of those that go, in order of places.

    Tells whether that was anything: of an empty file there is no header, which the next one has.
    `max_line` and `passed` are as in `read_files`.
    """
    kind, (path, name, first) = form.kind_of(file.name), file
    places = Places(decided, first)
    gone: Iterator[int] = places
    written = 0
    if kind == "parquet":
        kept_parquet(path, name, first, gone, sink, passed)
        places.check(name)
        return True
    if kind == "csv":
        with opened(path, name) as stream:
            table = opened_table(kind, form.has_header, stream, name, max_line)
            for rows in kept_rows(table, first, gone, with_header):
                written += sink.write(rows)
                passed(position(stream))
    else:
        if kind == "tsv" and form.has_header:  # it stands before the first record
            first -= 1
            gone = gone if with_header else itertools.chain([first], gone)
        check = places.check_line if kind in LINES else None
        lines = kept_lines(unpacked(path, passed), first, gone, check=check)
        written = sum(map(sink.write, lines))
    places.check(name)
    return written > 0


class Places:
    """The places of the records that go, of one file, asked for in order."""

    def __init__(self, decided: IO[bytes], first: int):
        end = first + FILE_PLACES
        records = records_from(decided, first)
        self._left = itertools.takewhile(lambda record: record[0] < end, records)
        self._given = self._ended = False
        self._id = b""

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        found = next(self._left, None)
        if found is None:
            self._ended = True
            raise StopIteration
        self._given = True
        place, self._id = found
        return place

    def check_line(self, line: bytes) -> None:
        """StageError unless the line at the last place is of the record that goes."""
        if not line.lstrip().startswith(self._id):
            raise StageError(
                f"expected a line of {shown(self._id)}, got {shown(line.rstrip())}: this is "
                f"another file than that which was decided on; {AGAIN}"
            )

    def check(self, name: str) -> None:
        """StageError where not all lines were found, after which the next place was asked for."""
        if not self._ended and (self._given or next(self, None) is not None):
            raise StageError(f"{name}: is shorter than the file that was decided on; {AGAIN}")


def keep_in_one(
    form: LineForm,
    files: Sequence[InputFile],
    max_line: int,
    decided: IO[bytes],
    sink: IO[bytes],
    passed: Callable[[int], None] = nothing,
) -> None:
    """The same of several files, one after the other, with one header."""
    header, before, done = True, 0, 0

    def in_all(of_file: int) -> None:
        nonlocal done
        done = of_file
        passed(before + done)

    for file in files:
        header = not keep_file(form, file, max_line, decided, sink, header, in_all) and header
        before, done = before + done, 0
    for _ in records_from(decided, files[-1].first + FILE_PLACES):
        raise StageError(f"more files were decided on than these; {AGAIN}")


def check_one_answer(form: LineForm, files: Sequence[InputFile]) -> None:
    """UsageError where what stays of several files cannot be one file, or stdout is a terminal and
    it is not text."""
    instead = "write a file for each of them: -o FOLDER/"
    kinds = {form.kind_of(name) for _, name, _ in files}
    if len(files) > 1 and "parquet" in kinds:
        raise UsageError(f"--output kept of several Parquet files is not one file; {instead}")
    if "parquet" in kinds and os.isatty(STDOUT):
        raise UsageError(
            "--output kept of Parquet is not text for a terminal; write a file: > FILE.parquet"
        )
    if len(kinds) > 1:
        names = " and ".join(sorted(kinds))
        raise UsageError(f"--output kept of {names} is not one file; {instead}")
    if kinds <= {"csv", "tsv"} and form.has_header and len(files) > 1:
        headers = [(name, header) for name, header in _headers(form, files) if header]
        for name, header in headers[1:]:
            if header != headers[0][1]:
                raise UsageError(f"{headers[0][0]} and {name} have other columns; {instead}")


def _headers(form: LineForm, files: Sequence[InputFile]) -> Iterator[tuple[str, list[str]]]:
    for path, name, _ in files:
        with opened(path, name) as stream:
            yield name, header_of(form.kind_of(name), stream, name)
