"""Schemes: each gives a batch of records its keys.

A scheme is one file here and one line in `SCHEMES`; the tests that every scheme must pass take it
from this table.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from neardup.keys import MAX_BANDS
from neardup.ragged import Ragged
from neardup.schemes.minhash import MinHash


class Scheme(Protocol):
    """What every scheme promises."""

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        """Row i: the keys of set i in ascending order, whatever else is in the batch.

        At most one of each band, and only those of the bands low … high-1.
        """
        ...

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        """How many keys sets of these sizes have, at most (int64 arrays)."""
        ...

    def recall(self, similarity: float) -> float:
        """The probability that two sets of this similarity share a key."""
        ...


SCHEMES = {"minhash": MinHash}
