"""Equal bits: how two bit vectors are compared, and what the share of them says of an angle.

The bits of a vector are sides of random hyperplanes (sets/random_signs.py, and normal_sides.py
where sets have weights).  Two sets whose vectors are at an angle θ have each bit equal with
probability 1 - θ/π (Charikar 2002), so of F bits about F·(1 - θ/π) are, and θ is about π times the
share of those that differ.

Letters: F bits (64 of SimHash, 384 of Henzinger's random projection, "Finding near-duplicate web
pages", 2006).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import acos, pi

import numpy as np

from neardup.schemes.request import Option, whole
from neardup.sets.normal_sides import normal_sides
from neardup.sets.ragged import Ragged
from neardup.sets.random_signs import signs
from neardup.similarity.bitmaps import popcount
from neardup.similarity.measures import UnboundedMeasure, Verified
from neardup.similarity.weights import TokenWeights

MIN_BITS, MAX_BITS = 32, 1024
BITS = Option(
    "--bits",
    "F",
    "with --scheme simhash, and projection by --measure agreement: bits of a vector, "
    f"{MIN_BITS} to {MAX_BITS}; more tell angles apart more finely (default: 64; projection 384)",
    whole(MIN_BITS, MAX_BITS),
)


@dataclass(frozen=True)
class EqualBits(UnboundedMeasure):
    """Pairs whose vectors have `least` of `bits` bits equal, or more; the similarity is the share.

    vectors: from sets, none of them empty, to uint64 (n, W), as `signs` makes them.
    """

    vectors: Callable[[Ragged], np.ndarray]
    bits: int
    least: int

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        some, place = np.unique(np.concatenate((left, right)), return_inverse=True)
        vectors = self.vectors(sets.take(some))
        x, y = place.reshape(2, -1)
        equal = np.full(len(left), self.bits)
        for word in vectors.T:
            equal -= popcount(word[x] ^ word[y])
        good = equal >= self.least
        whole_ = np.full(int(good.sum()), self.bits)
        return Verified(left[good], right[good], equal[good], whole_)


def agreement(cosine: float) -> float:
    """1 - θ/π: how likely two vectors of this cosine have a bit in common.

    >>> agreement(1), agreement(0)
    (1.0, 0.5)
    """
    return 1 - acos(min(cosine, 1)) / pi


def sides(sets: Ragged, weights: TokenWeights | None, seed: int, low: int, high: int) -> np.ndarray:
    """uint64 (n, W): on which sides of hyperplanes low … high-1 each set lies; none is empty."""
    if weights is None:
        return signs(sets, None, seed, low, high)
    return normal_sides(sets, weights.of(sets), seed, low, high)
