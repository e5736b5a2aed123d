"""share_keys.py: the keys that two records share, in steps."""

from __future__ import annotations

import sys
from argparse import SUPPRESS

from neardup.engines.in_blocks import keys_in_blocks, share_blocks
from neardup.engines.scripts.script_files import blocks_to_read, with_files
from neardup.options.settings import Settings
from neardup.options.table import parser
from neardup.process.arguments import bare_parser
from neardup.process.counters import Counters
from neardup.process.program import run, write_all
from neardup.reading.blocks import lines_of_stage

SHARE = """Find the keys that two records share, so that mapper.py writes lines for these alone.

The first of two rounds; the second is mapper.py and reducer.py with the same options:

    cat FILE | ./share_keys.py map | LC_ALL=C sort | ./share_keys.py reduce > shared
    cat FILE | ./mapper.py --shared-keys shared | LC_ALL=C sort | ./reducer.py

run_hadoop.sh and job.py do this by themselves where it is worth a second job.
"""
SHARE_STEPS = """steps:
  map [OPTIONS] [FILE …]  record lines to blocks of keys; takes the options of mapper.py
  reduce [OPTIONS]        sorted blocks to the shared keys, as a filter of bounded size
"""
SHARE_MAP = """Write the keys of some records, in blocks: the first step of share_keys.py.

Takes the options of mapper.py.
"""
SHARE_REDUCE = """Write the keys that two records share: the second step of share_keys.py.

Takes the options of mapper.py, of which those that keys depend on matter here.
"""


def main() -> int:
    return run("share_keys.py", _share)


def _share() -> None:
    asked = bare_parser("share_keys.py", SHARE)
    asked.usage = "share_keys.py map [OPTIONS] [FILE ...] | reduce [OPTIONS]"
    asked.epilog = SHARE_STEPS
    asked.add_argument("step", choices=["map", "reduce"], help=SUPPRESS)
    step = asked.parse_args(sys.argv[1:2]).step
    (_share_map if step == "map" else _share_reduce)(sys.argv[2:])


def _share_map(arguments: list[str]) -> None:
    args = with_files(parser("share_keys.py map", SHARE_MAP)).parse_args(arguments)
    settings = Settings.of(args)
    counters = Counters("keys", progress="records")
    write_all(keys_in_blocks(blocks_to_read(args, settings), settings, counters))
    counters.report()


def _share_reduce(arguments: list[str]) -> None:
    args = parser("share_keys.py reduce", SHARE_REDUCE).parse_args(arguments)
    write_all(share_blocks(lines_of_stage(sys.stdin.buffer), Settings.of(args)))
