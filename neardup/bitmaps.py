"""Bitmaps of sets: a cheap upper bound of what two sets share.

Every shingle flips one of m = 128 bits, so that a bit is set where an odd number of the set's
shingles fall.  Where the bitmaps of two sets differ, a shingle stands in one of them only:

    |x△y| ≥ popcount(bitmap(x) xor bitmap(y))   and   2·|x∩y| = |x| + |y| - |x△y|

(Sandes, Teodoro, Melo, "Bitmap filter", Information Systems 2020).  A pair whose bound stays below
the threshold need not be compared; the bound says little about sets of many more than m shingles.
"""

from __future__ import annotations

import numpy as np

from neardup.hashing import mix
from neardup.ragged import Ragged

WORDS = 2  # of 64 bits
_ONES = np.array([bin(i).count("1") for i in range(1 << 16)], dtype=np.uint8)


def bitmaps(sets: Ragged) -> np.ndarray:
    """uint64 (n, WORDS): the bitmap of each row, none of which is empty."""
    mixed = mix(sets.values)
    bits = np.uint64(1) << (mixed & np.uint64(63))
    word = (mixed >> np.uint64(6)) & np.uint64(WORDS - 1)
    columns = [np.where(word == number, bits, np.uint64(0)) for number in range(WORDS)]
    return np.stack([np.bitwise_xor.reduceat(bits, sets.offsets[:-1]) for bits in columns], axis=1)


def most_in_common(
    maps: np.ndarray, sizes: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """An upper bound (int64) of |x∩y| for each pair of row numbers.

    >>> sets = Ragged.from_rows([[1, 2, 3], [1, 2, 4]])
    >>> most_in_common(bitmaps(sets), sets.sizes, np.array([0, 0]), np.array([0, 1])).tolist()
    [3, 2]
    """
    differ = (maps[left] ^ maps[right]).view(np.uint16)
    return (sizes[left] + sizes[right] - _ONES[differ].sum(axis=1, dtype=np.int64)) // 2
