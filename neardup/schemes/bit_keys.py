"""Keys from the bits that masks select from bit vectors, and the scheme simhash.

Each bit of a vector is a side of a random hyperplane.  Two sets at an angle θ have a bit equal with
probability 1 - θ/π (Charikar 2002), so about F·(1 - θ/π) of F bits.  A key is a mask's number and
the bits under the mask; two vectors share a key if no bit under its mask differs.  Masks are chosen
in two ways:

*Blocks*.  F bits are cut into m blocks, and a mask is a choice of m - k of them.  k differing bits
lie in at most k blocks, so every pair with at most k differing bits shares a key (Manku, Jain, Das
Sarma, "Detecting near-duplicates for web crawling", 2007).

    m = 5, k = 3                 block 0      1      2      3      4
    vector x                       0110…  1010…  1100…  0011…  0101…
    vector y                       0111…  1010…  1000…  0011…  0001…
    the key that both have                1010…         0011…         choice (1, 3) of 10

*Drawn*.  Each of b masks is r of the F bits, drawn at random.  d differing bits all miss a mask
with the hypergeometric probability h = C(F-d, r) / C(F, r), so a pair shares a key with probability
1 - (1 - h)^b.  This is used if so many bits may differ that blocks would be too short.

*SimHash*.  k is given (--distance), and m is as large as --max-bands allows for C(m, k) keys.

Letters: F bits (64), k bits that may differ (3), m blocks (5); b masks of r bits.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, takewhile
from math import acos, comb, pi
from typing import ClassVar

import numpy as np

from neardup.lines.keyed_lines import MAX_BANDS
from neardup.runtime.flags import Flag, flags
from neardup.runtime.program import whole
from neardup.schemes import banding, scheme
from neardup.schemes.scheme import Request, Scheme
from neardup.sets.bit_vectors import MAX_BITS, MIN_BITS, WORD_BITS, bits_apart
from neardup.sets.hashing import combine, hyperplane_sides, random_words, signs
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Measure, Threshold, UnboundedMeasure, Verified
from neardup.similarity.weighted_measures import TokenWeights

DEFAULT_BITS = 64
MAX_BLOCK_KEYS, MAX_DRAWN = 16, 128  # keys, unless --max-bands is given
SELDOM = 1e-3  # the accepted probability that dissimilar records share a key of exact masks
HAIR = 1e-9  # a share of bits, computed as a float, may be slightly too small
BITS, DISTANCE = flags(
    f"""
    --bits F        bits of a fingerprint, {MIN_BITS} to {MAX_BITS}, or of a record's vector with
                    --scheme simhash, or with --scheme projection and --measure agreement; more bits
                    measure angles more precisely (default: 256; simhash 64; projection 384)
    --distance K    with fingerprints, or --scheme simhash: the maximum number of bits in which a
                    pair may differ; with simhash above 15, set --max-bands to at least K + 1; with
                    fingerprints the default is 31 of 256 bits, or the same share of other sizes
                    [3]
    """,
    bits=whole(MIN_BITS, MAX_BITS),
    distance=whole(0, MAX_BITS - 1),
)


@dataclass(eq=False)
class EqualBits(UnboundedMeasure):
    """A measure: the share of equal bits; a pair has at least `least` equal bits of `bits`.

    vectors: computes the bit vectors, uint64 (n, W), of non-empty sets.
    """

    vectors: Callable[[Ragged], np.ndarray]
    bits: int
    least: int

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        some, place = np.unique(np.concatenate((left, right)), return_inverse=True)
        vectors = self.vectors(sets.take(some))
        x, y = place.reshape(2, -1)
        equal = self.bits - bits_apart(vectors[x], vectors[y])
        good = equal >= self.least
        whole_ = np.full(int(good.sum()), self.bits)
        return Verified(left[good], right[good], equal[good], whole_)


def agreement(cosine: float) -> float:
    """Return 1 - θ/π, the probability that a bit of two vectors with this cosine is equal.

    >>> agreement(1), agreement(0)
    (1.0, 0.5)
    """
    return 1 - acos(min(cosine, 1)) / pi


def sides(
    sets: Ragged, weights: "TokenWeights | None", seed: int, low: int, high: int
) -> np.ndarray:
    """Return on which side of hyperplanes low … high-1 each set is, as bits: uint64 (n, words)."""
    if weights is None:
        return signs(sets, None, seed, low, high)
    return hyperplane_sides(sets, weights.of(sets), seed, low, high)


@dataclass(frozen=True)
class Ways(ABC):
    """The base class of sets of masks for vectors of `bits` bits: one mask for each key.

    number: of blocks, or of drawn masks.
    """

    bits: int
    number: int

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of masks."""

    @property
    @abstractmethod
    def masks(self) -> np.ndarray:
        """The mask of each key, uint64 (keys, W): the bits of a vector that make the key."""

    @abstractmethod
    def recall(self, equal: int) -> float:
        """Return the minimum probability that two vectors with `equal` equal bits share a key."""

    @abstractmethod
    def by_chance(self, agreement: float) -> float:
        """Estimate the probability of a shared key if each bit is equal with P = `agreement`."""


