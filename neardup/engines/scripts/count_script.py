"""count_tokens.py: token counts, in steps."""

from __future__ import annotations

import sys
from argparse import SUPPRESS

from neardup.count_stages import map_counts, order_counts, sum_counts
from neardup.engines.scripts.script_files import blocks_to_read, with_files
from neardup.options.settings import Settings
from neardup.options.table import parser
from neardup.process.arguments import bare_parser
from neardup.process.counters import Counters
from neardup.process.program import run, write_all
from neardup.reading.blocks import lines_of_stage
from neardup.token_counts.counts import TokenCounts

COUNT = """Count in how many records each token is, for the schemes that ask how rare a token is.

Two map-reduce steps, and then mapper.py and reducer.py take the file:

    cat FILE | ./count_tokens.py map | LC_ALL=C sort | ./count_tokens.py sum \\
             | LC_ALL=C sort | ./count_tokens.py order > counts.tsv
    cat FILE | ./mapper.py --counts counts.tsv … | LC_ALL=C sort | ./reducer.py …

run_local.sh, run_hadoop.sh and job.py do this by themselves where a scheme asks for it.
"""
COUNT_STEPS = """steps:
  map [OPTIONS] [FILE …]  record lines to partial counts; takes the options of mapper.py
  sum                     sorted partial counts to sums
  order                   sorted sums to counts: all sizes, and the million most frequent tokens
"""
COUNT_MAP = """Count the tokens and sizes of some records: the first step of count_tokens.py.

Takes the options of mapper.py, of which those that say what a line is matter here.
"""


def main() -> int:
    return run("count_tokens.py", _count)


def _count() -> None:
    asked = bare_parser("count_tokens.py", COUNT)
    asked.usage = "count_tokens.py map [OPTIONS] [FILE ...] | sum | order"
    asked.epilog = COUNT_STEPS
    asked.add_argument("step", choices=["map", "sum", "order"], help=SUPPRESS)
    args = asked.parse_args(sys.argv[1:2])
    if args.step == "map":
        _count_map(sys.argv[2:])
    else:
        asked.parse_args(sys.argv[1:])
        step = sum_counts if args.step == "sum" else order_counts
        write_all(step(lines_of_stage(sys.stdin.buffer)))


def _count_map(arguments: list[str]) -> None:
    args = with_files(parser("count_tokens.py map", COUNT_MAP)).parse_args(arguments)
    settings = Settings.of(args, TokenCounts.empty())
    counters = Counters("tokens", progress="records")
    write_all(map_counts(blocks_to_read(args, settings), settings, counters))
    counters.report()
