"""What mrjob's runners on this machine, inline and local, lack."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from neardup.process.program import FAILED
from neardup.reading.packed import unpacked


def unpack_in_blocks() -> None:
    """Compressed files are read as everywhere here: all their parts, in blocks, or an error.

    mrjob's own way takes the first part of a file for all of it, a damaged one for a short one, and
    as much memory as a kilobyte may unpack to.
    """

    def decompress(_: IO[bytes], path: str) -> Iterator[bytes]:
        return unpacked(path)

    simulated_hadoop: Any = importlib.import_module("mrjob.sim")
    simulated_hadoop.decompress = decompress


def end_tasks_with_workers() -> None:
    """The local runner forks workers, and ends them with SIGTERM: so they must end their tasks.

    A worker that leaves by an exception kills the task that it waits for.  Ctrl-C is for the
    launcher, which ends the workers then.
    """

    def end(*_: object) -> None:
        sys.exit(FAILED)

    def in_a_worker() -> None:
        signal.signal(signal.SIGTERM, end)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    os.register_at_fork(after_in_child=in_a_worker)


def with_plain_names(arguments: list[str]) -> list[str]:
    """What stands behind `--` as names that no parser takes for options.

    Between Python 3.7 and 3.12, `parse_intermixed_args` forgets the `--`.

    >>> with_plain_names(["-q", "--", "a", "-x", "-"])
    ['-q', 'a', './-x', '-']
    """
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    names = arguments[cut + 1 :]
    plain = [f"./{name}" if name.startswith("-") and name != "-" else name for name in names]
    return [*arguments[:cut], *plain]


def said_by_a_task(folder: str) -> str:
    """The message of the task that failed, from the `stderr` files below a folder; "" if none.

    That is the one line that `process.program` writes, and otherwise all that is no counter.
    """
    said = []
    for path in sorted(Path(folder).rglob("stderr")):
        for line in path.read_text("utf-8", "backslashreplace").splitlines():
            if line.startswith("job.py: "):
                return line[len("job.py: ") :]
            if not line.startswith("reporter:"):
                said.append(line)
    return "\n".join(said)
