"""The end of run_local.sh where a decision is asked for.

    edges, sorted ── decide ──┬─ the records that go ── sort by place ── the lines that stay
                              └─ with their reasons ─── sort by id ───── removed

One process decides, while the reducers still write; `decision_stages` says what it holds.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from neardup.decisions.keep_lines import kept_lines, places_from
from neardup.engines.local.folder import naming
from neardup.lines.decided_lines import removed_line
from neardup.process.counters import Counters
from neardup.process.errors import StageError, UsageError
from neardup.process.program import write_all
from neardup.reading.blocks import unpacked


def without_places(decided: Path, removed: Path) -> None:
    """The lines of `--output removed`."""
    with open(decided, "rb") as lines, open(removed, "wb") as file:
        file.writelines(map(removed_line, lines))


def keep(by_place: Path, files: Sequence[str], places: Sequence[int]) -> None:
    """Write the lines of the files that stay; `places` are those of their first lines."""
    counters = Counters("keep")
    with open(by_place, "rb") as decided:
        for name, first in zip(files, places):
            write_all(kept_lines(unpacked(name), first, places_from(decided, first)))
    counters.report()


@contextmanager
def whole_or_not(name: str, inputs: Sequence[str]) -> Iterator[IO[bytes]]:
    """A file to write, that has its name only when all of it is written.

    UsageError if it is one of the inputs.
    """
    for other in inputs if os.path.exists(name) else ():
        status = os.fstat(sys.stdin.fileno()) if other == "-" else os.stat(other)
        if os.path.isfile(name) and os.path.samestat(status, os.stat(name)):
            raise UsageError(f"--removed {name}: is an input; name another file")
    if os.path.exists(name) and not os.path.isfile(name):  # such as /dev/null
        with naming(Path(name)), open(name, "wb") as file:
            yield file
        return
    path = Path(os.path.realpath(name))
    try:
        descriptor, half = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise StageError(f"--removed {name}: {error.strerror}") from None
    try:
        with open(descriptor, "wb") as file:
            yield file
            with naming(path):
                file.flush()
                os.fsync(descriptor)
        _as_others(Path(half), path)
        os.replace(half, path)
    except BaseException:
        Path(half).unlink(missing_ok=True)
        raise


def _as_others(file: Path, target: Path) -> None:
    """Give a temporary file the rights that a new file has, or the one that it replaces."""
    if target.exists():
        shutil.copymode(target, file)
    else:
        mask = os.umask(0)
        os.umask(mask)
        file.chmod(0o666 & ~mask)
