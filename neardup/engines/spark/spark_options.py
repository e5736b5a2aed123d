"""The options of run_spark.sh, read and checked before a JVM is started."""

from __future__ import annotations

import argparse
import shlex

from neardup.engines.spark.spark_lines import check_names
from neardup.index.is_index import refuse_indexes
from neardup.options import common, table
from neardup.options.settings import counts_first, settings_before_counts
from neardup.process.errors import UsageError

NAME = "run_spark.sh"
DESCRIPTION = """Find the similar pairs of records in files on Spark.

INPUT is a file, a folder or a pattern, plain, .gz or .bz2, on any file system that Spark reads;
OUTPUT a folder that does not exist yet, where the pairs will be: A TAB B TAB SIMILARITY.
With --output kept, each part of OUTPUT has the lines that stay of some splits of the input.

    ./run_spark.sh data/videos.txt pairs
    ./run_spark.sh --master yarn --conf spark.executor.instances=40 /data/videos /data/pairs
    ./run_spark.sh --master spark://node:7077 --input text s3a://bucket/articles s3a://bucket/pairs

Needs Spark 4.1 or later: SPARK_HOME, spark-submit on the PATH, or pyspark from pip; and on the
nodes Python 3.10 or later with numpy and pyarrow.
"""
ROUNDS = ("auto", "1", "2")
ELSEWHERE = "run_hadoop.sh"  # which has what is not here yet


def read(given: list[str]) -> argparse.Namespace:
    """The options; UsageError for anything wrong or impossible."""
    args = _parser().parse_intermixed_args(given)
    settings = settings_before_counts(args)
    settings.form.check_task()
    if not all([*args.inputs, args.output_folder]):
        raise UsageError("INPUT and OUTPUT must not be empty")
    check_names([*(args.against or []), *args.inputs])
    refuse_indexes([*(args.against or []), *args.inputs])
    if counts_first(args):
        raise _elsewhere("a scheme that counts tokens first", args, ", or name --counts FILE")
    if args.reducers is not None:
        common.integer("--reducers", args.reducers, 1, 999999)
    if args.rounds not in ROUNDS:
        raise UsageError(f"--rounds: {args.rounds!r} is not one of {', '.join(ROUNDS)}")
    for text in args.conf:
        if "=" not in text:
            raise UsageError(f"--conf: expected NAME=VALUE, got {text!r}")
    if "spark.submit.deployMode=cluster" in args.conf:
        raise UsageError("--conf spark.submit.deployMode=cluster: the driver is this machine")
    return args


def _elsewhere(what: str, args: argparse.Namespace, more: str = "") -> UsageError:
    words = [*table.given_arguments(args), *args.inputs, args.output_folder]
    return UsageError(f"{what} is not on Spark; type: ./{ELSEWHERE} {shlex.join(words)}{more}")


def _parser() -> argparse.ArgumentParser:
    # Tasks are told by Spark which file they read.
    parser = table.parser(NAME, DESCRIPTION, set(table.OPTIONS) - {"--input-files"})
    parser.add_argument("inputs", nargs="+", metavar="INPUT")
    parser.add_argument("output_folder", metavar="OUTPUT")
    parser.add_argument(
        "--master",
        metavar="URL",
        default="local[*]",
        help="local[N], yarn, spark://HOST:PORT or what else Spark knows (default: local[*])",
    )
    parser.add_argument(
        "--reducers",
        metavar="N",
        help="partitions of keys, and of pairs: tasks, and files of OUTPUT; by default as many as "
        "splits of the input, or as Spark has cores, if these are more",
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        default="auto",
        help="2: keys first, and then the records of those keys that two of them share; 1: the "
        "records of all keys; auto: 2, which costs no start here (default: auto)",
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="the nodes' Python, with numpy and pyarrow (default: this one with local[N], else "
        "python3)",
    )
    parser.add_argument(
        "--conf",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a property for Spark; may come several times, and wins over what is set here",
    )
    parser.add_argument(
        "--show",
        action="store_true",
        help="print the spark-submit command on stdout, and do not run it",
    )
    parser.add_argument("--name", default="near-duplicates", help="of the application")
    return parser
