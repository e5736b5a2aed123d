"""Bitmaps of sets: a cheap upper bound of what two sets share.

Every shingle flips one bit, of 64 or more, so that a bit is set where an odd number of the set's
shingles fall.  Where the bitmaps of two sets differ, a shingle stands in one of them only:

    |x△y| ≥ popcount(bitmap(x) xor bitmap(y))   and   2·|x∩y| = |x| + |y| - |x△y|

(Sandes, Teodoro, Melo, "Bitmap filter", Information Systems 2020).  A pair whose bound stays below
what is asked for need not be compared.  64 bits say little about sets of a hundred shingles and
more; twice as many bits as shingles tell all strangers apart.
"""

from __future__ import annotations

import numpy as np

from neardup.sets.hashing import GOLDEN
from neardup.sets.ragged import Ragged, chunks
from neardup.similarity.measures import Measure

MOST_BITS = 16  # as a power of two
BITS_AT_ONCE = 1 << 20

_ONES = np.zeros(1, dtype=np.uint8)
for _ in range(16):  # one bit more: that is set in the upper half
    _ONES = np.concatenate((_ONES, _ONES + np.uint8(1)))


def bitmaps(sets: Ragged) -> np.ndarray:
    """uint64 (n, 1): the bitmap of each row, none of which is empty."""
    bits = np.uint64(1) << _places(sets, 6)
    return np.bitwise_xor.reduceat(bits, sets.offsets[:-1])[:, np.newaxis]


def wide_bitmaps(sets: Ragged) -> np.ndarray:
    """uint64 (n, words): with a bit or two for each shingle of a set of mean size.

    >>> wide_bitmaps(Ragged.from_rows([range(100), range(50, 150)])).shape
    (2, 4)
    """
    mean = len(sets.values) // max(1, len(sets))
    log = min(max(6, mean.bit_length() + 1), MOST_BITS)
    rows = np.arange(len(sets)) << log
    maps = np.zeros(len(sets) << log - 6, dtype=np.uint64)
    for low, high in chunks(sets.sizes + (1 << log), BITS_AT_ONCE):
        some = sets.take(np.arange(low, high))
        flips = np.repeat(rows[: high - low], some.sizes) + _places(some, log).astype(np.int64)
        odd = (np.bincount(flips, minlength=high - low << log) & 1).astype(np.uint8)
        maps[low << log - 6 : high << log - 6] = np.packbits(odd).view(np.uint64)
    return maps.reshape(len(sets), -1)


def _places(sets: Ragged, log: int) -> np.ndarray:
    """uint64: which of 2^log bits each shingle flips."""
    return sets.values * np.uint64(GOLDEN) >> np.uint64(64 - log)


def popcount(words: np.ndarray) -> np.ndarray:
    """How many bits are set in each word (uint64); int64.

    >>> popcount(np.array([0, 7, 2**64 - 1], np.uint64)).tolist()
    [0, 3, 64]
    """
    return _ONES[words.view(np.uint16).reshape(-1, 4)].sum(axis=1, dtype=np.int64)


def may_reach(
    measure: Measure, maps: np.ndarray, sizes: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Whether the similarity of each pair of rows may reach the threshold.

    The words of wide bitmaps are compared one after the other: few pairs are left for the last.

    >>> from neardup.similarity.measures import Jaccard
    >>> from neardup.similarity.measures import NINE_TENTHS
    >>> measure, sets = Jaccard(NINE_TENTHS), Ragged.from_rows([range(9), range(10), range(20)])
    >>> left, right = np.array([0, 0]), np.array([1, 2])
    >>> may_reach(measure, bitmaps(sets), sets.sizes, left, right).tolist()
    [True, False]
    """
    possible = np.zeros(len(left), dtype=bool)
    live, apart = np.arange(len(left)), np.zeros(len(left), dtype=np.int64)
    x, y = sizes[left], sizes[right]
    for word in maps.T:
        apart += popcount(word[left] ^ word[right])
        common = np.minimum((x + y - apart) // 2, np.minimum(x, y))
        still = np.flatnonzero(measure.may_reach(common, x, y))
        if len(still) < len(live):
            left, right, x, y = left[still], right[still], x[still], y[still]
            live, apart = live[still], apart[still]
        if not len(live):
            break
    possible[live] = True
    return possible
