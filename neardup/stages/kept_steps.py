"""The steps of a job, its processes, and the files between the steps.

    steps = KeptSteps(2)          two processes, and temporary files
    steps = KeptSteps(2, work)    files that are found again after a kill; see `work_folder`

A step is done once its files are complete.  They have its name and the number of its round.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Callable, NamedTuple, TypeVar

T = TypeVar("T")


class KeptSteps(NamedTuple):
    """The steps of one round.

    >>> KeptSteps().done("words"), KeptSteps().value("found", lambda: 7)
    (False, 7)
    """

    jobs: int = 1  # number of processes
    work: Any = None  # the `RunWork` of --work
    round: int = 0

    def done(self, step: str) -> bool:
        return self.work is not None and (step, self.round) in self.work.done

    def file(self, step: str, *numbers: int) -> IO[bytes]:
        """Open a file of a step; it is empty unless the step is done."""
        if self.work is None:
            return TemporaryFile()
        path = self._path(step, *numbers)
        return path.open("rb" if path.name in self.work.valid else "w+b")

    def finish(self, step: str, more: str = "", spent: str = "") -> None:
        """Keep the files of a step, and those named `more`; remove those with names in `spent`."""
        if self.work is not None:
            self.work.begin(step, self.round)
            for name in filter(None, (step, more)):
                self.work.new(self._path(name))
            for path in chain.from_iterable(map(self._named, spent.split())):
                self.work.spend(path)
            self.work.commit(step, self.round, [])

    def value(self, step: str, find: Callable[[], T], more: str = "", spent: str = "") -> T:
        """Return what `find` returns now, or has returned if the step is done."""
        value: T = self.kept(step) if self.done(step) else find()
        if self.work is not None and not self.done(step):
            with self.file(step) as file:
                pickle.dump(value, file, protocol=5)
            self.finish(step, more, spent)
        return value

    def kept(self, step: str) -> Any:
        """Return the value of a step that is done."""
        return pickle.loads(self._path(step).read_bytes())

    def again(self, *steps: str) -> None:
        """Forget that steps are done."""
        for step in filter(self.done, steps):
            self.work.again(step, list(self._named(step)))

    def _path(self, *name: str | int) -> Path:
        step, *numbers = name
        path: Path = self.work.files / ".".join(map(str, (step, self.round, *numbers)))
        return path

    def _named(self, name: str) -> Iterator[Path]:
        return (self.work.files / each for each in self.work.valid if each.split(".")[0] == name)
