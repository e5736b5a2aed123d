"""The file that --removed names: written whole, or not at all."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from neardup.engines.local.folder import naming
from neardup.process.errors import StageError, UsageError
from neardup.process.program import STDOUT

REMOVED_OPTION: dict[str, Any] = dict(
    metavar="FILE", help="with --output kept: what --output removed prints, into this file"
)


def check_removed(removed: str | None, output: str) -> None:
    if removed == "":
        raise UsageError("--removed: expected the name of a file, got ''")
    if removed is not None and output != "kept":
        raise UsageError(f"--removed is for --output kept, and --output is {output}")


@contextmanager
def whole_or_not(name: str, inputs: Sequence[str]) -> Iterator[IO[bytes]]:
    """A file to write, that has its name only when all of it is written.

    UsageError if it is one of the inputs, lies in one that is a folder, or is where stdout goes.
    """
    if name == "-":
        raise UsageError("--removed -: the lines that stay go to standard output; name a file")
    if os.path.isdir(name):
        raise UsageError(f"--removed {name}: is a directory; name a file in it")
    if os.path.isfile(name) and os.path.samestat(os.fstat(STDOUT), os.stat(name)):
        raise UsageError(f"--removed {name}: the lines that stay go there; name another file")
    for other in inputs:
        status = os.fstat(sys.stdin.fileno()) if other == "-" else os.stat(other)
        same = os.path.isfile(name) and os.path.samestat(status, os.stat(name))
        if same or (os.path.isdir(other) and Path(other).resolve() in Path(name).resolve().parents):
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
