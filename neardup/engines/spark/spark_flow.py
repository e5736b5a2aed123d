"""The job as a plan of DataFrames.

    lines ── send_keys ~ shuffle ~ share_keys ── the driver: a filter of bounded size
                                                             │ broadcast
    lines ── send_lines ~ shuffle ~ reduce ─┬─ ~ shuffle ~ unique ── pairs
                                            └─ ~ one part ~ decide ── clusters, who goes

In one application a second round costs no start, so keys come first unless told otherwise.
"""

from __future__ import annotations

import json
from typing import Callable

import numpy as np
from pyspark import AccumulatorParam
from pyspark.sql import DataFrame, SparkSession

from neardup.engines.spark.spark_tasks import ROW, Tasks
from neardup.options.settings import Settings
from neardup.round_stages import shared_keys
from neardup.rounds.key_filter import KeyFilter

VALUE = "value binary"


class Reports(AccumulatorParam[list]):
    """What tasks of the last stage tell, of which Spark hears each once."""

    def zero(self, value: list) -> list:
        return []

    def addInPlace(self, value1: list, value2: list) -> list:  # noqa: N802
        value1 += value2
        return value1


class SparkJob:
    """A job on the lines of a DataFrame, as `spark_lines` makes them."""

    def __init__(self, spark: SparkSession, tasks: Tasks, settings: Settings):
        self.spark, self.tasks, self.settings = spark, tasks, settings
        self._first: list[bytes] = []
        self._later = spark.sparkContext.accumulator([], Reports())

    def answer(self, lines: DataFrame, rounds: int) -> DataFrame:
        """Blocks of lines (`value`, binary), each without its last line end: what --output says.

        With two rounds the first one is carried out here.
        """
        tasks, later = self.tasks, self._later
        shared = self._shared_keys(lines) if rounds == 2 else _no_keys
        keyed = lines.mapInArrow(tasks.send_lines(shared), ROW)
        keyed = keyed.repartitionById(tasks.partitions, "part")
        found = keyed.mapInArrow(tasks.reduce, ROW).repartitionById(tasks.ends, "part")
        end = tasks.decide if tasks.decides else tasks.unique
        return found.mapInArrow(end(later.add), VALUE)

    def kept(self, lines: DataFrame, new: DataFrame, rounds: int) -> DataFrame:
        """The same of the new lines that stay; who goes is found here."""
        places = [row.value for row in self.answer(lines, rounds).collect()]
        gone = np.frombuffer(b"".join(places), "<u8").astype(np.uint64)
        everywhere = self.spark.sparkContext.broadcast(gone)
        keep = self.tasks.keep(lambda: everywhere.value, self._later.add)
        return new.mapInArrow(keep, VALUE)

    def reports(self) -> list[dict]:
        """What the tasks have counted, once all pairs have been asked for, each of them once."""
        return [json.loads(report) for report in [*self._first, *self._later.value]]

    def _shared_keys(self, lines: DataFrame) -> Callable[[], KeyFilter | None]:
        tasks = self.tasks
        sent = lines.mapInArrow(tasks.send_keys, ROW).repartitionById(tasks.key_parts, "part")
        parts: list[bytes] = []
        for row in sent.mapInArrow(tasks.share_keys, ROW).collect():
            parts += [row.block] if row.report is None else []
            self._first += [] if row.report is None else [row.report]
        keys = shared_keys(b"".join(parts), self.settings)
        everywhere = self.spark.sparkContext.broadcast(keys)
        return lambda: everywhere.value


def _no_keys() -> None:
    """Of one round: all keys have lines."""
