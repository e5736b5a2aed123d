"""The program that spark-submit runs: read files, write the answer, and print a summary."""

import argparse
import os
import sys
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from neardup.runtime.interpreter import require

if __name__ == "__main__":
    require("numpy", "pyspark", "pyarrow", "pandas", name="run_spark.sh")

from pyspark.sql import SparkSession

from neardup.engines.pipe import check_unchanged
from neardup.engines.spark import spark_flow, spark_submit, spark_tasks
from neardup.engines.spark.finished_stages import FinishedStages, work
from neardup.lines.count_lines import read_counts
from neardup.options.settings import Settings, with_input
from neardup.options.table import Options
from neardup.runtime.counters import Counters
from neardup.runtime.program import run
from neardup.runtime.summary import REMOVED, judged, print_summary, total
from neardup.sets.token_counts import TokenCounts
from neardup.stages import pairs, phases, token_counting


def main() -> None:
    args = spark_submit.read(sys.argv[1:])
    with spark_flow.session(args.master) as spark:
        answer(spark, args)


def answer(spark: SparkSession, args: argparse.Namespace) -> None:
    """Write OUTPUT, and print the summary on stderr; StageError if too many lines are bad."""
    options = with_input(Options.of(args))
    counts = None
    if options.counts is not None:
        counts = read_counts(options.counts, options.own_counts)
    settings = token_counting.with_cost_printed(Settings.of(options, counts), options.verbosity)
    with spark_flow.new_output(spark, args.output_folder), ExitStack() as stack:
        before = spark_tasks.states_of_files(spark, [*options.against, *args.inputs])
        fixed = spark_tasks.fixed_splits(spark, before) if settings.output.rows else nullcontext(0)
        split = stack.enter_context(fixed)
        determines = work(before, (options, args.rounds, split), options.counts, options.not_pairs)
        stages = FinishedStages(spark, args.output_folder, determines)
        out = None if options.not_pairs is None else os.devnull  # tasks are sent what was read
        options = replace(options, counts=None, own_counts=False, not_pairs=out)
        try:
            reports = _carry_out(spark, args, options, settings, counts, stages)
            if settings.output.rows:
                names = [*options.against, *args.inputs]
                check_unchanged(before, spark_tasks.states_of_files(spark, names))
        except BaseException as error:
            stages.clean_up(error)
            raise
    stages.remove()
    none, reports = _nothing(settings), stages.timed(reports)
    if reports:  # zero counts within the first stage: no time is added
        none.update((name, reports[0][name]) for name in ("stage", "started", "ended"))
    reports.append(none)
    print_summary(reports, options.verbosity, packed=True, wrote=[args.output_folder])
    judged(total(report["counts"] for report in reports), settings.max_bad)


def _carry_out(
    spark: SparkSession,
    args: argparse.Namespace,
    options: Options,
    settings: Settings,
    counts: "TokenCounts | None",
    stages: FinishedStages,
) -> list[dict[str, Any]]:
    """Write OUTPUT; return the reports of all tasks."""
    old, new, rounds = options.against, args.inputs, 1 if args.rounds == "1" else 2
    lines = spark_tasks.lines_of_files(spark, [*old, *new])
    places = spark_tasks.places_of_files(spark, old, new) if settings.tag else None
    partitions = spark_flow.partitions_of(lines, args.reducers)
    decides = options.output if settings.output.decides else ""
    tasks = spark_tasks.Tasks(options, counts, partitions, places, decides, settings.not_pairs)
    job = spark_flow.SparkJob(spark, tasks, settings, stages)
    if settings.output.rows:
        blocks = job.kept(lines, spark_tasks.lines_of_files(spark, new), rounds)
    else:
        blocks = job.answer(lines, rounds)
    blocks.selectExpr("cast(value as string) as value").write.text(args.output_folder)
    counted = total(report["counts"] for report in job.reports())
    phases.check_rounds(counted)
    if settings.output.rows:
        names = spark_tasks.READ, spark_tasks.WRITTEN, *[REMOVED] * (decides == "kept")
        pairs.check_lines(*(counted.get(name, 0) for name in names))
    return job.reports()


def _nothing(settings: Settings) -> dict[str, Any]:
    """Return a report with zero for each count, so that the summary has every line."""
    counters = Counters("mapper")
    list(pairs.map_records([], settings, counters))
    list(pairs.reduce_buckets([], settings, counters))
    if settings.output.decides:
        list(pairs.decide_edges([], settings, counters))
    else:
        list(pairs.dedup_pairs([], counters))
    return counters.as_dict()


if __name__ == "__main__":
    sys.exit(run(os.environ.get(spark_submit.CALLED, spark_submit.NAME), main))
