"""Write the kept rows of tables in another format: JSON lines, CSV, Parquet or Arrow.

    files ─ without removed rows ─┬─▶ -o clean.jsonl
                                  └─ columns of all rows, rows ─▶ clean.csv, .parquet, .arrow

JSON lines need no columns.  For the others the files are read twice: first for the columns of all
rows, and then to write them.

A value keeps its type where the format has one: numbers, texts, nulls, lists and objects in JSON,
Parquet and Arrow.  Dates, decimals and bytes become text, as `neardup convert` writes them, and
everything in CSV is text.  What a format cannot express ends the run with a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import chain
from typing import IO, Any, Callable

import numpy as np
from numpy.typing import NDArray

from neardup.decisions.kept_lines import Places, PlacesOf
from neardup.reading.blocks import read_files
from neardup.reading.input_files import InputFile
from neardup.reading.input_format import InputFormat
from neardup.reading.row_files import CSV, JSON, json_row, write_rows
from neardup.reading.text_rows import FlawError, Line, Row, lines_in, row_of
from neardup.runtime.program import StageError, to_add, write_to


def keep_as_rows(
    form: InputFormat,
    files: Sequence[InputFile],
    max_line: int,
    decided: IO[bytes],
    sink: IO[bytes],
    target: tuple[str, str],
    uncompared: NDArray[np.uint64],
    passed: Callable[[int], None] = lambda _: None,
    of_file: PlacesOf = Places,
) -> int:
    """Write the kept rows of all files; return how many bad rows were left out.

    StageError for a row that was compared, and cannot be read as a whole: duplicates of it are
    removed.

    target: the name of the output file, and one of FORMATS
    uncompared: places (uint64) of bad lines and of records without shingles, ascending
    decided, max_line, passed, of_file: as in `kept_lines.keep_files`
    """
    name, kind = target
    left_out = 0

    def kept() -> Iterator[list[tuple[Line, Row]]]:
        nonlocal left_out
        left_out = 0
        for file in files:
            places = of_file(decided, file)
            for rows, flawed in _kept(form, file, max_line, places, passed):
                for place, where, flaw in flawed:
                    at = int(np.searchsorted(uncompared, np.uint64(place)))
                    if at == len(uncompared) or uncompared[at] != place:
                        own = form.kind_of(file.name)
                        raise StageError(
                            f"{where}: {flaw}, in a row that was compared, which {kind} cannot "
                            f"hold; {_option(name, kind, own)}"
                        )
                left_out += len(flawed)
                yield rows

    if kind == JSON:
        pairs = chain.from_iterable(kept())
        as_it_is = (
            line.strip() + b"\n" if isinstance(line, bytes) else json_row(row)
            for line, row in pairs
        )
        write_to(sink, as_it_is, name)
        return left_out
    of_headers = chain.from_iterable(form.columns(file.path, file.name) for file in files)
    first = of_file(decided, files[0])
    names = [getattr(each, "name", each) for each in [*first.names, *of_headers]]
    columns = Columns(name, kind, names)
    if kind != CSV:
        columns.kinds |= {field.name: field.type for field in first.fields()}
    for rows in kept():
        columns.add([row for _, row in rows])
    with columns.refusing():
        write_rows(sink, name, kind, (row for rows in kept() for _, row in rows), columns.kinds)
    return left_out


def _kept(
    form: InputFormat,
    file: InputFile,
    max_line: int,
    places: Places,
    passed: Callable[[int], None],
) -> Iterator[tuple[list[tuple[Line, Row]], list[tuple[int, str, str]]]]:
    """Yield for each block of a file its kept rows, and (place, name, flaw) of unreadable ones."""
    path, name, first = file
    assert form.fields
    form = form._replace(fields=replace(form.fields, texts=(), ranked=()))
    gone = iter(places)
    next_gone = next(gone, None)
    how: dict[str, Any] = dict(names=[name], places=[first], passed=passed)
    for block in read_files([path], max_line, pieces=form.pieces_of_any, **how):
        rows, flawed = list[tuple[Line, Row]](), list[tuple[int, str, str]]()
        if block.flaw:
            flawed.append((block.first, f"{block.place}{block.line}", block.flaw))
        for number, line in lines_in([] if block.flaw else block.data):
            if block.first + number == next_gone:
                next_gone = next(gone, None)
                continue
            try:
                if places.added and places.added.place == block.first + number:
                    line = places.added.of_line(line)
                rows.append(places.of_row(block.first + number, line, row_of(line)))
            except FlawError as flaw:
                where = f"{block.place}{block.line + number}"
                flawed.append((block.first + number, where, str(flaw)))
        yield rows, flawed
    places.check(name)


class Columns:
    """The columns of all headers and rows so far and, except for CSV, their Arrow types."""

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
        line = _option(self._name, self._kind, "jsonl")
        return StageError(f"-o {self._name}: {why}, which {self._kind} cannot hold; {line}")


def _option(name: str, kind: str, other: str) -> str:
    """Return words with -o for an output of another format."""
    for suffix in (".gz", ".bz2", ".xz", ".zst", f".{kind}", ".pq"):
        name = name.removesuffix(suffix)
    return to_add("-o", f"{name}.{other}")
