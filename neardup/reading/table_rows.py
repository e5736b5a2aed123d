r"""Read rows from typed tables, Parquet and Arrow, and write rows in any format.

A row group of Parquet is read a slice at a time, and only if one of its slices is asked for:
mappers that share a file each decode their own slices, and those before them in the same row group.

The size of slices follows from the file, so that it is the same for all mappers.  The metadata of
Parquet count a repeated string only once; `RowGroup.batches` bounds what is decoded at once.

Rows, dictionaries, are written as JSON lines, CSV, Parquet or Arrow, by the name of the file:

    {"a": "x", "b": "y", "similarity": 0.9}
        ─▶ {"a":"x","b":"y","similarity":0.9}⏎      .jsonl .ndjson .json
        ─▶ a,b,similarity⏎x,y,0.9⏎                  .csv, with a header
        ─▶ a row of a table with typed columns      .parquet .pq .arrow .feather

An answer is made as lines with tabs.  If its file has such a name, each line is written as a row,
and each row is read as that line.  Memory: some thousand rows, or a row group of Parquet.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import chain, islice
from typing import IO, Any, Callable, NamedTuple

import numpy as np

from neardup.reading.blocks import BLOCK_BYTES, Piece, Start
from neardup.reading.compressed import kind_by_name, plain_name
from neardup.reading.input_check import NOT_UTF8, BadLine
from neardup.reading.missing_fields import SEEN_ROWS, check_columns, check_rows
from neardup.reading.table_files import (
    READ_BYTES,
    TABLES,
    RowGroup,
    check_pyarrow,
    damage_named,
    opened_typed,
)
from neardup.reading.text_rows import Fields, Line, Row, json_line
from neardup.runtime.program import UsageError, WireError, naming, shown, write_to

MAX_ROWS = 1 << 16  # of a slice
BAD_STRING = "\udcff"  # in place of a string that is not UTF-8
JSON, CSV = "jsonl", "csv"
FORMATS = (JSON, CSV, *TABLES)
BATCH_ROWS = 1 << 12
SPECIAL = re.compile('[",\r\n]')
BOOLEANS = {"true": True, "false": False}
Columns = Mapping[str, Any]  # name: str, float, int or bool, or an Arrow type


def typed_pieces(
    kind: str, fields: Fields, path: str, name: str, max_line: int, start: Start
) -> Iterator[Piece]:
    """Yield pieces of consecutive rows of a typed table, with the columns of `fields` only."""
    if fields.numbered:
        raise UsageError(
            f"--id and --text must be column names for {TABLES[kind].title}, not numbers"
        )
    with opened_typed(kind, path, name) as file:
        tops = file.schema.names
        found = {field: _column(file.schema, field) for field in fields.of_columns(tops)}
        columns = list(dict.fromkeys(column for column, _ in found.values() if column))
        nested = (f for f in fields.names if f not in tops and _column(file.schema, f)[0])
        rows_seen = partial(first_rows, file, fields)
        check_columns([*tops, *nested], fields, name, rows_seen)
        if not start.later and any(_may_lack_text(found[text][1]) for text in fields.texts):
            there = {text.split(".")[0] for text in fields.texts}
            some = [row for row in rows_seen() if isinstance(row, dict) and row.keys() & there]
            check_rows([*some], fields, name)
        number, has_ids = 1, fields.id in columns
        for group in file.groups(columns):
            slices = Slices(group, partial(damage_named, kind, name))
            for at in range(0, group.rows, slices.size):
                rows_at = partial(slices.rows_from, at, fields)
                behind = group.behind(at)
                yield Piece(number + at, rows_at, "", "row", behind, has_ids=has_ids)
            number += group.rows


def first_rows(file: Any, fields: Fields) -> list[Line]:
    """Return the first rows, for messages."""
    batches = (batch for group in file.groups() for batch in group.batches(SEEN_ROWS, BLOCK_BYTES))
    rows = chain.from_iterable(rows_of(batch, fields) for batch in batches)
    return list(islice(rows, SEEN_ROWS))


class Slices:
    """The slices of a group of rows, of at most `size` rows each, read in order."""

    def __init__(self, group: RowGroup, damages: Callable[[], Any]):
        self.size = max(1, min(MAX_ROWS, BLOCK_BYTES * group.rows // max(group.size, 1)))
        self._rows, self._damages = group.rows, damages
        self._open = partial(group.batches, self.size, 4 * BLOCK_BYTES)
        self._batches: Iterator[Any] = iter(())
        self._next = 0  # the first row that `_batches` has not yielded yet
        self._rest: Any = None  # of the last batch that it has yielded

    def rows_from(self, at: int, fields: Fields) -> Iterator[list[Line]]:
        """Yield the rows of the slice that begins at row `at` of the group, in lists."""
        end = min(at + self.size, self._rows)
        with self._damages():
            if not self._next:
                self._batches = self._open()
            while at < end:
                while self._next <= at:
                    self._rest = next(self._batches)
                    self._next += self._rest.num_rows
                batch = self._rest.slice(max(0, self._rest.num_rows - (self._next - at)))
                yield rows_of(some := batch.slice(0, end - at), fields)
                at += some.num_rows
                self._rest = batch.slice(some.num_rows)


def rows_of(batch: Any, fields: Fields) -> list[Line]:
    """Return the rows of a record batch as dictionaries, or as bad lines.

    Nulls are left out unless all columns are wanted.
    """
    types = import_module("pyarrow.types")
    strings = bool(fields.texts)
    columns, forms = [], []
    for name, column in zip(batch.schema.names, batch.columns):
        values = _values(column)
        if fields.binary and name != fields.id:
            values = [_in_hexadecimal(value) for value in values]
        elif types.is_binary(column.type) or types.is_large_binary(column.type):
            values = [_string(value, strings) for value in values]
        columns.append(values)
        forms.append(_as_id if name == fields.id else partial(plain_value, strings=strings))
    named = list(zip(batch.schema.names, forms))
    rows: list[Line] = []
    for number, some in enumerate(zip(*columns)):
        cells = zip(named, some)
        flawed = BAD_STRING in some
        try:
            row = {name: form(v) for (name, form), v in cells if v is not None or not strings}
        except UnicodeDecodeError:
            row, flawed = {name: plain_value(v) for (name, _), v in zip(named, some)}, True
        rows.append(BadLine(number, json_line(row), NOT_UTF8) if flawed else row)
    return rows


def _values(column: Any) -> list[Any]:
    """Return the values of a column; BAD_STRING for strings that are not UTF-8.

    What Python's dates and times cannot hold becomes text, and durations integers: each value by
    itself, also in lists and nested fields.
    """
    types, kind = import_module("pyarrow.types"), column.type
    if types.is_nested(kind) and re.search("time|date|duration", str(kind)):
        return _nested_values(column)
    if getattr(kind, "unit", "") == "ns":
        return _of_nanoseconds(column)
    try:
        values: list[Any] = column.to_pylist()
        return values
    except (ValueError, OverflowError) as error:
        if len(column) > 1:
            half = len(column) // 2
            return _values(column.slice(0, half)) + _values(column.slice(half))
        return [BAD_STRING] if isinstance(error, UnicodeDecodeError) else _as_text(column)


def _nested_values(column: Any) -> list[Any]:
    """Return lists, or dictionaries for nested fields; a map is a list of (key, value)."""
    types, kind = import_module("pyarrow.types"), column.type
    if not types.is_struct(kind):
        some = [None if each.values is None else _values(each.values) for each in column]
        pairs = types.is_map(kind)
        return [[tuple(p.values()) for p in one] if pairs and one else one for one in some]
    names = [kind.field(i).name for i in range(kind.num_fields)]
    rows = zip(column.is_valid().to_pylist(), *map(_values, column.flatten()))
    return [dict(zip(names, row)) if valid else None for valid, *row in rows]


def _as_text(column: Any) -> list[Any]:
    """Return dates and times, such as those after the year 9999, as text; durations as integers."""
    types, arrow = map(import_module, ("pyarrow.types", "pyarrow"))
    other = arrow.int64() if types.is_duration(column.type) else arrow.string()
    values: list[Any] = column.cast(other).to_pylist()
    return values


def _of_nanoseconds(column: Any) -> list[Any]:
    """Return whole microseconds as Python's times, other times as text."""
    types, arrow = map(import_module, ("pyarrow.types", "pyarrow"))
    kind, coarse = column.type, arrow.time64("us")
    if not types.is_time(kind):
        coarse = (
            arrow.timestamp("us", kind.tz) if types.is_timestamp(kind) else arrow.duration("us")
        )
    values: list[Any] = column.cast(coarse, safe=False).to_pylist()
    whole = [n is None or n % 1000 == 0 for n in column.cast(arrow.int64()).to_pylist()]
    if all(whole):
        return values
    texts = _as_text(column)
    return [value if exact else text for value, exact, text in zip(values, whole, texts)]


