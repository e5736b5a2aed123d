"""Folders of a run for what is temporary: locked while it lives, and removed by the next run if it
was killed.

    TMPDIR/neardup.run.XXXXXXXX        what lies between the stages
    FOLDER/.neardup.run.XXXXXXXX       an answer, until it is whole and gets its name in FOLDER

A folder is locked as long as the run, or a worker of it, lives, and a file in it says whose it is.
So what a run that was killed has left behind tells by itself that nobody needs it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neardup.process.program import naming

PREFIX = "neardup."
LOCKED = "neardup.run."
HIDDEN = f".{LOCKED}"
OWNER = ".owner"  # a file that says which machine's run a folder is; nobody else has it
_MADE = re.compile(r"\.?neardup\.run\.[a-z0-9_]{8}")  # by mkdtemp


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
        if _MADE.fullmatch(folder.name) and stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU:
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
