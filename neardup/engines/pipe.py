"""Main functions of mapper.py, reducer.py, dedup_reducer.py and step.py, in pipes and on clusters.

In a pipe, a program reads the files that the user names; in a task of a cluster, it reads a part
of the input.  step.py runs the steps that are neither mapper nor reducer; see STEP.
"""

from __future__ import annotations

import shlex
import sys
from argparse import SUPPRESS, Namespace
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import IO, Any, Callable

import numpy as np

from neardup.decisions import kept_lines, merged_rows
from neardup.decisions.marked_rows import Marks, check_files
from neardup.options.command_parser import STANDARD_INPUT, VERBOSITY, CommandParser
from neardup.options.settings import Settings, settings_before_counts
from neardup.options.table import CUTTING, OPTIONS, READING, Options, integer, parser
from neardup.reading import blocks, input_files
from neardup.runtime.counters import Counters
from neardup.runtime.flags import Flag, flags
from neardup.runtime.program import StageError, UsageError, opened_output, run, write_all
from neardup.runtime.summary import LOST, QUIET, many
from neardup.sets.token_counts import TokenCounts
from neardup.stages import pairs, phases, token_counting
from neardup.stages.index_manifest import refuse_indexes
from neardup.verification import MARKED, OUTPUTS, RECORDS

VIDEO_TASKS = "neardup.media.videos.video_tasks"  # runs `step.py videos`; above the engines
PASSAGE_STEPS = "neardup.tools.documents.passage_steps"  # and this one `step.py passages`
MAPPER = """Write each record once for each of its keys.

Reads record lines, an id and its shingles; the next stage is a sort by key:

    cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py
"""
REDUCER = """Verify the records that share a key and write the similar pairs.

Reads the sorted output of mapper.py, and takes the same options as it:

    cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py
"""
DEDUP = """Write each pair once: for merging the pairs of several runs.

Reads sorted pairs; a pair with several similarities gets the highest:

    LC_ALL=C sort PAIRS… | ./dedup_reducer.py
"""
STEP = """Run one of the inner steps of a job; run_hadoop.sh calls them by itself.

    ./step.py count    count the records that contain each token
    ./step.py share    find the keys that two or more records share
    ./step.py decide   decide which records are removed
    ./step.py keep     print the lines that are kept
    ./step.py videos   find pairs of videos
    ./step.py passages  find runs of words that occur in several texts

Each has a --help of its own.
"""
COUNT = """Count the records that contain each token, for schemes that need to know the rare tokens.

Two map-reduce steps; mapper.py and reducer.py take their result:

    cat FILE | ./step.py count map | LC_ALL=C sort | ./step.py count sum \\
             | LC_ALL=C sort | ./step.py count order > counts.tsv
    cat FILE | ./mapper.py --counts counts.tsv … | LC_ALL=C sort | ./reducer.py …

The options of map are those of mapper.py.  run_local.sh, run_hadoop.sh and job.py do all this by
themselves if a scheme needs it.
"""
SHARE = """Find the keys that two or more records share; mapper.py then writes lines for them only.

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

With --output kept it writes what step.py keep takes: the same lines, each after the record's place
in the input and a tab.  One process must read all edges; it holds 28 bytes for each record that is
in a pair, up to 256 MiB; more are decided in parts, on disk.
"""
KEEP = """Write the lines of an input without those of removed records.

Takes what step.py decide wrote with --output kept, and the files of mapper.py in the same order:

    ./mapper.py --output kept FILE… | LC_ALL=C sort | ./reducer.py --output kept \\
        | LC_ALL=C sort | ./step.py decide --output kept > decided.tsv
    ./step.py keep --decided decided.tsv FILE… > clean.txt

For a list of removed records, too, type mapper.py --output removed: it also sends ids, so that
step.py decide reports those that kept records have, too.

    cut -f 2- decided.tsv > removed.tsv

It takes the options of mapper.py for how files are read; with --output marked it writes all lines,
with more columns, and also takes --clean, --shingle, and what else is done with texts.
"""
KEEPS = {*READING, "--fingerprint", "--output", "--mark-prefix", "--merge", "--input-files"}
KEEPS |= {"--max-line", "--max-bad", "--strict"}
MARKS = {"--clean", "--shingle", "--scheme", "--weights", "--bits", "--within", "--across"}
MAPPER_OPTIONS = flags(
    """
    --blocks            write blocks of lines, so that Hadoop moves a thousandth as many items;
                        reducer.py reads lines or blocks
    --shared-keys FILE  write lines only for the keys in FILE, the output of step.py share or a
                        folder of its parts
    """
)


