"""Files that options name, to be written: whole, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from neardup.process.errors import StageError, UsageError
from neardup.process.own_folders import swept_folder
from neardup.process.program import STDOUT, naming


def check_new(option: str, name: str, inputs: Sequence[str]) -> None:
    """UsageError unless it may be written: if it is a folder, one of the inputs or in one that is a
    folder, or where stdout goes, or if no file can have that name."""
    _check_length(option, name)
    if os.path.isdir(name):
        raise UsageError(f"{option} {name}: is a directory; name a file in it")
    if os.path.isfile(name) and os.path.samestat(os.fstat(STDOUT), os.stat(name)):
        raise UsageError(f"{option} {name}: standard output goes there; name another file")
    for other in inputs:
        status = os.fstat(sys.stdin.fileno()) if other == "-" else os.stat(other)
        same = os.path.isfile(name) and os.path.samestat(status, os.stat(name))
        if same or (os.path.isdir(other) and Path(other).resolve() in Path(name).resolve().parents):
            raise UsageError(f"{option} {name}: is an input; name another file")


def _check_length(option: str, name: str) -> None:
    """Raise UsageError if the name is too long for the file system."""
    try:
        os.lstat(name)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(
                f"{option} {name}: this name is too long; take a shorter one"
            ) from None


@contextmanager
def whole_or_not(option: str, name: str, inputs: Sequence[str]) -> Iterator[IO[bytes]]:
    """A file to write, that has its name only when all of it is written; else as `check_new`."""
    check_new(option, name, inputs)
    if os.path.exists(name) and not os.path.isfile(name):  # such as /dev/null
        with naming(name), open(name, "wb") as file:
            yield file
        return
    with (
        half(option, name) as path,
        # It is called as it will be: messages name that.
        open(name, "wb", opener=lambda _, flags: os.open(path, flags, 0o666)) as file,
    ):
        try:
            yield file
        except BaseException:
            with suppress(OSError):  # of a full disk, once more
                file.close()
            raise
        with naming(name):
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def half(option: str, name: str) -> Iterator[Path]:
    """The path of a new file, which gets this name at the end, and the rights of the one before."""
    path = Path(os.path.realpath(name))
    with half_folder(option, name, path.parent) as folder:
        new = folder / "half"
        try:
            yield new
        except OSError as error:
            if error.filename == str(new):
                error.filename = name
            raise
        if path.exists():
            shutil.copymode(path, new)
        os.replace(new, path)


@contextmanager
def half_folder(option: str, name: str, where: Path) -> Iterator[Path]:
    """Make a hidden folder, beside the target, for a file that is still being written."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(swept_folder(where))
        except OSError as error:
            raise StageError(f"{option} {name}: {error.strerror}") from None
        yield folder
