"""What a script or a task reads: files that it was told, or its own part of a job's input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from neardup.index.is_index import refuse_indexes
from neardup.options.settings import Settings
from neardup.process.errors import UsageError
from neardup.reading.blocks import Block, check_inputs, in_task
from neardup.reading.input_files import file_places, task_blocks


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
