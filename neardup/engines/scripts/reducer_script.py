"""reducer.py: the lines of buckets to pair lines."""

from __future__ import annotations

import sys

from neardup.engines.either_form import reduce_either
from neardup.options.settings import Settings
from neardup.options.table import parser
from neardup.process.counters import Counters
from neardup.process.program import run, write_all

REDUCER = """Verify the records that share a key and write the similar pairs.

Reads the sorted output of mapper.py, and takes the same options as it:

    cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py
"""


def main() -> int:
    return run("reducer.py", _reduce)


def _reduce() -> None:
    args = parser("reducer.py", REDUCER).parse_args()
    settings = Settings.of(args)
    counters = Counters("reducer", progress="keyed lines")
    write_all(reduce_either(sys.stdin.buffer, settings, counters))
    counters.report()
