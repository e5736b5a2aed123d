"""Atomic writing of files, and temporary folders that a later run removes after a crash.

    TMPDIR/neardup.run.XXXXXXXX        files that are kept between the stages
    FOLDER/.neardup.run.XXXXXXXX       an answer, until it is complete and gets its name in FOLDER

A folder is locked as long as the run or one of its workers is alive, and a file in it names the
machine.  So the next run recognises and removes the folders that a killed run has left behind.
"""

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

from neardup.runtime.program import STDOUT, StageError, UsageError, naming

PREFIX = "neardup."
LOCKED = "neardup.run."
HIDDEN = f".{LOCKED}"
OWNER = ".owner"  # the file that names the machine of the run
MACHINE = os.uname().nodename
MADE = r"\.?neardup\.run\.[a-z0-9_]{8}"  # a name made by mkdtemp


@contextmanager
def swept_folder(where: Path, prefix: str = HIDDEN) -> Iterator[Path]:
    """Context manager: remove the folders of killed runs; make a folder that is removed on exit.

    where: the folder that contains them.
    """
    sweep(where, prefix)
    folder = new_folder(where, prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_folder(where: Path, prefix: str = LOCKED) -> Path:
    """Make a temporary folder, locked if possible until this process and its forks have ended."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=where))
        try:
            lock(folder)
        except (BlockingIOError, FileNotFoundError):
            continue  # another run has swept the folder before it was locked
        except OSError:  # a file system without locks: its folder must not be swept
            folder.rmdir()
            return Path(tempfile.mkdtemp(prefix=prefix.replace(LOCKED, PREFIX), dir=where))
        try:
            with naming(where):
                (folder / OWNER).write_text(MACHINE, encoding="utf-8")
        except FileNotFoundError:
            continue
        except OSError:  # a full disk
            shutil.rmtree(folder)
            raise
        return folder


def sweep(where: Path, prefix: str = LOCKED) -> None:
    """Remove the folders in `where` that this user's killed runs on this machine left behind."""
    with suppress(OSError), os.scandir(where) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
                _sweep_one(Path(entry))


def _sweep_one(folder: Path) -> None:
    """Remove a folder whose run was killed on this machine, or before it wrote the machine's name.

    Where machines share a file system, a lock may hold on one of them only.
    """
    with suppress(OSError):  # a live run, or another sweeper, has the lock
        descriptor = lock(folder)
        owner = folder / OWNER
        try:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid():
                return
            if owner.exists():
                if owner.read_text(encoding="utf-8") == MACHINE:
                    shutil.rmtree(folder, ignore_errors=True)
            elif re.fullmatch(MADE, folder.name) and stat.S_IMODE(status.st_mode) == stat.S_IRWXU:
                folder.rmdir()  # killed before it could name the machine
        finally:
            os.close(descriptor)


def lock(folder: Path) -> int:
    """Lock a folder; return the descriptor with the lock; OSError if another process has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def check_new(option: str, name: str, inputs: Sequence[str]) -> None:
    """Raise UsageError if an output is a folder, an input or stdout, or its name is too long."""
    try:
        os.lstat(name)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(f"{option} {name}: the name is too long; use a shorter one") from None
    if os.path.isdir(name):
        raise UsageError(f"{option} {name}: is a directory; name a file in it")
    if os.path.isfile(name) and os.path.samestat(os.fstat(STDOUT), os.stat(name)):
        raise UsageError(f"{option} {name}: standard output is written there; name another file")
    for other in inputs:
        status = os.fstat(sys.stdin.fileno()) if other == "-" else os.stat(other)
        same = os.path.isfile(name) and os.path.samestat(status, os.stat(name))
        if same or (os.path.isdir(other) and Path(other).resolve() in Path(name).resolve().parents):
            raise UsageError(f"{option} {name}: is an input; name another file")


@contextmanager
def whole_or_not(option: str, name: str, inputs: Sequence[str]) -> Iterator[IO[bytes]]:
    """Context manager: open a file that gets its name once it is complete; see `check_new`."""
    check_new(option, name, inputs)
    if os.path.exists(name) and not os.path.isfile(name):  # such as /dev/null
        with naming(name), open(name, "wb") as file:
            yield file
        return
    with (
        half(option, name) as path,
        # The file object has the final name, which messages show.
        open(name, "wb", opener=lambda _, flags: os.open(path, flags, 0o666)) as file,
    ):
        try:
            yield file
        except BaseException:
            with suppress(OSError):  # on a full disk, closing fails, too
                file.close()
            raise
        with naming(name):
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def half(option: str, name: str) -> Iterator[Path]:
    """Context manager: yield the path of a file that on exit replaces `name` and gets its mode."""
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
    """Context manager: make a hidden folder in `where`, to hold a file until it is complete."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(swept_folder(where))
        except OSError as error:
            why = error.strerror if where.is_dir() else f"there is no folder {where}"
            raise StageError(f"{option} {name}: {why}") from None
        yield folder
