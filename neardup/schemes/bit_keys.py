"""Keys of bit vectors: a key is a mask's number, and what the vector holds under the mask.

The bits of a vector are sides of random hyperplanes (sets/hashing.py).  Two sets whose vectors are
at an angle θ have each bit equal with probability 1 - θ/π (Charikar 2002), so of F bits about
F·(1 - θ/π) are, and θ is about π times the share of those that differ.  Two vectors share a key
when none of the bits that differ is under its mask.  There are two ways to choose masks:

Blocks.  F bits are cut into m blocks, and a mask is a choice of m - k of them.  k differing bits
lie in k blocks at most, so a choice is left: every pair of k differing bits or fewer shares a key,
by the pigeonhole principle (Manku, Jain, Das Sarma, "Detecting near-duplicates for web crawling",
2007).

    m = 5, k = 3                 block 0      1      2      3      4
    vector x                       0110…  1010…  1100…  0011…  0101…
    vector y                       0111…  1010…  1000…  0011…  0001…
    the key that both have                1010…         0011…         choice (1, 3) of 10

Drawn.  A mask is r of the F bits, drawn at random, and there are b of them, drawn for themselves.
d differing bits all miss a mask with the hypergeometric probability h = C(F-d, r) / C(F, r), so a
pair shares a key with probability 1 - (1 - h)^b, wherever its d bits are.  It serves where too many
bits may differ for blocks of some length.

Letters: F bits (64 of SimHash; 384 of Henzinger's random projection, "Finding near-duplicate web
pages", 2006), k bits that may differ (3), m blocks (5); b masks of r bits.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, takewhile
from math import acos, comb, pi
from typing import Union

import numpy as np

from neardup.lines.keyed_lines import MAX_BANDS
from neardup.schemes import banding
from neardup.schemes.banding import at_least
from neardup.schemes.scheme import Option, Scheme, banded, whole
from neardup.sets.hashing import combine, hyperplane_sides, random_words, signs
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import UnboundedMeasure, Verified
from neardup.similarity.sketches import popcount
from neardup.similarity.weighted_measures import TokenWeights

MIN_BITS, MAX_BITS = 32, 1024
WORD_BITS = 64
HAIR = 1e-9  # a share of bits that was a fraction may come back as a hair less
BITS = Option(
    "--bits",
    "F",
    "with --scheme simhash, and projection by --measure agreement: bits of a vector, "
    f"{MIN_BITS} to {MAX_BITS}; more tell angles apart more finely (default: 64; projection 384)",
    whole(MIN_BITS, MAX_BITS),
)


@dataclass(eq=False)
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
    """The probability 1 - θ/π that a bit of two vectors of this cosine is equal.

    >>> agreement(1), agreement(0)
    (1.0, 0.5)
    """
    return 1 - acos(min(cosine, 1)) / pi


def sides(sets: Ragged, weights: TokenWeights | None, seed: int, low: int, high: int) -> np.ndarray:
    """uint64 (n, W): on which sides of hyperplanes low … high-1 each set lies; none is empty."""
    if weights is None:
        return signs(sets, None, seed, low, high)
    return hyperplane_sides(sets, weights.of(sets), seed, low, high)


@dataclass(frozen=True)
class Blocks:
    """Choices of m - k of m blocks, in which k bits or fewer differ.

    >>> ways = Blocks(bits=64, number=5, distance=3)
    >>> len(ways), ways.recall(61), ways.recall(60)
    (10, 1.0, 0.0)
    """

    bits: int
    number: int
    distance: int

    def __len__(self) -> int:
        return comb(self.number, self.distance)

    @cached_property
    def masks(self) -> np.ndarray:
        """uint64 (C(m, k), W)."""
        ends = [self.bits * i // self.number for i in range(self.number + 1)]
        blocks = [(1 << high) - (1 << low) for low, high in zip(ends, ends[1:])]
        choices = combinations(blocks, self.number - self.distance)
        return _words([sum(choice) for choice in choices], self.bits)

    def recall(self, equal: int) -> float:
        """The recall with so many bits equal; one less than promised may leave no block equal."""
        return float(self.bits - equal <= self.distance)

    def by_chance(self, agreement: float) -> float:
        """The probability to share a key if each bit is equal with this probability."""
        block = agreement ** (self.bits / self.number)
        return at_least(self.number - self.distance, self.number, block)


@dataclass(frozen=True)
class Drawn:
    """b masks of r bits, by `seed`.

    >>> ways = Drawn(bits=384, number=118, width=24, seed=0)
    >>> len(ways), round(ways.recall(346), 4)
    (118, 0.9999)
    """

    bits: int
    number: int
    width: int
    seed: int

    def __len__(self) -> int:
        return self.number

    @cached_property
    def masks(self) -> np.ndarray:
        """uint64 (b, W): those bits of each mask whose random words are the smallest."""
        draws = random_words(self.seed, self.number * self.bits, stream=5)
        order = np.argsort(draws.reshape(self.number, self.bits), axis=1, kind="stable")
        chosen = order[:, : self.width].tolist()
        return _words([sum(1 << bit for bit in row) for row in chosen], self.bits)

    def recall(self, equal: int) -> float:
        return banding.recall(equal / self.bits, self.number, self.width, hits(self.bits))

    def by_chance(self, agreement: float) -> float:
        """An upper bound of the probability to share a key, since masks overlap."""
        return banding.recall(agreement, self.number, self.width)


Ways = Union[Blocks, Drawn]


def most_blocks(distance: int, max_keys: int, bits: int) -> int:
    """The most blocks that leave no more than `max_keys` keys; 0 where even the fewest leave more.

    >>> [most_blocks(k, 16, 64) for k in (0, 1, 2, 3, 4, 15, 16)]
    [64, 16, 6, 5, 6, 16, 0]
    """
    numbers = range(distance + 1, bits + 1)  # with more and more keys
    return max(takewhile(lambda m: comb(m, distance) <= max_keys, numbers), default=0)


def hits(bits: int) -> banding.Hit:
    """The probability that a mask of some width has equal bits only, by the share of these.

    >>> round(hits(64)(60 / 64, 20), 6) == round(comb(60, 20) / comb(64, 20), 6)
    True
    """

    def hit(share: float, width: int) -> float:
        return comb(int(share * bits + HAIR), width) / comb(bits, width)

    return hit


def keys_of(ways: Ways, vectors: np.ndarray, low: int, high: int) -> Ragged:
    """The keys, by the masks low … high-1, of records with these vectors (uint64 (n, W))."""
    masks = ways.masks[low:high]
    words = np.empty((len(vectors), len(masks)), dtype=np.uint64)
    columns = np.ascontiguousarray(vectors.T)
    for i, mask in enumerate(masks):
        words[:, i] = combine(columns & mask[:, np.newaxis], seed=0)
    return banded(words, np.arange(low, low + len(masks)))


class BitScheme(Scheme):
    """A scheme whose keys are those of bit vectors."""

    ways: Ways

    @abstractmethod
    def vectors(self, sets: Ragged) -> np.ndarray:
        """The vectors of sets that are not empty: uint64 (n, W), W words for F bits."""

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), len(self.ways))

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        return keys_of(self.ways, self.vectors(sets), low, high)


def _words(masks: list[int], bits: int) -> np.ndarray:
    """The masks as rows of words, uint64 (len(masks), W), the lowest bits in the first word."""
    full = (1 << WORD_BITS) - 1
    rows = [[mask >> low & full for low in range(0, bits, WORD_BITS)] for mask in masks]
    return np.array(rows, dtype=np.uint64)
