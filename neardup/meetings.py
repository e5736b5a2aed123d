"""Where two records meet first: a pair is printed at the smallest key that both have.

The sets themselves tell their keys, so nothing but shingles travels.  Near-copies share one of the
first bands most of the time, and few others stay to be compared in many; so the keys of bands are
made only as far as they are asked for: first of band 0, then 1, then 2-3, 4-7 …, and each time
only of the sets of pairs that have not met so far.
"""

from __future__ import annotations

import numpy as np

from neardup.keys import HASH_BITS, MAX_BANDS
from neardup.piles import Pile
from neardup.schemes import Scheme

NO_KEY = (1 << 64) - 1


class Meetings:
    """What the keys of a pile's sets tell."""

    def __init__(self, scheme: Scheme):
        self.scheme = scheme

    def first_at(self, pile: Pile, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Whether sets left[p] and right[p] (int64, of one bucket each) share no smaller key."""
        band = pile.keys[left] >> np.uint64(HASH_BITS)
        first = np.ones(len(left), dtype=bool)
        low, high = 0, 1
        asking = np.flatnonzero(band > low)  # in band 0 nobody has met before
        while len(asking):
            sets, place = np.unique((left[asking], right[asking]), return_inverse=True)
            keys = self._by_band(pile, sets, low, high)
            a, b = keys[place.reshape(2, -1)]
            met = (a == b) & (a < pile.keys[left[asking], np.newaxis])
            first[asking] = ~met.any(axis=1)
            low, high = high, 2 * high
            asking = np.flatnonzero(first & (band > low))
        return first

    def alone_before(self, pile: Pile, sets: np.ndarray) -> np.ndarray:
        """Whether the bucket's key is the smallest of all that these sets have."""
        return self.first_at(pile, sets, sets)

    def owned(self, pile: Pile, sets: np.ndarray) -> np.ndarray:
        """Whether these sets have the key of their bucket."""
        owned = np.zeros(len(sets), dtype=bool)
        bands = (pile.keys[sets] >> np.uint64(HASH_BITS)).astype(np.int64)
        for band in np.unique(bands).tolist():
            some = np.flatnonzero(bands == band)
            keys = self._by_band(pile, sets[some], band, band + 1)
            owned[some] = keys[:, 0] == pile.keys[sets[some]]
        return owned

    def _by_band(self, pile: Pile, sets: np.ndarray, low: int, high: int) -> np.ndarray:
        """uint64 (len(sets), bands): each one's key of each band low … high-1, or NO_KEY."""
        keys = self.scheme.keys(pile.sets.take(sets), low, min(high, MAX_BANDS))
        table = np.full((len(sets), high - low), NO_KEY, dtype=np.uint64)
        band = (keys.values >> np.uint64(HASH_BITS)).astype(np.int64) - low
        table[np.repeat(np.arange(len(sets)), keys.sizes), band] = keys.values
        return table