def _map() -> None:
    asked = parser("mapper.py", MAPPER)
    asked.add(STANDARD_INPUT, *MAPPER_OPTIONS, *VERBOSITY)
    args = asked.parse_args()
    settings = token_counting.with_cost_printed(Settings.of(Options.of(args)), args.verbosity)
    counters = Counters("mapper", progress="records", verbosity=args.verbosity)
    read = input_blocks(args.against, args.files, settings)
    shared = None
    if args.shared_keys is not None:
        options = phases.key_options(settings)
        shared = phases.read_filter(args.shared_keys, options, "--shared-keys")
    if args.blocks:
        write_all(phases.lines_in_blocks(read, settings, counters, shared))
    else:
        mapped = pairs.map_records(read, settings, counters, shared=shared)
        write_all(lines for _, lines in mapped)
    counters.report()


def _reduce() -> None:
    asked = parser("reducer.py", REDUCER)
    asked.add(*VERBOSITY)
    args = asked.parse_args()
    settings = Settings.of(Options.of(args))
    counters = Counters("reducer", progress="keyed lines", verbosity=args.verbosity)
    write_all(phases.reduce_either(sys.stdin.buffer, settings, counters))
    counters.report()


def _dedup() -> None:
    asked = CommandParser("dedup_reducer.py", DEDUP)
    asked.add(*VERBOSITY)
    counters = Counters("dedup", verbosity=asked.parse_args().verbosity)
    write_all(pairs.dedup_pairs(blocks.lines_of_stage(sys.stdin.buffer), counters))
    counters.report()


def input_blocks(
    old: Sequence[str] | None, files: Sequence[str] | None, settings: Settings
) -> Iterator[blocks.Block]:
    """Return the blocks of old and new files, of standard input, or of a task's split.

    UsageError, StageError or OSError for what cannot be read, before the first block.
    """
    if blocks.in_task():
        settings.form.check_task()
        if not settings.tag:
            return settings.blocks(["-"])
        names = list_of_files(settings.input_files)
        return input_files.task_blocks(names, settings.max_line, settings.pieces)
    old, new = list(old or []), list(files or ["-"])
    refuse_indexes([*old, *new])
    blocks.check_inputs([*old, *new])
    if settings.output.decides == RECORDS:
        input_files.refuse_twice(old, new, lists_removed=False)
    return settings.read(blocks.numbered(new, old))


def list_of_files(name: str | None) -> str:
    """Return `name`, the path of the list of all input files; UsageError if it is None."""
    if name is None:
        raise UsageError(
            "a task does not know the place of its part in the input; give it --input-files, as "
            "run_hadoop.sh and job.py do"
        )
    return name


def step() -> int:
    """Run the step of step.py that the first command-line argument names."""
    name, *words = sys.argv[1:] or ["--help"]
    if name not in STEPS:
        return run("step.py", _refuse)
    sys.argv = [f"step.py {name}", *words]
    return run(sys.argv[0], STEPS[name])


def _refuse() -> None:
    """Print the help of step.py, or reject an unknown step name with a usage error."""
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
        asked = parser("step.py count map", COUNT)
        _run_stage(asked, token_counting.map_counts, "tokens", TokenCounts.empty())
        return
    asked.parse_args()  # raises UsageError for further arguments
    sums = token_counting.sum_counts if step == "sum" else token_counting.order_counts
    write_all(sums(blocks.lines_of_stage(sys.stdin.buffer)))


