"""Kinds of sketches: which hashes of a set are stored, and how similarity is estimated.

    min:64            the 64 smallest hashes (Broder 1997)
    mod:25            the hashes that 25 divides, a 25th of them
    signature:128     the smallest hash in each of 128 random orders

In memory a sketch is a row of numbers below 2^48, ascending (a signature: place · 2^32 + value);
two are compared by what they share.  On disk a hash takes six bytes, and one of a signature four.

To find similar sketches without comparing every pair, some *tokens* of each are looked up.  A pair
at the threshold shares at least one:

*Hashes* (min, mod).  A pair at t shares at least ⌈t·n⌉ hashes, n being the size of the larger
sketch.  If all sketches have their hashes in one order, the first n - ⌈t·n⌉ + 1 of both have one in
common: the prefix filter (Chaudhuri, Ganti, Kaushik 2006).  The rarest come first, so that few
dissimilar records collide.  If none is rare, as in a million sets of 10,000 different elements, a
token is a pair of hashes: the first n - ⌈t·n⌉ + 2 have two in common.  Sketches that need only one
in common have single ones, too.

*Signatures*.  A pair at t differs in at most d places: any d + 1 places of x have one in common,
and the rarest are taken.

*Containment* of x in y: x has ⌈t·|x|⌉ in common with y, so one of its prefix; y has all its tokens.

The rarity of a hash is counted by its last bits, in at most 2^24 counts: any order misses nothing.

Letters: t the threshold (0.9), n the size of a sketch (64), d places (12).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np

from neardup.sets import ragged
from neardup.sets.hashing import combine, mix
from neardup.sets.ragged import Ragged, shared_sizes
from neardup.similarity.measures import Threshold
from neardup.similarity.sketches import SAMPLE_BITS, min_s, mod_m, sample_of_min_s, signatures

HASH_BYTES = SAMPLE_BITS // 8
PLACE = 32  # bits below the place of a signature
MAX_HASHES, MAX_PLACES = 1 << 16, 1 << 15
MAX_COUNTS = 24  # as a power of two
RARITY_BITS = 8
MANY_COLLISIONS = 100  # of a record with dissimilar ones
MAX_PAIRED = 24  # first hashes of a sketch to pair: 24 make 276 pairs
ROWS_AT_ONCE = (1 << 64 - SAMPLE_BITS) - 1
JACCARD, CONTAINMENT = "jaccard", "containment"
Rows = np.ndarray  # int64, numbers of rows
# For each pair, how many items agree of how many (int64), and whether that is exact (bool).
Counted = tuple[np.ndarray, np.ndarray, np.ndarray]
EXPECTED = (
    "expected min:S, mod:M or signature:L, with S up to 65536, M from 1 to 2^32 and L up to 32768"
)


@dataclass(frozen=True)
class Kind(ABC):
    """The base class of kinds of sketches; files with the same `text` can be compared."""

    text: str
    measures: ClassVar[tuple[str, ...]] = (JACCARD,)
    item: ClassVar[int] = HASH_BYTES  # the size of an item on disk

    @abstractmethod
    def sketches(self, sets: Ragged, seed: int) -> Ragged:
        """Return the sketches of sets that are not empty."""

    @abstractmethod
    def counted(self, sketches: Ragged, left: Rows, right: Rows, measure: str) -> Counted:
        """Return, for each pair: items that agree, items compared, and whether these are exact."""

    def numbers(self, items: np.ndarray) -> np.ndarray:
        """Return the number of values in memory of each sketch (int64), given its item count."""
        return items

    def hashes(self, sketches: Ragged) -> np.ndarray:
        """Return the items of sketches, hashed to evenly spread numbers below 2^48 (uint64)."""
        return sketches.values

    def packed(self, sketches: Ragged) -> tuple[np.ndarray, np.ndarray]:
        """Return sketches as bytes for a file (uint8), and the number of items of each (int64)."""
        octets = sketches.values.astype("<u8").view(np.uint8).reshape(-1, 8)
        return np.ascontiguousarray(octets[:, :HASH_BYTES]).ravel(), sketches.sizes

    def unpacked(self, data: np.ndarray, items: np.ndarray) -> Ragged:
        octets = np.zeros((len(data) // HASH_BYTES, 8), dtype=np.uint8)
        octets[:, :HASH_BYTES] = data.reshape(-1, HASH_BYTES)
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(items)))
        return Ragged(octets.view("<u8").ravel().astype(np.uint64), offsets)

    def least_part(self, threshold: Threshold, whole: int) -> int:
        """Return how many of `whole` items, at least, must agree to reach the threshold.

        >>> kind_of("min:64").least_part(Threshold(9, 10), 64)
        58
        """
        return ceil(Fraction(threshold.num, threshold.den) * whole)


@dataclass(frozen=True)
class MinHashes(Kind):
    s: int

    def sketches(self, sets: Ragged, seed: int) -> Ragged:
        return min_s(sets, self.s, seed)

    def counted(self, sketches: Ragged, left: Rows, right: Rows, measure: str) -> Counted:
        return sample_of_min_s(sketches, self.s, left, right)


@dataclass(frozen=True)
class Multiples(Kind):
    """MOD_m sketches: the hashes that m divides; with m = 1, all hashes."""

    m: int
    measures: ClassVar[tuple[str, ...]] = (JACCARD, CONTAINMENT)

    def sketches(self, sets: Ragged, seed: int) -> Ragged:
        return mod_m(sets, self.m, seed)

    def counted(self, sketches: Ragged, left: Rows, right: Rows, measure: str) -> Counted:
        common = shared_sizes(sketches, left, right)
        whole = sketches.sizes[left]
        if measure == JACCARD:
            whole = whole + sketches.sizes[right] - common
        return common, whole, np.full(len(left), self.m == 1)


@dataclass(frozen=True)
class Signatures(Kind):
    """Min-hash signatures of `length` 32-bit min-hashes."""

    length: int
    item: ClassVar[int] = 1

    def hashes(self, sketches: Ragged) -> np.ndarray:
        return mix(sketches.values) >> np.uint64(64 - SAMPLE_BITS)

    def sketches(self, sets: Ragged, seed: int) -> Ragged:
        return self.rows(signatures(sets, self.length, seed))

    def rows(self, values: np.ndarray) -> Ragged:
        """Make sketches of the min-hashes of n sets (uint32, (n, length))."""
        places = np.arange(self.length, dtype=np.uint64) << np.uint64(PLACE)
        flat = (values.astype(np.uint64) | places).ravel()
        return Ragged(flat, np.arange(len(values) + 1) * self.length)

    def counted(self, sketches: Ragged, left: Rows, right: Rows, measure: str) -> Counted:
        common = shared_sizes(sketches, left, right)
        return common, np.full(len(left), self.length), np.zeros(len(left), dtype=bool)

    def numbers(self, items: np.ndarray) -> np.ndarray:
        return np.full(len(items), self.length)

    def packed(self, sketches: Ragged) -> tuple[np.ndarray, np.ndarray]:
        octets = sketches.values.astype("<u4").view(np.uint8)
        return octets, np.full(len(octets) // (4 * self.length), 4 * self.length)

    def unpacked(self, data: np.ndarray, items: np.ndarray) -> Ragged:
        return self.rows(data.view("<u4").reshape(-1, self.length))


def kind_of(text: str) -> Kind:
    """Parse the name of a kind of sketches; ValueError for an unknown one.

    >>> kind_of("signature:128")
    Signatures(text='signature:128', length=128)
    """
    name, *numbers = text.split(":")
    if not all(n.isascii() and n.isdigit() and len(n) < 11 for n in numbers):
        raise ValueError(f"{text!r}: {EXPECTED}")
    values = [int(n) for n in numbers]
    if name == "signature" and len(values) == 2:
        raise ValueError(f"{text!r}: min-hashes are kept whole; type {name}:{values[0]}")
    kinds = {"min": (MinHashes, MAX_HASHES), "mod": (Multiples, 1 << 32)}
    of, most = {**kinds, "signature": (Signatures, MAX_PLACES)}.get(name, (MinHashes, 0))
    if len(values) == 1 and 1 <= values[0] <= most:
        return of(f"{name}:{values[0]}", values[0])
    raise ValueError(f"{text!r}: {EXPECTED}")


@dataclass(frozen=True)
class SharedTokens:
    """A choice of tokens (uint64 below 2^48) such that similar sketches share at least one.

    rarity: uint8, how often hashes occur, by their last bits; paired: tokens are pairs.
    """

    kind: Kind
    threshold: Threshold
    rarity: np.ndarray
    paired: bool = False

    def counts(self, sizes: np.ndarray) -> np.ndarray:
        """Return, for each sketch size, the maximum number of tokens to look up (int64)."""
        singles, prefix = self._prefixes(sizes)
        return singles + prefix * (prefix - 1) // 2

    def _prefixes(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each size, how many first hashes are tokens alone, and how many in pairs."""
        if isinstance(self.kind, Signatures):
            apart = self.kind.length - self.kind.least_part(self.threshold, self.kind.length)
            return np.full(len(sizes), apart + 1), np.zeros_like(sizes)
        needed = self.threshold.smallest_partner(sizes)
        singles = np.where(sizes > 0, sizes - needed + 1, 0)
        if not self.paired:
            return singles, np.zeros_like(singles)
        return np.where(needed < 2, singles, 0), np.minimum(sizes, sizes - needed + 2)

    def by_pairs(self, sketches: Ragged, largest: int) -> SharedTokens:
        """Return self, or a copy that pairs hashes if too many dissimilar records share a hash."""
        if isinstance(self.kind, Signatures) or not len(sketches.values):
            return self
        _, prefix = replace(self, paired=True)._prefixes(np.array([largest]))
        if int(prefix[0]) > MAX_PAIRED:
            return self
        counts = self.counts(sketches.sizes)
        first = self._ordered(sketches)[ragged.spans(sketches.offsets[:-1], counts)]
        tokens = Ragged.from_unsorted(first, counts)
        rarity = tokens.values >> np.uint64(SAMPLE_BITS - RARITY_BITS)
        often = np.exp2(rarity.astype(np.float64) / 8 - 1).sum() / len(sketches)
        share = len(tokens.values) / len(sketches.values)
        return replace(self, paired=bool(often * share > MANY_COLLISIONS))

    def first(self, sketches: Ragged) -> Ragged:
        """Return the first tokens of each sketch; similar sketches share at least one of them."""
        ordered, sizes = self._ordered(sketches), sketches.sizes
        singles, prefix = self._prefixes(sizes)
        tokens = ordered[ragged.spans(sketches.offsets[:-1], singles)]
        if not self.paired:
            return Ragged.from_unsorted(tokens, singles)
        rows = np.repeat(np.arange(len(sizes)), singles)
        later = ragged.later_in_run(prefix)
        left, right = ragged.pairs_in_runs(later)
        firsts = ordered[ragged.spans(sketches.offsets[:-1], prefix)]
        pairs = combine(mix(np.stack((firsts[left], firsts[right]))), seed=0)
        tokens = np.concatenate((tokens, pairs >> np.uint64(64 - SAMPLE_BITS)))
        rows = np.concatenate((rows, np.repeat(np.arange(len(sizes)), prefix)[left]))
        order = np.argsort(rows, kind="stable")
        return Ragged.from_unsorted(tokens[order], np.bincount(rows, minlength=len(sizes)))

    def all(self, sketches: Ragged) -> Ragged:
        return Ragged.from_unsorted(self._ordered(sketches), sketches.sizes)

    def _ordered(self, sketches: Ragged) -> np.ndarray:
        """Return the tokens of each sketch, in order of rarity, the rarest first."""
        hashes = self.kind.hashes(sketches)
        rare = self.rarity[(hashes & np.uint64(len(self.rarity) - 1)).astype(np.int64)]
        # Subtle: the rarity displaces the lowest bits: two hashes may become one token, and equal
        # hashes always do.
        tokens = hashes >> np.uint64(RARITY_BITS)
        tokens |= rare.astype(np.uint64) << np.uint64(SAMPLE_BITS - RARITY_BITS)
        for low, high in ragged.chunks(
            sketches.sizes + ragged.PAIR_STEP // ROWS_AT_ONCE, ragged.PAIR_STEP
        ):
            some = slice(sketches.offsets[low], sketches.offsets[high])
            row = np.arange(high - low, dtype=np.uint64) << np.uint64(SAMPLE_BITS)
            words = tokens[some] | np.repeat(row, sketches.sizes[low:high])
            words.sort()
            tokens[some] = words & np.uint64((1 << SAMPLE_BITS) - 1)
        return tokens


def rarity_of(kind: Kind, blocks: Iterable[Ragged], total: int) -> np.ndarray:
    """Count hashes by their last bits; return about 8 · (1 + log2 of count), 0 if none (uint8)."""
    bits = min(max(10, total.bit_length()), MAX_COUNTS)
    counts = np.zeros(1 << bits, dtype=np.uint32)
    for sketches in blocks:
        slots, times = ragged.distinct(kind.hashes(sketches) & np.uint64(len(counts) - 1))
        counts[slots.astype(np.int64)] += times.astype(np.uint32)
    rarity = np.empty(len(counts), dtype=np.uint8)
    for low in range(0, len(counts), ragged.PAIR_STEP):
        some = slice(low, low + ragged.PAIR_STEP)
        mantissa, exponent = np.frexp(counts[some])
        steps = 8 * exponent + ((mantissa - 0.5) * 16).astype(np.int64)
        rarity[some] = np.clip(steps, 0, (1 << RARITY_BITS) - 1)
    return rarity