@dataclass(frozen=True)
class OfBlocks(Ways):
    """The base class of exact masks: vectors that differ in at most `distance` bits share a key."""

    distance: int

    @property
    def blocks(self) -> list[range]:
        ends = [self.bits * i // self.number for i in range(self.number + 1)]
        return list(map(range, ends, ends[1:]))

    def recall(self, equal: int) -> float:
        return float(self.bits - equal <= self.distance)


@dataclass(frozen=True)
class Blocks(OfBlocks):
    """Masks that select all but `distance` of the `number` blocks of a vector.

    >>> ways = Blocks(bits=64, number=5, distance=3)
    >>> len(ways), ways.recall(61), ways.recall(60)
    (10, 1.0, 0.0)
    """

    def __len__(self) -> int:
        return comb(self.number, self.distance)

    @cached_property
    def masks(self) -> np.ndarray:
        blocks = [(1 << block.stop) - (1 << block.start) for block in self.blocks]
        choices = combinations(blocks, self.number - self.distance)
        return words_of([sum(choice) for choice in choices], self.bits)

    def by_chance(self, agreement: float) -> float:
        block = agreement ** (self.bits / self.number)
        return banding.at_least(self.number - self.distance, self.number, block)


@dataclass(frozen=True)
class Drawn(Ways):
    """`number` random masks of `width` bits each, drawn by `seed`.

    >>> ways = Drawn(bits=384, number=118, width=24, seed=0)
    >>> len(ways), round(ways.recall(346), 4)
    (118, 0.9999)
    """

    width: int
    seed: int

    def __len__(self) -> int:
        return self.number

    @cached_property
    def masks(self) -> np.ndarray:
        draws = random_words(self.seed, self.number * self.bits, stream=5)
        order = np.argsort(draws.reshape(self.number, self.bits), axis=1, kind="stable")
        chosen = order[:, : self.width].tolist()
        return words_of([sum(1 << bit for bit in row) for row in chosen], self.bits)

    def recall(self, equal: int) -> float:
        return banding.recall(equal / self.bits, self.number, self.width, hits(self.bits))

    def by_chance(self, agreement: float) -> float:
        """Return an upper bound on P(shared key) if each bit is equal with P = `agreement`."""
        return banding.recall(agreement, self.number, self.width)


def most_blocks(distance: int, max_keys: int, bits: int) -> int:
    """Return the maximum number of blocks that needs at most `max_keys` masks; 0 if there is none.

    >>> [most_blocks(k, 16, 64) for k in (0, 1, 2, 3, 4, 15, 16)]
    [64, 16, 6, 5, 6, 16, 0]
    """
    numbers = range(distance + 1, bits + 1)  # in order of the number of keys
    return max(takewhile(lambda m: comb(m, distance) <= max_keys, numbers), default=0)


def asked_ways(request: Request, bits: int, least: int, dissimilar: float) -> Ways:
    """Return the masks that --bands and --rows set, or else Blocks or Drawn masks for the recall.

    Blocks are used if they are selective enough, or else the more selective of the two.
    least: the minimum number of equal bits in a pair; dissimilar: the share of equal bits in
    dissimilar records.  ValueError if neither kind of masks reaches the recall.
    """
    if any(request.value(option) is not None for option in (banding.BANDS, banding.ROWS)):
        return _drawn(request, bits, least)
    distance, most = bits - least, request.value(banding.MOST)
    blocks = most_blocks(distance, most or MAX_BLOCK_KEYS, bits)
    if not blocks and most is None and distance < MAX_DRAWN:
        blocks = distance + 1
    if not blocks:
        return _drawn(request, bits, least)
    exact = Blocks(bits, blocks, distance)
    if exact.by_chance(dissimilar) < SELDOM:
        return exact
    try:
        drawn = _drawn(request, bits, least)
    except ValueError:  # more keys than allowed
        return exact
    return exact if exact.by_chance(dissimilar) <= drawn.by_chance(dissimilar) else drawn


def _drawn(request: Request, bits: int, least: int) -> Drawn:
    rows = request.value(banding.ROWS) or 0
    if rows > bits:
        raise ValueError(f"--rows {rows} is more than --bits {bits}; lower one or raise the other")
    bands, rows = banding.asked_for(request, least / bits, MAX_DRAWN, hits(bits))
    return Drawn(bits, bands, rows, request.seed)


def hits(bits: int) -> banding.Hit:
    """Return a function that computes the probability that all bits under a random mask agree.

    Its arguments are the share of equal bits and the mask's width.

    >>> round(hits(64)(60 / 64, 20), 6) == round(comb(60, 20) / comb(64, 20), 6)
    True
    """

    def hit(share: float, width: int) -> float:
        return comb(int(share * bits + HAIR), width) / comb(bits, width)

    return hit


def words_of(masks: list[int], bits: int) -> np.ndarray:
    """Convert masks from integers to rows of words, uint64 (len(masks), W), low bits first."""
    full = (1 << WORD_BITS) - 1
    rows = [[mask >> low & full for low in range(0, bits, WORD_BITS)] for mask in masks]
    return np.array(rows, dtype=np.uint64)


def keys_of(ways: Ways, vectors: np.ndarray, low: int, high: int) -> Ragged:
    """Return the keys of vectors (rows of uint64 words) for the masks low … high-1."""
    masks = ways.masks[low:high]
    words = np.empty((len(vectors), len(masks)), dtype=np.uint64)
    columns = np.ascontiguousarray(vectors.T)
    for i, mask in enumerate(masks):
        chosen = columns & mask[:, np.newaxis]
        if len(chosen) > 1:  # Subtle: the highest bits of two words would cancel out in `combine`.
            chosen ^= chosen >> np.uint64(32)
        words[:, i] = combine(chosen, seed=0)
    return scheme.banded(words, np.arange(low, low + len(masks)))


class BitScheme(Scheme):
    """The base class of schemes whose keys are the bits that masks select from a vector."""

    ways: Ways

    @abstractmethod
    def vectors(self, sets: Ragged) -> np.ndarray:
        """Return the bit vectors of non-empty sets as rows of words: uint64 (n, words)."""

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), len(self.ways))

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        return keys_of(self.ways, self.vectors(sets), low, high)

    def recall(self, similarity: float) -> float:
        """Return the recall for pairs with this share of equal bits, rounded down to whole bits."""
        return self.ways.recall(int(similarity * self.ways.bits + HAIR))


