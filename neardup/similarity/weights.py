"""Weights of tokens: by how often a record has them, by how rare they are, or as the record says.

The idf weight of a token that df of N records have is 8·log2(N / df), rounded, from 1 to 255: its
inverse document frequency (Spärck Jones 1972) in eighths of a bit.  A token in half of all records
weighs 8, one in a thousandth of them 80.

A weight is k or more where N / df ≥ 2^((k - 1/2) / 8).  That is compared in integers, so that no
two processes, and no two machines, round to different weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt

import numpy as np

from neardup.sets.ragged import Ragged
from neardup.token_counts.counts import TokenCounts

MOST_WEIGHT = 255


@dataclass(frozen=True, eq=False)
class Idf:
    """Gives tokens their weights.

    >>> counts = TokenCounts.of_sets(Ragged.from_rows([[5, 7], [5], [5, 9], [5, 7]]))
    >>> Idf(counts).of(np.array([5, 7, 9, 100], np.uint64)).tolist()
    [1, 8, 16, 16]
    """

    counts: TokenCounts

    def of(self, tokens: np.ndarray) -> np.ndarray:
        """int64, 1 … 255, of tokens (uint64)."""
        below = np.searchsorted(self._limits, self.counts.of(tokens))
        return np.maximum(len(self._limits) - below, 1)

    @cached_property
    def _limits(self) -> np.ndarray:
        """Ascending: in how many records a token can be and still weigh 255, 254, … 1."""
        power = self.counts.records**16
        roots = [_root16(power >> 2 * k - 1) for k in range(MOST_WEIGHT, 0, -1)]
        return np.array([root for root in roots if root], dtype=np.int64)


def _root16(value: int) -> int:
    """⌊value^(1/16)⌋, since the floors of roots of floors are those of the roots."""
    return isqrt(isqrt(isqrt(isqrt(value))))


@dataclass(frozen=True, eq=False)
class TokenWeights:
    """Those that a record gives its tokens, times their idf weights if these are known.

    repeats: whether that is how often it has them; own: whether its line says what they weigh.

    >>> sets = Ragged(np.array([5, 7], np.uint64), np.array([0, 2]), np.array([2, 1]))
    >>> TokenWeights(repeats=True).of(sets).tolist()
    [2, 1]
    """

    repeats: bool = False
    own: bool = False
    idf: Idf | None = None

    def of(self, sets: Ragged) -> np.ndarray:
        """int64 (T,), above 0."""
        weights = sets.weighed()
        return weights if self.idf is None else weights * self.idf.of(sets.values)

    @property
    def are_counts(self) -> bool:
        """Whether they add up to no more than a line has tokens."""
        return self.repeats and self.idf is None
