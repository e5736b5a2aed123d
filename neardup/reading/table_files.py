"""Open and write the files of typed tables, Parquet and Arrow, with pyarrow.

    file ─ groups ─▶ row groups of Parquet, or record batches of Arrow
                          └─ batches ─▶ record batches of some rows

A format is a class here and a line in TABLES.  An Arrow file is also a Feather file of version 2,
or a stream.  Its metadata do not count rows, so all mappers that share a file read all of it, but
each converts its own rows only.  Memory: a batch of Parquet, or a record batch of Arrow.
"""

from __future__ import annotations

import importlib.util
import os
import re
import stat
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import IO, Any, Callable, NamedTuple

import numpy as np

from neardup.runtime.program import StageError

READ_BYTES = 1 << 20  # bytes of a column read at once
FIRST_ROWS = 16  # rows of a row group that are read to see how large they are
GROWTH = 8  # the next rows may be larger, so batches grow in steps
WRITTEN_BYTES = 64 << 20  # size of a row group that is written
VIEWS = {"string_view": "large_string", "binary_view": "large_binary"}


class RowGroup(NamedTuple):
    """Consecutive rows of a file: a row group of Parquet, or a record batch of Arrow."""

    rows: int
    size: int  # bytes of the columns that are read
    begin: int  # bytes of the file that have been read before
    end: int
    batches: Callable[[int, int], Iterator[Any]]  # arguments: maximum rows, approximate bytes

    def behind(self, rows: int) -> int:
        """Return how many bytes of the file have been read with the first rows of the group."""
        return self.begin + (self.end - self.begin) * rows // max(self.rows, 1)


class ParquetTable:
    """An open Parquet file."""

    title, file, suffixes = "Parquet", "a Parquet file", (".parquet", ".pq")
    # Not by PAR1 alone, which may be an id: Thrift's first byte behind it is not white space.
    start = rb"PAR1[\x00-\x08\x0e-\x1f]"

    def __init__(self, file: IO[bytes]):
        parquet = import_module("pyarrow.parquet")
        self._bytes = os.fstat(file.fileno()).st_size
        self._file = parquet.ParquetFile(
            file, buffer_size=READ_BYTES, pre_buffer=False, page_checksum_verification=True
        )
        self.schema = self._file.schema_arrow

    def groups(self, columns: Sequence[str] | None = None) -> Iterator[RowGroup]:
        """Yield the row groups, with all columns or the given ones; field b of struct a is a.b."""
        tops = {column.split(".")[0] for column in columns or ()}
        about, done, begin = self._file.metadata, 0, 0
        for i in range(about.num_row_groups):
            group = about.row_group(i)
            chunks = [group.column(k) for k in range(group.num_columns)]
            wanted = (each for each in chunks if each.path_in_schema.split(".")[0] in tops)
            size = sum(each.total_uncompressed_size for each in wanted)
            done += group.num_rows
            end = self._bytes * done // max(about.num_rows, 1)
            how = dict(row_groups=[i], columns=columns, use_threads=False)
            read = partial(self._file.iter_batches, **how)
            yield RowGroup(
                group.num_rows, size, begin, end, partial(_growing, read, group.num_rows)
            )
            begin = end

    def written(self) -> dict[str, Any]:
        """Return the keywords of `write` for a file like this one."""
        about = self._file.metadata
        if not about.num_row_groups or not about.num_columns:
            return {}
        codec = about.row_group(0).column(0).compression.lower()
        return {"codec": codec.replace("uncompressed", "none")}

    @staticmethod
    def write(sink: IO[bytes], some: Iterable[Any], schema: Any, codec: str = "snappy") -> None:
        """Write record batches as row groups of about WRITTEN_BYTES."""
        arrow, parquet = map(import_module, ("pyarrow", "pyarrow.parquet"))
        held, size = [], 0
        with parquet.ParquetWriter(sink, schema, compression=codec) as writer:
            for batch in some:
                held.append(batch)
                size += decoded_bytes(batch)
                if size > WRITTEN_BYTES:
                    writer.write_table(arrow.Table.from_batches(held, schema))
                    held, size = [], 0
            if held:
                writer.write_table(arrow.Table.from_batches(held, schema))


