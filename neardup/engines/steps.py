"""step.py NAME: the steps of a run on a cluster that are neither mapper.py nor reducer.py.

count    record lines → token counts, for schemes that ask for them
share    record lines → the keys that two records share, so that only these travel
decide   sorted edges → the records that are removed, or the members of each cluster
keep     the input again → its lines without the removed records
"""

from __future__ import annotations

import sys
from argparse import SUPPRESS

from neardup.engines.pipe import blocks_to_read, keep_of_files, kept_of_task, with_files
from neardup.options.settings import Settings, form_of
from neardup.options.table import MAX_LINE_MIB, Options, integer, parser
from neardup.reading.blocks import blocks_of, check_inputs, in_task, lines_of_stage
from neardup.runtime.counters import Counters
from neardup.runtime.errors import UsageError
from neardup.runtime.program import bare_parser, run, write_all
from neardup.sets.token_counts import TokenCounts
from neardup.stages.pairs import decision
from neardup.stages.phases import keys_in_blocks, share_blocks
from neardup.stages.token_counting import map_counts, order_counts, sum_counts
from neardup.verification import OUTPUTS

COUNT = """Count in how many records each token is, for the schemes that ask how rare a token is.

Two map-reduce steps, and then mapper.py and reducer.py take the file:

    cat FILE | ./step.py count map | LC_ALL=C sort | ./step.py count sum \\
             | LC_ALL=C sort | ./step.py count order > counts.tsv
    cat FILE | ./mapper.py --counts counts.tsv … | LC_ALL=C sort | ./reducer.py …

run_local.sh, run_hadoop.sh and job.py do this by themselves where a scheme asks for it.
"""
COUNT_STEPS = """steps:
  map [OPTIONS] [FILE …]  record lines to partial counts; takes the options of mapper.py
  sum                     sorted partial counts to sums
  order                   sorted sums to counts: all sizes, and the million most frequent tokens
"""
COUNT_MAP = """Count the tokens and sizes of some records: the first step of step.py count.

Takes the options of mapper.py, of which those that say what a line is matter here.
"""


def count() -> int:
    return run("step.py count", _count)


def _count() -> None:
    asked = bare_parser("step.py count", COUNT)
    asked.usage = "step.py count map [OPTIONS] [FILE ...] | sum | order"
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
    args = with_files(parser("step.py count map", COUNT_MAP)).parse_args(arguments)
    settings = Settings.of(Options.of(args), TokenCounts.empty())
    counters = Counters("tokens", progress="records")
    write_all(map_counts(blocks_to_read(args, settings), settings, counters))
    counters.report()


SHARE = """Find the keys that two records share, so that mapper.py writes lines for these alone.

The first of two rounds; the second is mapper.py and reducer.py with the same options:

    cat FILE | ./step.py share map | LC_ALL=C sort | ./step.py share reduce > shared
    cat FILE | ./mapper.py --shared-keys shared | LC_ALL=C sort | ./reducer.py

run_hadoop.sh does this by itself where it is worth a second job.
"""
SHARE_STEPS = """steps:
  map [OPTIONS] [FILE …]  record lines to blocks of keys; takes the options of mapper.py
  reduce [OPTIONS]        sorted blocks to the shared keys, as a filter of bounded size
"""
SHARE_MAP = """Write the keys of some records, in blocks: the first step of step.py share.

Takes the options of mapper.py.
"""
SHARE_REDUCE = """Write the keys that two records share: the second step of step.py share.

Takes the options of mapper.py, of which those that keys depend on matter here.
"""


def share_keys() -> int:
    return run("step.py share", _share)


def _share() -> None:
    asked = bare_parser("step.py share", SHARE)
    asked.usage = "step.py share map [OPTIONS] [FILE ...] | reduce [OPTIONS]"
    asked.epilog = SHARE_STEPS
    asked.add_argument("step", choices=["map", "reduce"], help=SUPPRESS)
    step = asked.parse_args(sys.argv[1:2]).step
    (_share_map if step == "map" else _share_reduce)(sys.argv[2:])


