"""The records of a file that stay, in the form that the file has: lines, rows with their header, or
a Parquet file with all its columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import IO, Callable

from neardup.decisions.keep_lines import kept_lines, places_from
from neardup.process.errors import UsageError
from neardup.reading.input_files import InputFile
from neardup.reading.line_form import LineForm
from neardup.reading.packed import opened, position, unpacked
from neardup.reading.tables.parquet_rows import kept_parquet
from neardup.reading.tables.separated import header_of, kept_rows, opened_table


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
    gone = places_from(decided, first)
    written = 0
    if kind == "parquet":
        kept_parquet(path, name, first, gone, sink, passed)
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
        written = sum(map(sink.write, kept_lines(unpacked(path, passed), first, gone)))
    return written > 0


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


def check_one_answer(form: LineForm, files: Sequence[InputFile]) -> None:
    """UsageError where what stays of several files cannot be one file."""
    instead = "write a file for each of them: -o FOLDER/"
    kinds = {form.kind_of(name) for _, name, _ in files}
    if len(files) > 1 and "parquet" in kinds:
        raise UsageError(f"--output kept of several Parquet files is not one file; {instead}")
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
