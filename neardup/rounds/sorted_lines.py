"""The lines of a partition in byte order, however many: by the system's sort, in bounded memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial

from neardup.process.counters import Counters
from neardup.process.errors import StageError
from neardup.process.parent import end_with
from neardup.reading.blocks import blocks_of

SORT_MEMORY = "128M"


def sorted_lines(blocks: Iterable[bytes], counters: Counters) -> Iterator[bytes]:
    """Blocks of whole lines → blocks of the same lines, in order."""
    with tempfile.TemporaryFile() as result:
        sort = subprocess.Popen(
            ["sort", "-S", SORT_MEMORY],
            stdin=subprocess.PIPE,
            stdout=result,
            env={**os.environ, "LC_ALL": "C"},
            preexec_fn=partial(end_with, os.getpid()),
        )
        with sort:
            try:
                assert sort.stdin
                with contextlib.suppress(BrokenPipeError):  # it says why below
                    for block in blocks:
                        counters.alive()
                        sort.stdin.write(block)
                    sort.stdin.close()
                while sort.poll() is None:
                    counters.alive()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        sort.wait(1)
            except BaseException:
                sort.kill()
                raise
        if sort.returncode:
            raise StageError(f"cannot sort: sort ended with status {sort.returncode}")
        result.seek(0)
        yield from blocks_of(result)
