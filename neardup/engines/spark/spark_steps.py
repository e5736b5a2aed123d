"""Steps on Spark: functions on lines, with a shuffle between them that sorts by the first field.

    lines of files ── map ~ shuffle, sort ── reduce ~ shuffle, sort ── write

The lines of a first field meet in one task, in byte order: as in a pipe with LC_ALL=C sort, or on
Hadoop.  So the steps are those of step.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain, starmap
from operator import itemgetter
from typing import Any, Callable
from zlib import crc32

from pyspark.sql import DataFrame, SparkSession

from neardup.engines.spark import spark_lines, spark_tasks
from neardup.engines.spark.spark_flow import VALUE, Reports, partitions_of
from neardup.engines.spark.spark_tasks import ROW, Batches, Rows
from neardup.reading.blocks import Block
from neardup.runtime.counters import Counters
from neardup.stages.pairs import sorted_lines
from neardup.stages.phases import gathered, parse_blocks

Step = Callable[[Iterator[bytes]], Iterator[bytes]]  # on sorted lines


def of_first_field(line: bytes) -> int:
    return crc32(line.partition(b"\t")[0])


def of_block(line: bytes) -> int:
    """Return the partition that a line of `format_blocks` names."""
    return next(parse_blocks([line]))[0]


class StepJob:
    """Steps on the lines of files; `partitions`: of each shuffle."""

    def __init__(self, spark: SparkSession, inputs: list[str], max_line: int, reducers: str | None):
        self._lines = spark_lines.lines_of_files(spark, inputs)
        self._how = max_line, spark_lines.places_of_files(spark, [], inputs)
        self.partitions = partitions_of(self._lines, reducers)
        self._reports = spark.sparkContext.accumulator([], Reports())

    def map(
        self,
        step: Callable[[Iterator[Block], Counters], Iterator[bytes]],
        number: Callable[[bytes], int] = of_first_field,
    ) -> DataFrame:
        """Return the lines of a step; number: what determines the partition of a line."""
        how, partitions = self._how, self.partitions

        def task(batches: Batches) -> Rows:
            spark_tasks.prepare()
            counters = Counters("mapper")
            blocks = spark_lines.blocks_of_batches(batches, *how)
            yield from _rows(step(blocks, counters), number, partitions)
            yield spark_tasks.report_row(counters, partitions)

        return self._lines.mapInArrow(task, ROW).repartitionById(partitions, "part")

    def reduce(self, lines: DataFrame, step: Step) -> DataFrame:
        partitions = self.partitions

        def task(batches: Batches) -> Rows:
            reports: list[bytes] = []
            yield from _rows(step(_in_order(batches, reports)), of_first_field, partitions)
            part = spark_tasks.own_part(partitions)
            yield from (spark_tasks.row(part, report=report) for report in reports)

        return lines.mapInArrow(task, ROW).repartitionById(partitions, "part")

    def collect(self, lines: DataFrame, step: Step) -> bytes:
        """Return what a step yields in all tasks; the reports of the map tasks are dropped."""
        blocks = lines.mapInArrow(_last(step, lambda reports: None), VALUE).collect()
        return b"".join(each.value for each in blocks)

    def write(self, lines: DataFrame, step: Step, folder: str) -> list[dict[str, Any]]:
        """Write the lines of a step to a new folder; return the reports of the map tasks."""
        blocks = lines.mapInArrow(_last(step, self._reports.add), VALUE)
        text = "cast(substring(value, 1, length(value) - 1) as string) as value"
        blocks.selectExpr(text).write.text(folder)
        return [json.loads(report) for report in self._reports.value]


def _last(step: Step, report: Callable[[list[bytes]], None]) -> Callable[[Batches], Rows]:
    def task(batches: Batches) -> Rows:
        reports: list[bytes] = []
        lines = step(_in_order(batches, reports))
        yield from (spark_tasks.value(block) for _, block in gathered((0, line) for line in lines))
        report(reports)

    return task


def _in_order(batches: Batches, reports: list[bytes]) -> Iterator[bytes]:
    """Yield the lines of a task in byte order; reports are added to `reports`."""
    spark_tasks.prepare()
    blocks = map(itemgetter(1), spark_tasks.received(batches, reports))
    return chain.from_iterable(map(BytesIO, sorted_lines(blocks, Counters("reducer"))))


def _rows(lines: Iterable[bytes], number: Callable[[bytes], int], partitions: int) -> Rows:
    pieces = ((number(line) % partitions, line) for line in lines)
    return starmap(spark_tasks.row, gathered(pieces))