def share() -> None:
    asked = CommandParser("step.py share", SHARE)
    asked.usage = "step.py share map [OPTIONS] [FILE ...] | reduce [OPTIONS]"
    asked.add_argument("step", choices=["map", "reduce"], help=SUPPRESS)
    if asked.parse_args(sys.argv[1:2]).step == "map":
        _run_stage(parser("step.py share map", SHARE), phases.keys_in_blocks, "keys")
        return
    args = parser("step.py share reduce", SHARE).parse_args(sys.argv[2:])
    lines = blocks.lines_of_stage(sys.stdin.buffer)
    write_all(phases.share_blocks(lines, Settings.of(Options.of(args))))


def _run_stage(
    asked: CommandParser,
    stage: Callable[[Iterator[blocks.Block], Settings, Counters], Iterator[bytes]],
    name: str,
    counts: TokenCounts | None = None,
) -> None:
    """Parse the command line, run a stage on the records of its files, and write the output."""
    asked.add(STANDARD_INPUT, *VERBOSITY)
    args = asked.parse_args(sys.argv[2:])
    settings = Settings.of(Options.of(args), counts)
    counters = Counters(name, progress="records", verbosity=args.verbosity)
    write_all(stage(input_blocks(args.against, args.files, settings), settings, counters))
    counters.report()


def decide() -> None:
    asked = parser("step.py decide", DECIDE)
    asked.add(*VERBOSITY)
    args = asked.parse_args()
    settings = Settings.of(Options.of(args))
    if not settings.output.decides:
        able = " or ".join(name for name, output in OUTPUTS.items() if output.decides)
        raise UsageError(f"needs --output {able}, but --output is {args.output}")
    counters = Counters("decide", verbosity=args.verbosity)
    write_all(pairs.decision(blocks.blocks_of(sys.stdin.buffer), args.output, settings, counters))
    counters.report()


def keep() -> None:
    asked = parser("step.py keep", KEEP)
    own = flags("--decided FILE  output of step.py decide", decided={"required": True})
    asked.add(STANDARD_INPUT, *own)
    args = asked.parse_args()
    blocks.check_inputs([args.decided])
    options = Options.of(args)
    if not blocks.in_task():
        _refuse_decisions(options, args)
    with open(args.decided, "rb") as decided:
        settings = settings_before_counts(options)
        _check_rows(decided, settings)
        marked = settings.output is OUTPUTS[MARKED]
        if blocks.in_task():
            part = part_of_task(args.input_files)
            write_all(pairs.lines_of_task(part, settings, decided))
        else:
            names = args.files or ["-"]
            blocks.check_inputs(names)
            if "-" in names and (marked or settings.merge):
                flag = "--output marked" if marked else merged_rows.FLAG
                raise UsageError(f"-: {flag} reads its input twice; name FILE instead")
            with opened_output() as sink:
                if lost := keep_or_mark(names, decided, settings, sink):
                    print(many(lost, LOST), file=sys.stderr)


def part_of_task(names: str | None) -> pairs.TaskPart:
    """Return this task's part of a file, on standard input; names: the list of input files."""
    start, first = blocks.start_of_split(), input_files.task_place(list_of_files(names))
    pieces = iter(lambda: sys.stdin.buffer.read(blocks.BLOCK_BYTES), b"")
    name = start.place.removesuffix(": ")
    return pairs.TaskPart(blocks.with_line_ends(pieces), first, name, start.of_file)


def _refuse_decisions(options: Options, args: Namespace) -> None:
    """Raise UsageError for an option of the decision, which is made already."""
    used = KEEPS | (MARKS if options.output == MARKED else set())
    words = options.given_arguments()
    if others := [word for word in words if word.partition("=")[0] not in used]:
        rest = [word for word in words if word not in others]
        line = shlex.join(["./step.py", "keep", f"--decided={args.decided}", *rest, *args.files])
        raise UsageError(
            f"{shlex.join(others)} has no effect here: give it to mapper.py, reducer.py and "
            f"step.py decide; then type: {line}"
        )


def _check_rows(decided: IO[bytes], settings: Settings) -> None:
    """Raise StageError if the rows of the decision are not those of this file: see `rows_by`."""
    place, tab, _ = decided.readline(99).partition(b"\t")
    if tab and place[16:] != settings.rows_by:
        raise StageError(
            "the decision was made on rows that were read in another way; give step.py keep the "
            f"--id and --text, {', '.join(CUTTING)} of mapper.py"
        )


