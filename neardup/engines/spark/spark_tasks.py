"""What the tasks do, each from Arrow batches to Arrow batches; the rows between them:

    part    of the keys, or of the pairs: the number of a partition
    block   keys, or lines of that part
    report  or else what a task has counted, on its way to the end

A report is data, and so it is counted once however often a task is run: it comes with the blocks
of the very attempt whose blocks are used.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Callable
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from neardup.engines.spark.spark_lines import blocks_of_batches, lines_that_stay, rows_of_batches
from neardup.lines.answer_lines import parse_decided
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.blocks import TASK_FILE
from neardup.runtime.counters import Counters
from neardup.sets.token_counts import TokenCounts
from neardup.stages.bloom_filter import HELD_BYTES, BloomFilter
from neardup.stages.key_blocks import gathered
from neardup.stages.pairs import decision, dedup_pairs, in_order
from neardup.stages.phases import counted_again, reduce_blocks, send_keys, send_lines, share_keys

ROW = "part int, block binary, report binary"
READ, WRITTEN = "lines read", "lines written"  # of those from which some go
# A split of 128 MiB has some 35 MB of keys, and each part knows only groups of its own keys.
SPLITS_A_KEY_PART = 16
Batches = Iterable[Any]  # of Arrow
Rows = Iterator[Any]


@dataclass(frozen=True)
class Tasks:
    """What every task is told: the options, the counts of
    tokens, where a scheme has any, and the places of files, where records travel with theirs."""

    options: Options
    counts: TokenCounts | None
    partitions: int
    places: Mapping[str, int] | None = None
    decides: str = ""  # --output, where that asks for a decision

    def send_keys(self, batches: Batches) -> Rows:
        """Round 1, from lines to the keys of each part."""
        settings, counters = self._settings(), Counters("keys")
        blocks = blocks_of_batches(batches, settings.max_line, self.places)
        yield from self._rows(send_keys(blocks, settings, counters, self.key_parts))
        yield row(self._mine() % self.key_parts, report=report_of(counters))

    def share_keys(self, batches: Batches) -> Rows:
        """Round 1, from the keys of a part to those that two records share."""
        received = Received(batches)
        settings = self._settings()
        blocks = iter(received)
        first = next(blocks, None)
        if first is not None:
            part, of = received.part, self.key_parts
            keys = share_keys(chain([first], blocks), settings, part, of, HELD_BYTES)
            yield row(part, b"".join(keys))
        yield from (row(0, report=report) for report in received.reports)

    def send_lines(self, shared: Callable[[], BloomFilter | None]) -> Callable[[Batches], Rows]:
        """Round 2, or the only one: from lines to the keyed lines of each part."""

        def task(batches: Batches) -> Rows:
            settings, counters = self._settings(), Counters("mapper")
            blocks = blocks_of_batches(batches, settings.max_line, self.places)
            keys = shared()
            yield from self._rows(send_lines(blocks, settings, counters, keys, self.partitions))
            if keys is not None:  # else the first round has counted the rest
                counted_again(counters)
            yield self._report(counters)

        return task

    def reduce(self, batches: Batches) -> Rows:
        """From the keyed lines of a part to pairs, each to the part of its first id; or to edges,
        all to one part."""
        received = Received(batches)
        settings, counters = self._settings(), Counters("reducer")
        pairs = reduce_blocks(received, settings, counters)
        yield from self._rows(gathered(by_first_id(pairs, self.ends)))
        for report in [report_of(counters), *received.reports]:
            yield row(self._mine() % self.ends, report=report)

    def unique(self, tell: Callable[[list[bytes]], None]) -> Callable[[Batches], Rows]:
        """From the pairs of a part to each of them once, as lines without the last line end."""

        def task(batches: Batches) -> Rows:
            received = Received(batches)
            prepare()
            counters = Counters("dedup")
            blocks = in_order(received, counters)
            lines = chain.from_iterable(block.splitlines(keepends=True) for block in blocks)
            for block in _of_some_size(dedup_pairs(lines, counters)):
                yield value(block[:-1])
            tell([*received.reports, report_of(counters)])

        return task

    def decide(self, tell: Callable[[list[bytes]], None]) -> Callable[[Batches], Rows]:
        """From all edges to what --output asks for, as lines without the last line end; with kept,
        to the places of those that go, eight bytes each, ascending."""

        def task(batches: Batches) -> Rows:
            received = Received(batches)
            settings, counters = self._settings(), Counters("decide")
            edges = in_order(received, counters)
            blocks = decision(edges, self.decides, settings, counters)
            if self.decides == "kept":
                decided = (map(parse_decided, block.splitlines(True)) for block in blocks)
                blocks = (np.array([p for p, _ in some], "<u8").tobytes() for some in decided)
            else:
                blocks = (block[:-1] for _, block in gathered((0, block) for block in blocks))
            for block in blocks:
                yield value(block)
            tell([*received.reports, report_of(counters)])

        return task

    def keep(
        self, gone: Callable[[], np.ndarray], tell: Callable[[list[bytes]], None]
    ) -> Callable[[Batches], Rows]:
        """From lines to those that stay, without the last line end."""

        def task(batches: Batches) -> Rows:
            prepare()
            counters = Counters("keep")
            assert self.places is not None
            for rows in rows_of_batches(batches):
                block = lines_that_stay(rows, self.places, gone())
                counters.add(READ, rows.high - rows.low)
                counters.add(WRITTEN, block.count(b"\n"))
                if block:
                    yield value(block[:-1])
            tell([report_of(counters)])

        return task

    @property
    def key_parts(self) -> int:
        """How many parts there are in the first round: few, as on Hadoop."""
        return -(-self.partitions // SPLITS_A_KEY_PART)

    @property
    def ends(self) -> int:
        """How many parts there are in the last step."""
        return 1 if self.decides else self.partitions

    def _settings(self) -> Settings:
        prepare()
        return Settings.of(self.options, self.counts)

    def _rows(self, pieces: Iterable[tuple[int, bytes]]) -> Rows:
        return (row(part, piece) for part, piece in pieces)

    def _report(self, counters: Counters) -> Any:
        return row(self._mine(), report=report_of(counters))

    def _mine(self) -> int:
        """Where what this task has to tell goes: not all to one part."""
        context = TaskContext.get()
        return context.partitionId() % self.partitions if context else 0


class Received:
    """The blocks of a task's rows, one by one; `part` is theirs.  The reports come on the way."""

    def __init__(self, batches: Batches):
        self._batches = batches
        self.part = 0
        self.reports: list[bytes] = []

    def __iter__(self) -> Iterator[bytes]:
        for batch in self._batches:
            parts, blocks, reports = batch.columns
            for i in range(batch.num_rows):
                if reports[i].is_valid:
                    self.reports.append(reports[i].as_py())
                else:
                    self.part = parts[i].as_py()
                    yield blocks[i].as_py()


