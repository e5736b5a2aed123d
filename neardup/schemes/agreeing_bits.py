"""Random projection as it was described: vectors of F bits, compared by how many of them agree.

A pair is one whose vectors agree in t·F bits or more; Henzinger ("Finding near-duplicate web
pages", 2006) takes 372 of 384.  Its similarity is that share, and says what the angle is, as the
bits of an angle θ agree with probability 1 - θ/π each (Charikar 2002): θ is about π·(1 - share).

k = F - ⌈t·F⌉ bits may differ.  With few of them, choices of blocks find every pair (`Blocks` of
bit_keys.py): 16 choices or, where k is larger, k + 1.  Where blocks are so short that strangers
meet, masks of r bits are drawn (`Drawn`) that keep a promise: a pair at the
threshold is found with P = 1 - (1 - C(F-k, r) / C(F, r))^b.  It holds for all vectors, as each bit
is drawn for itself, and asks nothing of the number of tokens.

Letters: t the threshold (31/32), F bits (384), k that may differ (12), m blocks (13); b masks of r
bits (for t = 0.9, 118 of 24).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import numpy as np

from neardup.lines.keys import MAX_BANDS
from neardup.schemes import banding
from neardup.schemes.bit_keys import HAIR, Blocks, Drawn, Ways, hits, keys_of, most_blocks
from neardup.schemes.equal_bits import BITS, EqualBits, agreement, sides
from neardup.schemes.request import Request
from neardup.schemes.scheme import Scheme, shown
from neardup.schemes.weighting import asked_weights, weighted_seed
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Measure
from neardup.similarity.threshold import Threshold
from neardup.similarity.weights import TokenWeights

MEASURE = "agreement"
DEFAULT_BITS = 384
MAX_BLOCK_KEYS, MAX_DRAWN = 16, 128  # keys, where --max-bands does not say
SELDOM = 1e-3  # strangers may meet so often, for the sake of missing no pair


@dataclass(frozen=True)
class AgreeingBits(Scheme):
    """`least` of the bits must agree; `seed` (0 … 2^64-1) draws the hyperplanes.

    >>> scheme = AgreeingBits(least=372, ways=Blocks(bits=384, number=13, distance=12))
    >>> sets = Ragged.from_rows([[*range(100)], [*range(99)], [*range(500, 600)]])
    >>> everything = scheme.measure("agreement", Threshold(1, 384))
    >>> everything.verified(sets, np.array([0, 0]), np.array([1, 2])).part.tolist()
    [370, 212]
    """

    least: int
    ways: Ways
    seed: int = 0
    weights: TokenWeights | None = None
    measures: ClassVar[tuple[str, ...]] = (MEASURE,)

    @classmethod
    def of(cls, request: Request) -> AgreeingBits:
        bits = request.value(BITS) or DEFAULT_BITS
        least = request.threshold.smallest_partner(bits)
        ways = _asked_ways(request, bits, least)
        return cls(least, ways, weighted_seed(request), asked_weights(request))

    @property
    def promise(self) -> str:
        bits, ways = self.ways.bits, self.ways
        if isinstance(ways, Blocks):
            return f"every pair is found whose vectors agree in {self.least} of {bits} bits or more"
        return (
            f"{ways.number} bands of {ways.width} of {bits} bits find a pair that agrees in "
            f"{self.least} with probability {shown(ways.recall(self.least))}"
        )

    def cost(self) -> list[str]:
        if isinstance(self.ways, Blocks):
            return []
        bands, rows, bits = self.ways.number, self.ways.width, self.ways.bits
        at, strangers = self.least / bits, agreement(banding.STRANGERS)
        return banding.dearer_by_hand(at, strangers, bands, rows, MAX_DRAWN, hits(bits))

    def recall(self, similarity: float) -> float:
        """Of vectors that agree in so many bits or more; no pair may have just that share."""
        return self.ways.recall(ceil(similarity * self.ways.bits - HAIR))

    def measure(self, name: str, threshold: Threshold) -> Measure:
        bits = self.ways.bits
        return EqualBits(self.vectors, bits, threshold.smallest_partner(bits))

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), len(self.ways))

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        return keys_of(self.ways, self.vectors(sets), low, high)

    def vectors(self, sets: Ragged) -> np.ndarray:
        """uint64 (n, W), of W words for F bits; no set may be empty."""
        return sides(sets, self.weights, self.seed, 0, self.ways.bits)


def _asked_ways(request: Request, bits: int, least: int) -> Ways:
    """By hand, or that which misses no pair, unless strangers meet there more often than need be.

    ValueError where no way keeps the promise.
    """
    if any(request.value(option) is not None for option in (banding.BANDS, banding.ROWS)):
        return _drawn(request, bits, least)
    distance, most = bits - least, request.value(banding.MOST)
    blocks = most_blocks(distance, most or MAX_BLOCK_KEYS, bits)
    if not blocks and most is None and distance < MAX_DRAWN:
        blocks = distance + 1
    if not blocks:
        return _drawn(request, bits, least)
    exact, strangers = Blocks(bits, blocks, distance), agreement(banding.STRANGERS)
    if exact.by_chance(strangers) < SELDOM:
        return exact
    try:
        drawn = _drawn(request, bits, least)
    except ValueError:  # it would take more keys
        return exact
    return exact if exact.by_chance(strangers) <= drawn.by_chance(strangers) else drawn


def _drawn(request: Request, bits: int, least: int) -> Drawn:
    rows = request.value(banding.ROWS) or 0
    if rows > bits:
        raise ValueError(f"--rows {rows} is more than --bits {bits}")
    bands, rows = banding.asked_for(request, least / bits, MAX_DRAWN, hits(bits))
    return Drawn(bits, bands, rows, request.seed)
