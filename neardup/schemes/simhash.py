"""SimHash: every pair whose fingerprints differ in at most k bits meets.

A fingerprint is 64 signs of random hyperplanes (Charikar 2002; Manku, Jain, Das Sarma, "Detecting
near-duplicates for web crawling", 2007).  It is cut into m blocks.  k bits lie in k blocks at most,
so the other m - k blocks are equal: a key is one choice of m - k blocks, and what stands in them.

    m = 5, k = 3                 block 0      1      2      3      4
    fingerprint x                  0110…  1010…  1100…  0011…  0101…
    fingerprint y                  0111…  1010…  1000…  0011…  0001…
    the key that both have                1010…         0011…         choice (1, 3) of 10

Letters: k bits (3); m blocks (5), as many as leave C(m, k) keys within the limit (16).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np

from neardup.lines.keys import MAX_BANDS
from neardup.schemes.banding import MOST
from neardup.schemes.request import Option, Request, whole
from neardup.schemes.scheme import Scheme, banded
from neardup.schemes.weighting import WEIGHTS, asked_weights, asks_for_counts, weighted_seed
from neardup.sets.hashing import combine
from neardup.sets.ragged import Ragged
from neardup.sets.random_signs import signs
from neardup.similarity.bitmaps import popcount
from neardup.similarity.measures import Measure, UnboundedMeasure, Verified
from neardup.similarity.threshold import Threshold
from neardup.similarity.weighted_measures import weighted_measure
from neardup.similarity.weights import TokenWeights

BITS = 64
MAX_BANDS_ASKED = 16
DISTANCE = Option(
    "--distance",
    "K",
    "with --scheme simhash: the most bits in which the fingerprints of a pair differ (default: 3)",
    whole(0, 16),
    default="3",
    finds_more="a larger --distance misses fewer",
)


@dataclass(frozen=True)
class SimHash(Scheme):
    """`seed` (0 … 2^64-1) draws the hyperplanes; `weights` are those of tokens.

    >>> sets = Ragged.from_rows([[*range(100)], [*range(99)], [*range(500, 600)]])
    >>> prints = SimHash(distance=3, blocks=5).fingerprints(sets)
    >>> popcount(prints[0] ^ prints).tolist()
    [0, 3, 25]
    """

    distance: int
    blocks: int
    seed: int = 0
    weights: TokenWeights | None = None
    measures: ClassVar[tuple[str, ...]] = ("hamming", "jaccard", "dice", "cosine")
    options: ClassVar[tuple[Option, ...]] = (DISTANCE, WEIGHTS, MOST)

    @classmethod
    def of(cls, request: Request) -> SimHash:
        if request.measure == "hamming" and request.threshold_given:
            raise ValueError(
                "--threshold: fingerprints are verified by --distance, or name a --measure"
            )
        distance, limit = request.value(DISTANCE), request.value(MOST) or MAX_BANDS_ASKED
        blocks = most_blocks(distance, limit)
        if not blocks:
            raise ValueError(
                f"--distance {distance} needs {distance + 1} keys a record, "
                f"and at most {limit} are allowed (--max-bands)"
            )
        return cls(distance, blocks, weighted_seed(request), asked_weights(request))

    @classmethod
    def asks_for_counts(cls, values: Mapping[str, Any]) -> bool:
        return asks_for_counts(values)

    @property
    def promise(self) -> str:
        most = f"{self.distance} of {BITS} bits"
        return f"every pair is found whose fingerprints differ in {most} or fewer"

    def recall(self, similarity: float) -> float:
        """Of fingerprints; one bit more, and it may lie so that no block is left."""
        return float((1 - similarity) * BITS <= self.distance)

    def measure(self, name: str, threshold: Threshold) -> Measure:
        if name == "hamming":
            return Hamming(self)
        return weighted_measure(name, threshold, self.weights)

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), comb(self.blocks, self.distance))

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        return self.keys_of(self.fingerprints(sets), low, high)

    def keys_of(self, fingerprints: np.ndarray, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        """The keys of records with these fingerprints (uint64)."""
        masks = self.masks()[low:high]
        words = combine((fingerprints[:, np.newaxis] & masks)[np.newaxis], seed=0)
        return banded(words, np.arange(low, low + len(masks)))

    def masks(self) -> np.ndarray:
        """uint64: the bits of each choice of blocks."""
        ends = [BITS * i // self.blocks for i in range(self.blocks + 1)]
        blocks = [(1 << high) - (1 << low) for low, high in zip(ends, ends[1:])]
        choices = combinations(blocks, self.blocks - self.distance)
        return np.array([sum(choice) for choice in choices], dtype=np.uint64)

    def fingerprints(self, sets: Ragged) -> np.ndarray:
        """uint64, one for each set; none of them may be empty."""
        weights = None if self.weights is None else self.weights.of(sets)
        return signs(sets, weights, self.seed, 0, BITS)[:, 0]


def most_blocks(distance: int, max_keys: int) -> int:
    """As many as leave no more than `max_keys` keys; 0 where even the fewest leave more.

    >>> [most_blocks(k, 16) for k in (0, 1, 2, 3, 4, 15, 16)]
    [64, 16, 6, 5, 6, 16, 0]
    """
    numbers = range(distance + 1, BITS + 1)
    return max((m for m in numbers if comb(m, distance) <= max_keys), default=0)


@dataclass(frozen=True)
class Hamming(UnboundedMeasure):
    """Pairs whose fingerprints differ in no more bits than the scheme's distance."""

    scheme: SimHash

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        some, place = np.unique(np.concatenate((left, right)), return_inverse=True)
        x, y = self.scheme.fingerprints(sets.take(some))[place].reshape(2, -1)
        differ = popcount(x ^ y)
        good = differ <= self.scheme.distance
        equal = BITS - differ[good]
        return Verified(left[good], right[good], equal, np.full(len(equal), BITS))
