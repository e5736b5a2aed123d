"""Keys as they travel by themselves: digests of five bytes, sorted, many in a block.

All that is asked of a key here is whether another record has the same, and a wrong yes costs a line
and no pair; so 40 bits of a mixed key do, of its 52.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neardup.sets.hashing import mix
from neardup.sets.runs import first_of_run

DIGEST_BITS = 40
DIGESTS_AT_ONCE = 1 << 22  # in memory, at some 48 bytes each
BLOCK_DIGESTS = 1 << 17
_BYTES = DIGEST_BITS // 8


def digests_of(keys: np.ndarray) -> np.ndarray:
    """uint64 (n,), below 2^40, of keys (uint64)."""
    return mix(keys) >> np.uint64(64 - DIGEST_BITS)


def partition_of(digests: np.ndarray, partitions: int) -> np.ndarray:
    """Where each digest is compared with its equals: uint64 below `partitions`."""
    return digests % np.uint64(partitions)


def pack(digests: np.ndarray) -> bytes:
    """Ascending digests as a block: all first bytes, all second bytes …, which pack well.

    >>> pack(np.array([1, 258], np.uint64))
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x01\\x02'
    """
    return digests.astype(">u8").view(np.uint8).reshape(-1, 8)[:, -_BYTES:].T.tobytes()


def unpack(block: bytes) -> np.ndarray:
    """The inverse of `pack`; ValueError where it is no block of digests."""
    columns = np.frombuffer(block, np.uint8).reshape(_BYTES, -1)
    words = np.zeros((columns.shape[1], 8), np.uint8)
    words[:, -_BYTES:] = columns.T
    return words.view(">u8").ravel().astype(np.uint64)


class DigestBlocks:
    """Gathers the digests of a mapper, to blocks of each partition."""

    def __init__(self, partitions: int):
        self.partitions = partitions
        self.held: list[np.ndarray] = []
        self.count = 0

    def add(self, digests: np.ndarray) -> Iterator[tuple[int, bytes]]:
        """(partition, block) of what has become too much to hold."""
        self.held.append(digests)
        self.count += len(digests)
        if self.count > DIGESTS_AT_ONCE:
            yield from self.rest()

    def rest(self) -> Iterator[tuple[int, bytes]]:
        """All, with a block for each partition, if only an empty one: none gets lost unnoticed."""
        digests = np.concatenate([np.empty(0, np.uint64), *self.held])
        self.held, self.count = [], 0
        part = partition_of(digests, self.partitions)
        order = np.lexsort((digests, part))
        digests, part = digests[order], part[order]
        bounds = np.searchsorted(part, np.arange(self.partitions + 1, dtype=np.uint64)).tolist()
        for number, (low, high) in enumerate(zip(bounds, bounds[1:])):
            mine = at_most_twice(digests[low:high])
            for start in range(0, max(1, len(mine)), BLOCK_DIGESTS):
                yield number, pack(mine[start : start + BLOCK_DIGESTS])


def at_most_twice(digests: np.ndarray) -> np.ndarray:
    """Of ascending digests, each once or twice: a second one tells all that a thousand would.

    >>> at_most_twice(np.array([3, 5, 5, 5, 9, 9], np.uint64)).tolist()
    [3, 5, 5, 9, 9]
    """
    kept = first_of_run(digests)
    kept[1:] |= kept[:-1].copy()
    return digests[kept]
