"""Where records meet: each pair is printed at the smallest key that both have.

The sets themselves tell their keys, so nothing but shingles travels.  Near-copies share one of the
first bands most of the time, and few others stay to be compared in many; so the keys of bands are
made only as far as they are asked for: first of band 0, then 1, then 2-3, 4-7 …, and each time
only of the sets of pairs that have not met so far.
"""

from __future__ import annotations

import numpy as np

from neardup.lines.keys import HASH_BITS
from neardup.lines.tagged_ids import UNMARKED, Travel, all_ways
from neardup.schemes.scheme import Scheme
from neardup.sets.ragged import Ragged, shared
from neardup.sets.runs import first_of_run
from neardup.verification.pile import Pile


class SmallestKey:
    """What the keys of a pile's sets tell."""

    def __init__(self, scheme: Scheme):
        self.scheme = scheme
        self.way = UNMARKED  # in which the lines of a pile have travelled

    def first_at(self, pile: Pile, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Whether sets left[p] and right[p] (int64, of one bucket each) share no smaller key."""
        met = self._unmarked(pile.keys[left])
        band = met >> np.uint64(HASH_BITS)
        first = np.ones(len(left), dtype=bool)
        low, high = 0, 1
        own = int(not self.scheme.one_a_band)  # whether the key's own band may have a smaller one
        asking = np.flatnonzero(band + np.uint64(own) > low)
        while len(asking):
            sets, place = np.unique((left[asking], right[asking]), return_inverse=True)
            keys = self.scheme.keys(pile.sets.take(sets), low, high)
            a, b = place.reshape(2, -1)
            first[asking] = ~_share_below(keys, a, b, met[asking])
            low, high = high, 2 * high
            asking = np.flatnonzero(first & (band + np.uint64(own) > low))
        return first

    def alone_before(self, pile: Pile, sets: np.ndarray) -> np.ndarray:
        """Whether the bucket's key is the smallest of all that these sets have."""
        return self.first_at(pile, sets, sets)

    def owned(self, pile: Pile, sets: np.ndarray) -> np.ndarray:
        """Whether these sets have the key of their bucket."""
        owned = np.zeros(len(sets), dtype=bool)
        met = self._unmarked(pile.keys[sets])
        bands = (met >> np.uint64(HASH_BITS)).astype(np.int64)
        for band in np.unique(bands).tolist():
            some = np.flatnonzero(bands == band)
            keys = self.scheme.keys(pile.sets.take(sets[some]), band, band + 1)
            same = keys.values == np.repeat(met[some], keys.sizes)
            owned[some[np.repeat(np.arange(len(some)), keys.sizes)[same]]] = True
        return owned

    def ways_of(self, pile: Pile, sets: np.ndarray) -> list[Travel]:
        """Return the ways in which these sets may have travelled, judged by their keys."""
        mine, found = self.way, []
        for self.way in all_ways():
            if self.owned(pile, sets).all():
                found.append(self.way)
        self.way = mine
        return found

    def _unmarked(self, keys: np.ndarray) -> np.ndarray:
        return keys ^ np.uint64(self.way.mark)


def _share_below(keys: Ragged, a: np.ndarray, b: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Whether rows a[p] and b[p] share a key below bound[p].

    >>> keys = Ragged.from_rows([[1, 5, 9], [5, 9], [9]])
    >>> _share_below(keys, np.array([0, 0]), np.array([1, 2]), np.array([9, 9], np.uint64)).tolist()
    [True, False]
    """
    width = int(keys.sizes[0])
    if width and (keys.sizes == width).all():
        table = keys.values.reshape(-1, width)
        bands = table >> np.uint64(HASH_BITS)
        if (bands == bands[0]).all() and first_of_run(bands[0]).all():  # a column for each band
            return ((table[a] == table[b]) & (table[a] < bound[:, np.newaxis])).any(axis=1)
    common = shared(keys, a, b)
    below = common.values < np.repeat(bound, common.sizes)
    found = np.zeros(len(a), dtype=bool)
    found[np.repeat(np.arange(len(a)), common.sizes)[below]] = True
    return found
