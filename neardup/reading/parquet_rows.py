"""Read rows from Parquet files, and write the kept rows, with pyarrow.

A row group is read a slice at a time, and only if one of its slices is asked for: mappers that
share a file each decode their own slices, and those before them in the same row group.

The size of slices follows from the file's metadata, so that it is the same for all mappers.  The
metadata count a repeated string only once; `batches` bounds the bytes that are decoded at once.
"""

import binascii
import importlib.util
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import IO, Any, Callable

import numpy as np

from neardup.reading.blocks import BLOCK_BYTES, Piece, Start
from neardup.reading.input_check import NOT_UTF8, BadLine
from neardup.reading.missing_fields import SEEN_ROWS, check_columns, check_rows
from neardup.reading.text_rows import Fields, Line, json_line
from neardup.runtime.program import StageError, UsageError

MOST_ROWS = 1 << 16  # of a slice
FIRST_ROWS = 16  # of a row group, to see how large its rows are
GROWTH = 8  # the next rows may be larger, so batches grow in steps
READ_BYTES = 1 << 20  # of a column, at once
WRITTEN_BYTES = 64 << 20  # of a row group that is written
BAD_STRING = "\udcff"  # in place of a string that is not UTF-8


def parquet_pieces(
    fields: Fields, path: str, name: str, max_line: int, start: Start
) -> Iterator[Piece]:
    """Yield pieces of consecutive rows of a Parquet file, with the columns of `fields` only."""
    if fields.numbered:
        raise UsageError("--id and --text must be column names for Parquet, not numbers")
    with opened_parquet(path, name) as file:
        tops = file.schema_arrow.names
        found = {field: _column(file.schema_arrow, field) for field in fields.of_columns(tops)}
        columns = list(dict.fromkeys(column for column, _ in found.values() if column))
        nested = (f for f in fields.names if f not in tops and _column(file.schema_arrow, f)[0])
        rows_seen = partial(first_rows, file, fields)
        check_columns([*tops, *nested], fields, name, rows_seen)
        if not start.later and any(_may_lack_text(found[text][1]) for text in fields.texts):
            there = {text.split(".")[0] for text in fields.texts}
            some = [row for row in rows_seen() if isinstance(row, dict) and row.keys() & there]
            check_rows([*some], fields, name)
        number, rows, total = 1, file.metadata.num_rows, _size(path)
        for group in range(file.num_row_groups):
            slices = Slices(file, group, columns, name)
            for at in range(0, slices.rows, slices.size):
                rows_at = partial(slices.rows_from, at, fields)
                behind, has_ids = total * (number + at) // rows, fields.id in columns
                yield Piece(number + at, rows_at, "", "row", behind, has_ids=has_ids)
            number += slices.rows


def first_rows(file: Any, fields: Fields) -> list[Line]:
    """Return the first rows, for messages."""
    batch = next(file.iter_batches(SEEN_ROWS), None)
    return rows_of(batch, fields) if batch else []