def row(part: int, block: bytes | None = None, report: bytes | None = None) -> Any:
    columns = [
        pa.array([part], pa.int32()),
        pa.array([block], pa.binary()),
        pa.array([report], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, ["part", "block", "report"])


def value(block: bytes) -> Any:
    return pa.RecordBatch.from_arrays([pa.array([block], pa.binary())], ["value"])


def by_first_id(pairs: Iterable[bytes], partitions: int) -> Iterator[tuple[int, bytes]]:
    r"""Blocks of pair lines → (partition, lines), by the first id alone.

    >>> [lines for _, lines in by_first_id([b"a\tb\t1.0\na\tc\t1.0\n"], 7)]
    [b'a\tb\t1.0\na\tc\t1.0\n']
    """
    for block in pairs:
        parts: dict[int, list[bytes]] = defaultdict(list)
        for line in block.splitlines(keepends=True):
            parts[crc32(line[: line.index(b"\t")]) % partitions].append(line)
        yield from ((part, b"".join(lines)) for part, lines in parts.items())


def _of_some_size(lines: Iterable[bytes]) -> Iterator[bytes]:
    return (block for _, block in gathered((0, line) for line in lines))


def report_of(counters: Counters) -> bytes:
    return json.dumps(counters.as_dict()).encode()


def load(_: object) -> None:
    """A task for a Python that may lack what this file imports."""


def prepare() -> None:
    """As tasks are elsewhere: they read some lines of a file, say nothing by themselves, and have
    a folder for what does not fit in memory, which Spark removes after a crash, too."""
    os.environ[TASK_FILE] = os.environ["NEARDUP_REPORT"] = "spark"
    folders = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    for folder in filter(os.path.isdir, folders):
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        break
