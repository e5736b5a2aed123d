"""Weights of tokens: the rarer, the heavier; and the cosine of weighted sets.

The weight of a token that df of N records have is 8·log2(N / df), rounded, from 1 to 255: its
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

from neardup.sets.ragged import Ragged, shared
from neardup.similarity.measures import UnboundedMeasure, Verified, cosine_reached, millionths
from neardup.similarity.threshold import Threshold
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


@dataclass(frozen=True)
class WeightedCosine(UnboundedMeasure):
    """Σ w² of the common tokens / √(Σ w² of the one set · Σ w² of the other).

    >>> sets = Ragged.from_rows([[1, 2], [2, 3], [2], [2, 3]])  # 2 weighs 1, 3 weighs 8
    >>> measure = WeightedCosine(Threshold.parse("0.5"), Idf(TokenCounts.of_sets(sets)))
    >>> found = measure.verified(sets, np.array([0, 1]), np.array([1, 3]))
    >>> [column.tolist() for column in found]
    [[1], [3], [1000000], [1000000]]
    """

    threshold: Threshold
    idf: Idf

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        some, place = np.unique(np.concatenate((left, right)), return_inverse=True)
        x, y = self._norms(sets.take(some))[place].reshape(2, -1)
        dot = self._norms(shared(sets, left, right))
        good = cosine_reached(self.threshold, dot, x, y)
        fraction = millionths(dot[good], x[good], y[good])
        return Verified(left[good], right[good], *fraction)

    def _norms(self, sets: Ragged) -> np.ndarray:
        """Σ w² of each row (int64), of which some may be empty."""
        sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(self.idf.of(sets.values) ** 2)))
        return np.diff(sums[sets.offsets])
