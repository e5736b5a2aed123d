"""What a run on this machine is to do, and how its workers and its sorts are started."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Callable, NamedTuple

from neardup.engines.local.answer_file import Answer
from neardup.engines.local.bucket_files import files_for
from neardup.engines.local.folder import STDIN, total_size
from neardup.engines.local.progress import Progress
from neardup.engines.local.sieve import Traits
from neardup.engines.local.workers import Workers, program
from neardup.index.segment import Segment
from neardup.options.settings import Settings
from neardup.process.program import cores, naming
from neardup.reading.blocks import BLOCK_BYTES
from neardup.reading.input_files import InputFile
from neardup.reading.places import NEW
from neardup.reading.unchanged import NO_FILES, Unchanged

MOST_JOBS = 999
FEW_WORKERS = 8  # are not too many for any input
ONE_WORKER_BYTES = 1 << 16  # of input at most take 10 ms, and a worker is started in 5
MOST_WORKERS = 240  # a reducer has files of all mappers open


class Plan(NamedTuple):
    """What to do; `folder` holds all that lies between the stages."""

    settings: Settings
    files: list[str]
    names: list[str]  # by which the user knows them
    places: list[int]  # of their first lines
    jobs: int
    partitions: int  # of the keys
    turns: Callable[[], Iterator[int]]  # whose is the next block of the input?
    sort_memory: str
    folder: Path
    progress: Progress
    segments: Sequence[Segment] = ()  # of indexes; each is one more mapper
    adds: bool = False  # to an index, whose records have ids of their own
    answer: Answer = Answer()
    unchanged: Unchanged = NO_FILES

    @property
    def sources(self) -> int:
        """How many give records."""
        return self.jobs + len(self.segments)

    @property
    def reduced(self) -> int:
        """How many partitions the reducers share."""
        return files_for(self.partitions, self.jobs)

    def input_bytes(self) -> int:
        """Of all files, as they lie."""
        return total_size(map(self.readable, self.files))

    def new_files(self) -> list[InputFile]:
        """Those of new records."""
        all_ = map(InputFile, map(self.readable, self.files), self.names, self.places)
        return [file for file in all_ if file.first >= NEW]

    def readable(self, file: str) -> str:
        return str(self.path(STDIN)) if file == "-" else file

    def traits(self) -> Traits:
        settings = self.settings
        return Traits(self.paths("traits"), self.segments, settings.against, settings.between)

    def path(self, kind: str, *numbers: int) -> Path:
        return self.folder / ".".join([kind, *map(str, numbers)])

    def paths(self, kind: str, *numbers: int) -> list[Path]:
        """The files of this kind, one of each worker."""
        return [self.path(kind, worker, *numbers) for worker in range(self.jobs)]


def workers_for(asked: int | None, input_bytes: int) -> int:
    """How many mappers, and reducers: each mapper is to have a block.

    Where none are asked for, one for each core; but one, where it is done before others are.

    >>> workers_for(4, 0), workers_for(999, 0), workers_for(999, 4 << 20), workers_for(999, 1 << 40)
    (4, 9, 24, 240)
    >>> workers_for(None, 0)
    1
    """
    if asked is None:
        asked = cores() if input_bytes > ONE_WORKER_BYTES else 1
    blocks = input_bytes // BLOCK_BYTES
    return min(asked, FEW_WORKERS + max(1, blocks), MOST_WORKERS)


def everywhere(workers: Workers, plan: Plan, name: str, task: Callable[[int], None]) -> None:
    """The same task in N processes, each with its number from 0, to the end of all."""

    def numbered(k: int) -> Callable[[], None]:
        def work() -> None:
            with naming(plan.folder):  # where a full disk would be
                task(k)

        return work

    for k in range(plan.jobs):
        workers.start(f"{name} {k + 1}", numbered(k))
    workers.together()


def sort(workers: Workers, plan: Plan, files: list[Path]) -> int:
    """The descriptor of a pipe with the sorted lines of these files."""
    read, write = os.pipe()
    workers.start("sort", sorting(plan, files, write))
    os.close(write)
    return read


def sort_to(workers: Workers, plan: Plan, file: Path, descriptor: int) -> None:
    """Write the sorted lines of a file."""
    workers.start("sort", sorting(plan, [file], descriptor))


def sorting(plan: Plan, files: list[Path], descriptor: int) -> Callable[[], None]:
    """The system's sort takes any number of files, and keeps what memory cannot hold on disk."""
    flags = ["-S", plan.sort_memory, f"--parallel={plan.jobs}", "-T", str(plan.folder)]
    return program(["sort", *flags, "--", *map(str, files)], stdout=descriptor)