class Slices:
    """The slices of a row group, of at most `size` rows each, read in order."""

    def __init__(self, file: Any, group: int, columns: list[str], name: str):
        about = file.metadata.row_group(group)
        chunks = [about.column(i) for i in range(about.num_columns)]
        names = [chunk.path_in_schema.split(".")[0] for chunk in chunks]
        tops = {column.split(".")[0] for column in columns}
        read = sum(c.total_uncompressed_size for c, top in zip(chunks, names) if top in tops)
        self.rows: int = about.num_rows
        self.size = max(1, min(MOST_ROWS, BLOCK_BYTES * self.rows // max(read, 1)))
        self.name = name
        self._open = partial(batches, file, self.size, columns, group, 4 * BLOCK_BYTES)
        self._batches: Iterator[Any] = iter(())
        self._next = 0  # the first row that `_batches` has not yielded yet
        self._rest: Any = None  # of the last batch that it has yielded

    def rows_from(self, at: int, fields: Fields) -> Iterator[list[Line]]:
        """Yield the rows of the slice that begins at row `at` of the row group, in lists."""
        end = min(at + self.size, self.rows)
        with damage_named(self.name):
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


def batches(
    file: Any, most_rows: int, columns: "list[str] | None", group: int, most_bytes: int
) -> Iterator[Any]:
    """Yield the rows of a row group as record batches of at most about `most_bytes`.

    pyarrow reads batches of a fixed number of rows.  To change it, the row group is read again and
    earlier rows are skipped: so the number first grows, and then only shrinks.
    """
    rows: int = file.metadata.row_group(group).num_rows
    size, done, grows = min(FIRST_ROWS, most_rows), 0, True
    while done < rows:
        end = 0
        for batch in file.iter_batches(
            size, row_groups=[group], columns=columns, use_threads=False
        ):
            begin, end = end, end + batch.num_rows
            if end <= done:
                continue
            yield batch.slice(max(0, done - begin))
            done = end
            fitting = max(1, min(most_rows, most_bytes * batch.num_rows // max(_bytes(batch), 1)))
            if fitting < size // 2 or (grows and fitting > size):
                grows = fitting > size
                size = min(fitting, size * GROWTH)
                break


def _bytes(batch: Any) -> int:
    """Return the size in bytes of a batch once its dictionaries are decoded."""
    arrow = importlib.import_module("pyarrow")
    coded = arrow.DictionaryArray
    return sum((c.dictionary_decode() if isinstance(c, coded) else c).nbytes for c in batch.columns)


def rows_of(batch: Any, fields: Fields) -> list[Line]:
    """Return the rows of a record batch as dictionaries, or as bad lines.

    Nulls are left out unless all columns are wanted.
    """
    types = importlib.import_module("pyarrow.types")
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
    types, kind = importlib.import_module("pyarrow.types"), column.type
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
    types, kind = importlib.import_module("pyarrow.types"), column.type
    if not types.is_struct(kind):
        some = [None if each.values is None else _values(each.values) for each in column]
        pairs = types.is_map(kind)
        return [[tuple(p.values()) for p in one] if pairs and one else one for one in some]
    names = [kind.field(i).name for i in range(kind.num_fields)]
    rows = zip(column.is_valid().to_pylist(), *map(_values, column.flatten()))
    return [dict(zip(names, row)) if valid else None for valid, *row in rows]


def _as_text(column: Any) -> list[Any]:
    """Return dates and times, such as those after the year 9999, as text; durations as integers."""
    types, arrow = map(importlib.import_module, ("pyarrow.types", "pyarrow"))
    other = arrow.int64() if types.is_duration(column.type) else arrow.string()
    values: list[Any] = column.cast(other).to_pylist()
    return values


def _of_nanoseconds(column: Any) -> list[Any]:
    """Return whole microseconds as Python's times, other times as text."""
    types, arrow = map(importlib.import_module, ("pyarrow.types", "pyarrow"))
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


def plain_value(value: Any, strings: bool = False) -> Any:
    """Convert a value of a row to a JSON value; other types become text.

    Bytes become base64, or with `strings` text, since Spark and Hive have written strings as bytes;
    UnicodeDecodeError if they are not UTF-8.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None  # NaN and infinity
    if isinstance(value, dict):
        return {str(key): plain_value(each, strings) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(each, strings) for each in value]
    if not isinstance(value, bytes):
        return str(value)
    return value.decode() if strings else binascii.b2a_base64(value, newline=False).decode()


def _string(value: "bytes | None", always: bool) -> Any:
    """Decode UTF-8; other bytes are returned unchanged or, with `always`, as BAD_STRING."""
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return BAD_STRING if always else value


def check_pyarrow() -> None:
    """Raise StageError if pyarrow is not installed; do not import it."""
    if importlib.util.find_spec("pyarrow") is None:
        raise StageError("Parquet needs the package pyarrow: python3 -m pip install pyarrow")


@contextmanager
def opened_parquet(path: str, name: str) -> Iterator[Any]:
    """Context manager: open a pyarrow.parquet.ParquetFile; StageError for another kind of file."""
    parquet = importlib.import_module("pyarrow.parquet")
    source = os.dup(sys.stdin.fileno()) if path == "-" else path
    with damage_named(name), open(source, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise StageError(
                f"{name}: Parquet is read from its end, and a pipe has none; name a file"
            )
        yield parquet.ParquetFile(
            file, buffer_size=READ_BYTES, pre_buffer=False, page_checksum_verification=True
        )


def _column(schema: Any, field: str) -> tuple[str, Any]:
    """Return the column to read for a field, such as meta.body, and its type; "" if there is none.

    Of lists the whole column is read, since their elements have names of their own in the file.
    """
    types = importlib.import_module("pyarrow.types")
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
    types = importlib.import_module("pyarrow.types")
    return bool(types.is_nested(kind) or types.is_primitive(kind))


def _size(path: str) -> int:
    return os.stat(sys.stdin.fileno() if path == "-" else path).st_size


@contextmanager
def damage_named(name: str) -> Iterator[None]:
    """Context manager: raise pyarrow's errors as StageErrors that name the file."""
    arrow = importlib.import_module("pyarrow")
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = str(error).split("\n")[0]
        raise StageError(f"{name}: is not a Parquet file, or damaged: {reason}") from None


def kept_batches(
    path: str, name: str, first: int, gone: Iterator[int], passed: Callable[[int], None]
) -> Iterator[Any]:
    """Yield all columns of the rows whose places are not in `gone` (ascending), as record batches.

    `first` is the place of the first row; `passed` is called with the number of bytes read.
    """
    arrow = importlib.import_module("pyarrow")
    with opened_parquet(path, name) as file:
        next_gone, done = next(gone, None), 0
        rows, total = file.metadata.num_rows, _size(path)
        groups = range(file.num_row_groups)
        of_groups = (batches(file, MOST_ROWS, None, i, 4 * READ_BYTES) for i in groups)
        for batch in chain.from_iterable(of_groups):
            stays = [True] * batch.num_rows
            while next_gone is not None and next_gone < first + batch.num_rows:
                stays[next_gone - first] = False
                next_gone = next(gone, None)
            first += batch.num_rows
            done += batch.num_rows
            passed(total * done // max(rows, 1))
            try:
                yield batch.filter(arrow.array(stays, arrow.bool_()))
            except arrow.ArrowNotImplementedError:  # of some types, such as string_view
                ends = np.flatnonzero(np.diff([False, *stays, False])).tolist()
                yield from (batch.slice(a, b - a) for a, b in zip(ends[::2], ends[1::2]))


def write_batches(some: Iterable[Any], path: str, name: str, sink: IO[bytes]) -> None:
    """Write record batches with the schema and the compression of the file at `path`."""
    with opened_parquet(path, name) as file:
        schema, codec = file.schema_arrow, "snappy"
        if file.num_row_groups and file.metadata.num_columns:
            codec = file.metadata.row_group(0).column(0).compression.lower()
    with damage_named(name):
        write_parquet(some, schema, sink, codec.replace("uncompressed", "none"))


def write_parquet(some: Iterable[Any], schema: Any, sink: IO[bytes], codec: str = "snappy") -> None:
    """Write record batches as row groups of about WRITTEN_BYTES."""
    arrow, parquet = map(importlib.import_module, ("pyarrow", "pyarrow.parquet"))
    held, size = [], 0
    with parquet.ParquetWriter(sink, schema, compression=codec) as writer:
        for batch in some:
            held.append(batch)
            size += _bytes(batch)
            if size > WRITTEN_BYTES:
                writer.write_table(arrow.Table.from_batches(held, schema))
                held, size = [], 0
        if held:
            writer.write_table(arrow.Table.from_batches(held, schema))
