"""Records and tokens in the order of the joins: small records first, and in each rare tokens first.

A token is a shingle's rank by document frequency (ties: by a hash of the shingle), so the first
tokens of a record are those that it shares with few others.

Cost: two sorts of one word for each token.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged
from neardup.sets.runs import first_of_run
from neardup.similarity.threshold import Threshold

BLOCK = 1 << 15  # values hashed at once: they stay in the cache


@dataclass(frozen=True)
class Ordered:
    """The rows that are not empty as records 0 … n-1, by size (ties: by row number).

    keys: uint64 array of shape (T,), record · 2^bits + token, ascending: all records end to end.
    offsets: int64 array of shape (n+1,), as in Ragged; row: the row number of each record.

    >>> records = Ordered.of(Ragged.from_rows([[7, 8, 9], [], [7, 9], [9]]))
    >>> records.row.tolist(), records.tokens()
    ([3, 2, 0], [[2], [1, 2], [0, 1, 2]])
    """

    keys: np.ndarray
    bits: int
    offsets: np.ndarray
    row: np.ndarray

    @classmethod
    def of(cls, rows: Ragged) -> Ordered:
        tokens, distinct = ranks(rows.values)
        bits = distinct.bit_length()
        sizes = rows.sizes
        row = np.argsort(sizes, kind="stable")
        row = row[sizes[row] > 0]
        record = np.zeros(len(rows), np.uint64)
        record[row] = np.arange(len(row))
        keys = np.repeat(record << np.uint64(bits), sizes)
        keys |= tokens
        keys.sort()
        return cls(keys, bits, offsets_of(sizes[row]), row)

    def __len__(self) -> int:
        return len(self.row)

    @property
    def sizes(self) -> np.ndarray:
        """int64 array of shape (n,), ascending."""
        return np.diff(self.offsets)

    def tokens(self) -> list[list[int]]:
        """The tokens of each record, rare first."""
        tokens = token_of(self.keys, self.bits).tolist()
        ends = self.offsets.tolist()
        return [tokens[low:high] for low, high in zip(ends, ends[1:])]

    def first_partner(self, t: Threshold) -> np.ndarray:
        """The length filter: as partners of record y, records first[y] … y-1 are large enough.

        >>> records = Ordered.of(Ragged.from_rows([[1], [1, 2], [1, 2, 3]]))
        >>> records.first_partner(Threshold.parse("0.6")).tolist()
        [0, 1, 1]
        """
        return np.searchsorted(self.sizes, t.smallest_partner(self.sizes))

    def counts(self, first: np.ndarray) -> dict[str, int]:
        """How many pairs there are, and how many the length filter leaves."""
        n = len(self)
        return {"all": n * (n - 1) // 2, "length": int((np.arange(n) - first).sum())}


def token_of(keys: np.ndarray, bits: int) -> np.ndarray:
    return keys & np.uint64((1 << bits) - 1)


def offsets_of(sizes: np.ndarray) -> np.ndarray:
    """Where rows of these sizes begin, end to end, and where the last one ends.

    >>> offsets_of(np.array([3, 2])).tolist()
    [0, 3, 5]
    """
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))


def ranks(values: np.ndarray) -> tuple[np.ndarray, int]:
    """The rank of each value (uint64), those that come rarely first, and how many are distinct.

    >>> tokens, distinct = ranks(np.array([7, 8, 9, 7, 9, 9], np.uint64))
    >>> tokens.tolist(), distinct
    ([1, 0, 2, 1, 2, 2], 3)
    """
    order, first = _runs(values)
    counts = np.diff(first, append=len(values))
    rank = np.empty(len(first), np.uint64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(first))
    tokens = np.empty(len(values), np.uint64)
    tokens[order] = np.repeat(rank, counts)
    return tokens, len(first)


def _runs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An order in which equal values are neighbours, and where in it each value begins.

    Subtle: a hash and a position in one word make a plain sort an argsort, in a third of the time.
    Should two values share the bits of the hash that are left, argsort itself decides.
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
