"""The system's sort, which needs little memory for any number of lines."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO, Callable

from neardup.process.errors import StageError
from neardup.process.parent import end_with


@contextmanager
def system_sort(
    source: IO[bytes] | None, result: IO[bytes], flags: Sequence[str], alive: Callable[[], None]
) -> Iterator[IO[bytes] | None]:
    """Sort lines by their bytes, or as the flags say, while the block runs and after it.

    `source`: a file, or None for a pipe, whose end is yielded and closed here.  `alive` is called
    every second of the waiting.  StageError where it fails.
    """
    import subprocess  # which most runs never need

    sort = subprocess.Popen(
        ["sort", *flags],
        stdin=subprocess.PIPE if source is None else source,
        stdout=result,
        env={**os.environ, "LC_ALL": "C"},
        preexec_fn=partial(end_with, os.getpid()),
    )
    with sort:
        try:
            with contextlib.suppress(BrokenPipeError):  # it says why below
                yield sort.stdin
                if sort.stdin:
                    sort.stdin.close()
            while sort.poll() is None:
                alive()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    sort.wait(1)
        except BaseException:  # Ctrl-C, which a worker's children may be deaf to
            sort.kill()
            raise
    if sort.returncode:
        raise StageError(f"cannot sort: sort ended with status {sort.returncode}")
