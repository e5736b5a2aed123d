"""step.py NAME: the steps of a run on a cluster that are neither mapper.py nor reducer.py.

count    record lines → token counts, for schemes that ask for them
share    record lines → the keys that two records share, so that only these travel
decide   sorted edges → the records that are removed, or the members of each cluster
keep     the input again → its lines without the removed records
"""

from __future__ import annotations

import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Iterator, Sequence
from typing import IO, Callable

from neardup.decisions.kept_lines import check_one_answer, keep_in_one, kept_lines, records_from
from neardup.engines.pipe import input_blocks, list_of_files, with_files
from neardup.options.command_parser import CommandParser
from neardup.options.settings import Settings, form_of
from neardup.options.table import MAX_LINE_MIB, Options, integer, parser
from neardup.reading import blocks
from neardup.reading.blocks import Block
from neardup.reading.input_files import InputFile, task_place
from neardup.runtime.counters import Counters
from neardup.runtime.errors import UsageError
from neardup.runtime.program import STDOUT, run, write_all
from neardup.sets.token_counts import TokenCounts
from neardup.stages.pairs import decision
from neardup.stages.phases import keys_in_blocks, share_blocks
from neardup.stages.token_counting import map_counts, order_counts, sum_counts
from neardup.verification import OUTPUTS

STEP = """Run one of the inner steps of a job; run_hadoop.sh calls them by itself.

    ./step.py count    count in how many records each token is
    ./step.py share    find the keys that two records share
    ./step.py decide   decide which records are removed
    ./step.py keep     print the lines that are kept

Each has a --help of its own.
"""
COUNT = """Count in how many records each token is, for the schemes that ask how rare a token is.

Two map-reduce steps; mapper.py and reducer.py take their result:

    cat FILE | ./step.py count map | LC_ALL=C sort | ./step.py count sum \\
             | LC_ALL=C sort | ./step.py count order > counts.tsv
    cat FILE | ./mapper.py --counts counts.tsv … | LC_ALL=C sort | ./reducer.py …

The options of map are those of mapper.py.  run_local.sh, run_hadoop.sh and job.py do all this by
themselves where a scheme asks for it.
"""


SHARE = """Find the keys that two records share, so that mapper.py writes lines for these alone.

The first of two rounds; the second is mapper.py and reducer.py with the same options:

    cat FILE | ./step.py share map | LC_ALL=C sort | ./step.py share reduce > shared
    cat FILE | ./mapper.py --shared-keys shared | LC_ALL=C sort | ./reducer.py

The options of both steps are those of mapper.py, and the result is a filter of bounded size.
run_hadoop.sh does this by itself where it is worth a second job.
"""


DECIDE = """Decide which records are removed, or find the clusters.

Reads sorted edges, the output of reducer.py, and takes the same options as it:

    ./mapper.py --output removed FILE… | LC_ALL=C sort | ./reducer.py --output removed \\
        | LC_ALL=C sort | ./step.py decide --output removed > removed.tsv

With --output kept it writes what step.py keep takes: the same lines, each behind the record's place
in the input.  All edges go to one such process, which holds 28 bytes for each record that is in a
pair.
"""
KEEP = """Write the lines of an input without those of removed records.

Takes what step.py decide wrote with --output kept, and the files of mapper.py in the same order:

    ./mapper.py --output kept FILE… | LC_ALL=C sort | ./reducer.py --output kept \\
        | LC_ALL=C sort | ./step.py decide --output kept > decided.tsv
    ./step.py keep --decided decided.tsv FILE… > clean.txt
    cut -f 2- decided.tsv > removed.tsv
"""
KEEP_FLAGS = ("--input", "--id", "--text", "--max-line", "--input-files")


def step() -> int:
    """Run the step that the first argument names."""
    name, *words = sys.argv[1:] or ["--help"]
    if name not in STEPS:
        return run("step.py", _refuse)
    sys.argv = [f"step.py {name}", *words]
    return run(sys.argv[0], STEPS[name])


