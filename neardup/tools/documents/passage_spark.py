"""Find passages on Spark, with the steps of `passage_steps`.

    python3 -m neardup.tools.documents.passage_spark articles.jsonl passages

This program starts itself again with spark-submit.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
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
from neardup.runtime.program import run
from neardup.runtime.summary import judged, print_summary, total
from neardup.stages.candidate_keys import HELD_BYTES, BloomFilter
from neardup.tools.documents import passage_steps, passage_texts
from neardup.tools.documents.passage_steps import PassageOptions

NAME = "passage_spark.py"
DESCRIPTION = """Find passages on Spark: runs of words that occur in several texts.

INPUT is a file, a folder or a pattern: JSON lines with ids, or lines with --input text, plain, .gz
or .bz2.  OUTPUT is a new folder for the lines of `neardup passages`, in another order:

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
    own = (
        *flags("inputs INPUT…\noutput_folder OUTPUT"),
        *passage_texts.PASSAGE_OPTIONS,
        *spark,
        *VERBOSITY,
    )
    parser = table.parser(NAME, DESCRIPTION, passage_texts.PASSAGE_FLAGS, own, table.OF_READERS)
    parser.set_defaults(name="passages")
    args = parser.parse_intermixed_args(given)
    passage_texts.check_words(spark_submit.check(args).form)
    return args


def answer(spark: Any, args: Namespace) -> None:
    """Write OUTPUT, and print the summary on stderr; StageError if too many lines are bad."""
    from neardup.engines.spark.spark_flow import StepJob, new_output, of_block
    from neardup.engines.spark.spark_tasks import states_of_files

    asked, own = with_input(table.Options.of(args)), Counters("passages")
    own.add("records", 0)
    settings = Settings.of(asked)
    options = PassageOptions(args.length, args.min_records, settings.form.clean)

    def hashes(blocks: Iterator[Block], counters: Counters) -> Iterator[bytes]:
        texts = passage_texts.RecordTexts(Settings.of(asked), (), counters, 1)
        return passage_steps.hashes(texts.of_blocks(blocks), options, partitions)

    def windows(blocks: Iterator[Block], counters: Counters) -> Iterator[bytes]:
        texts = passage_texts.RecordTexts(Settings.of(asked), (), counters, 1)
        return passage_steps.windows(texts.of_blocks(blocks), options, known.value)

    with new_output(spark, args.output_folder):
        before = states_of_files(spark, args.inputs)
        job = StepJob(spark, args.inputs, settings.max_line, args.reducers)
        partitions, lines_of = job.partitions, partial(passage_steps.passage_lines, options=options)
        found = job.map(hashes, of_block)
        text = job.collect(found, partial(passage_steps.shared, most=HELD_BYTES))
        known = spark.sparkContext.broadcast(BloomFilter.of(text, options.digest))
        runs_of = partial(passage_steps.runs, least=options.least, every=args.places)
        found = job.reduce(job.map(windows), runs_of)
        reports = [own.as_dict(), *job.write(found, lines_of, args.output_folder)]
        check_unchanged(before, states_of_files(spark, args.inputs))
    print_summary(reports, args.verbosity, whole=False, packed=True)
    judged(total(report["counts"] for report in reports), settings.max_bad)


if __name__ == "__main__":
    sys.exit(run(NAME, main))
