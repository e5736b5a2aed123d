"""The input of a program or a task: the files that it names, or a part of a job's input."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import IO

from neardup.decisions.kept_lines import check_one_answer, keep_in_one, kept_lines, places_from
from neardup.options.settings import Settings
from neardup.reading.blocks import (
    BLOCK_BYTES,
    Block,
    check_inputs,
    in_task,
    start_of_split,
    with_line_ends,
)
from neardup.reading.input_files import InputFile, file_places, task_blocks, task_place
from neardup.reading.input_format import InputFormat
from neardup.runtime.errors import UsageError
from neardup.runtime.program import STDOUT
from neardup.stored.index_manifest import refuse_indexes


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
            told_files(settings.input_files), settings.max_line, settings.form.pieces
        )
    return settings.blocks(["-"])


def told_files(input_files: str | None) -> str:
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
    first = task_place(told_files(input_files))
    chunks = with_line_ends(iter(lambda: sys.stdin.buffer.read(BLOCK_BYTES), b""))
    whole = start_of_split().of_file
    yield from kept_lines(chunks, first, places_from(decided, first), whole)