def _refuse() -> None:
    """Print the help, or refuse the name."""
    asked = CommandParser("step.py", STEP)
    asked.usage = "step.py NAME ..."
    asked.add_argument("step", metavar="NAME", choices=STEPS, help=SUPPRESS)
    asked.parse_args(sys.argv[1:] or ["--help"])


def count() -> None:
    asked = CommandParser("step.py count", COUNT)
    asked.usage = "step.py count map [OPTIONS] [FILE ...] | sum | order"
    asked.add_argument("step", choices=["map", "sum", "order"], help=SUPPRESS)
    step = asked.parse_args(sys.argv[1:2]).step
    if step == "map":
        _map(parser("step.py count map", COUNT), map_counts, "tokens", TokenCounts.empty())
        return
    asked.parse_args()  # refuses more arguments
    sums = sum_counts if step == "sum" else order_counts
    write_all(sums(blocks.lines_of_stage(sys.stdin.buffer)))


def share() -> None:
    asked = CommandParser("step.py share", SHARE)
    asked.usage = "step.py share map [OPTIONS] [FILE ...] | reduce [OPTIONS]"
    asked.add_argument("step", choices=["map", "reduce"], help=SUPPRESS)
    if asked.parse_args(sys.argv[1:2]).step == "map":
        _map(parser("step.py share map", SHARE), keys_in_blocks, "keys")
        return
    args = parser("step.py share reduce", SHARE).parse_args(sys.argv[2:])
    write_all(share_blocks(blocks.lines_of_stage(sys.stdin.buffer), Settings.of(Options.of(args))))


def _map(
    asked: ArgumentParser,
    stage: Callable[[Iterator[Block], Settings, Counters], Iterator[bytes]],
    name: str,
    counts: TokenCounts | None = None,
) -> None:
    """Run a stage on the records of the files that a step's arguments name."""
    args = with_files(asked).parse_args(sys.argv[2:])
    settings = Settings.of(Options.of(args), counts)
    counters = Counters(name, progress="records")
    write_all(stage(input_blocks(args.against, args.files, settings), settings, counters))
    counters.report()


def decide() -> None:
    args = parser("step.py decide", DECIDE).parse_args()
    settings = Settings.of(Options.of(args))
    if not settings.output.decides:
        able = " or ".join(name for name, output in OUTPUTS.items() if output.decides)
        raise UsageError(f"decides where --output is {able}, and --output is {args.output}")
    counters = Counters("decide")
    write_all(decision(blocks.blocks_of(sys.stdin.buffer), args.output, settings, counters))
    counters.report()


def keep() -> None:
    asked = with_files(parser("step.py keep", KEEP, KEEP_FLAGS))
    asked.add_argument("--decided", metavar="FILE", required=True, help="what step.py decide wrote")
    args = asked.parse_args()
    blocks.check_inputs([args.decided])
    with open(args.decided, "rb") as decided:
        if blocks.in_task():
            first = task_place(list_of_files(args.input_files))
            pieces = iter(lambda: sys.stdin.buffer.read(blocks.BLOCK_BYTES), b"")
            gone = (place for place, _ in records_from(decided, first))
            whole = blocks.start_of_split().of_file
            write_all(kept_lines(blocks.with_line_ends(pieces), first, gone, whole))
        else:
            _keep_of_files(decided, Options.of(args), args.files or ["-"])


def _keep_of_files(decided: IO[bytes], options: Options, files: Sequence[str]) -> None:
    """Write the kept lines of some files to stdout."""
    longest = integer("--max-line", options.max_line, 1, MAX_LINE_MIB) << 20
    form = form_of(options)
    blocks.check_inputs(list(files))
    named = [
        InputFile(name, name, at) for name, at in zip(files, blocks.file_places(0, len(files)))
    ]
    check_one_answer(form, named)
    with open(STDOUT, "wb", closefd=False) as sink:
        keep_in_one(form, named, longest, decided, sink)


STEPS = {"count": count, "share": share, "decide": decide, "keep": keep}
