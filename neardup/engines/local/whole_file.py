"""Files that options name, to be written: whole, or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from neardup.process.errors import StageError, UsageError
from neardup.process.own_folders import naming, swept_folder
from neardup.process.program import STDOUT


def check_new(option: str, name: str, inputs: Sequence[str]) -> None:
    """UsageError unless it may be written: if it is a folder, one of the inputs or in one that is a
    folder, or where stdout goes."""
    if os.path.isdir(name):
        raise UsageError(f"{option} {name}: is a directory; name a file in it")
    if os.path.isfile(name) and os.path.samestat(os.fstat(STDOUT), os.stat(name)):
        raise UsageError(f"{option} {name}: standard output goes there; name another file")
    for other in inputs:
        status = os.fstat(sys.stdin.fileno()) if other == "-" else os.stat(other)
        same = os.path.isfile(name) and os.path.samestat(status, os.stat(name))
        if same or (os.path.isdir(other) and Path(other).resolve() in Path(name).resolve().parents):
            raise UsageError(f"{option} {name}: is an input; name another file")


@contextmanager
def whole_or_not(option: str, name: str, inputs: Sequence[str]) -> Iterator[IO[bytes]]:
    """A file to write, that has its name only when all of it is written; else as `check_new`."""
    check_new(option, name, inputs)
    if os.path.exists(name) and not os.path.isfile(name):  # such as /dev/null
        with naming(Path(name)), open(name, "wb") as file:
            yield file
        return
    path = Path(os.path.realpath(name))
    with ExitStack() as stack:
        try:
            half = stack.enter_context(swept_folder(path.parent)) / "half"
            file = stack.enter_context(open(half, "wb"))
        except OSError as error:
            raise StageError(f"{option} {name}: {error.strerror}") from None
        yield file
        with naming(path):
            file.flush()
            os.fsync(file.fileno())
        _as_others(half, path)
        os.replace(half, path)


def _as_others(file: Path, target: Path) -> None:
    """Give a temporary file the rights that a new file has, or the one that it replaces."""
    if target.exists():
        shutil.copymode(target, file)
    else:
        mask = os.umask(0)
        os.umask(mask)
        file.chmod(0o666 & ~mask)
