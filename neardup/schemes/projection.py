"""Random projection: a bit of a set is its side of a random hyperplane; bands of bits are keys.

Two sets at an angle θ lie on the same side of a random hyperplane with probability 1 - θ/π, where
cos θ is their cosine (Charikar 2002; Henzinger, "Finding near-duplicate web pages", 2006).  The
sides of b·r hyperplanes are cut into b bands of r bits; a key is a band's number and a hash of its
bits.  Two sets share a key with probability 1 - (1 - (1 - θ/π)^r)^b.

This holds for normally distributed hyperplanes, which are used for weighted sets.  Plain sets use
hyperplanes of ±1, at a fifth of the work: the probability is almost the same for many tokens, and a
little higher for small sets.  For weighted sets it would be wrong: (1, 1) and (1, 1.3) have the
cosine 0.99, and would agree in 0.75 instead of 0.96 of all bits.

If another measure verifies the pairs, their cosine follows from their resemblance J:

    cosine = |x∩y| / √(|x|·|y|) ≥ 2·|x∩y| / (|x| + |y|) = dice = 2J / (1 + J)

since the geometric mean is at most the arithmetic one.  Nothing follows for weighted sets.

*Agreement* (--measure agreement).  The vectors of a pair agree in t·F bits or more; its similarity
is the share of equal bits, and θ is about π·(1 - share).  Henzinger takes 372 of 384.  With few
differing bits, k = F - ⌈t·F⌉, blocks find every pair (`bit_keys`): 16 choices or, for a larger k,
k + 1.  If dissimilar records would share such short blocks, masks are drawn.  Their promise holds
for all vectors, since each bit is drawn by itself.

Letters: b bands (124) of r bits (17), c the cosine (0.9), 1 - θ/π = 0.856; by agreement, t the
threshold (31/32), F bits (384), k bits that may differ (12), m blocks (13), or b masks of r bits
(for t = 0.9, 118 of 24).
"""

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import numpy as np

from neardup.lines.keyed_lines import MAX_BANDS
from neardup.runtime.flags import Flag
from neardup.schemes import banding, bit_keys, scheme
from neardup.schemes.scheme import Request, Scheme
from neardup.sets.bit_vectors import WORD_BITS, bits_in
from neardup.sets.hashing import combine
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Measure, Threshold
from neardup.similarity.weighted_measures import TokenWeights

MEASURE = "agreement"
DEFAULT_BITS = 384
MAX_BANDS_ASKED = 128


@dataclass(eq=False)
class AgreeingBits(bit_keys.BitScheme):
    """The scheme for pairs with `least` or more equal bits; `seed` (0 … 2^64-1) draws hyperplanes.

    >>> scheme = AgreeingBits(least=372, ways=bit_keys.Blocks(bits=384, number=13, distance=12))
    >>> sets = Ragged.from_rows([[*range(100)], [*range(99)], [*range(500, 600)]])
    >>> everything = scheme.measure("agreement", Threshold(1, 384))
    >>> everything.verified(sets, np.array([0, 0]), np.array([1, 2])).part.tolist()
    [370, 212]
    """

    least: int
    ways: bit_keys.Ways
    seed: int = 0
    weights: "TokenWeights | None" = None
    measures: ClassVar[tuple[str, ...]] = (MEASURE,)

    @classmethod
    def of(cls, request: Request) -> "AgreeingBits":
        bits = request.value(bit_keys.BITS) or DEFAULT_BITS
        least = request.threshold.smallest_partner(bits)
        dissimilar = bit_keys.agreement(banding.DISSIMILAR)
        ways = bit_keys.asked_ways(request, bits, least, dissimilar)
        weights, seed = scheme.weighing(request)
        return cls(least, ways, seed, weights)

    @property
    def promise(self) -> str:
        bits, ways = self.ways.bits, self.ways
        if not isinstance(ways, bit_keys.Drawn):
            return f"every pair is found whose vectors agree in {self.least} of {bits} bits or more"
        return (
            f"{ways.number} bands of {ways.width} of {bits} bits find a pair that agrees in "
            f"{self.least} with probability {scheme.shown(ways.recall(self.least))}"
        )

    def cost(self) -> list[str]:
        if not isinstance(self.ways, bit_keys.Drawn):
            return []
        bands, rows, bits = self.ways.number, self.ways.width, self.ways.bits
        at, dissimilar = self.least / bits, bit_keys.agreement(banding.DISSIMILAR)
        what, here = f"{bands} bands of {rows} rows", self.ways.by_chance(dissimilar)
        return banding.dearer(
            what, here, at, dissimilar, bit_keys.MAX_DRAWN, hit=bit_keys.hits(bits)
        )

    def recall(self, similarity: float) -> float:
        """Return the recall for pairs with this share of equal bits, rounded up to whole bits."""
        return self.ways.recall(ceil(similarity * self.ways.bits - bit_keys.HAIR))

    def measure(self, name: str, threshold: Threshold) -> Measure:
        bits = self.ways.bits
        return bit_keys.EqualBits(self.vectors, bits, threshold.smallest_partner(bits))

    def vectors(self, sets: Ragged) -> np.ndarray:
        return bit_keys.sides(sets, self.weights, self.seed, 0, self.ways.bits)


