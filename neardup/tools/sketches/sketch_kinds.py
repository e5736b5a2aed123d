"""Kinds of sketches: which hashes of a set are stored, and how similarity is estimated.

    min:64            the 64 smallest hashes (Broder 1997)
    mod:25            the hashes that 25 divides, a 25th of them
    signature:128     the smallest hash in each of 128 random orders

In memory a sketch is a row of numbers below 2^48, ascending (a signature: place · 2^32 + value);
two are compared by what they share.  On disk a hash takes six bytes, and one of a signature four.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np

from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged, shared_sizes
from neardup.similarity.measures import Threshold
from neardup.similarity.sketches import SAMPLE_BITS, min_s, mod_m, sample_of_min_s, signatures

HASH_BYTES = SAMPLE_BITS // 8
PLACE = 32  # bits below the place of a signature
MAX_HASHES, MAX_PLACES = 1 << 16, 1 << 15
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
    for kind, of, most in (
        ("min", MinHashes, MAX_HASHES),
        ("mod", Multiples, 1 << 32),
        ("signature", Signatures, MAX_PLACES),
    ):
        if name == kind and len(values) == 1 and 1 <= values[0] <= most:
            return of(f"{name}:{values[0]}", values[0])
    raise ValueError(f"{text!r}: {EXPECTED}")
