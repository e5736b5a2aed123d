"""Find passages on Spark, with the steps of `passage_steps`.

    python3 -m neardup.tools.documents.passage_spark articles.jsonl passages

This program starts itself again with spark-submit.
"""

import itertools
import json
import os
import sys
from argparse import Namespace
from array import array
from collections.abc import Iterable, Iterator
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from neardup.runtime.interpreter import require

if __name__ == "__main__":  # otherwise the importing program did so
    require("numpy", name="passage_spark.py")

from neardup.engines.pipe import check_unchanged
from neardup.engines.spark import spark_submit
from neardup.options import table
from neardup.options.command_parser import VERBOSITY
from neardup.options.settings import Settings, with_input
from neardup.reading.blocks import Block
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags
from neardup.runtime.program import UsageError, run
from neardup.runtime.summary import judged, print_summary, total
from neardup.stages.candidate_keys import HELD_BYTES, BloomFilter
from neardup.stages.word_lines import Words
from neardup.tools.documents import passage_answers, passage_steps, passage_texts, passage_windows
from neardup.tools.documents.cut_words import cut_lines
from neardup.tools.documents.passage_answers import DecidedLines
from neardup.tools.documents.passage_texts import KEPT, PASSAGES, RecordTexts
from neardup.tools.documents.passage_windows import PassageOptions

NAME = "passage_spark.py"
DESCRIPTION = """Find passages on Spark: runs of words that occur in several texts.

INPUT is a file, a folder or a pattern: JSON lines with ids, or lines with --input text, plain, .gz
or .bz2.  OUTPUT is a new folder for the lines of `neardup passages`, in another order without --by:

    python3 -m neardup.tools.documents.passage_spark --length 50 articles.jsonl passages

The first place of a passage is that in the first file by path.  The nodes need numpy and pyarrow.
"""


def main() -> None:
    args = read(sys.argv[1:])
    if os.environ.get(spark_submit.CALLED) != NAME:
        spark_submit.submit(args, Path(__file__).resolve(), NAME)
        return
    require("pyspark", "pyarrow", "pandas", name=NAME)
    from neardup.engines.spark.spark_flow import session

    with session(args.master) as spark:
        answer(spark, args)


def read(given: list[str]) -> Namespace:
    """Parse and check the command line; raise UsageError for an option that does not fit."""
    spark = (flag for flag in spark_submit.SPARK_OPTIONS if flag.name != "--rounds")
    inputs = flags("inputs INPUT…\noutput_folder OUTPUT")
    own = (*inputs, *passage_texts.CLUSTER_OPTIONS, *spark, *VERBOSITY)
    names = (*passage_texts.PASSAGE_FLAGS, "--mark-prefix")
    parser = table.parser(NAME, DESCRIPTION, names, own, table.OF_READERS)
    parser.set_defaults(name="passages")
    args = parser.parse_intermixed_args(given)
    args.output = passage_texts.options_of(args).output
    passage_texts.check_words(spark_submit.check(args).form, args.kind)
    folders = [f"{os.path.normpath(name)}/" for name in (args.output_folder, args.removed) if name]
    if any(b.startswith(a) for a, b in itertools.permutations(folders, 2)):
        raise UsageError(f"--removed {args.removed} and OUTPUT must be separate folders")
    return args


def answer(spark: Any, args: Namespace) -> None:
    """Write OUTPUT, and print the summary on stderr; StageError if too many lines are bad."""
    from neardup.engines.spark.finished_stages import FinishedStages, work
    from neardup.engines.spark.spark_flow import new_output
    from neardup.engines.spark.spark_tasks import fixed_splits, states_of_files

    removed = nullcontext() if args.removed is None else new_output(spark, args.removed)
    with new_output(spark, args.output_folder), removed:
        before = states_of_files(spark, args.inputs)
        with fixed_splits(spark, before) as split:
            how = args.length, args.min_records, args.kind, args.which, args.by, args.places
            asked = passage_texts.options_of(args), *how, args.removed is None, split
            stages = FinishedStages(spark, args.output_folder, work(before, asked))
            try:
                reports = carry_out(spark, args, stages)
                check_unchanged(before, states_of_files(spark, args.inputs))
            except BaseException as error:
                stages.clean_up(error)
                raise
    stages.remove()
    print_summary(stages.timed(reports), args.verbosity, whole=False, packed=True)
    settings = Settings.of(with_input(passage_texts.options_of(args)))
    judged(total(report["counts"] for report in reports), settings.max_bad)


