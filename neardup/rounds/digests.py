"""What a key is known by where only a filter asks: 40 bits of it, mixed.

A wrong yes costs a line and no pair, so these do for its 52.
"""

from __future__ import annotations

import numpy as np

from neardup.sets.hashing import mix

DIGEST_BITS = 40


def digests_of(keys: np.ndarray) -> np.ndarray:
    """uint64 (n,), below 2^40, of keys (uint64)."""
    return mix(keys) >> np.uint64(64 - DIGEST_BITS)


def partition_of(digests: np.ndarray, partitions: int) -> np.ndarray:
    """Where each key is compared with its equals: uint64 below `partitions`."""
    return digests % np.uint64(partitions)
