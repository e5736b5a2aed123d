"""mapper.py, reducer.py and dedup_reducer.py: the job as a pipe, or as tasks of Hadoop Streaming.

A program reads the files that it is given; a task reads its part of the input of a job.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

from neardup.options.command_parser import CommandParser
from neardup.options.settings import Settings
from neardup.options.table import Options, parser
from neardup.reading.blocks import Block, check_inputs, file_places, in_task, lines_of_stage
from neardup.reading.input_files import task_blocks
from neardup.runtime.counters import Counters
from neardup.runtime.errors import UsageError
from neardup.runtime.program import run, write_all
from neardup.stages.pairs import dedup_pairs, map_records
from neardup.stages.phases import lines_in_blocks, read_shared_keys, reduce_either
from neardup.stages.token_counting import with_cost_printed
from neardup.stored.index_manifest import refuse_indexes

MAPPER = """Write each record once for each of its keys.

Reads record lines, an id and its shingles; the next stage is a sort by key:

    cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py
"""
REDUCER = """Verify the records that share a key and write the similar pairs.

Reads the sorted output of mapper.py, and takes the same options as it:

    cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py
"""
DEDUP = """Write each pair once: for merging the pairs of several runs.

Reads sorted pairs; a pair that comes with several similarities keeps the highest:

    LC_ALL=C sort PAIRS… | ./dedup_reducer.py
"""


def mapper() -> int:
    return run("mapper.py", _map)


def _map() -> None:
    asked = with_files(parser("mapper.py", MAPPER))
    asked.add_argument(
        "--blocks",
        action="store_true",
        help="write blocks of lines, of which Hadoop moves a thousandth as many; reducer.py takes "
        "either",
    )
    asked.add_argument(
        "--shared-keys",
        metavar="FILE",
        help="lines for these keys alone: what step.py share wrote, or a folder of such files",
    )
    args = asked.parse_args()
    settings = with_cost_printed(Settings.of(Options.of(args)))
    counters = Counters("mapper", progress="records")
    blocks = input_blocks(args.against, args.files, settings)
    shared = None
    if args.shared_keys is not None:
        shared = read_shared_keys(args.shared_keys, settings)
    if args.blocks:
        write_all(lines_in_blocks(blocks, settings, counters, shared))
    else:
        mapped = map_records(blocks, settings, counters, shared=shared)
        write_all(lines for _, lines in mapped)
    counters.report()


def reducer() -> int:
    return run("reducer.py", _reduce)


def _reduce() -> None:
    settings = Settings.of(Options.of(parser("reducer.py", REDUCER).parse_args()))
    counters = Counters("reducer", progress="keyed lines")
    write_all(reduce_either(sys.stdin.buffer, settings, counters))
    counters.report()


def dedup() -> int:
    return run("dedup_reducer.py", _dedup)


def _dedup() -> None:
    CommandParser("dedup_reducer.py", DEDUP).parse_args()
    counters = Counters("dedup")
    write_all(dedup_pairs(lines_of_stage(sys.stdin.buffer), counters))
    counters.report()


def with_files(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("files", nargs="*", metavar="FILE", help="default: -, standard input")
    return parser


def input_blocks(
    old: Sequence[str] | None, files: Sequence[str] | None, settings: Settings
) -> Iterator[Block]:
    """Return the blocks of old and new files, or of standard input; in a task, those of its part.

    UsageError, StageError or OSError for what cannot be read, before the first block.
    """
    if in_task():
        settings.form.check_task()
        if not settings.tag:
            return settings.blocks(["-"])
        names = list_of_files(settings.input_files)
        return task_blocks(names, settings.max_line, settings.pieces)
    old, new = list(old or []), list(files or ["-"])
    refuse_indexes([*old, *new])
    check_inputs([*old, *new])
    return settings.blocks([*old, *new], places=file_places(len(old), len(new)))


def list_of_files(input_files: str | None) -> str:
    """Return the name of a task's list of all input files; UsageError if it was given none."""
    if input_files is None:
        raise UsageError(
            "a task does not know the place of its part in the input; give it --input-files, as "
            "run_hadoop.sh and job.py do"
        )
    return input_files
