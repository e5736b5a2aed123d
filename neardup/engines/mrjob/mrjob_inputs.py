"""The files of an mrjob job, old ones and new ones, under the names that they are given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Callable, NamedTuple

from neardup.index.is_index import refuse_indexes
from neardup.process.errors import StageError, UsageError
from neardup.reading.blocks import (
    BLOCK_BYTES,
    STDIN_COPY,
    endless_named,
    files_named,
    with_line_ends,
)


class Given(NamedTuple):
    """The names of old files and of new ones."""

    old: list[str]
    new: list[str]

    @classmethod
    def of(cls, old: Sequence[str], new: Sequence[str], elsewhere: Callable[[str], bool]) -> Given:
        """Absolute names, but for `-` and what is `elsewhere`; of this machine no patterns.

        A file of this machine that is named twice has two names, as /data/a.txt and /data/./a.txt.
        UsageError and StageError for what cannot be read.
        """
        refuse_indexes([*old, *new])
        if [*old, *new].count("-") > 1:
            raise UsageError("-: standard input can be read only once")
        found = [_found(names, elsewhere) for names in (old, new)]
        names = _distinct([name for some in found for name in some], elsewhere)
        return cls(names[: len(found[0])], names[len(found[0]) :])

    def with_copy(self, stdin: IO[bytes], copy: Path) -> Given:
        """The same with a copy of standard input, which jobs can read several times."""
        if "-" not in [*self.old, *self.new]:
            return self
        with open(copy, "wb") as file:
            pieces = iter(lambda: stdin.read(BLOCK_BYTES), b"")
            with endless_named("standard input: "):
                file.writelines(with_line_ends(pieces))
        os.environ[STDIN_COPY] = str(copy)
        return Given(*([str(copy) if name == "-" else name for name in names] for names in self))


def _found(names: Sequence[str], elsewhere: Callable[[str], bool]) -> list[str]:
    found: list[str] = []
    for name in names:
        found += [name] if elsewhere(name) else files_named([name])
    for name in found:
        if name != "-" and not elsewhere(name) and not os.path.isfile(name):
            raise StageError(f"{name}: not a regular file; name - and redirect it")
    return found


def _distinct(names: Sequence[str], elsewhere: Callable[[str], bool]) -> list[str]:
    """As absolute ones."""
    distinct: list[str] = []
    for name in names:
        if name != "-" and not elsewhere(name):
            name = os.path.abspath(name)
            while name in distinct:
                name = f"{os.path.dirname(name)}/./{os.path.basename(name)}"
        distinct.append(name)
    return distinct
