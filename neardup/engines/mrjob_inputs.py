"""The files of an mrjob job, old ones and new ones, under the names that they are given."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Callable, NamedTuple

from neardup.process.errors import StageError, UsageError
from neardup.reading.blocks import STDIN_COPY, files_named

INDEX_MARK = "manifest.json"  # a file in every index


class Given(NamedTuple):
    """The names of old files and of new ones."""

    old: list[str]
    new: list[str]

    @classmethod
    def of(cls, old: Iterable[str], new: Iterable[str], elsewhere: Callable[[str], bool]) -> Given:
        """Absolute names, but for `-` and what is `elsewhere`; of this machine no patterns.

        UsageError and StageError for what cannot be read.
        """
        for name in old:
            if os.path.isfile(os.path.join(name, INDEX_MARK)):
                raise UsageError(
                    f"--against {name}: the index is for one machine; use run_local.sh"
                )
        named = [*old, *new]
        if named.count("-") > 1:
            raise UsageError("-: standard input can be read only once")
        return cls(_found(old, elsewhere), _found(new, elsewhere))

    def with_copy(self, stdin: IO[bytes], copy: Path) -> Given:
        """The same with a copy of standard input, which jobs can read several times."""
        if "-" not in [*self.old, *self.new]:
            return self
        with open(copy, "wb") as file:
            shutil.copyfileobj(stdin, file)
        os.environ[STDIN_COPY] = str(copy)
        return Given(*([str(copy) if name == "-" else name for name in names] for names in self))


def _found(names: Iterable[str], elsewhere: Callable[[str], bool]) -> list[str]:
    found: list[str] = []
    for name in names:
        found += [name] if elsewhere(name) else files_named([name])
    for name in found:
        if name != "-" and not elsewhere(name) and not os.path.isfile(name):
            raise StageError(f"{name}: not a regular file; name - and redirect it")
    return [name if name == "-" or elsewhere(name) else os.path.abspath(name) for name in found]
