"""Where a run on this machine keeps what it has on disk, and what it was sent through a pipe."""

from __future__ import annotations

import os
import select
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from neardup.engines.local.workers import ENDING
from neardup.process.errors import UsageError
from neardup.process.own_folders import new_folder, sweep
from neardup.process.program import naming
from neardup.reading.blocks import endless_named, with_line_ends
from neardup.reading.packed import OPENERS

STDIN = "stdin"  # what was read from there, as a file of the folder
PACKED = 4  # how many times larger a compressed file is taken to be
COPIED_AT_ONCE = 1 << 20
SIGNAL_SECONDS = 1


@contextmanager
def working_folder() -> Iterator[Path]:
    """A new folder below TMPDIR, and its end, also after Ctrl-C and kill.

    While it is made and removed, signals wait.  An OSError that names no file is about it.
    """

    def end(number: int, _: object) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)  # once is enough
        sys.exit(128 + number)

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
    where = Path(os.environ.get("TMPDIR") or tempfile.gettempdir())
    sweep(where)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    folder = new_folder(where)
    # What the stages need for a while lies in it too, and so does what their sorts need.
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    try:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            with naming(folder):
                yield folder
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def check_read_once(names: Iterable[str]) -> None:
    """What can be read only once, such as a pipe, is to be named once, by whichever name."""
    before: dict[tuple[int, int], str] = {}
    for name in names:
        status = os.fstat(sys.stdin.fileno()) if name == "-" else os.stat(name)
        if name == "-" or _read_once(status):
            file = status.st_dev, status.st_ino
            if first := before.get(file):
                again = "named twice" if name == first else f"the same as {first}"
                raise UsageError(f"{name}: {again}, and can be read only once; name it once")
            before[file] = name


def _read_once(status: os.stat_result) -> bool:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFCHR:  # a terminal, say
        return not os.path.samestat(status, os.stat(os.devnull))
    return kind in (stat.S_IFIFO, stat.S_IFSOCK)


def kept(name: str, folder: Path, number: int) -> str:
    """The name of a file that every mapper can read: what can be read only once is copied."""
    if name == "-":
        _copy(sys.stdin.buffer, "standard input", folder / STDIN)
    elif not Path(name).is_file():
        suffixes = "".join(Path(name).suffixes[-2:])  # they tell what is in it
        copy = folder / f"input.{number}{suffixes}"
        with open(name, "rb") as pipe:
            _copy(pipe, name, copy)
        return str(copy)
    return name


def _copy(source: BinaryIO, name: str, target: Path) -> None:
    def piece() -> bytes:
        with naming(name):
            # Subtle: a signal in the moment before a read would have to wait for its end, if it
            # has one.
            while not select.select([source], [], [], SIGNAL_SECONDS)[0]:
                """Handlers run here."""
            return os.read(source.fileno(), COPIED_AT_ONCE)

    with naming(target), open(target, "wb") as copy, endless_named(f"{name}: "):
        copy.writelines(with_line_ends(iter(piece, b"")))


def total_size(files: Iterable[Path | str]) -> int:
    """The bytes of some files, as they lie."""
    return sum(os.stat(file).st_size for file in files)


def size_of(name: str, folder: Path) -> int:
    """About how many bytes a file has when it is unpacked."""
    path = folder / STDIN if name == "-" else Path(name)
    return path.stat().st_size * (PACKED if path.suffix in OPENERS else 1)
