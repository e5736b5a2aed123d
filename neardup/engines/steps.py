"""count_tokens.py: token counts, in steps.

share_keys.py: the keys that two records share, in steps.

decide_reducer.py: edges to a decision.

keep_mapper.py: the lines that stay.

connect.py: clusters by rounds, in steps.
"""

from __future__ import annotations

import sys
from argparse import SUPPRESS

from neardup.decisions.star_rounds import clusters_of, large_star, links_of, small_star
from neardup.engines.inputs import blocks_to_read, keep_of_files, kept_of_task, with_files
from neardup.options.settings import Settings, form_of
from neardup.options.table import MAX_LINE_MIB, integer, parser
from neardup.reading.blocks import blocks_of, check_inputs, in_task, lines_of_stage
from neardup.runtime.arguments import bare_parser
from neardup.runtime.counters import Counters
from neardup.runtime.errors import UsageError
from neardup.runtime.program import run, write_all
from neardup.runtime.summary import LINKS
from neardup.sets.token_counts import TokenCounts
from neardup.stages.deciding import decision
from neardup.stages.phases import keys_in_blocks, share_blocks
from neardup.stages.token_counting import map_counts, order_counts, sum_counts
from neardup.verification import OUTPUTS

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


def count() -> int:
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


def share_keys() -> int:
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


DECIDE = """Decide which records go, or find the clusters.

Reads sorted edges, the output of reducer.py, and takes the same options as it:

    ./mapper.py --output removed FILE… | LC_ALL=C sort | ./reducer.py --output removed \\
        | LC_ALL=C sort | ./decide_reducer.py --output removed > removed.tsv

With --output kept it writes what keep_mapper.py takes: the same lines, and in front of each the
record's place in the input.  All edges go to one such process, which holds 28 bytes for each record
that is in a pair.
"""


def decide() -> int:
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


KEEP = """Write the lines of an input without those of the records that go.

Takes what decide_reducer.py wrote with --output kept, and the files that mapper.py was given, in
the same order:

    ./mapper.py --output kept FILE… | LC_ALL=C sort | ./reducer.py --output kept \\
        | LC_ALL=C sort | ./decide_reducer.py --output kept > decided.tsv
    ./keep_mapper.py --decided decided.tsv FILE… > clean.txt
    cut -f 2- decided.tsv > removed.tsv
"""
KEEP_FLAGS = ("--input", "--id", "--text", "--max-line", "--input-files")


def keep() -> int:
    return run("keep_mapper.py", _keep)


def _keep() -> None:
    asked = with_files(parser("keep_mapper.py", KEEP, KEEP_FLAGS))
    asked.add_argument(
        "--decided", metavar="FILE", required=True, help="what decide_reducer.py wrote"
    )
    args = asked.parse_args()
    check_inputs([args.decided])
    with open(args.decided, "rb") as decided:
        if in_task():
            write_all(kept_of_task(decided, args.input_files))
        else:
            longest = integer("--max-line", args.max_line, 1, MAX_LINE_MIB) << 20
            keep_of_files(form_of(args), decided, args.files or ["-"], longest)


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


def connect() -> int:
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