def _share_map(arguments: list[str]) -> None:
    args = with_files(parser("step.py share map", SHARE_MAP)).parse_args(arguments)
    settings = Settings.of(Options.of(args))
    counters = Counters("keys", progress="records")
    write_all(keys_in_blocks(blocks_to_read(args, settings), settings, counters))
    counters.report()


def _share_reduce(arguments: list[str]) -> None:
    args = parser("step.py share reduce", SHARE_REDUCE).parse_args(arguments)
    write_all(share_blocks(lines_of_stage(sys.stdin.buffer), Settings.of(Options.of(args))))


DECIDE = """Decide which records go, or find the clusters.

Reads sorted edges, the output of reducer.py, and takes the same options as it:

    ./mapper.py --output removed FILE… | LC_ALL=C sort | ./reducer.py --output removed \\
        | LC_ALL=C sort | ./step.py decide --output removed > removed.tsv

With --output kept it writes what step.py keep takes: the same lines, and in front of each the
record's place in the input.  All edges go to one such process, which holds 28 bytes for each record
that is in a pair.
"""


def decide() -> int:
    return run("step.py decide", _decide)


def _decide() -> None:
    args = parser("step.py decide", DECIDE).parse_args()
    settings = Settings.of(Options.of(args))
    if not settings.output.decides:
        able = " or ".join(name for name, output in OUTPUTS.items() if output.decides)
        raise UsageError(f"decides where --output is {able}, and --output is {args.output}")
    counters = Counters("decide")
    edges = blocks_of(sys.stdin.buffer)
    write_all(decision(edges, args.output, settings, counters))
    counters.report()


KEEP = """Write the lines of an input without those of the records that go.

Takes what step.py decide wrote with --output kept, and the files that mapper.py was given, in
the same order:

    ./mapper.py --output kept FILE… | LC_ALL=C sort | ./reducer.py --output kept \\
        | LC_ALL=C sort | ./step.py decide --output kept > decided.tsv
    ./step.py keep --decided decided.tsv FILE… > clean.txt
    cut -f 2- decided.tsv > removed.tsv
"""
KEEP_FLAGS = ("--input", "--id", "--text", "--max-line", "--input-files")


def keep() -> int:
    return run("step.py keep", _keep)


def _keep() -> None:
    asked = with_files(parser("step.py keep", KEEP, KEEP_FLAGS))
    asked.add_argument("--decided", metavar="FILE", required=True, help="what step.py decide wrote")
    args = asked.parse_args()
    check_inputs([args.decided])
    with open(args.decided, "rb") as decided:
        if in_task():
            write_all(kept_of_task(decided, args.input_files))
        else:
            longest = integer("--max-line", args.max_line, 1, MAX_LINE_MIB) << 20
            keep_of_files(form_of(Options.of(args)), decided, args.files or ["-"], longest)


STEPS = {"count": count, "share": share_keys, "decide": decide, "keep": keep}
STEP = """Run one of the inner steps of a job; run_hadoop.sh calls them by itself.

    ./step.py count    count in how many records each token is
    ./step.py share    find the keys that two records share
    ./step.py decide   decide which records are removed
    ./step.py keep     print the lines that are kept

Each has a --help of its own.
"""


def step() -> int:
    """Run the step that the first argument names."""
    name, *rest = sys.argv[1:] or ["--help"]
    if name not in STEPS:
        return run("step.py", _about)
    sys.argv = [f"step.py {name}", *rest]
    return STEPS[name]()


def _about() -> None:
    asked = bare_parser("step.py", STEP)
    asked.usage = "step.py NAME ..."
    asked.add_argument("step", metavar="NAME", choices=STEPS, help=SUPPRESS)
    asked.parse_args(sys.argv[1:] or ["--help"])