@dataclass(eq=False)
class Projection(Scheme):
    """The scheme projection: `bands` bands of `rows` bits; `seed` (0 … 2^64-1) draws hyperplanes.

    >>> round(Projection(bands=124, rows=17).recall(0.9), 5)
    0.9999
    """

    bands: int
    rows: int
    seed: int = 0
    cosine: float = 0.9  # for which the promise holds
    weights: "TokenWeights | None" = None
    measures: ClassVar[tuple[str, ...]] = ("cosine", "jaccard", "dice", MEASURE)
    options: ClassVar[tuple[Flag, ...]] = (*banding.OPTIONS, bit_keys.BITS, scheme.WEIGHTS)
    finds_more: ClassVar[str] = banding.FINDS_MORE

    @classmethod
    def of(cls, request: Request) -> Scheme:
        if request.measure == MEASURE:
            return AgreeingBits.of(request)
        if request.value(bit_keys.BITS) is not None:
            raise ValueError(
                f"--bits needs --measure {MEASURE}; with --measure {request.measure}, --recall "
                "sets the number of bits"
            )
        cosine = _least_cosine(request)
        bands, rows = banding.asked_for(request, bit_keys.agreement(cosine), MAX_BANDS_ASKED)
        weights, seed = scheme.weighing(request)
        return cls(bands, rows, seed, cosine, weights)

    @property
    def promise(self) -> str:
        many = ", if its tokens are many" if self.weights is None else ""
        return (
            f"{self.bands} bands of {self.rows} bits find a pair of cosine {self.cosine:.9g} "
            f"with probability {scheme.shown(self.recall(self.cosine))}{many}"
        )

    def cost(self) -> list[str]:
        at, dissimilar = bit_keys.agreement(self.cosine), bit_keys.agreement(banding.DISSIMILAR)
        what, here = f"{self.bands} bands of {self.rows} rows", self.recall(banding.DISSIMILAR)
        return banding.dearer(what, here, at, dissimilar, MAX_BANDS_ASKED)

    def recall(self, similarity: float) -> float:
        """Return the recall for a given cosine, assuming normally distributed hyperplanes."""
        return banding.recall(bit_keys.agreement(similarity), self.bands, self.rows)

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), self.bands)

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        bands = np.arange(low, min(high, self.bands))
        words = np.empty((len(sets), len(bands)), dtype=np.uint64)
        first, last = low * self.rows, (low + len(bands)) * self.rows
        vectors = bit_keys.sides(sets, self.weights, self.seed, first, last)
        before = first // WORD_BITS * WORD_BITS  # the dimension of the first bit
        each = range(0, self.rows, WORD_BITS)
        for i in range(len(bands)):
            start = first + i * self.rows - before
            places = range(start, start + self.rows)
            parts = [bits_in(vectors, places[k : k + WORD_BITS]) for k in each]
            words[:, i] = combine(np.array(parts), seed=0)
        return scheme.banded(words, bands)


def _least_cosine(request: Request) -> float:
    """Return the minimum cosine of a pair at the threshold of the requested measure."""
    if request.measure == "cosine":
        return float(request.threshold)
    if (kind := request.value(scheme.WEIGHTS)) != scheme.ONE:
        raise ValueError(
            f"--weights {kind} needs --measure cosine: nothing about the cosine of weighted sets "
            f"follows from {request.measure}; use --scheme minhash"
        )
    resemblance = float(request.least)
    return 2 * resemblance / (1 + resemblance)