def _in_hexadecimal(value: Any) -> Any:
    """Convert binary values to hexadecimal text, also in lists and in nested fields."""
    if isinstance(value, dict):
        return {name: _in_hexadecimal(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_in_hexadecimal(each) for each in value]
    return value.hex() if isinstance(value, bytes) else value


def _as_id(value: Any) -> Any:
    """Return a value as an id (a string, an integer or a boolean); None for null and NaN."""
    if value is None or isinstance(value, (str, int)) or value != value:
        return plain_value(value)
    return value.hex() if isinstance(value, bytes) else str(value)


def plain_value(value: Any, strings: bool = False, finite: bool = False) -> Any:
    """Convert a value of a row to a JSON value; NaN becomes null, and other types text.

    finite: also make null of infinite numbers, which JSON lacks, and other formats have

    Bytes become base64, or with `strings` text, since Spark and Hive have written strings as bytes;
    UnicodeDecodeError if they are not UTF-8.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return None if value != value or (finite and value - value) else value
    if isinstance(value, dict):
        return {str(key): plain_value(each, strings, finite) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(each, strings, finite) for each in value]
    if not isinstance(value, bytes):
        return str(value)
    return value.decode() if strings else binascii.b2a_base64(value, newline=False).decode()


def _string(value: bytes | None, always: bool) -> Any:
    """Decode UTF-8; other bytes are returned unchanged or, with `always`, as BAD_STRING."""
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return BAD_STRING if always else value


def _column(schema: Any, field: str) -> tuple[str, Any]:
    """Return the column to read for a field, such as meta.body, and its type; "" if there is none.

    Of lists the whole column is read, since their elements have names of their own in the file.
    """
    types = import_module("pyarrow.types")
    top, *parts = [field] if field in schema.names else field.split(".")
    if top not in schema.names:
        return "", None
    kind = schema.field(schema.names.index(top)).type
    for part in parts:
        while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            kind, field = kind.value_type, top
        if not types.is_struct(kind) or kind.get_field_index(part) < 0:
            return "", None
        kind = kind.field(kind.get_field_index(part)).type
    return field, kind


def _may_lack_text(kind: Any) -> bool:
    types = import_module("pyarrow.types")
    return bool(types.is_nested(kind) or types.is_primitive(kind))


def kept_batches(
    kind: str,
    path: str,
    name: str,
    first: int,
    gone: Iterator[int],
    passed: Callable[[int], None],
    change: Callable[[Any, int], Any] | None = None,
) -> Iterator[Any]:
    """Yield all columns of the rows whose places are not in `gone` (ascending), as record batches.

    `first` is the place of the first row; `passed` is called with the number of bytes read.
    change: makes a batch of a batch and the place of its first row, before rows are removed
    """
    arrow = import_module("pyarrow")
    with opened_typed(kind, path, name) as file:
        next_gone = next(gone, None)
        for group in file.groups():
            done = 0
            for batch in group.batches(MAX_ROWS, 4 * READ_BYTES):
                stays = [True] * batch.num_rows
                batch = change(batch, first) if change else batch
                while next_gone is not None and next_gone < first + batch.num_rows:
                    stays[next_gone - first] = False
                    next_gone = next(gone, None)
                first += batch.num_rows
                done += batch.num_rows
                passed(group.behind(done))
                try:
                    yield batch.filter(arrow.array(stays, arrow.bool_()))
                except arrow.ArrowNotImplementedError:  # of some types, such as string_view
                    ends = np.flatnonzero(np.diff([False, *stays, False])).tolist()
                    yield from (batch.slice(a, b - a) for a, b in zip(ends[::2], ends[1::2]))


def write_kept(
    kind: str, some: Iterable[Any], path: str, name: str, sink: IO[bytes], front: Sequence[Any] = ()
) -> None:
    """Write record batches with the schema and the compression of the file at `path`.

    front: Arrow fields that the batches have before those of the file
    """
    with opened_typed(kind, path, name) as file:
        schema, how = file.schema, file.written()
    if front:
        schema = import_module("pyarrow").schema([*front, *schema], schema.metadata)
    with damage_named(kind, name):
        TABLES[kind].write(sink, some, schema, **how)


class LineTable(NamedTuple):
    """The columns of an answer, and the functions that convert its lines to rows and back."""

    columns: Columns
    row_of: Callable[[bytes], Row]
    line_of: Callable[[Row], bytes]


def fields_table(**columns: type) -> LineTable:
    r"""Return the table for lines of tab-separated fields; `-` is null, except in text columns.

    >>> table = fields_table(id=str, kept=str, similarity=float)
    >>> table.row_of(b"b\ta\t-\n"), table.line_of({"id": "b", "kept": "a", "similarity": 0.9})
    ({'id': 'b', 'kept': 'a', 'similarity': None}, b'b\ta\t0.900000\n')
    """

    def row_of(line: bytes) -> Row:
        fields = line.decode().rstrip("\n").split("\t")
        pairs = zip(columns.items(), fields)
        return {
            name: None if kind is not str and f == "-" else kind(f) for (name, kind), f in pairs
        }

    def line_of(row: Row) -> bytes:
        values = (row[name] for name in columns)
        fields = (f"{v:.6f}" if isinstance(v, float) else "-" if v is None else v for v in values)
        return "\t".join(map(str, fields)).encode() + b"\n"

    return LineTable(columns, row_of, line_of)


def line_of_row(row: Row, tables: Sequence[LineTable]) -> bytes:
    r"""Convert a row to a line, by the first table whose columns it has; WireError if impossible.

    >>> line_of_row({"id": 7, "bits": 3, "share": "0.5"}, [fields_table(id=str, share=float)])
    b'7\t0.500000\n'
    """
    try:
        table = next(each for each in tables if row.keys() >= each.columns.keys())
        return table.line_of(
            {name: _value(row[name], kind) for name, kind in table.columns.items()}
        )
    except (StopIteration, ValueError, KeyError, OverflowError):
        names = ", or ".join(" ".join(table.columns) for table in reversed(tables))
        raise WireError(
            f"expected a row with {names}, as -o writes them, got {shown(json_row(row)[:-1])}"
        ) from None


def _value(value: Any, kind: type) -> Any:
    """Convert a value to the type of a column; else ValueError, KeyError or OverflowError."""
    if kind is bool:
        return BOOLEANS[str(value).lower()]
    if kind is not str and value in (None, ""):
        return None
    if type(value) not in ((str, int) if kind is str else (str, int, float, bool)):
        raise ValueError
    return kind(value)  # an id may be an int: another program took it for a number


def check_row_file(option: str, name: str) -> None:
    """Raise UsageError or StageError if the format that the name implies cannot be written."""
    kind = kind_by_name(name)
    if kind in TABLES:
        check_pyarrow(kind)
        if plain_name(name) != name:
            raise UsageError(
                f"{option} {name}: {TABLES[kind].title} is compressed inside; name it "
                f"{plain_name(name)}"
            )


def write_rows(
    sink: IO[bytes], name: str, form: str, rows: Iterable[Row], columns: Columns
) -> None:
    """Write rows in one of FORMATS; an OSError names the file `name`."""
    if form in TABLES:
        with naming(name):
            _write_typed(sink, form, rows, columns)
    elif form == CSV:
        header = [csv_row(columns)] if columns else []
        write_to(sink, chain(header, (csv_row(map(row.get, columns)) for row in rows)), name)
    else:
        write_to(sink, map(json_row, rows), name)


def json_row(row: Row) -> bytes:
    r"""Return a row as a JSON line; a lone surrogate, such as \ud83d, stays escaped."""
    return json_text(row, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"


def json_text(row: Row, **how: Any) -> str:
    """Return a row as JSON, with null for NaN and infinite numbers."""
    how |= dict(ensure_ascii=False, allow_nan=False)
    try:
        return json.dumps(row, **how)
    except ValueError:
        return json.dumps(plain_value(row, finite=True), **how)


def csv_row(values: Iterable[Any]) -> bytes:
    r"""Return values as a row of CSV: null is an empty field, and an empty text is "".

    >>> csv_row(["to be, or", None, "", 0.5, True])
    b'"to be, or",,"",0.5,true\n'
    """
    fields = list(map(_csv_field, values))
    return (",".join(fields) or '""').encode() + b"\n"  # readers skip a blank row


def _csv_field(value: Any) -> str:
    if isinstance(value, str):
        quoted = not value or SPECIAL.search(value)
        return '"' + value.replace('"', '""') + '"' if quoted else value
    return "" if plain_value(value) is None else json.dumps(value).replace("Infinity", "inf")


def _write_typed(sink: IO[bytes], form: str, rows: Iterable[Row], columns: Columns) -> None:
    arrow = import_module("pyarrow")
    kinds = {str: arrow.string(), float: arrow.float64(), int: arrow.int64(), bool: arrow.bool_()}
    schema = arrow.schema([(name, kinds.get(kind, kind)) for name, kind in columns.items()])
    rows = iter(rows)
    pieces = iter(lambda: list(islice(rows, BATCH_ROWS)), [])
    batches = (arrow.RecordBatch.from_pylist(some, schema) for some in pieces)
    TABLES[form].write(sink, batches, schema)