@dataclass
class SimHash(BitScheme):
    """The scheme simhash: the fingerprints of a pair differ in at most `distance` bits.

    `seed` (0 … 2^64-1) draws the hyperplanes.

    >>> sets = Ragged.from_rows([[*range(100)], [*range(99)], [*range(500, 600)]])
    >>> prints = SimHash(distance=3, blocks=5).vectors(sets)
    >>> [bin(int(prints[0, 0] ^ prints[i, 0])).count("1") for i in range(3)]
    [0, 3, 25]
    """

    distance: int
    blocks: int
    seed: int = 0
    weights: "TokenWeights | None" = None
    bits: int = DEFAULT_BITS
    measures: ClassVar[tuple[str, ...]] = ("hamming", "jaccard", "dice", "cosine")
    options: ClassVar[tuple[Flag, ...]] = (DISTANCE, BITS, scheme.WEIGHTS, banding.MOST)
    finds_more: ClassVar[str] = "a larger --distance misses fewer"

    @classmethod
    def of(cls, request: Request) -> "SimHash":
        if request.measure == "hamming" and request.threshold_given:
            raise ValueError(
                "--threshold needs a --measure other than hamming, which uses --distance"
            )
        distance, limit = request.value(DISTANCE), request.value(banding.MOST) or MAX_BLOCK_KEYS
        bits = request.value(BITS) or DEFAULT_BITS
        if distance >= bits:
            raise ValueError(
                f"--distance {distance} of {bits} bits makes a pair of any two records; take more "
                "--bits"
            )
        blocks = most_blocks(distance, limit, bits)
        if not blocks:
            raise ValueError(
                f"--distance {distance} needs {distance + 1} keys a record, "
                f"and at most {limit} are allowed (--max-bands)"
            )
        weights, seed = scheme.weighing(request)
        return cls(distance, blocks, seed, weights, bits)

    @property
    def promise(self) -> str:
        most = f"{self.distance} of {self.bits} bits"
        return f"every pair is found whose fingerprints differ in {most} or fewer"

    def cost(self) -> list[str]:
        """Return [a warning] if dissimilar records often share a key, else []."""
        here = self.ways.by_chance(agreement(banding.DISSIMILAR))
        if here < banding.DISSIMILAR:
            return []
        return [
            f"--distance {self.distance} of {self.bits} bits: dissimilar records collide with "
            f"probability {scheme.shown(here)}; a smaller --distance or a larger --max-bands "
            "compares far fewer of them"
        ]

    @cached_property
    def ways(self) -> Blocks:  # type: ignore[override]
        return Blocks(self.bits, self.blocks, self.distance)

    def measure(self, name: str, threshold: Threshold) -> Measure:
        if name == "hamming":
            return EqualBits(self.vectors, self.bits, self.bits - self.distance)
        return super().measure(name, threshold)

    def vectors(self, sets: Ragged) -> np.ndarray:
        weights = None if self.weights is None else self.weights.of(sets)
        return signs(sets, weights, self.seed, 0, self.bits)
