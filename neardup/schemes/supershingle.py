"""Super-shingles: two sets meet when at least 2 of their 6 super-shingles are equal.

A super-shingle is a hash of 14 min-hashes, and two sets are taken for similar when two super-
shingles agree (Broder, Glassman, Manasse, Zweig, "Syntactic clustering of the Web", 1997).  So a
key is a pair of super-shingles, a mega-shingle: 15 pairs, of which any will do.

Letters: 6 super-shingles of r = 14 minima; p = s^14 (0.229 at s = 0.9), the probability that one
agrees.  Promise: P(at least 2 of 6), which is 0.42 at s = 0.9, 0.88 at 0.95 and 0.996 at 0.98.  It
is a scheme for sets that are almost equal, with next to no false candidates below.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from neardup.lines.keys import MAX_BANDS
from neardup.schemes.request import Request
from neardup.schemes.scheme import Scheme, banded, shown
from neardup.sets.hashing import combine
from neardup.sets.min_hashes import band_words
from neardup.sets.ragged import Ragged
from neardup.similarity.threshold import NINE_TENTHS, Threshold

SUPERS = 6
MINIMA = 14
# By their later half, so that the first bands take few super-shingles to make.
PAIRS = np.array([(i, j) for j in range(SUPERS) for i in range(j)])


@dataclass(frozen=True)
class SuperShingle(Scheme):
    """`seed` (0 … 2^64-1) draws the hash functions.

    >>> round(SuperShingle().recall(0.9), 3)
    0.415
    """

    seed: int = 0
    resemblance: Threshold = NINE_TENTHS  # for which the promise is told

    @classmethod
    def of(cls, request: Request) -> SuperShingle:
        assert request.resemblance is not None
        return cls(request.seed, request.resemblance)

    @property
    def promise(self) -> str:
        return (
            f"2 of {SUPERS} super-shingles of {MINIMA} minima find a pair at {self.resemblance} "
            f"with probability {shown(self.recall(float(self.resemblance)))}"
        )

    def recall(self, similarity: float) -> float:
        p = similarity**MINIMA
        # Term by term: 1 minus the others would cancel to less than 0 where p is tiny.
        agree = (comb(SUPERS, k) * p**k * (1 - p) ** (SUPERS - k) for k in range(2, SUPERS + 1))
        return sum(agree)

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), len(PAIRS))

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        bands = np.arange(low, min(high, len(PAIRS)))
        asked, place = np.unique(PAIRS[bands], return_inverse=True)
        words = band_words(sets, asked, MINIMA, self.seed)
        halves = words[:, place.reshape(-1, 2)]
        return banded(combine(np.moveaxis(halves, 2, 0), seed=0), bands)