class ArrowTable:
    """An open Arrow file or stream."""

    title, file, suffixes = "Arrow", "an Arrow file", (".arrow", ".feather")
    start = rb"ARROW1\0\0|\xff\xff\xff\xff"  # a file, or a stream

    def __init__(self, file: Any):
        first = file.peek(16)
        if not re.match(self.start, first):  # text would be read as the length of a huge message
            raise import_module("pyarrow").ArrowInvalid("its first bytes are of another kind")
        self._file, self._stream = file, not first.startswith(b"ARROW1")
        self.schema = self._opened([]).schema

    def _opened(self, fields: Sequence[int]) -> Any:
        ipc = import_module("pyarrow.ipc")
        self._file.seek(0)
        how = ipc.IpcReadOptions(use_threads=False, included_fields=fields)
        return (ipc.open_stream if self._stream else ipc.open_file)(self._file, options=how)

    def groups(self, columns: Sequence[str] | None = None) -> Iterator[RowGroup]:
        """Yield the record batches, with all columns or the given ones; structs are read whole."""
        names = self.schema.names
        tops = (name if name in names else name.split(".")[0] for name in columns or ())
        reader = self._opened(sorted({*map(names.index, tops)}))
        numbers = range(0 if self._stream else reader.num_record_batches)
        begin = self._file.tell()
        for batch in reader if self._stream else map(reader.get_batch, numbers):
            batch = _checked(batch)
            ends = np.cumsum(sum(map(_row_bytes, batch.columns), np.zeros(batch.num_rows)))
            size = int(ends[-1]) if batch.num_rows else 0
            end = self._file.tell()
            yield RowGroup(batch.num_rows, size, begin, end, partial(_parts, batch, ends))
            begin = end
        if self._stream and self._file.tell() == begin:  # as of a writer that was killed
            end = "printf '\\377\\377\\377\\377\\0\\0\\0\\0' >> FILE"
            raise import_module("pyarrow").ArrowInvalid(
                f"the stream has no end, so that rows may be missing; if none is, type: {end}"
            )
        if self._stream and self._file.read(1):  # such as another stream, whose rows would be lost
            raise import_module("pyarrow").ArrowInvalid("more bytes follow the end of the stream")

    def written(self) -> dict[str, Any]:
        """Return the keywords of `write` for a file like this one."""
        batch = next(self._record_batches(), None)
        return {"codec": batch and _codec(batch.metadata.to_pybytes()), "stream": self._stream}

    def _record_batches(self) -> Iterator[Any]:
        """Yield messages of the file that are record batches: all of a stream, else the first."""
        ipc = import_module("pyarrow.ipc")
        if self._stream:
            self._file.seek(0)
            messages = ipc.MessageReader.open_stream(self._file)
            yield from (each for each in messages if each.type == "record batch")
            return
        self._file.seek(-10, os.SEEK_END)  # the length of the footer, and ARROW1
        size = _at("<i", self._file.read(4), 0)
        self._file.seek(-10 - size, os.SEEK_END)
        footer = self._file.read(size)
        blocks = _part(footer, _at("<I", footer, 0), 3)
        if blocks and _at("<I", footer, blocks):
            self._file.seek(_at("<q", footer, blocks + 4))
            yield ipc.read_message(self._file)

    @staticmethod
    def write(
        sink: IO[bytes],
        some: Iterable[Any],
        schema: Any,
        codec: str | None = "lz4",
        stream: bool = False,
    ) -> None:
        """Write record batches as a file or a stream."""
        arrow, ipc = map(import_module, ("pyarrow", "pyarrow.ipc"))
        how = ipc.IpcWriteOptions(compression=codec, emit_dictionary_deltas=True)
        with (ipc.new_stream if stream else ipc.new_file)(sink, schema, options=how) as writer:
            for batch in some:
                pairs = zip(batch.columns, schema.types)
                columns = [each if each.type == kind else each.cast(kind) for each, kind in pairs]
                writer.write_batch(arrow.RecordBatch.from_arrays(columns, schema=schema))


TABLES: dict[str, Any] = {"parquet": ParquetTable, "arrow": ArrowTable}


def check_pyarrow(kind: str) -> None:
    """Raise StageError if pyarrow is not installed; do not import it."""
    if importlib.util.find_spec("pyarrow") is None:
        raise StageError(
            f"{TABLES[kind].title} needs the package pyarrow: python3 -m pip install pyarrow"
        )


