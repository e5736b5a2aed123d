"""Lines as Spark reads them → blocks as the stages take them.

The text source of Spark cuts files into lines as Hadoop does, and knows bytes, not letters: a line
of it, cast to binary, is what stands in the file.  Some thousand lines come to Python as one Arrow
batch, whose bytes lie end to end: they are a block already, and no line is an object of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from neardup.process.errors import UsageError
from neardup.reading.bad_lines import LINE_TOO_LONG
from neardup.reading.blocks import BLOCK_BYTES, CUT_BYTES, Block
from neardup.reading.magic import MAGIC_BYTES, refuse_no_lines
from neardup.reading.places import NEW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINE = "concat(cast(value as binary), X'0A') as line"
UNPACKED = (".gz", ".bz2")  # what Spark unpacks by a file's name, whatever else is installed


def lines_of_files(spark: SparkSession, names: list[str]) -> DataFrame:
    """The lines of files, folders and patterns; with each its file, and its split's first byte."""
    text = spark.read.option("recursiveFileLookup", "true").text(names)
    return text.selectExpr(
        LINE, "_metadata.file_path as path", "_metadata.file_block_start as start"
    )


def lines_of_column(values: DataFrame) -> DataFrame:
    """The same of a column of strings called `value`, which are in no file."""
    return values.selectExpr(LINE, "'' as path", "0L as start")


class _Split(NamedTuple):
    """A part of a file that one task reads."""

    path: str  # as Spark tells it: an address
    start: int

    @property
    def name(self) -> str:
        return unquote(self.path)

    @property
    def place(self) -> str:
        """As a message begins, up to the number of a line."""
        at = f" from byte {self.start}" if self.start else ""
        return f"{self.name}{at}: line " if self.path else "line "


def blocks_of_batches(batches: Iterable[Any], max_line: int) -> Iterator[Block]:
    """Arrow batches of `lines_of_files` → blocks of whole lines.

    StageError for a file that begins as one without lines does.
    """
    split, number = _Split("", 0), 1
    for batch in batches:
        values, paths, starts = batch.columns
        ends = _ends(values)
        for low, high in _runs(paths, starts):
            now = _Split(paths[low].as_py(), starts[low].as_py())
            if now != split:
                split, number = now, 1
                if now.path and not now.start:
                    refuse_no_lines(values[low].as_py()[:MAGIC_BYTES], now.name, UNPACKED)
            for first, data, flaw in _pieces(values, ends, low, high, max_line):
                yield Block(split.place, number + first - low, data, flaw, NEW)
            number += high - low


def _ends(values: Any) -> np.ndarray:
    """Where each of n binary values begins and ends in their common bytes: int64 (n + 1,)."""
    offsets = np.frombuffer(values.buffers()[1], np.int32)
    return offsets[values.offset : values.offset + len(values) + 1].astype(np.int64)


def _runs(paths: Any, starts: Any) -> Iterator[tuple[int, int]]:
    """From where to where rows are of one split."""
    if not len(paths):
        return
    firsts = starts.to_numpy()
    new = firsts[1:] != firsts[:-1]
    if paths[0] != paths[len(paths) - 1] or new.any():
        names = np.array(paths.to_pylist(), dtype=object)
        new = new | (names[1:] != names[:-1])
    bounds = [0, *(np.flatnonzero(new) + 1).tolist(), len(paths)]
    yield from zip(bounds, bounds[1:])


def _pieces(
    values: Any, ends: np.ndarray, low: int, high: int, max_line: int
) -> Iterator[tuple[int, bytes, str]]:
    """(first row, lines, flaw) of the rows from `low` to `high`; lines that are too long alone."""
    data = values.buffers()[2]
    long = np.flatnonzero(np.diff(ends[low : high + 1]) > max_line + 1) + low
    for row in [*long.tolist(), high]:
        while low < row:
            enough = int(np.searchsorted(ends, ends[low] + BLOCK_BYTES))
            end = min(row, max(low + 1, enough))
            size = int(ends[end] - ends[low])
            yield low, data.slice(int(ends[low]), size).to_pybytes(), ""
            low = end
        if row < high:
            yield row, data.slice(int(ends[row]), CUT_BYTES).to_pybytes(), LINE_TOO_LONG
            low = row + 1


def check_names(names: Iterable[str]) -> None:
    """UsageError for files that Spark would read as they lie, or would leave out."""
    for name in names:
        if name.endswith(".xz"):
            raise UsageError(f"{name}: Spark cannot unpack .xz; pack it as .gz or .bz2")
        if name.rstrip("/").rpartition("/")[2].startswith(("_", ".")) and name.strip("./"):
            raise UsageError(f"{name}: Spark reads no name that begins with _ or .; rename it")
