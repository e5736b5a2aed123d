"""SimHash: every pair whose fingerprints differ in at most k bits meets.

A fingerprint is F signs of random hyperplanes (Charikar 2002; Manku, Jain, Das Sarma, "Detecting
near-duplicates for web crawling", 2007).  It is cut into m blocks, of which m - k are equal where k
bits differ: the keys are choices of blocks (`bit_keys.Blocks`).

Letters: F bits (64); k bits that may differ (3); m blocks (5), as many as leave C(m, k) keys within
the limit (16), and k + 1 at least.  A key has F·(m - k)/m bits (25.6), and with so few that
dissimilar records collide by it, a run says so before it starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from neardup.schemes import bit_keys, scheme
from neardup.schemes.banding import DISSIMILAR, MOST
from neardup.schemes.scheme import Option, Request
from neardup.sets.hashing import signs
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Measure, Threshold
from neardup.similarity.weighted_measures import TokenWeights

DEFAULT_BITS = 64
MAX_BANDS_ASKED = 16
FEWER = 10  # times, that another choice must let dissimilar records collide to be told of
MOST_ADVISED = 256  # keys a record
DISTANCE = Option(
    "--distance",
    "K",
    "with --scheme simhash: the maximum number of bits in which the fingerprints of a pair differ; "
    "above 15, set --max-bands to at least K + 1 (default: 3)",
    scheme.whole(0, bit_keys.MAX_BITS - 1),
    default="3",
    finds_more="a larger --distance misses fewer",
)


@dataclass
class SimHash(bit_keys.BitScheme):
    """`seed` (0 … 2^64-1) draws the hyperplanes; `weights` are those of tokens.

    >>> sets = Ragged.from_rows([[*range(100)], [*range(99)], [*range(500, 600)]])
    >>> prints = SimHash(distance=3, blocks=5).vectors(sets)
    >>> [bin(int(prints[0, 0] ^ prints[i, 0])).count("1") for i in range(3)]
    [0, 3, 25]
    """

    distance: int
    blocks: int
    seed: int = 0
    weights: TokenWeights | None = None
    bits: int = DEFAULT_BITS
    measures: ClassVar[tuple[str, ...]] = ("hamming", "jaccard", "dice", "cosine")
    options: ClassVar[tuple[Option, ...]] = (DISTANCE, bit_keys.BITS, scheme.WEIGHTS, MOST)

    @classmethod
    def of(cls, request: Request) -> SimHash:
        if request.measure == "hamming" and request.threshold_given:
            raise ValueError(
                "--threshold: fingerprints are verified by --distance, or name a --measure"
            )
        distance, limit = request.value(DISTANCE), request.value(MOST) or MAX_BANDS_ASKED
        bits = request.value(bit_keys.BITS) or DEFAULT_BITS
        if distance >= bits:
            raise ValueError(
                f"--distance {distance} of {bits} bits makes a pair of any two records; take more "
                "--bits"
            )
        blocks = bit_keys.most_blocks(distance, limit, bits)
        if not blocks:
            raise ValueError(
                f"--distance {distance} needs {distance + 1} keys a record, "
                f"and at most {limit} are allowed (--max-bands)"
            )
        return cls(
            distance, blocks, scheme.weighted_seed(request), scheme.asked_weights(request), bits
        )

    @property
    def promise(self) -> str:
        most = f"{self.distance} of {self.bits} bits"
        return f"every pair is found whose fingerprints differ in {most} or fewer"

    def cost(self) -> list[str]:
        here = self._dissimilar(self.blocks, self.distance)
        if here < DISSIMILAR:
            return []
        return [
            f"--distance {self.distance} of {self.bits} bits: dissimilar records collide with "
            f"probability {scheme.shown(here)}, and {self._instead(here / FEWER)}: it compares far "
            "fewer of them"
        ]

    def _instead(self, most: float) -> str:
        """An option with which dissimilar records share a key with at most this probability."""
        for blocks in range(self.blocks + 1, self.bits + 1):
            keys = len(bit_keys.Blocks(self.bits, blocks, self.distance))
            if keys > MOST_ADVISED:
                break
            if (there := self._dissimilar(blocks, self.distance)) <= most:
                return f"with --max-bands {keys} only with {there:.1g}"
        allowed = max(MAX_BANDS_ASKED, len(self.ways))
        for distance in range(self.distance - 1, -1, -1):
            there = self._dissimilar(bit_keys.most_blocks(distance, allowed, self.bits), distance)
            if there <= most:
                break
        return f"with --distance {distance} only with {there:.1g}"

    def _dissimilar(self, blocks: int, distance: int) -> float:
        """The probability that dissimilar records share a key."""
        return bit_keys.Blocks(self.bits, blocks, distance).by_chance(
            bit_keys.agreement(DISSIMILAR)
        )

    @cached_property
    def ways(self) -> bit_keys.Blocks:  # type: ignore[override]
        return bit_keys.Blocks(self.bits, self.blocks, self.distance)

    def recall(self, similarity: float) -> float:
        """The recall for fingerprints: one bit more may leave no block equal."""
        return self.ways.recall(int(similarity * self.bits + bit_keys.HAIR))

    def measure(self, name: str, threshold: Threshold) -> Measure:
        if name == "hamming":
            return bit_keys.EqualBits(self.vectors, self.bits, self.bits - self.distance)
        return super().measure(name, threshold)

    def vectors(self, sets: Ragged) -> np.ndarray:
        """The fingerprints of sets that are not empty: uint64 (n, W), W words for F bits."""
        weights = None if self.weights is None else self.weights.of(sets)
        return signs(sets, weights, self.seed, 0, self.bits)