@contextmanager
def opened_typed(kind: str, path: str, name: str) -> Iterator[Any]:
    """Context manager: open a file as one of TABLES; StageError for another kind of file."""
    source = os.dup(sys.stdin.fileno()) if path == "-" else path
    with damage_named(kind, name), open(source, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise StageError(
                f"{name}: {TABLES[kind].title} is read from its end, and a pipe has none; name a "
                "file"
            )
        yield TABLES[kind](file)


@contextmanager
def damage_named(kind: str, name: str) -> Iterator[None]:
    """Context manager: raise pyarrow's errors as StageErrors that name the file."""
    arrow = import_module("pyarrow")
    try:
        yield
    except (arrow.ArrowException, OSError, struct.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = str(error).split("\n")[0]
        raise StageError(f"{name}: is not {TABLES[kind].file}, or damaged: {reason}") from None


def _growing(
    read: Callable[[int], Iterator[Any]], rows: int, most_rows: int, most_bytes: int
) -> Iterator[Any]:
    """Yield the rows of a row group as record batches of at most about `most_bytes`.

    pyarrow reads batches of a fixed number of rows.  To change it, the row group is read again and
    earlier rows are skipped: so the number first grows, and then only shrinks.
    """
    size, done, grows = min(FIRST_ROWS, most_rows), 0, True
    while done < rows:
        end = 0
        for batch in read(size):
            begin, end = end, end + batch.num_rows
            if end <= done:
                continue
            yield batch.slice(max(0, done - begin))
            done = end
            size_of_batch = max(decoded_bytes(batch), 1)
            fitting = max(1, min(most_rows, most_bytes * batch.num_rows // size_of_batch))
            if fitting < size // 2 or (grows and fitting > size):
                grows = fitting > size
                size = min(fitting, size * GROWTH)
                break


def _parts(batch: Any, ends: Any, most_rows: int, most_bytes: int) -> Iterator[Any]:
    """Yield the rows of a record batch in parts; `ends` are the bytes up to the end of each row."""
    at = 0
    while at < batch.num_rows:
        most = most_bytes + (int(ends[at - 1]) if at else 0)
        end = min(at + most_rows, int(np.searchsorted(ends, most, "right")))
        yield batch.slice(at, max(end, at + 1) - at)
        at = max(end, at + 1)


def _row_bytes(column: Any) -> Any:
    """Return the size in bytes of each value, also where a dictionary has it once."""
    arrow, compute = map(import_module, ("pyarrow", "pyarrow.compute"))
    coded = isinstance(column, arrow.DictionaryArray)
    values = _without_views(column.dictionary if coded else column)
    try:
        sizes = compute.binary_length(values)
    except arrow.ArrowNotImplementedError:  # numbers, lists and structs
        return np.full(len(column), values.nbytes // max(len(values), 1))
    return (sizes.take(column.indices) if coded else sizes).fill_null(0).to_numpy()


def decoded_bytes(batch: Any) -> int:
    """Return the size in bytes of a batch once its dictionaries are decoded."""
    coded = import_module("pyarrow").DictionaryArray
    return sum((c.dictionary_decode() if isinstance(c, coded) else c).nbytes for c in batch.columns)


def _checked(batch: Any) -> Any:
    """Return a record batch without views; an Arrow error if its bytes are not what they should be.

    Arrow files have no checksums, and a wrong offset would read other memory.  Strings that are not
    UTF-8 are left to `table_rows`.
    """
    arrow = import_module("pyarrow")
    for column in batch.columns:
        try:
            column.validate(full=True)
        except arrow.ArrowInvalid as error:
            if "UTF8" not in str(error):
                raise
    columns = list(map(_without_views, batch.columns))
    return arrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def is_mergeable(kind: Any, delimited: bool) -> bool:
    """Return whether a type has texts (`delimited`), or lists of texts, integers or booleans."""
    text = "(large_)?string"
    of_lists = rf"(large_)?list<[^<>]*: ({text}|bool|u?int\d+)( not null)?>"
    return bool(re.fullmatch(text if delimited else of_lists, str(_type_without_views(kind))))


def _without_views(column: Any) -> Any:
    kind = _type_without_views(column.type)
    return column if kind == column.type else column.cast(kind)


def _type_without_views(kind: Any) -> Any:
    """Return a type with strings for the views that polars writes, and pyarrow cannot filter."""
    arrow, types = map(import_module, ("pyarrow", "pyarrow.types"))
    if str(kind) in VIEWS:
        return getattr(arrow, VIEWS[str(kind)])()
    if types.is_struct(kind):
        return arrow.struct([_field_without_views(kind.field(i)) for i in range(kind.num_fields)])
    for is_list, make in ((types.is_list, arrow.list_), (types.is_large_list, arrow.large_list)):
        if is_list(kind):
            return make(_field_without_views(kind.value_field))
    return kind


def _field_without_views(field: Any) -> Any:
    return field.with_type(_type_without_views(field.type))


def _codec(message: bytes) -> str | None:
    """Return the compression of a record batch, which pyarrow does not report.

    Messages and footers are flatbuffers; Message.fbs and File.fbs of Arrow number their fields.
    """
    compression = _part(message, _part(message, _at("<I", message, 0), 2), 3)
    if not compression:
        return None
    codec = _field(message, compression, 0)
    return "zstd" if codec and _at("<b", message, codec) == 1 else "lz4"


def _part(data: bytes, table: int, number: int) -> int:
    """Return where the table or vector of a field begins in a flatbuffer, or 0."""
    place = _field(data, table, number)
    return place and place + _at("<I", data, place)


def _field(data: bytes, table: int, number: int) -> int:
    """Return the place of a field of a flatbuffer's table, or 0."""
    known = table - _at("<i", data, table)
    inside = 4 + 2 * number < _at("<H", data, known)
    offset = _at("<H", data, known + 4 + 2 * number) if inside else 0
    return offset and table + offset


def _at(form: str, data: bytes, place: int) -> int:
    return int(struct.unpack_from(form, data, place)[0])
