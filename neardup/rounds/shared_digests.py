"""Which digests of a partition came twice, in bounded memory.

Those that are too many to be sorted at once go to files by their first bits, and come back a file
at a time: of n digests, n/64 are in memory, at 24 bytes each.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import IO

import numpy as np

from neardup.process.errors import StageError
from neardup.rounds import digests
from neardup.rounds.digests import DIGEST_BITS, partition_of, unpack
from neardup.sets.runs import first_of_run

FILE_BITS = 6
_SHIFT = np.uint64(DIGEST_BITS - FILE_BITS)


def shared_digests(
    blocks: Iterable[bytes], partition: int, partitions: int
) -> Iterator[np.ndarray]:
    """uint64, ascending: each digest that is in these blocks twice or more.

    StageError where a block is none of this partition, or damaged.
    """
    with ExitStack() as stack:
        files: list[IO[bytes]] = []
        held: list[np.ndarray] = []
        count = 0
        for block in blocks:
            held.append(_checked(block, partition, partitions))
            count += len(held[-1])
            if count > digests.DIGESTS_AT_ONCE:
                files = files or [
                    stack.enter_context(tempfile.TemporaryFile()) for _ in range(1 << FILE_BITS)
                ]
                _to_files(files, held)
                held, count = [], 0
        if not files:
            yield _shared(held)
            return
        _to_files(files, held)
        for file in files:
            file.seek(0)
            yield _shared([np.frombuffer(file.read(), np.uint64)])


def _checked(block: bytes, partition: int, partitions: int) -> np.ndarray:
    try:
        found = unpack(block)
        whole = (found[1:] >= found[:-1]).all()
        if whole and (partition_of(found, partitions) == partition).all():
            return found
    except ValueError:  # of no such length
        pass
    raise StageError(
        "expected blocks of keys, as share_keys.py map writes them: this one is damaged, or no such"
    )


def _to_files(files: list[IO[bytes]], held: list[np.ndarray]) -> None:
    values = np.sort(np.concatenate([np.empty(0, np.uint64), *held]))
    bounds = np.searchsorted(values >> _SHIFT, np.arange(len(files) + 1, dtype=np.uint64)).tolist()
    for file, low, high in zip(files, bounds, bounds[1:]):
        file.write(values[low:high].data)


def _shared(held: list[np.ndarray]) -> np.ndarray:
    values = np.sort(np.concatenate([np.empty(0, np.uint64), *held]))
    later = np.concatenate((values[1:][values[1:] == values[:-1]], values[:0]))
    return later[first_of_run(later)]