def carry_out(spark: Any, args: Namespace, stages: Any) -> list[dict[str, Any]]:
    """Write the answers; return the reports of the tasks.  stages: the `FinishedStages`."""
    from pyspark import SparkFiles

    from neardup.engines.spark.spark_flow import Step, StepJob, of_block
    from neardup.engines.spark.spark_tasks import blocks_of_batches, parts_of, rows_of_batches

    asked, own = with_input(passage_texts.options_of(args)), Counters("passages")
    own.add("records", 0)
    settings, kind, sources = Settings.of(asked), args.kind, args.removed is not None
    options = PassageOptions.of(args, settings.form.clean)
    job = StepJob(spark, args.inputs, settings.max_line, args.reducers)
    partitions, places, names = job.partitions, job.places, list[list[str]]()

    def texts(counters: Counters) -> RecordTexts:
        return RecordTexts(Settings.of(asked), (), counters, 1, single=kind == KEPT)

    def decided() -> DecidedLines:
        return DecidedLines([[*map(SparkFiles.get, some)] for some in names])

    def hashes(blocks: Iterator[Block], counters: Counters) -> Iterator[bytes]:
        with closing(decided()) as cuts:
            records = texts(counters).of_blocks(blocks)
            yield from passage_windows.hashes(records, options, partitions, cuts)

    def windows(blocks: Iterator[Block], counters: Counters) -> Iterator[bytes]:
        with closing(decided()) as cuts:
            records = texts(counters).of_blocks(blocks)
            yield from passage_windows.windows(records, options, known.value, cuts, sources)

    def rows(batches: Iterable[Any], counters: Counters) -> Iterator[bytes]:
        with closing(decided()) as lines:
            for some in rows_of_batches(batches):
                how = texts(Counters("rows")), lines, Settings.of(asked), kind, counters
                yield from passage_answers.changed_rows(some.part(places), *how)

    def cuts(batches: Iterable[Any], counters: Counters) -> Iterator[bytes]:
        with closing(decided()) as lines:
            blocks = blocks_of_batches(batches, settings.max_line, places)
            records = texts(Counters("cuts")).of_blocks(blocks)
            found = passage_answers.cuts_of(records, lines, Words(options.clean))
            yield from cut_lines(found, counters, array("Q"))

    every = args.places or kind != PASSAGES
    runs_of = partial(passage_windows.runs, least=options.least, every=every)
    lines_of: Step = partial(passage_steps.passage_lines, options=options)
    keys_of = partial(passage_windows.shared, most=HELD_BYTES)
    reports = list[dict[str, Any]]()
    while True:
        again = str(len(names) or "")
        _, text = stages.stage(
            f"shared{again}", lambda _: job.collect(job.map(hashes, of_block), keys_of)
        )
        known = spark.sparkContext.broadcast(BloomFilter.of(text, options.digest))
        found = job.reduce(job.map(windows), runs_of)
        if kind == PASSAGES:
            last = lines_of
            if options.by:
                found, last = job.reduce(found, lines_of).coalesce(1), passage_steps.without_key
            return [own.as_dict(), *job.write(found, last, args.output_folder)]

        def decide(folder: str, found: Any = found) -> bytes:
            done = job.write(found, lines_of, folder, compression="none")
            return json.dumps(done).encode()

        folder, done = stages.stage(f"decided{again}", decide)
        reports = reports or [own.as_dict(), *json.loads(done)]
        parts = [name for name, size in parts_of(spark, folder) if size]
        if kind == KEPT and not parts:
            break
        for name in parts:
            spark.sparkContext.addFile(name)
        names.append([name.rpartition("/")[2] for name in parts])
        if kind != KEPT:
            break
    reports += job.write_splits(rows, args.output_folder)
    if args.removed is not None:
        job.write_splits(cuts, args.removed)
    return reports


if __name__ == "__main__":
    sys.exit(run(NAME, main))