def keep_or_mark(
    names: Sequence[str], decided: IO[bytes], settings: Settings, sink: IO[bytes]
) -> int:
    """Write the kept or marked rows of files; return how many values --merge adds to no row.

    decided: the lines of the decision on these files, as new ones, sorted by places
    """
    files, form = blocks.numbered(names), settings.form
    kept_lines.check_one_answer(form, files)
    merges = None
    if settings.merge:
        merged_rows.check_files(form, settings.merge, files, settings.max_line)
        left = kept_lines.lines_from(decided, files[0].first)
        merges = merged_rows.Merges(form, settings.merge, files, settings.max_line, left)
    of_file: kept_lines.PlacesOf = partial(kept_lines.Places, merges=merges)
    if settings.output is OUTPUTS[MARKED]:
        prefix = settings.mark_prefix
        check_files(form, prefix, files, settings.max_line)
        left_out, counters = array("Q"), Counters("keep", verbosity=QUIET)
        deque(pairs.parsed(settings.read(files), settings, counters, left_out.frombytes), 0)
        missing = np.sort(np.array(left_out, np.uint64))
        of_file = partial(Marks, form, prefix, missing, merges=merges)
    kept_lines.keep_in_one(form, files, settings.max_line, decided, sink, of_file=of_file)
    return merges.lost if merges else 0


mapper = partial(run, "mapper.py", _map)
reducer = partial(run, "reducer.py", _reduce)
dedup = partial(run, "dedup_reducer.py", _dedup)
STEPS = {
    "count": count,
    "share": share,
    "decide": decide,
    "keep": keep,
    "videos": lambda: import_module(VIDEO_TASKS).videos(),
    "passages": lambda: import_module(PASSAGE_STEPS).passages(),
}


# Common to run_hadoop.sh and run_spark.sh: ./run_NAME.sh [OPTIONS] INPUT… OUTPUT


def cluster_parser(script: str, typed: str, about: str, options: Iterable[Flag]) -> CommandParser:
    """Return the parser of run_hadoop.sh or run_spark.sh, with further options."""
    names = set(OPTIONS) - {"--input-files"}  # the program makes this list itself
    about = about.replace(f"./{script}", typed)
    own = *flags("inputs INPUT…\noutput_folder OUTPUT"), *options, *VERBOSITY
    return parser(typed.removeprefix("./"), about, names, own)


def name_and_value(text: str) -> str:
    """Return a property of a cluster, NAME=VALUE; ValueError for other texts."""
    if "=" not in text:
        raise ValueError(f"expected NAME=VALUE, got {text!r}")
    return text


PROPERTY = Flag(
    "-D NAME=VALUE…",
    "a property for Hadoop; may be repeated",
    read=name_and_value,
    how={"dest": "define"},
)


def checked(args: Namespace, no_xz: str) -> Settings:
    """Return the checked settings, still without token counts; UsageError for invalid arguments.

    no_xz: why .xz files cannot be read
    """
    options = Options.of(args)
    settings = settings_before_counts(options)
    settings.form.check_task()
    if settings.merge:
        line = shlex.join([*options.given_arguments(), *args.inputs])
        raise UsageError(f"{merged_rows.FLAG}: needs one machine; type: ./run_local.sh {line}")
    names = [*options.against, *args.inputs]
    if not all([*names, args.output_folder]):
        raise UsageError("INPUT and OUTPUT must not be empty")
    for name in names:
        if name.endswith(".xz"):
            raise UsageError(f"{name}: {no_xz}")
    refuse_indexes(names)
    if args.reducers not in (None, "auto"):
        integer("--reducers", args.reducers, 1, 999999)
    return settings


def check_unchanged(before: Iterable[tuple[Any, ...]], after: Iterable[tuple[Any, ...]]) -> None:
    """Raise StageError unless two listings of the input are equal; rows begin with file names."""
    if changed := sorted(set(before) ^ set(after)):
        raise StageError(
            f"{changed[0][0]}: changed while it was read; run again when nobody writes to it"
        )
