"""The tasks of a Spark job; they exchange Arrow batches with the columns part, block and report.

    part    number of a partition of the keys, or of the pairs
    block   keys or lines of that part
    report  instead of a block: the counts of a task, which are passed on to the last stage

A report is sent with the blocks of its attempt, and so it is counted once, however often a task is
run.

Spark's text source cuts files into lines as Hadoop does; a line, cast to binary, has the bytes of
the file.  Python gets some thousand lines as one Arrow batch, whose contiguous bytes are a block
already, so that no line becomes an object.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, groupby, starmap
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Callable, NamedTuple
from urllib.parse import unquote
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark import SparkFiles, TaskContext

from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading import blocks, compressed, input_check
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, UsageError
from neardup.sets.token_counts import TokenCounts
from neardup.stages import phases
from neardup.stages.candidate_keys import HELD_BYTES, BloomFilter
from neardup.stages.pairs import TaskPart, decision, dedup_pairs, lines_of_task, sorted_lines
from neardup.verification.not_pairs import NotPairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROW = "part int, block binary, report binary"
SCHEMA = pa.schema([("part", pa.int32()), ("block", pa.binary()), ("report", pa.binary())])
READ, WRITTEN = "lines read", "lines written"  # counters of `Tasks.keep`
# A split of 128 MiB has about 35 MB of keys; each part finds groups only among its own keys.
SPLITS_A_KEY_PART = 16
LINE = "concat(cast(value as binary), X'0A') as line"
Batches = Iterable[Any]  # of Arrow
Rows = Iterator[Any]


@dataclass(frozen=True)
class Tasks:
    """The functions that Spark runs as tasks of a job, with the settings that all of them need."""

    options: Options
    counts: TokenCounts | None
    partitions: int
    places: Mapping[str, int] | None = None
    decides: str = ""  # the value of --output, if it needs a decision
    not_pairs: NotPairs | None = None  # read by the driver, whose files tasks do not have

    def send_keys(self, batches: Batches) -> Rows:
        """Turn lines into blocks of keys for each partition, in round 1."""
        settings, counters = self._settings(), Counters("keys")
        blocks = blocks_of_batches(batches, settings.max_line, self.places)
        yield from starmap(row, phases.send_keys(blocks, settings, counters, self.key_parts))
        yield report_row(counters, self.key_parts)

    def share_keys(self, batches: Batches) -> Rows:
        """Turn a partition's blocks of keys into its part of the shared keys, in round 1."""
        reports: list[bytes] = []
        settings, of = self._settings(), self.key_parts
        for part, rows in groupby(received(batches, reports), itemgetter(0)):  # there is one part
            keys = phases.share_keys(map(itemgetter(1), rows), settings, part, of, HELD_BYTES)
            yield row(part, b"".join(keys))
        yield from (row(0, report=report) for report in reports)

    def send_lines(self, shared: Callable[[], BloomFilter | None]) -> Callable[[Batches], Rows]:
        """Return the task that turns lines into keyed lines for each partition."""

        def task(batches: Batches) -> Rows:
            settings, counters = self._settings(), Counters("mapper")
            blocks = blocks_of_batches(batches, settings.max_line, self.places)
            keys = shared()
            lines = phases.send_lines(blocks, settings, counters, keys, self.partitions)
            yield from starmap(row, lines)
            if keys is not None:  # the first round has counted the rest
                phases.counted_again(counters)
            yield report_row(counters, self.partitions)

        return task

    def reduce(self, batches: Batches) -> Rows:
        """Turn keyed lines into pairs, partitioned by first ids, or into edges in one partition."""
        reports: list[bytes] = []
        blocks = map(itemgetter(1), received(batches, reports))
        settings, counters = self._settings(), Counters("reducer")
        pairs = phases.reduce_blocks(blocks, settings, counters)
        yield from starmap(row, phases.gathered(by_first_id(pairs, self.ends)))
        yield report_row(counters, self.ends)
        yield from (row(own_part(self.ends), report=report) for report in reports)

    def finish(self, report: Callable[[list[bytes]], None]) -> Callable[[Batches], Rows]:
        """Return the task that turns pairs or edges into the answer.

        The task yields blocks of lines without their last line end.
        """

        def task(batches: Batches) -> Rows:
            reports: list[bytes] = []
            settings = self._settings()
            counters = Counters("decide" if self.decides else "dedup")
            blocks = sorted_lines(map(itemgetter(1), received(batches, reports)), counters, "32M")
            yield from map(value, self._answer(blocks, settings, counters))
            report([*reports, report_of(counters)])

        return task

    def _answer(
        self, blocks: Iterator[bytes], settings: Settings, counters: Counters
    ) -> Iterator[bytes]:
        if self.decides:
            answer = decision(blocks, self.decides, settings, counters)
        else:
            lines = chain.from_iterable(block.splitlines(keepends=True) for block in blocks)
            answer = dedup_pairs(lines, counters)
        for _, block in phases.gathered((0, piece) for piece in answer):
            yield block[:-1]

    def keep(
        self, decided: str, report: Callable[[list[bytes]], None]
    ) -> Callable[[Batches], Rows]:
        """Return the task that yields kept or marked lines, in blocks without their last line end.

        decided: the name of a file of the SparkContext
        """

        def task(batches: Batches) -> Rows:
            settings, counters = self._settings(), Counters("keep")
            assert self.places is not None
            for rows in rows_of_batches(batches):
                with open(SparkFiles.get(decided), "rb") as file:
                    block = b"".join(lines_of_task(rows.part(self.places), settings, file))
                counters.add(READ, rows.high - rows.low)
                counters.add(WRITTEN, block.count(b"\n"))
                if block:
                    yield value(block[:-1])
            report([report_of(counters)])

        return task

    @property
    def key_parts(self) -> int:
        """The number of partitions in round 1, kept small as on Hadoop."""
        return -(-self.partitions // SPLITS_A_KEY_PART)

    @property
    def ends(self) -> int:
        """The number of partitions in the last step: 1 for a decision, which needs all edges."""
        return 1 if self.decides else self.partitions

    def _settings(self) -> Settings:
        prepare()
        return Settings.of(self.options, self.counts)._replace(not_pairs=self.not_pairs)


def received(batches: Batches, reports: list[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield (partition, block) for the blocks in a task's rows; reports are added to `reports`."""
    for batch in batches:
        for part, block, report in zip(*batch.columns):
            if report.is_valid:
                reports.append(report.as_py())
            else:
                yield part.as_py(), block.as_py()


def row(part: int, block: bytes | None = None, report: bytes | None = None) -> Any:
    columns = {"part": [part], "block": [block], "report": [report]}
    return pa.RecordBatch.from_pydict(columns, SCHEMA)


def report_row(counters: Counters, parts: int) -> Any:
    return row(own_part(parts), report=report_of(counters))


def own_part(parts: int) -> int:
    """Return the number of the partition, below `parts`, to which this task sends its report."""
    context = TaskContext.get()
    return context.partitionId() % parts if context else 0


def value(block: bytes) -> Any:
    return pa.RecordBatch.from_arrays([pa.array([block], pa.binary())], ["value"])


def by_first_id(pairs: Iterable[bytes], partitions: int) -> Iterator[tuple[int, bytes]]:
    r"""Partition pair lines by their first ids; yield (partition, lines).

    >>> [lines for _, lines in by_first_id([b"a\tb\t1.0\na\tc\t1.0\n"], 7)]
    [b'a\tb\t1.0\na\tc\t1.0\n']
    """
    for block in pairs:
        parts: dict[int, list[bytes]] = defaultdict(list)
        for line in block.splitlines(keepends=True):
            parts[crc32(line[: line.index(b"\t")]) % partitions].append(line)
        yield from ((part, b"".join(lines)) for part, lines in parts.items())


def report_of(counters: Counters) -> bytes:
    return json.dumps(counters.as_dict()).encode()


def prepare() -> None:
    """Mark this process as a task, which prints nothing; use Spark's folder for temporary files."""
    os.environ[blocks.TASK_FILE] = os.environ["NEARDUP_REPORT"] = "spark"
    for folder in filter(os.path.isdir, os.environ.get("SPARK_LOCAL_DIRS", "").split(",")):
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        break


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
    return {file.path: file.first for file in blocks.numbered(files[1], files[0])}


def states_of_files(spark: SparkSession, names: list[str]) -> list[tuple[str, int, int]]:
    """Return (name, bytes, time of the last change in milliseconds) for each file."""
    states = []
    for name in map(unquote, _text(spark, names).inputFiles()):
        system, path = file_system(spark, name)
        status = system.getFileStatus(path)
        states.append((name, status.getLen(), status.getModificationTime()))
    return states


@contextmanager
def fixed_splits(spark: SparkSession, files: Iterable[tuple[str, int, int]]) -> Iterator[int]:
    """Context manager: cut files at the same places whenever they are read; yield bytes of a split.

    A line's place is its split and its number there.  By itself, Spark chooses splits by the cores
    that it has at the moment, and by all files that are read together.
    """
    found: Any = spark
    conf = found._jsparkSession.sessionState().conf()
    share = sum(size for _, size, _ in files) // spark.sparkContext.defaultParallelism
    split = min(conf.filesMaxPartitionBytes(), max(conf.filesOpenCostInBytes(), share))
    names = "spark.sql.files.maxPartitionBytes", "spark.sql.files.minPartitionNum"
    before = [spark.conf.get(name, None) for name in names]
    try:
        for name, number in zip(names, (split, 1)):
            spark.conf.set(name, str(number))
        yield split
    finally:
        for name, value in zip(names, before):
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


def parts_of(spark: SparkSession, folder: str) -> list[tuple[str, int]]:
    """Return (URI, bytes) of the files that a job has written to a folder, in order.

    Spark itself would read `[` in a name as a pattern.
    """
    system, path = file_system(spark, folder)
    found = [(str(each.getPath().toUri()), each.getLen()) for each in system.listStatus(path)]
    return sorted(each for each in found if each[0].rpartition("/")[2].startswith("part-"))


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

    def part(self, places: Mapping[str, int]) -> TaskPart:
        first = self.split.first(places) + self.number - 1
        return TaskPart([self.bytes(self.low, self.high)], first, self.split.name)


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
