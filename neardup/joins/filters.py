"""The filters of prefix joins (length, prefix, positional, suffix), and the order of tokens.

    length       a partner of y has at least ⌈t·y⌉ tokens
    prefix       two sets with an overlap of α share a token in their first x-α+1 and y-α+1
    positional   the tokens shared so far, and the rest of the shorter set, must add up to α
    suffix       the rests of both must not differ in more tokens than α allows

All but the last take plain integers or int64 arrays, element by element.  No floats: ⌈t·n⌉ of a
float is wrong for some t and n.  The suffix filter is by Xiao, Wang, Lin, Yu (WWW 2008).

Letters: t the threshold; x, y the sizes of two sets, such as 9 and 10; α the overlap that they
need, ⌈t/(1+t)·(x+y)⌉: 9 at t = 0.9.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged, first_of_run
from neardup.similarity.measures import Size, Threshold

BLOCK = 1 << 15  # values hashed at once: they stay in the cache
Parts = tuple[np.ndarray, np.ndarray]  # from, to: positions among the keys (int64), for each pair


def probing_prefix(t: Threshold, size: Size) -> Size:
    """Return how many first tokens of a set to look up so that every partner is found.

    >>> probing_prefix(Threshold.parse("0.9"), 35)
    4
    """
    return size - t.smallest_partner(size) + 1


def indexing_prefix(t: Threshold, size: Size) -> Size:
    """Return how many first tokens of a set to index so that partners of its size or more find it.

    >>> indexing_prefix(Threshold.parse("0.9"), 35)
    2
    """
    return size - overlap_needed(t, size, size) + 1


def overlap_needed(t: Threshold, x: Size, y: Size) -> Size:
    """Return α, the minimum overlap of a pair of sets of given sizes.

    >>> overlap_needed(Threshold.parse("0.9"), 9, 10)
    9
    """
    return -(-(x + y) * t.num // (t.num + t.den))


def most_common(x: Size, y: Size, i: Size, j: Size, common: Size) -> Size:
    """Return the maximum overlap of two sets whose first i and j tokens have `common` in common.

    >>> int(most_common(10, 9, 4, 2, 1))
    7
    """
    return common + np.minimum(x - i, y - j)


def most_apart(t: Threshold, x: Size, y: Size, i: Size, j: Size, common: Size) -> Size:
    """Return H_max, how many tokens of a pair may differ after the first i of x and j of y.

    >>> most_apart(Threshold.parse("0.8"), 10, 10, 2, 1, 1)
    1
    """
    return x + y - 2 * overlap_needed(t, x, y) - (i + j - 2 * common)


def least_apart(keys: np.ndarray, step: np.ndarray, x: Parts, y: Parts, depth: int) -> np.ndarray:
    """Return a lower bound of the number of tokens that are in only one of parts x and y.

    keys: record·2^k + token for all records, ascending (uint64); step: the record of x minus that
    of y, times 2^k (uint64, wrapping).  Depth 0 compares lengths.  Otherwise the middle token of y
    cuts both parts in two, and the differences on either side add up:

        y   2 3 4 [6] 7 8 9             7 tokens each: they may be equal
        x       5 [6] 7 8 9 10 11       3 and 1 to the left of 6, 3 and 5 to the right: 4 differ

    >>> y, x = [2, 3, 4, 6, 7, 8, 9], [5, 6, 7, 8, 9, 10, 11]
    >>> keys = np.array(y + [16 + token for token in x], np.uint64)
    >>> parts = np.array([[7], [14]]), np.array([[0], [7]])
    >>> [least_apart(keys, np.array([16], np.uint64), *parts, depth).tolist() for depth in (0, 1)]
    [[0], [4]]
    """
    (x_from, x_to), (y_from, y_to) = x, y
    if depth == 0:
        return np.abs((x_to - x_from) - (y_to - y_from))
    filled = y_from < y_to
    y_cut = (y_from + y_to) // 2
    middle = keys[np.where(filled, y_cut, 0)] + step
    x_cut = np.clip(np.searchsorted(keys, middle), x_from, x_to)
    found = filled & (x_cut < x_to)
    found[found] = keys[x_cut[found]] == middle[found]
    left = least_apart(keys, step, (x_from, x_cut), (y_from, y_cut), depth - 1)
    right = least_apart(keys, step, (x_cut + found, x_to), (y_cut + filled, y_to), depth - 1)
    return left + right + (filled & ~found)


@dataclass(frozen=True)
class Ordered:
    """The non-empty rows as records 0 … n-1, in order of size (ties: by row number).

    A token is the rank of a value by frequency, so the first tokens of a record are the rarest.

    tokens: uint64 (T,), those of a record ascending; offsets: int64 (n+1,), as in Ragged; bits: a
    token has no more; row: the row number of each record.

    >>> records = Ordered.of(Ragged.from_rows([[7, 8, 9], [], [7, 9], [9]]))
    >>> records.row.tolist(), records.tokens.tolist(), records.keys.tolist()
    ([3, 2, 0], [2, 1, 2, 0, 1, 2], [2, 5, 6, 8, 9, 10])
    """

    tokens: np.ndarray
    bits: int
    offsets: np.ndarray
    row: np.ndarray

    @classmethod
    def of(cls, rows: Ragged) -> "Ordered":
        tokens, distinct = ranks(rows.values)
        row = np.argsort(rows.sizes, kind="stable")
        row = row[rows.sizes[row] > 0]
        ordered = Ragged(tokens, rows.offsets).take(row)
        ordered = Ragged.from_unsorted(ordered.values, ordered.sizes)
        return cls(ordered.values, distinct.bit_length(), ordered.offsets, row)

    @cached_property
    def keys(self) -> np.ndarray:
        """The records end to end in ascending order: record · 2^bits + token, uint64 (T,)."""
        record = np.arange(len(self), dtype=np.uint64) << np.uint64(self.bits)
        return np.repeat(record, self.sizes) | self.tokens

    def __len__(self) -> int:
        return len(self.row)

    @property
    def sizes(self) -> np.ndarray:
        """The size of each record: int64 (n,), ascending."""
        return np.diff(self.offsets)

    def first_partner(self, t: Threshold) -> np.ndarray:
        """Return, for each record y, the first record that the length filter allows as its partner.

        >>> records = Ordered.of(Ragged.from_rows([[1], [1, 2], [1, 2, 3]]))
        >>> records.first_partner(Threshold.parse("0.6")).tolist()
        [0, 1, 1]
        """
        return np.searchsorted(self.sizes, t.smallest_partner(self.sizes))

    def counts(self, first: np.ndarray) -> dict[str, int]:
        """Return the number of all pairs, and of the pairs that pass the length filter."""
        n = len(self)
        return {"all": n * (n - 1) // 2, "length": int((np.arange(n) - first).sum())}


def token_of(keys: np.ndarray, bits: int) -> np.ndarray:
    return keys & np.uint64((1 << bits) - 1)


def ranks(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the rank of each value (uint64; 0: the rarest), and the number of distinct values.

    >>> tokens, distinct = ranks(np.array([7, 8, 9, 7, 9, 9], np.uint64))
    >>> tokens.tolist(), distinct
    ([1, 0, 2, 1, 2, 2], 3)
    """
    if len(values) and int(values.max()) < len(values):  # counting takes a tenth of sorting
        values = values.view(np.int64)
        holders = np.bincount(values)
        found = np.flatnonzero(holders)
        rank = np.empty(len(holders), np.uint64)
        rank[found[np.argsort(holders[found], kind="stable")]] = np.arange(len(found))
        return rank[values], len(found)
    order, first = _runs(values)
    counts = np.diff(first, append=len(values))
    rank = np.empty(len(first), np.uint64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(first))
    tokens = np.empty(len(values), np.uint64)
    tokens[order] = np.repeat(rank, counts)
    return tokens, len(first)


def _runs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an order that groups equal values, and where each group begins.

    Subtle: a hash and a position in one word make a plain sort an argsort, in a third of the time.
    If two values share those bits of the hash that are left, argsort itself decides.
    """
    bits = np.uint64(len(values).bit_length())
    packed = np.arange(len(values), dtype=np.uint64)
    for low in range(0, len(values), BLOCK):
        packed[low : low + BLOCK] |= mix(values[low : low + BLOCK]) >> bits << bits
    packed.sort()
    order = token_of(packed, int(bits)).view(np.int64)
    new = first_of_run(values[order])
    packed >>= bits
    if not np.array_equal(new, first_of_run(packed)):
        order = np.argsort(values)
        new = first_of_run(values[order])
    return order, np.flatnonzero(new)
