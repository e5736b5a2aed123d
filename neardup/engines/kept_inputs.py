"""What stays of the files that a script was told, or of a task's part of a job's input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import IO

from neardup.decisions.keep_lines import kept_lines, places_from
from neardup.decisions.keep_records import check_one_answer, keep_in_one
from neardup.engines.inputs import told_files
from neardup.process.program import STDOUT
from neardup.reading.blocks import BLOCK_BYTES, check_inputs, start_of_split
from neardup.reading.input_files import InputFile, file_places, task_place
from neardup.reading.line_form import LineForm


def keep_of_files(form: LineForm, decided: IO[bytes], files: Sequence[str], longest: int) -> None:
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
    chunks = iter(lambda: sys.stdin.buffer.read(BLOCK_BYTES), b"")
    whole = start_of_split().of_file
    yield from kept_lines(chunks, first, places_from(decided, first), whole)
