"""connect.py: clusters by rounds, in steps."""

from __future__ import annotations

import sys
from argparse import SUPPRESS

from neardup.decisions.star_rounds import clusters_of, large_star, links_of, small_star
from neardup.process.arguments import bare_parser
from neardup.process.counters import Counters
from neardup.process.program import run, write_all
from neardup.process.summary import LINKS
from neardup.reading.blocks import lines_of_stage

CONNECT = """Find clusters by rounds of map-reduce: for more records than one process can number.

Reads what the reducers write with --output clusters.  A step holds no more than a line, and between
two of them is a sort.  In bash, after set -eo pipefail:

    rm -f before
    cat EDGES | ./connect.py links | LC_ALL=C sort -u > links
    until cmp -s links before; do
        mv links before
        ./connect.py large < before | LC_ALL=C sort -u | \\
            ./connect.py small | LC_ALL=C sort -u > links
    done
    ./connect.py clusters < links | LC_ALL=C sort > clusters.tsv

A round that changes nothing is the last one.  Where nobody can compare, a counter tells: as soon as
large counts no unsettled links, what it has read can go to clusters.
"""
CONNECT_STEPS = """steps:
  links     edges, in any order, to links from both their ends
  large     sorted links: each node gives its larger neighbours to the smallest one it knows
  small     the sorted output of large: the same with smaller neighbours, and the node itself
  clusters  sorted links, when they have settled, to CLUSTER TAB ID
"""
CONNECTING = {
    "links": links_of,
    "large": large_star,
    "small": small_star,
    "clusters": clusters_of,
}


def main() -> int:
    return run("connect.py", _connect)


def _connect() -> None:
    parser = bare_parser("connect.py", CONNECT)
    parser.usage = f"connect.py {' | '.join(CONNECTING)}"
    parser.epilog = CONNECT_STEPS
    parser.add_argument("step", choices=CONNECTING, help=SUPPRESS)
    step = parser.parse_args().step
    counters = Counters(f"connect {step}", progress=LINKS)
    write_all(CONNECTING[step](lines_of_stage(sys.stdin.buffer), counters))
    counters.report()
