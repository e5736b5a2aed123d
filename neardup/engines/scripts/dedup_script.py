"""dedup_reducer.py: each pair once."""

from __future__ import annotations

import sys

from neardup.process.arguments import bare_parser
from neardup.process.counters import Counters
from neardup.process.program import run, write_all
from neardup.reading.blocks import lines_of_stage
from neardup.stages import dedup_pairs

DEDUP = """Write each pair once: for merging the pairs of several runs.

Reads sorted pairs; a pair that comes with several similarities keeps the highest:

    LC_ALL=C sort PAIRS… | ./dedup_reducer.py
"""


def main() -> int:
    return run("dedup_reducer.py", _dedup)


def _dedup() -> None:
    bare_parser("dedup_reducer.py", DEDUP).parse_args()
    counters = Counters("dedup")
    write_all(dedup_pairs(lines_of_stage(sys.stdin.buffer), counters))
    counters.report()
