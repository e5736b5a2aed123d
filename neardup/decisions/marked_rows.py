r"""Write rows with four columns in front of them (--output marked), or in another format.

    duplicate_of,similarity,cluster,copies,id,text
    ,,a,2,a,"to be, or not to be"                     kept; it stands for two records
    a,1.0,a,0,b,To be or not to be                    removed
    ,,,,c                                             not compared: a bad row

They come first, so that a row with too few or too many fields cannot shift them.  The bytes behind
them are those that --output kept writes.  A bad JSON line and a blank line have no columns.

`keep_as_rows` writes the kept rows as JSON lines, CSV, Parquet or Arrow.  JSON lines need no
columns; for the others the files are read twice: first for the columns of all rows, and then to
write them.  A value keeps its type where the format has one: numbers, texts, nulls, lists and
objects in JSON, Parquet and Arrow.  Dates, decimals and bytes become text, as `neardup convert`
writes them, and everything in CSV is text.  What a format cannot express ends the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from importlib import import_module
from itertools import chain, groupby, repeat, takewhile
from typing import IO, Any, Callable

import numpy as np
from numpy.typing import NDArray

from neardup.decisions.kept_lines import (
    AGAIN,
    FILE_PLACES,
    Decided,
    Places,
    PlacesOf,
    kept_lines,
    lines_from,
)
from neardup.decisions.merged_rows import END, Merges
from neardup.lines.answer_lines import NO_PAIR, is_mark
from neardup.reading.blocks import InputFile, read_files
from neardup.reading.compressed import LINES, opened
from neardup.reading.input_format import InputFormat
from neardup.reading.separated_rows import TABS, Table, row_ends, separated
from neardup.reading.table_rows import CSV, JSON, json_row, write_rows
from neardup.reading.text_rows import FlawError, Line, Row, lines_in, row_of
from neardup.runtime.program import StageError, to_add, write_to

COLUMNS = {"duplicate_of": str, "similarity": float, "cluster": str, "copies": int}
Mark = tuple[Any, ...]  # the values of these columns; None is null
ALONE: Mark = (None, None, None, 1)
NOT_COMPARED: Mark = (None,) * len(COLUMNS)
NO_MARK: tuple[int, bytes, Mark] = (END, b"", ALONE)


class Marks(Places):
    """The marks of one file's rows, which are asked for in order; no row is removed.

    left_out: the places (uint64, ascending) of all rows that were not compared
    """

    columns: Mapping[str, type] = COLUMNS
    not_compared: Mark = NOT_COMPARED

    def __init__(
        self,
        form: InputFormat,
        prefix: str,
        left_out: np.ndarray,
        decided: Decided,
        file: InputFile,
        merges: Merges | None = None,
    ):
        super().__init__(decided, file, merges)
        self._dialect, self.names = form.dialect, names_of(prefix, self.columns)
        self._check = partial(check_columns, prefix, file.name, added=self.columns)
        self._name = file.name
        self._has_name = re.compile(
            rb"\\u00|" + "|".join(map(json.dumps, self.names)).encode()  # also if it is escaped
        ).search
        mine = left_out[np.searchsorted(left_out, np.uint64(file.first)) :]
        self._left_out = chain(map(int, mine), repeat(END))
        self._marks = chain(_marks(decided, file.first), repeat(NO_MARK))
        self._first, self._rows = file.first, 0
        self._fields = form.fields
        self._asked, self._out, self._next = -1, next(self._left_out), next(self._marks)
        self._as_json = lru_cache(lambda mark: json_row(dict(zip(self.names, mark)))[:-2])

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def at(self, place: int) -> Mark:
        """Return the mark of the row at `place`, which must not be before that of the last call."""
        self._asked = place
        while self._out < place:
            self._out = next(self._left_out)
        if self._next[0] < place:
            self._next = next(self._marks)
        marked, self._id, mark = self._next
        if marked < place or marked == self._out < END:
            raise StageError(f"{self._name}: is not the file that was decided on; {AGAIN}")
        return self.not_compared if self._out == place else mark if marked == place else ALONE

    def of_row(self, place: int, line: Line, row: Row) -> tuple[Line, Row]:
        self._check(row)
        self._rows += 1
        assert self._fields
        shifted = place != self._first + self._rows - 1
        if shifted and self._fields.value(row, self._fields.id) in (None, ""):
            raise StageError(
                f"{self._name}: row {place - self._first + 1:,} has no id, and lines before it are "
                "not rows, so that its number would be another here; leave out -o, or name it with "
                "the extension of the input"
            )
        line = self.line(place, line, "jsonl") if isinstance(line, bytes) else line
        return line, {**dict(zip(self.names, self.at(place))), **row}

    def line(self, place: int, line: bytes, kind: str) -> bytes:
        """Return a line or row with its mark; a blank line and bad JSON are unchanged."""
        mark = self.at(place)
        if kind in LINES and self._next[0] == place:
            self.check_line(line)
        if not line.strip(b"\r\n" if kind == "csv" else None):
            return line
        if kind != "jsonl":
            return self._separated(mark, kind) + line
        if mark is self.not_compared or self._has_name(line):
            try:
                self._check(row_of(line))
            except FlawError:
                return line
        rest = line.lstrip()[1:]
        return self._as_json(mark) + b","[rest.lstrip().startswith(b"}") :] + rest

    def of_lines(
        self, chunks: Iterable[bytes], kind: str, first: int, header: bool, with_header: bool
    ) -> Iterator[bytes]:
        left_out = [first - 1] if header and not with_header else []
        place, held = first - (header and with_header), b""
        for chunk in kept_lines(chunks, first - header, left_out):
            *lines, held = (held + chunk).split(b"\n")
            for i, line in enumerate(lines):
                is_row = place >= first
                front = self._separated(self.names, kind) if not is_row else b""
                lines[i] = self.line(place, line, kind) if is_row else front + line
                place += 1
            yield b"".join(line + b"\n" for line in lines)

    def of_table(self, table: Table, first: int, with_header: bool) -> Iterator[bytes]:
        if with_header and table.header:
            yield self._separated(self.names, "csv") + table.header
        for number, data, flaw in table.rows:
            ends = [len(data)] if flaw else row_ends(data, dialect=table.dialect).tolist()
            each = enumerate(zip([0, *ends], ends), first + number - 1)
            yield b"".join(self.line(place, data[a:b], "csv") for place, (a, b) in each)

    def of_batches(self, batches: Iterable[Any], first: int) -> Iterator[Any]:
        arrow, fields = import_module("pyarrow"), self.fields()
        for batch in batches:
            rows = [self.at(first + i) for i in range(batch.num_rows)]
            first += len(rows)
            columns = zip(*rows) if rows else repeat(())
            marks = [arrow.array(each, field.type) for each, field in zip(columns, fields)]
            schema = arrow.schema([*fields, *batch.schema])
            yield arrow.RecordBatch.from_arrays([*marks, *batch.columns], schema=schema)

    def fields(self) -> list[Any]:
        arrow = import_module("pyarrow")
        kinds = {str: arrow.string(), float: arrow.float64(), int: arrow.int64()}
        return [arrow.field(n, kinds[kind]) for n, kind in zip(self.names, self.columns.values())]

    def _has_more(self) -> bool:
        return (self._next if self._next[0] > self._asked else next(self._marks)) is not NO_MARK

    def _separated(self, values: Sequence[Any], kind: str) -> bytes:
        """Return values as the first fields of a row."""
        dialect = self._dialect if kind == "csv" else TABS
        texts = ("" if value is None else str(value) for value in values)
        return b"".join(
            separated(text, kind, dialect) + dialect.delimiter.encode() for text in texts
        )


def names_of(prefix: str, added: Iterable[str] = COLUMNS) -> list[str]:
    return [f"{prefix}{name}" for name in added]


def check_columns(
    prefix: str, file: str, columns: Iterable[str], added: Iterable[str] = COLUMNS
) -> None:
    """Raise StageError if a file has one of the columns that are added."""
    if both := sorted({*columns} & {*names_of(prefix, added)}):
        other = to_add("--mark-prefix", f"neardup_{prefix}")
        raise StageError(f"{file}: has a column {both[0]}, which --output marked adds; {other}")


def check_files(
    form: InputFormat,
    prefix: str,
    files: Sequence[InputFile],
    max_line: int,
    added: Iterable[str] = COLUMNS,
) -> None:
    """Raise StageError if a table, or the first JSON line of a file, has a column to be added."""
    for file in files if form.fields else ():
        columns = form.columns(file.path, file.name) if form.has_header else ()
        found: Iterable[str] = [getattr(each, "name", each) for each in columns]
        if form.kind_of(file.name) == "jsonl":
            with opened(file.path, file.name) as stream, suppress(FlawError):
                found = row_of(stream.readline(max_line))
        check_columns(prefix, file.name, found, added)


def _marks(decided: Decided, first: int) -> Iterator[tuple[int, bytes, Mark]]:
    """Yield (place, id, mark) of one file's records in pairs, in order; b"" for a kept record."""
    mine = takewhile(lambda line: line[0] < first + FILE_PLACES, lines_from(decided, first))
    for place, lines in groupby(mine, key=lambda line: line[0]):
        id_, duplicate_of, similarity, cluster, copies = b"", None, None, b"", -1
        for _, line in lines:
            fields = line.rstrip(b"\t\n").split(b"\t")
            if is_mark(line):
                cluster, copies = fields[1], int(fields[2])
            else:
                id_, duplicate_of = fields[1], fields[2].decode()
                similarity = None if fields[3] == NO_PAIR else float(fields[3])
        if copies < 0:
            raise StageError(f"removed records without marks; decide with --output marked; {AGAIN}")
        yield place, id_, (duplicate_of, similarity, cluster.decode() or None, copies)


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
    decided, max_line, passed, of_file: as in `kept_lines.keep_in_one`
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
    form: InputFormat, file: InputFile, max_line: int, places: Places, passed: Callable[[int], None]
) -> Iterator[tuple[list[tuple[Line, Row]], list[tuple[int, str, str]]]]:
    """Yield for each block of a file its kept rows, and (place, name, flaw) of unreadable ones."""
    assert form.fields
    form = form._replace(fields=replace(form.fields, texts=(), ranked=()))
    gone = iter(places)
    next_gone = next(gone, None)
    for block in read_files([file], max_line, pieces=form.pieces_of_any, passed=passed):
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
    places.check(file.name)


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
