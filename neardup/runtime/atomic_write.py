"""Files that appear whole or not at all, and temporary folders that the next run removes.

Folders of a run for what is temporary: locked while it lives, and removed by the next run if it
was killed.

    TMPDIR/neardup.run.XXXXXXXX        what lies between the stages
    FOLDER/.neardup.run.XXXXXXXX       an answer, until it is whole and gets its name in FOLDER

A folder is locked as long as the run, or a worker of it, lives, and a file in it says whose it is.
So what a run that was killed has left behind tells by itself that nobody needs it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from neardup.runtime.errors import StageError, UsageError
from neardup.runtime.program import STDOUT, naming

PREFIX = "neardup."
LOCKED = "neardup.run."
HIDDEN = f".{LOCKED}"
OWNER = ".owner"  # a file that says which machine's run a folder is; nobody else has it
_MADE = r"\.?neardup\.run\.[a-z0-9_]{8}"  # by mkdtemp


@contextmanager
def swept_folder(where: Path, prefix: str = HIDDEN) -> Iterator[Path]:
    """A new folder in `where`, removed in the end; what killed runs have left there is removed."""
    sweep(where, prefix)
    folder = new_folder(where, prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_folder(where: Path, prefix: str = LOCKED) -> Path:
    """A folder that this process, and those forked from it, hold the lock of until they end."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=where))
        try:
            lock(folder)
        except (BlockingIOError, FileNotFoundError):
            continue  # another run took it for left over, in the moment before the lock
        except OSError:  # a file system without locks, where nothing can tell what is left over
            folder.rmdir()
            other = prefix.replace(LOCKED, PREFIX)
            return Path(tempfile.mkdtemp(prefix=other, dir=where))
        try:
            with naming(where):
                (folder / OWNER).write_text(machine(), encoding="utf-8")
        except FileNotFoundError:
            continue
        except OSError:  # a full disk
            shutil.rmtree(folder)
            raise
        return folder


def sweep(where: Path, prefix: str = LOCKED) -> None:
    """Remove the folders of this user's runs that have ended without a chance to."""
    with contextlib.suppress(OSError), os.scandir(where) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
                _sweep_one(Path(entry))


def _sweep_one(folder: Path) -> None:
    with contextlib.suppress(OSError):  # a live run has it, or another sweeper
        descriptor = lock(folder)
        try:
            if os.fstat(descriptor).st_uid == os.geteuid():
                _remove_left_over(folder)
        finally:
            os.close(descriptor)


def _remove_left_over(folder: Path) -> None:
    """If it says that it is a run's of this machine, or is empty and as a run makes it.

    Where machines share a file system, a lock may hold on one of them only.
    """
    try:
        owner = (folder / OWNER).read_text(encoding="utf-8")
    except FileNotFoundError:  # killed before it could say so
        if re.fullmatch(_MADE, folder.name) and stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU:
            folder.rmdir()
    else:
        if owner == machine():
            shutil.rmtree(folder, ignore_errors=True)


def machine() -> str:
    return os.uname().nodename


def lock(folder: Path) -> int:
    """The descriptor that holds the lock; OSError where there is no such folder, or no lock."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


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
