"""mapper.py, reducer.py and dedup_reducer.py: the mission's job as a pipe.

The input of a program or a task: the files that it names, or a part of a job's input.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import IO

from neardup.decisions.kept_lines import check_one_answer, keep_in_one, kept_lines, places_from
from neardup.options.settings import Settings
from neardup.options.table import Options, parser
from neardup.reading.blocks import (
    BLOCK_BYTES,
    Block,
    check_inputs,
    in_task,
    lines_of_stage,
    start_of_split,
    with_line_ends,
)
from neardup.reading.input_files import InputFile, file_places, task_blocks, task_place
from neardup.reading.input_format import InputFormat
from neardup.runtime.counters import Counters
from neardup.runtime.errors import UsageError
from neardup.runtime.program import STDOUT, bare_parser, run, write_all
from neardup.stages.pairs import dedup_pairs, map_records
from neardup.stages.phases import lines_in_blocks, read_shared_keys, reduce_either
from neardup.stages.token_counting import with_cost_printed
from neardup.stored.index_manifest import refuse_indexes

MAPPER = """Write each record once for each of its keys.

Reads record lines, an id and its shingles; the next stage is a sort by key:

    cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py
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
    blocks = blocks_to_read(args, settings)
    if args.blocks or args.shared_keys is not None:
        write_all(_of_a_round(args, settings, counters, blocks))
    else:
        write_all(piece for _, piece in map_records(blocks, settings, counters))
    counters.report()


def _of_a_round(
    args: Namespace, settings: Settings, counters: Counters, blocks: Iterator[Block]
) -> Iterator[bytes]:
    # A plain pipe needs none of this.
    shared = None
    if args.shared_keys is not None:
        shared = read_shared_keys(args.shared_keys, settings)
    if args.blocks:
        return lines_in_blocks(blocks, settings, counters, shared)
    return (piece for _, piece in map_records(blocks, settings, counters, shared=shared))


REDUCER = """Verify the records that share a key and write the similar pairs.

Reads the sorted output of mapper.py, and takes the same options as it:

    cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py
"""


def reducer() -> int:
    return run("reducer.py", _reduce)


def _reduce() -> None:
    args = parser("reducer.py", REDUCER).parse_args()
    settings = Settings.of(Options.of(args))
    counters = Counters("reducer", progress="keyed lines")
    write_all(reduce_either(sys.stdin.buffer, settings, counters))
    counters.report()


DEDUP = """Write each pair once: for merging the pairs of several runs.

Reads sorted pairs; a pair that comes with several similarities keeps the highest:

    LC_ALL=C sort PAIRS… | ./dedup_reducer.py
"""


def dedup() -> int:
    return run("dedup_reducer.py", _dedup)


def _dedup() -> None:
    bare_parser("dedup_reducer.py", DEDUP).parse_args()
    counters = Counters("dedup")
    write_all(dedup_pairs(lines_of_stage(sys.stdin.buffer), counters))
    counters.report()


def input_blocks(old: Sequence[str], files: Sequence[str], settings: Settings) -> Iterator[Block]:
    """The blocks of old files and of new ones; of a task, those of its part."""
    if not in_task():
        refuse_indexes([*old, *files])
        check_inputs([*old, *files])
        places = file_places(len(old), len(files))
        return settings.blocks([*old, *files], places=places)
    settings.form.check_task()
    if settings.tag:
        return task_blocks(
            list_of_files(settings.input_files), settings.max_line, settings.form.pieces
        )
    return settings.blocks(["-"])


def list_of_files(input_files: str | None) -> str:
    """The name of their list; UsageError where a task was not told it."""
    if input_files is None:
        raise UsageError(
            "a task does not know where its part of the input stands; give it --input-files, as "
            "run_hadoop.sh and job.py do"
        )
    return input_files


def with_files(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("files", nargs="*", metavar="FILE", help="default: -, standard input")
    return parser


def blocks_to_read(args: Namespace, settings: Settings) -> Iterator[Block]:
    """The blocks of the files that a program was given; of standard input, if there are none."""
    return input_blocks(args.against or [], args.files or ["-"], settings)


def keep_of_files(
    form: InputFormat, decided: IO[bytes], files: Sequence[str], longest: int
) -> None:
    """Write to stdout what stays of some files."""
    check_inputs(list(files))
    places = file_places(0, len(files))
    named = [InputFile(name, name, first) for name, first in zip(files, places)]
    check_one_answer(form, named)
    with open(STDOUT, "wb", closefd=False) as sink:
        keep_in_one(form, named, longest, decided, sink)


def kept_of_task(decided: IO[bytes], input_files: str | None) -> Iterator[bytes]:
    """The lines that stay of a task's part of its input."""
    first = task_place(list_of_files(input_files))
    chunks = with_line_ends(iter(lambda: sys.stdin.buffer.read(BLOCK_BYTES), b""))
    whole = start_of_split().of_file
    yield from kept_lines(chunks, first, places_from(decided, first), whole)
