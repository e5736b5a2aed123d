"""Of two runs on this machine that would write to one folder of the cluster, the later one stops.

Hadoop itself refuses a folder that is there, but a job makes its own only when it begins: two that
are submitted at the same time would mix their lines.  A claim is a lock on a byte of one file, so
it ends with its process, whatever ends that.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from neardup.engines.hadoop.archives import folder
from neardup.engines.hadoop.folders import path_of
from neardup.process.errors import StageError

PLACES = 1 << 62  # in a file that has no byte in it


@contextmanager
def claimed(outputs: Sequence[str]) -> Iterator[None]:
    """For the block; StageError where another process has one of these folders."""
    with (folder() / "outputs.lock").open("w") as file:
        for output in outputs:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(output))
            except BlockingIOError:
                raise StageError(
                    f"{output}: another run that was started here writes to it; wait for its end, "
                    "or name another folder"
                ) from None
        yield


def _place(output: str) -> int:
    """Of a folder, by its path; no two have the same, as far as chance goes."""
    digest = hashlib.sha256(path_of(output).encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") % PLACES
