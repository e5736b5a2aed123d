"""The tasks of a Spark job; they exchange Arrow batches with the columns part, block and report.

    part    number of a partition of the keys, or of the pairs
    block   keys or lines of that part
    report  instead of a block: the counts of a task, which are passed on to the last stage

A report is sent with the blocks of its attempt, and so it is counted once, however often a task is
run.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby, starmap
from operator import itemgetter
from typing import Any, Callable
from zlib import crc32

import pyarrow as pa
from pyspark import SparkFiles, TaskContext

from neardup.engines.spark.spark_lines import blocks_of_batches, rows_of_batches
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.blocks import TASK_FILE
from neardup.runtime.counters import Counters
from neardup.sets.token_counts import TokenCounts
from neardup.stages import phases
from neardup.stages.candidate_keys import HELD_BYTES, BloomFilter
from neardup.stages.pairs import decision, dedup_pairs, lines_of_task, sorted_lines
from neardup.verification.not_pairs import NotPairs

ROW = "part int, block binary, report binary"
SCHEMA = pa.schema([("part", pa.int32()), ("block", pa.binary()), ("report", pa.binary())])
READ, WRITTEN = "lines read", "lines written"  # counters of `Tasks.keep`
# A split of 128 MiB has about 35 MB of keys; each part finds groups only among its own keys.
SPLITS_A_KEY_PART = 16
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
        self,
        decided: str,
        report: Callable[[list[bytes]], None],
    ) -> Callable[[Batches], Rows]:
        """Return the task that yields kept or marked lines, in blocks without their last line end.

        decided: the name of a file of the SparkContext
        """

        def task(batches: Batches) -> Rows:
            settings, counters = self._settings(), Counters("keep")
            assert self.places is not None
            for rows in rows_of_batches(batches):
                first = rows.split.first(self.places) + rows.number - 1
                lines = [rows.bytes(rows.low, rows.high)]
                with open(SparkFiles.get(decided), "rb") as file:
                    how = first, rows.split.name, settings, file
                    block = b"".join(lines_of_task(lines, *how))
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
    os.environ[TASK_FILE] = os.environ["NEARDUP_REPORT"] = "spark"
    for folder in filter(os.path.isdir, os.environ.get("SPARK_LOCAL_DIRS", "").split(",")):
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        break
