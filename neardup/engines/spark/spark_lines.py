"""Blocks of lines for the stages, from the rows that Spark reads.

Spark's text source cuts files into lines as Hadoop does; a line, cast to binary, has the bytes of
the file.  Python gets some thousand lines as one Arrow batch, whose contiguous bytes are a block
already, so that no line becomes an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from neardup.reading import blocks, compressed, input_check
from neardup.runtime.program import StageError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINE = "concat(cast(value as binary), X'0A') as line"


def lines_of_files(spark: SparkSession, names: list[str]) -> DataFrame:
    """Return a DataFrame of the lines of files, folders and patterns, with each line's split."""
    return _text(spark, names).selectExpr(
        LINE,
        "_metadata.file_path as path",
        "_metadata.file_block_start as start",
        "_metadata.file_block_length as length",
    )


def places_of_files(spark: SparkSession, old: Sequence[str], new: Sequence[str]) -> dict[str, int]:
    """Return {file address: place of its first line}; UsageError for a file that is named twice."""
    files = [sorted(map(_address, _text(spark, names).inputFiles())) for names in (old, new)]
    twice = [*(set(files[0]) & set(files[1]))]
    twice += [name for names in (old, new) for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f"{unquote(twice[0])}: is named twice; name each file once")
    return dict(zip(files[0] + files[1], blocks.file_places(*map(len, files))))


def states_of_files(spark: SparkSession, names: list[str]) -> list[tuple[str, int, int]]:
    """Return (name, bytes, time of the last change in milliseconds) for each file."""
    states = []
    for name in map(unquote, _text(spark, names).inputFiles()):
        system, path = file_system(spark, name)
        status = system.getFileStatus(path)
        states.append((name, status.getLen(), status.getModificationTime()))
    return states


def file_system(spark: SparkSession, name: str) -> tuple[Any, Any]:
    """Return the Hadoop FileSystem of a file or folder, and its Hadoop Path."""
    context: Any = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(name)
    return path.getFileSystem(context._jsc.hadoopConfiguration()), path


def _text(spark: SparkSession, names: Sequence[str]) -> Any:
    if not names:
        return spark.createDataFrame([], "value string")
    return spark.read.option("recursiveFileLookup", "true").text(list(names))


def _address(uri: str) -> str:
    """Return a URI in one spelling, file:/data/a.txt for file:///data/a.txt; Spark uses both."""
    return re.sub("^([A-Za-z0-9+.-]+:)/+", r"\1/", uri)


def lines_of_column(values: DataFrame) -> DataFrame:
    """Return the strings of the column `value` as a DataFrame like that of `lines_of_files`."""
    return values.selectExpr(LINE, "'' as path", "0L as start", "0L as length")


class _Split(NamedTuple):
    """A part of a file that one task reads."""

    path: str  # a URI of Spark
    start: int
    length: int

    @property
    def name(self) -> str:
        return unquote(self.path)

    def first(self, places: Mapping[str, int] | None) -> int:
        """Return the place of the split's first line, or NEW if `places` is None."""
        return blocks.NEW if places is None else places[_address(self.path)] + self.start


class SplitRows(NamedTuple):
    """Rows `low` to `high` (exclusive) of an Arrow batch of lines, all from one split.

    number: the line number of the first one in the split; ends: the offsets of the batch's rows in
    its bytes.
    """

    split: _Split
    number: int
    values: Any
    ends: np.ndarray
    low: int
    high: int

    def bytes(self, low: int, high: int) -> bytes:
        start, stop = int(self.ends[low]), int(self.ends[high])
        data: bytes = self.values.buffers()[2].slice(start, stop - start).to_pybytes()
        return data


def rows_of_batches(batches: Iterable[Any]) -> Iterator[SplitRows]:
    """Yield the rows of `lines_of_files` split by split; StageError for a file that is not text."""
    split, number = _Split("", 0, 0), 1
    for batch in batches:
        values, paths, starts, lengths = batch.columns
        offsets = np.frombuffer(values.buffers()[1], np.int32)
        ends = offsets[values.offset : values.offset + len(values) + 1].astype(np.int64)
        for low, high in _runs(paths, starts):
            now = _Split(paths[low].as_py(), starts[low].as_py(), lengths[low].as_py())
            if now != split:
                split, number = now, 1
                if now.path and not now.start:
                    compressed.refuse_no_lines(
                        values[low].as_py()[: compressed.MAGIC_BYTES], now.name
                    )
            yield SplitRows(split, number, values, ends, low, high)
            number += high - low


def blocks_of_batches(
    batches: Iterable[Any], max_line: int, places: Mapping[str, int] | None = None
) -> Iterator[blocks.Block]:
    """Yield blocks of whole lines; lines have places if `places`, {file: first place}, is given."""
    for rows in rows_of_batches(batches):
        split, before = rows.split, rows.number - rows.low
        # Places of a split would overlap those of the next split.
        if places and split.path.endswith(".bz2") and before + rows.high - 1 > split.length:
            raise StageError(
                f"{split.name}: a split has more lines than bytes; make the file one split: --conf "
                "spark.sql.files.maxPartitionBytes=1000000000000"
            )
        at = f" from byte {split.start}" if split.start else ""
        prefix = f"{split.name}{at}: line " if split.path else "line "
        first = split.first(places)
        for row, data, flaw in _pieces(rows, max_line):
            line = before + row
            place = first if places is None else first + line - 1
            yield blocks.Block(prefix, line, data, flaw, place)


def _runs(paths: Any, starts: Any) -> Iterator[tuple[int, int]]:
    """Yield (low, high) for each group of successive rows with the same path and split start."""
    if not len(paths):
        return
    firsts = starts.to_numpy()
    new = firsts[1:] != firsts[:-1]
    if paths[0] != paths[len(paths) - 1] or new.any():
        names = np.array(paths.to_pylist(), dtype=object)
        new = new | (names[1:] != names[:-1])
    bounds = [0, *(np.flatnonzero(new) + 1).tolist(), len(paths)]
    yield from zip(bounds, bounds[1:])


def _pieces(rows: SplitRows, max_line: int) -> Iterator[tuple[int, bytes, str]]:
    """Yield (first row, lines, flaw); a line that is too long is a piece of its own."""
    low, ends = rows.low, rows.ends
    long = np.flatnonzero(np.diff(ends[low : rows.high + 1]) > max_line + 1) + low
    for row in [*long.tolist(), rows.high]:
        while low < row:
            enough = int(np.searchsorted(ends, ends[low] + blocks.BLOCK_BYTES))
            end = min(row, max(low + 1, enough))
            yield low, rows.bytes(low, end), ""
            low = end
        if row < rows.high:
            yield row, rows.bytes(row, row + 1)[: blocks.CUT_BYTES], input_check.LINE_TOO_LONG
            low = row + 1
