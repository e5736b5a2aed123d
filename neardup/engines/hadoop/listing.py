"""The files that a job will read, in order, with their sizes.

Files are in order of their paths.  Those whose names begin with `_` or `.` are left out, as Hadoop
leaves them out; what else it does not read may be in the list, and does no harm there.
"""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from neardup.engines.hadoop.installation import hadoop
from neardup.process.errors import StageError, shown

# A line of `hadoop fs -ls`.
LISTED = re.compile(
    r"(?P<kind>[-d])\S+ .*? (?P<size>\d+) (?P<time>\d{4}-\d\d-\d\d \d\d:\d\d) (?P<name>.+)"
)


class File(NamedTuple):
    name: str
    bytes: int
    modified: str = ""  # to the minute, which is all that Hadoop lists


def listed(patterns: Sequence[str], program: Sequence[str] = ()) -> list[File]:
    """The files that these names and patterns stand for, and those in folders.

    By one question to Hadoop, whose command is `program`; StageError where there is no such file.
    """
    if not patterns:
        return []
    command = [*(program or [hadoop()]), "fs", "-ls", "-R", *patterns]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        sys.stderr.write(done.stderr.decode("utf-8", "backslashreplace"))
        raise StageError(f"cannot list {' '.join(patterns)}; Hadoop said why above")
    return files_in(done.stdout)


def files_in(listing: bytes) -> list[File]:
    """The files that a job reads of those in a listing, in order.

    >>> files_in(b"-rw-r--r--   1 me us  5 2026-01-31 09:00 /in/a b.txt\\n")
    [File(name='/in/a b.txt', bytes=5, modified='2026-01-31 09:00')]
    """
    files = []
    for line in listing.split(b"\n"):
        found = LISTED.fullmatch(line.decode("utf-8", "surrogateescape"))
        if line and not found:
            raise StageError(f"cannot read what Hadoop lists: {shown(line)}")
        if not found or found["kind"] == "d":
            continue
        if not posixpath.basename(found["name"]).startswith(("_", ".")):
            files.append(File(found["name"], int(found["size"]), found["time"]))
    return sorted(files, key=lambda file: file.name.encode("utf-8", "surrogateescape"))


def check_unchanged(before: Sequence[File], after: Sequence[File]) -> None:
    """StageError unless two listings of the same names agree."""
    if changed := sorted(set(before) ^ set(after)):
        raise StageError(
            f"{changed[0].name}: changed while it was read; run again when nobody writes to it"
        )
