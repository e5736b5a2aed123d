"""Write the kept rows of tables in another format: JSON lines, CSV or Parquet.

    files ─ without removed rows ─▶ JSON lines ─┬─▶ -o clean.jsonl
                                                └─ columns of all rows ─▶ clean.csv, clean.parquet

JSON lines need no columns.  For the others the rows are written to a temporary file first, until
the columns of the last one are known.

A value keeps its type where the format has one: numbers, texts, nulls, lists and objects in JSON
and Parquet.  Dates, decimals and bytes of Parquet become text, as `neardup convert` writes them,
and everything in CSV is text.  What a format cannot express ends the run with a message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import chain
from tempfile import TemporaryFile
from typing import IO, Any, Callable

from neardup.decisions.kept_lines import Places
from neardup.reading.blocks import BLOCK_BYTES, blocks_of, read_files
from neardup.reading.input_files import InputFile
from neardup.reading.input_format import InputFormat
from neardup.reading.parquet_rows import schema_of
from neardup.reading.row_files import CSV, JSON, json_row, write_rows
from neardup.reading.separated_rows import header_of
from neardup.reading.text_rows import FlawError, Row, lines_in, row_of
from neardup.runtime.program import StageError, to_add, write_to


def keep_as_rows(
    form: InputFormat,
    files: Sequence[InputFile],
    max_line: int,
    decided: IO[bytes],
    sink: IO[bytes],
    target: tuple[str, str],
    passed: Callable[[int], None] = lambda _: None,
) -> int:
    """Write the kept rows of all files; return how many bad rows were left out.

    target: the name of the output file, and one of FORMATS except lines
    decided, max_line, passed: as in `kept_lines.keep_file`
    """
    name, kind = target
    left_out = 0

    def rows() -> Iterator[bytes]:
        nonlocal left_out
        for file in files:
            for line in _kept(form, file, max_line, decided, passed):
                left_out += line is None
                if line is not None:
                    yield line

    if kind == JSON:
        write_to(sink, rows(), name)
        return left_out
    columns = Columns(name, kind, _named_columns(form, files))
    with TemporaryFile() as spool:
        for block in _in_blocks(rows()):
            columns.add(list(map(json.loads, block.splitlines())))
            spool.write(block)
        spool.seek(0)
        lines = chain.from_iterable(block.splitlines() for block in blocks_of(spool))
        with columns.refusing():
            write_rows(sink, name, kind, map(json.loads, lines), columns.kinds)
    return left_out


def _kept(
    form: InputFormat,
    file: InputFile,
    max_line: int,
    decided: IO[bytes],
    passed: Callable[[int], None],
) -> Iterator[bytes | None]:
    """Yield each kept row of a file as a JSON line, or None for a row that cannot be read."""
    path, name, first = file
    assert form.fields
    form = form._replace(fields=replace(form.fields, texts=(), ranked=()))
    places = Places(decided, first)
    gone = iter(places)
    next_gone = next(gone, None)
    how: dict[str, Any] = dict(names=[name], places=[first], passed=passed)
    for block in read_files([path], max_line, pieces=form.pieces_of_any, **how):
        if block.flaw:
            yield None
            continue
        for number, line in lines_in(block.data):
            if block.first + number == next_gone:
                next_gone = next(gone, None)
                continue
            try:
                row = row_of(line)
                yield line.strip() + b"\n" if isinstance(line, bytes) else json_row(row)
            except FlawError:
                yield None
    places.check(name)


def _in_blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines in blocks of about BLOCK_BYTES."""
    held, size = [], 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size > BLOCK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _named_columns(form: InputFormat, files: Sequence[InputFile]) -> list[str]:
    """Return the distinct column names in the headers of the files; JSON lines have no header."""
    names: dict[str, None] = {}
    for path, name, _ in files:
        kind = form.kind_of(name)
        if kind == "parquet":
            names.update(dict.fromkeys(schema_of(path, name).names))
        elif kind != JSON:
            names.update(dict.fromkeys(header_of(kind, path, name, form.dialect)))
    return list(names)


class Columns:
    """The columns of the headers and of the rows added so far and, for Parquet, their types."""

    def __init__(self, name: str, kind: str, names: Sequence[str]):
        self._name, self._kind, self._field = name, kind, ""
        self.kinds: dict[str, Any] = dict.fromkeys(names)
        if kind != CSV:
            self._arrow = import_module("pyarrow")
            self.kinds = dict.fromkeys(names, self._arrow.null())

    def add(self, rows: Sequence[Row]) -> None:
        """Add the fields of rows to the columns; StageError if the format cannot hold a value."""
        for name in dict.fromkeys(chain.from_iterable(rows)):
            self._field = name
            values = [row[name] for row in rows if name in row]
            if self._kind == CSV:
                self.kinds[name] = None
                if any(isinstance(value, (dict, list)) for value in values):
                    raise self._refused(f"field {name!r} has lists or objects")
            else:
                with self.refusing():
                    kind = self._type_of(values)
                    self.kinds[name] = self._merged(self.kinds.get(name, kind), kind)
        self._field = ""

    def _type_of(self, values: list[Any]) -> Any:
        arrow = self._arrow
        try:
            return arrow.array(values).type
        except OverflowError:  # numbers above 2^63, such as shingles
            unsigned = arrow.uint64()
            lists = any(isinstance(value, list) for value in values)
            return arrow.array(values, arrow.list_(unsigned) if lists else unsigned).type

    def _merged(self, a: Any, b: Any) -> Any:
        """Return an Arrow type for values of types a and b; an Arrow error if there is none."""
        arrow = self._arrow
        for wrap in (lambda kind: kind, arrow.list_):
            signed, unsigned = wrap(arrow.int64()), wrap(arrow.uint64())
            if {a, b} == {signed, unsigned}:
                return unsigned
        schemas = [arrow.schema([("", kind)]) for kind in (a, b)]
        return arrow.unify_schemas(schemas, promote_options="permissive").field(0).type

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Context manager: turn errors about values into a StageError with a command to type."""
        try:
            yield
        except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
            what = "values of different kinds"
            if isinstance(error, OverflowError):
                what = "numbers above 2^64-1"
            elif isinstance(error, UnicodeError):
                what = "text with half a surrogate pair"
            elif isinstance(error, NotImplementedError):
                what = "objects without fields"
            field = f"field {self._field!r} has" if self._field else "a field has"
            raise self._refused(f"{field} {what}") from None

    def _refused(self, why: str) -> StageError:
        name = self._name
        for suffix in (".gz", ".bz2", ".xz", ".zst", f".{self._kind}", ".pq"):
            name = name.removesuffix(suffix)
        line = to_add("-o", f"{name}.jsonl")
        return StageError(f"-o {self._name}: {why}, which {self._kind} cannot hold; {line}")
