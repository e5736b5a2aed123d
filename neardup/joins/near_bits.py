"""All pairs of bit vectors that differ in at most D bits, in memory, by multi-index hashing.

F bits are cut into p parts of at most 64, and each part into as many blocks, m in all.  Two vectors
that differ in D bits differ in at most ⌊D/p⌋ in one part, and so in at most e = ⌊D/m⌋ in a block of
this part (Norouzi, Punjani, Fleet, "Fast search in Hamming space with multi-index hashing", CVPR
2012).  So, block by block, the vectors are sorted by their bits in the block.  Vectors are compared
if their values differ in at most e bits: two ranges of neighbours, which stay in the cache.  For
most pairs, only one word is read, the part.

    block = 0110   ┌ x3 x8      ─┬─ each pair in here,
    block = 0111   └ x1 x5 x9    ┴─ and each of x3 x8 with each of x1 x5 x9

A pair is found in each such block, and yielded in the first one.  m is the number with the smallest
estimated cost: long blocks have few unrelated candidates, but many values to look up.

Letters: n vectors of F bits in W words; D bits that may differ; p parts, m blocks, e bits in one.

    F = 256, D = 31    p = 4 parts of 64 bits, 7 of which may differ; m = 16 blocks of 16, e = 1
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from neardup.runtime import kernels
from neardup.sets.bit_vectors import WORD_BITS, bits_in, popcount
from neardup.sets.ragged import chunks, spans

MAX_BLOCK_BITS = 24  # a table of the values of such a block has 128 MiB
MAX_FLIPS = 5000
PAIRS_AT_ONCE = 1 << 16
# Nanoseconds on one core; only their ratios matter.
LOOK_UP, SORTED = 30, 100
COMPARED, WORD_COMPARED = (2, 1) if kernels.COMPILED else (40, 20)

Pairs = tuple[np.ndarray, np.ndarray]  # of row numbers, int64
Rows = tuple[np.ndarray, np.ndarray]  # vectors of records (a record's own first), and counts


def near_pairs(
    x: np.ndarray, y: "np.ndarray | None", bits: int, distance: int, turn: int = 0, turns: int = 1
) -> Iterator[Pairs]:
    """Yield pairs of rows of x and y (uint64 (n, W)) that differ in at most `distance` bits.

    bits: the length of a vector.  Without y: pairs of two rows of x.  Each pair is yielded once.
    Calls with turn 0 … turns-1 share the work.

    >>> x = np.array([[0], [7], [8]], np.uint64)
    >>> [(left.tolist(), right.tolist()) for left, right in near_pairs(x, None, 32, 2)]
    [([0], [2])]
    """
    number, other = (
        cheapest(bits, distance, len(x), None if y is None else len(y)),
        x if y is None else y,
    )
    if not number:
        ends = np.linspace(0, len(x), 4 * turns + 1).astype(np.int64)
        whole = np.zeros_like(ends[1:])
        ranges = np.stack((ends[:-1], ends[1:], whole, whole + len(other)), axis=1)
        yield from pairs_between(x, other, ranges[turn::turns].copy(), distance, y is None)
        return
    blocks = BitBlocks(bits, number, distance)
    mine = range(turn, number, turns) if number >= turns else range(number)
    share = slice(None) if number >= turns else slice(turn, None, turns)
    for i in mine:
        for left, right in gathered(blocks.alike_in(i, x, y, share)):
            first = blocks.is_first(i, x[left] ^ other[right])
            yield left[first], right[first]


def near_records(x: Rows, y: "Rows | None", bits: int, distance: int) -> Iterator[Pairs]:
    """Yield pairs of records in which the first vector of one is near a vector of the other.

    Near vectors differ in at most `distance` bits.  The other arguments are as for `near_pairs`; a
    pair may be repeated.

    >>> x = np.array([[0], [7], [6], [8]], np.uint64), np.array([1, 2, 1])
    >>> [side.tolist() for side in each_once(near_records(x, None, 32, 1))]
    [[0], [2]]
    >>> y = x[0][:1], np.array([1])
    >>> [side.tolist() for side in each_once(near_records(x, y, 32, 2))]
    [[0, 1, 2], [0, 0, 0]]
    """
    (own, at), others = _split(x)
    (own_y, at_y), others_y = ((None, at), others) if y is None else _split(y)
    joins = [(own, at, own_y, at_y), (own, at, *others_y)]
    joins += [] if y is None else [(*others, own_y, at_y)]
    for rows, of, rows_y, of_y in joins:
        if len(of) and len(of_y):
            for left, right in near_pairs(rows, rows_y, bits, distance):
                a, b = of[left], of_y[right]
                if y is None:
                    a, b = np.minimum(a, b)[a != b], np.maximum(a, b)[a != b]
                yield a, b


def each_once(pairs: Iterable[Pairs]) -> Pairs:
    """Return the distinct pairs in ascending order; all are held in memory."""
    held, most = [np.empty(0, np.uint64)], PAIRS_AT_ONCE
    for left, right in pairs:
        held.append(left.astype(np.uint64) << np.uint64(32) | right.astype(np.uint64))
        if sum(map(len, held)) > most:
            held = [np.unique(np.concatenate(held))]
            most = 2 * len(held[0]) + PAIRS_AT_ONCE
    found = np.unique(np.concatenate(held))
    return tuple(
        side.astype(np.int64) for side in (found >> np.uint64(32), found & np.uint64(2**32 - 1))
    )


def _split(rows: Rows) -> list[tuple[np.ndarray, np.ndarray]]:
    """Split vectors into the first of each record and all other vectors, with record numbers."""
    vectors, counts = rows
    of, own = np.repeat(np.arange(len(counts)), counts), np.zeros(len(vectors), bool)
    own[np.cumsum(counts) - counts] = True
    return [(vectors[own], of[own]), (vectors[~own], of[~own])]


def cheapest(bits: int, distance: int, n: int, other: "int | None") -> int:
    """Return the number of blocks of lowest estimated cost for n (and `other`) rows; 0: no blocks.

    >>> cheapest(256, 31, 100, None), cheapest(256, 31, 10**6, None), cheapest(64, 3, 10**6, None)
    (0, 16, 4)
    """
    pairs = n * n / 2 if other is None else n * other
    rows = n + (other or 0)
    costs = {0: pairs * COMPARED}
    parts = parts_of(bits)
    for number in range(parts, bits + 1, parts):
        width, e = -(-bits // number), distance // number
        flips = sum(comb(width, k) for k in range(e + 1))
        if width <= MAX_BLOCK_BITS and flips <= MAX_FLIPS:
            values = min(n, 1 << width)
            unrelated = pairs * flips / (1 << bits // number)
            each = rows * SORTED + values * flips * LOOK_UP + unrelated * WORD_COMPARED
            costs[number] = number * each
    return min(costs, key=costs.__getitem__)


def parts_of(bits: int) -> int:
    """Return the number of parts of at most one word into which `bits` bits are cut."""
    return -(-bits // WORD_BITS)


def gathered(pairs: Iterable[Pairs]) -> Iterator[Pairs]:
    """Merge arrays of pairs into arrays of up to PAIRS_AT_ONCE pairs; larger ones are not split."""
    held: list[np.ndarray] = []
    size = 0
    for some in pairs:
        if held and size + len(some[0]) > PAIRS_AT_ONCE:
            left, right = np.concatenate(held, axis=1)
            yield left, right
            held, size = [], 0
        held.append(np.stack(some))
        size += len(some[0])
    if held:
        left, right = np.concatenate(held, axis=1)
        yield left, right


class BitBlocks(NamedTuple):
    """The division of `bits` bits, of which `distance` may differ, into `number` blocks."""

    bits: int
    number: int
    distance: int

    def block(self, i: int) -> range:
        return range(self.bits * i // self.number, self.bits * (i + 1) // self.number)

    def part(self, i: int) -> range:
        """Return the bit range of the part (at most one 64-bit word) that contains block i."""
        parts = parts_of(self.bits)
        j = i // (self.number // parts)
        return range(self.bits * j // parts, self.bits * (j + 1) // parts)

    @property
    def of_block(self) -> int:
        """The maximum number of bits in which near vectors differ in their most similar block."""
        return self.distance // self.number

    @property
    def of_part(self) -> int:
        return self.distance // parts_of(self.bits)

    def alike_in(
        self, i: int, x: np.ndarray, y: "np.ndarray | None", share: slice
    ) -> Iterator[Pairs]:
        """Yield pairs with at most `of_block` differing bits in block i, and `of_part` in its part.

        share: which ranges of rows to compare.
        """
        left = Sorted.by(x, self.part(i), self.block(i))
        right = left if y is None else Sorted.by(y, self.part(i), self.block(i))
        for ranges in left.beside(right, len(self.block(i)), self.of_block):
            some = np.ascontiguousarray(ranges[share])
            for a, b in pairs_between(left.words, right.words, some, self.of_part, y is None):
                yield left.order[a], right.order[b]

    def is_first(self, i: int, apart: np.ndarray) -> np.ndarray:
        """Return which pairs are within `distance` bits and were not found in a block before i.

        Returns bool (P,).  apart: uint64 (P, W), the differing bits of pairs found in block i.
        """
        first = popcount(apart.ravel()).reshape(apart.shape).sum(axis=1) <= self.distance
        for before in range(i):
            alike = popcount(bits_in(apart, self.block(before))) <= self.of_block
            alike &= popcount(bits_in(apart, self.part(before))) <= self.of_part
            first &= ~alike
        return first


class Sorted(NamedTuple):
    """Parts of rows, sorted by their values in a block, and where each value begins."""

    words: np.ndarray  # uint64 (n, 1)
    order: np.ndarray  # int64 (n,), the row of each part
    starts: np.ndarray  # int64 (2^w + 1,)

    @classmethod
    def by(cls, rows: np.ndarray, part: range, block: range) -> "Sorted":
        values = bits_in(rows, block).astype(np.min_scalar_type((1 << len(block)) - 1))
        order = np.argsort(values, kind="stable")  # a radix sort, of 16 bits or fewer
        sizes = np.bincount(values, minlength=1 << len(block))
        words = bits_in(rows, part)[order]
        return cls(words[:, np.newaxis], order, np.append(0, np.cumsum(sizes)))

    def beside(self, other: "Sorted", width: int, most: int) -> Iterator[np.ndarray]:
        """Yield ranges of rows of self and of `other` whose values differ in at most `most` bits.

        Each array is int64 (k, 4): start and stop in self, start and stop in `other`.

        If `other` is self, each pair of ranges is yielded once.
        """
        values = np.flatnonzero(np.diff(self.starts))
        for flip in flips(width, most):
            there = values ^ flip
            found = other.starts[there + 1] > other.starts[there]
            if self is other:
                found &= there >= values
            a, b = values[found], there[found]
            ends = self.starts[a], self.starts[a + 1], other.starts[b], other.starts[b + 1]
            yield np.stack(ends, axis=1)


def flips(width: int, most: int) -> Iterator[int]:
    """Yield the integers of `width` bits that have at most `most` bits set.

    >>> list(flips(3, 1))
    [0, 1, 2, 4]
    """
    for count in range(most + 1):
        for some in combinations(range(width), count):
            yield sum(1 << bit for bit in some)


def pairs_between(
    x: np.ndarray, y: np.ndarray, ranges: np.ndarray, most: int, ascending: bool
) -> Iterator[Pairs]:
    """Yield pairs of rows of x and y, inside `ranges`, that differ in at most `most` bits.

    x, y: uint64 (n, W).  ranges: int64 (k, 4), rows first … last-1 of x and rows first … last-1 of
    y.  ascending: yield only pairs with the larger row number in y.
    """
    if kernels.COMPILED:
        yield from kernels.close_pairs(x, y, ranges, most, ascending, PAIRS_AT_ONCE)
        return
    sizes = ranges[:, 1] - ranges[:, 0]
    rows, of = spans(ranges[:, 0], sizes), np.repeat(np.arange(len(ranges)), sizes)
    low, high = ranges[of, 2], ranges[of, 3]
    if ascending:
        low = np.maximum(low, rows + 1)
    counts = np.maximum(high - low, 0)
    for first, last in chunks(counts, PAIRS_AT_ONCE):
        some = counts[first:last]
        left, right = np.repeat(rows[first:last], some), spans(low[first:last], some)
        apart = np.zeros(len(left), np.int64)
        for word in range(x.shape[1]):
            apart += popcount(x[left, word] ^ y[right, word])
            close = apart <= most
            left, right, apart = left[close], right[close], apart[close]
        yield left, right
