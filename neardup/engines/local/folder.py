"""Where a run on this machine keeps what it has on disk, and what it was sent through a pipe."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neardup.engines.local.workers import ENDING
from neardup.reading.blocks import OPENERS

STDIN = "stdin"  # what was read from there, as a file of the folder
PACKED = 4  # how many times larger a compressed file is taken to be


@contextmanager
def working_folder() -> Iterator[Path]:
    """A new folder below TMPDIR, and its end, also after Ctrl-C and kill."""

    def end(number: int, _: object) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)  # once is enough
        sys.exit(128 + number)

    folder = Path(tempfile.mkdtemp(prefix="neardup.", dir=os.environ.get("TMPDIR") or None))
    try:
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, end)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def kept(name: str, folder: Path, number: int) -> str:
    """The name of a file that every mapper can read: what can be read only once is copied."""
    if name == "-":
        with open(folder / STDIN, "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
    elif not Path(name).is_file():
        suffix = Path(name).suffix if Path(name).suffix in OPENERS else ""
        with open(name, "rb") as pipe, open(folder / f"input.{number}{suffix}", "wb") as copy:
            shutil.copyfileobj(pipe, copy)
        return copy.name
    return name


def size_of(name: str, folder: Path) -> int:
    """About how many bytes a file has when it is unpacked."""
    path = folder / STDIN if name == "-" else Path(name)
    return path.stat().st_size * (PACKED if path.suffix in OPENERS else 1)
