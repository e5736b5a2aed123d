"""Detects input files that change between their first reading and the last one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import NamedTuple

from neardup.process.errors import StageError


class FileState(NamedTuple):
    """Tells whether a name still stands for the same, unmodified file."""

    device: int
    inode: int
    size: int  # bytes
    modified: int  # nanoseconds


class Unchanged:
    """The states of some regular files when the run began; pipes and devices are left out.

    `check` raises StageError once one of them is another file, or was written to.
    """

    def __init__(self, names: Iterable[str]):
        self._states = {name: state for name in names if (state := _state(name))}

    def check(self) -> None:
        for name, before in self._states.items():
            if _state(name) != before:
                raise StageError(
                    f"{name}: changed while it was read; run again when nobody writes to it, or "
                    "read a copy of it"
                )


NO_FILES = Unchanged([])


def _state(name: str) -> FileState | None:
    try:
        status = os.stat(name)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return FileState(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
