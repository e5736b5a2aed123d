"""Schemes: each gives a batch of records its keys.

A scheme is one file here and one line in `SCHEMES`; the tests that every scheme must pass take it
from this table.  A key is one integer below 2^52, the number of its band (12 bits) above a hash
(40 bits), so the order of integers is the order of the keys on a line.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from neardup.ragged import Ragged
from neardup.schemes.minhash import MinHash

BAND_BITS, HASH_BITS = 12, 40
KEY_BITS = BAND_BITS + HASH_BITS
MAX_BANDS = 1 << BAND_BITS


class Scheme(Protocol):
    """What every scheme promises."""

    def keys(self, sets: Ragged, below: int = 1 << KEY_BITS) -> Ragged:
        """Row i: the keys of set i, ascending and distinct, whatever else is in the batch.

        Keys from `below` on may be left out, where that saves work.
        """
        ...

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        """How many keys sets of these sizes have, at most (int64 arrays)."""
        ...

    def recall(self, similarity: float) -> float:
        """The probability that two sets of this similarity share a key."""
        ...


SCHEMES = {"minhash": MinHash}
