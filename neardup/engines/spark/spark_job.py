"""What spark-submit runs for run_spark.sh: from files to a folder of pairs, and a summary."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from neardup.runtime.interpreter import require

if __name__ == "__main__":
    require("numpy", "pyspark", "pyarrow", "pandas", name="run_spark.sh")

from pyspark.sql import SparkSession

from neardup.engines.spark import spark_submit
from neardup.engines.spark.spark_flow import SparkJob, in_a_line, ship
from neardup.engines.spark.spark_lines import (
    check_unchanged,
    lines_of_files,
    places_of_files,
    states_of_files,
)
from neardup.engines.spark.spark_tasks import READ, WRITTEN, Tasks
from neardup.lines.count_lines import read_counts
from neardup.options.settings import Settings, with_input
from neardup.options.table import Options
from neardup.runtime.counters import Counters
from neardup.runtime.errors import StageError
from neardup.runtime.program import run
from neardup.runtime.summary import REMOVED, describe, first_bad_lines, judged, total
from neardup.sets.token_counts import TokenCounts
from neardup.stages.pairs import check_lines, decide_edges, dedup_pairs, map_records, reduce_buckets
from neardup.stages.phases import check_rounds
from neardup.stages.token_counting import with_cost_printed


def main() -> None:
    args = spark_submit.read(sys.argv[1:])
    logging.getLogger().addHandler(logging.NullHandler())  # py4j tells it of Ctrl-C at length
    with in_a_line():
        spark = SparkSession.builder.getOrCreate()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # that of Spark asks the JVM
        try:
            if not args.master.startswith("local"):
                context = spark.sparkContext
                print(context.applicationId, context.uiWebUrl or "", file=sys.stderr)
            answer(spark, args)
        finally:
            spark.stop()


def answer(spark: SparkSession, args: argparse.Namespace) -> None:
    """Write OUTPUT, and the summary to stderr; StageError where the input could not be read."""
    options = with_input(Options.of(args))
    counts = None
    if options.counts is not None:
        counts = read_counts(options.counts, options.own_counts)
    settings = with_cost_printed(Settings.of(options, counts))
    options = replace(options, counts=None, own_counts=False)
    reports = _carry_out(spark, args, options, settings, counts)
    reports += [{**_nothing(settings), **_when(reports[0])}] if reports else [_nothing(settings)]
    told = [*first_bad_lines(reports), describe(reports, whole=True, packed=True)]
    print("\n".join(told), file=sys.stderr)
    judged(total(report["counts"] for report in reports), settings.max_bad)


def _carry_out(
    spark: SparkSession,
    args: argparse.Namespace,
    options: Options,
    settings: Settings,
    counts: TokenCounts | None,
) -> list[dict]:
    """The reports of all tasks; OUTPUT is whole, or is not there."""
    output = _Folder(spark, args.output_folder)
    if output.exists():
        raise StageError(f"{args.output_folder} already exists; name another OUTPUT, or remove it")
    ship(spark.sparkContext)
    old, new, rounds = options.against, args.inputs, 1 if args.rounds == "1" else 2
    lines = lines_of_files(spark, [*old, *new])
    places = places_of_files(spark, old, new) if settings.tag else None
    splits = lines.rdd.getNumPartitions()
    partitions = int(args.reducers or max(spark.sparkContext.defaultParallelism, splits))
    decides = options.output if settings.output.decides else ""
    tasks = Tasks(options, counts, partitions, places, decides)
    job = SparkJob(spark, tasks, settings)
    if decides == "kept":
        before = states_of_files(spark, new)
        blocks = job.kept(lines, lines_of_files(spark, new), rounds)
    else:
        blocks = job.answer(lines, rounds)
    try:
        blocks.selectExpr("cast(value as string) as value").write.text(args.output_folder)
        told = total(report["counts"] for report in job.reports())
        check_rounds(told)
        if decides == "kept":
            check_lines(*(told.get(name, 0) for name in (READ, WRITTEN, REMOVED)))
            check_unchanged(before, states_of_files(spark, new))
    except BaseException as error:
        if "PATH_ALREADY_EXISTS" not in str(error):  # else another run has made it meanwhile
            output.remove()
        raise
    return job.reports()


class _Folder:
    """One on any file system that Spark writes to."""

    def __init__(self, spark: SparkSession, name: str):
        context: Any = spark.sparkContext
        self._path = context._jvm.org.apache.hadoop.fs.Path(name)
        self._system = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def exists(self) -> bool:
        return bool(self._system.exists(self._path))

    def remove(self) -> None:
        self._system.delete(self._path, True)


def _nothing(settings: Settings) -> dict:
    """What the stages count of no input, so that a summary has every line."""
    counters = Counters("mapper")
    list(map_records([], settings, counters))
    list(reduce_buckets([], settings, counters))
    if settings.output.decides:
        list(decide_edges([], settings, counters))
    else:
        list(dedup_pairs([], counters))
    return counters.as_dict()


def _when(report: dict) -> dict:
    """What a report says of a step's time."""
    return {name: report[name] for name in ("stage", "started", "ended")}


if __name__ == "__main__":
    sys.exit(run(os.environ.get(spark_submit.CALLED, spark_submit.NAME), main))
