"""Bitmaps of sets: a cheap upper bound of what two sets share.

Every shingle flips one of 64 bits, so that a bit is set where an odd number of the set's shingles
fall.  Where the bitmaps of two sets differ, a shingle stands in one of them only:

    |x△y| ≥ popcount(bitmap(x) xor bitmap(y))   and   2·|x∩y| = |x| + |y| - |x△y|

(Sandes, Teodoro, Melo, "Bitmap filter", Information Systems 2020).  A pair whose bound stays below
what is asked for need not be compared; of sets of some hundreds of shingles it says little.
"""

from __future__ import annotations

import numpy as np

from neardup.hashing import GOLDEN
from neardup.measures import Measure
from neardup.ragged import Ragged

_ONES = np.array([bin(i).count("1") for i in range(1 << 16)], dtype=np.uint8)


def bitmaps(sets: Ragged) -> np.ndarray:
    """uint64 (n,): the bitmap of each row, none of which is empty."""
    bits = np.uint64(1) << (sets.values * np.uint64(GOLDEN) >> np.uint64(58))
    return np.bitwise_xor.reduceat(bits, sets.offsets[:-1])


def most_in_common(
    maps: np.ndarray, sizes: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """An upper bound (int64) of |x∩y| for each pair of row numbers.

    >>> sets = Ragged.from_rows([[1, 2, 3], [1, 2, 4]])
    >>> most_in_common(bitmaps(sets), sets.sizes, np.array([0, 0]), np.array([0, 1])).tolist()
    [3, 2]
    """
    return (sizes[left] + sizes[right] - popcount(maps[left] ^ maps[right])) // 2


def popcount(words: np.ndarray) -> np.ndarray:
    """How many bits are set in each word (uint64); int64.

    >>> popcount(np.array([0, 7, 2**64 - 1], np.uint64)).tolist()
    [0, 3, 64]
    """
    return _ONES[words.view(np.uint16).reshape(-1, 4)].sum(axis=1, dtype=np.int64)


def may_reach(
    measure: Measure, maps: np.ndarray, sizes: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Whether the similarity of each pair of rows may reach the threshold."""
    common = most_in_common(maps, sizes, left, right)
    common = np.minimum(common, np.minimum(sizes[left], sizes[right]))
    return measure.may_reach(common, sizes[left], sizes[right])
