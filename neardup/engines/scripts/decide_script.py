"""decide_reducer.py: edges to a decision."""

from __future__ import annotations

import sys

from neardup.engines.deciding import decision
from neardup.options.settings import Settings
from neardup.options.table import parser
from neardup.process.counters import Counters
from neardup.process.errors import UsageError
from neardup.process.program import run, write_all
from neardup.reading.blocks import blocks_of
from neardup.verification import OUTPUTS

DECIDE = """Decide which records go, or find the clusters.

Reads sorted edges, the output of reducer.py, and takes the same options as it:

    ./mapper.py --output removed FILE… | LC_ALL=C sort | ./reducer.py --output removed \\
        | LC_ALL=C sort | ./decide_reducer.py --output removed > removed.tsv

With --output kept it writes what keep_mapper.py takes: the same lines, and in front of each the
record's place in the input.  All edges go to one such process, which holds 28 bytes for each record
that is in a pair.
"""


def main() -> int:
    return run("decide_reducer.py", _decide)


def _decide() -> None:
    args = parser("decide_reducer.py", DECIDE).parse_args()
    settings = Settings.of(args)
    if not settings.output.decides:
        able = " or ".join(name for name, output in OUTPUTS.items() if output.decides)
        raise UsageError(f"decides where --output is {able}, and --output is {args.output}")
    counters = Counters("decide")
    edges = blocks_of(sys.stdin.buffer)
    write_all(decision(edges, args.output, settings, counters))
    counters.report()
