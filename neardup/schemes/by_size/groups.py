"""Size groups: a pair belongs to the group of its smaller set.

At t = 0.9, sets of 50 to 55 elements are a group.  Partners that are larger have 61 at most, so
they are in the same group or in the next one, and a set has to be looked for in two groups:

    sizes    … 45 ── 49 │ 50 ──── 55 │ 56 ───── 62 │ …
                         own group g   its larger partners: to 61

How much a pair of group g may differ decides what an exact scheme costs there.  If |x| ≤ |y| and
|x∩y| ≥ t·|x∪y|, then |x△y| ≤ (1-t)/(1+t)·(|x|+|y|), which is 6 here.  As long as that does not
grow, a group goes on: all sizes to 8 allow no difference, and are one group.

Letters: t the resemblance of a pair, as num/den; d how many elements a pair may differ in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from neardup.similarity.threshold import Threshold

LARGEST = 1 << 26  # more elements than a line can have


@dataclass(frozen=True, eq=False)
class Groups:
    """highs: int64 (G,), the last size of each group, ascending; differ: int64 (G,), d of each.

    >>> groups = groups_of(Threshold.parse("0.9"))
    >>> groups.highs[:5].tolist(), groups.differ[:5].tolist()
    ([8, 17, 26, 35, 44], [0, 1, 2, 3, 4])
    >>> groups.own(np.array([8, 9, 18])).tolist(), groups.reaches(np.array([8, 9, 18])).tolist()
    ([0, 1, 2], [False, False, True])
    """

    threshold: Threshold
    highs: np.ndarray
    differ: np.ndarray

    def own(self, sizes: np.ndarray) -> np.ndarray:
        """The group of each size (int64 arrays)."""
        return np.searchsorted(self.highs, sizes)

    def meetings(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(row, group), int64: each row in its own group, and then where it may be the larger one.

        >>> groups = groups_of(Threshold.parse("0.9"))
        >>> [column.tolist() for column in groups.meetings(np.array([8, 9, 18]))]
        [[0, 1, 2, 2], [0, 1, 2, 1]]
        """
        own = self.own(sizes)
        larger = np.flatnonzero(self.reaches(sizes))
        return np.append(np.arange(len(sizes)), larger), np.append(own, own[larger] - 1)

    def reaches(self, sizes: np.ndarray) -> np.ndarray:
        """Whether sets of these sizes may be the larger ones of pairs of the group before."""
        before = self.highs[np.maximum(self.own(sizes) - 1, 0)]
        return (sizes > self.highs[0]) & (sizes <= self.threshold.largest_partner(before))


@lru_cache
def groups_of(threshold: Threshold) -> Groups:
    """Those of sets whose pairs have this resemblance at least."""
    highs, differ = [], []
    size = 1
    while size <= LARGEST:
        high = max(size * threshold.den // threshold.num, _last_alike(threshold, size))
        high = min(_last_alike(threshold, high), LARGEST)
        highs.append(high)
        differ.append(min(_most_apart(threshold, high), LARGEST))
        size = high + 1
    return Groups(threshold, np.array(highs), np.array(differ))


def _most_apart(t: Threshold, size: int) -> int:
    """d: the most elements in which a pair differs whose smaller set has `size`."""
    return (t.den - t.num) * (size + size * t.den // t.num) // (t.den + t.num)


def _last_alike(t: Threshold, size: int) -> int:
    """The largest size with the same d."""
    low, high = size, 2 * size + LARGEST
    while low < high:
        middle = (low + high + 1) // 2
        if _most_apart(t, middle) == _most_apart(t, size):
            low = middle
        else:
            high = middle - 1
    return low


def by_chance(groups: Groups) -> np.ndarray:
    """About how often two sets with nothing in common are both empty in a part (float64 (G,)).

    That is for the smallest sets of each group:

    >>> from neardup.similarity.threshold import Threshold
    >>> ["%.0e" % chance for chance in by_chance(groups_of(Threshold.parse("0.9")))[:3]]
    ['0e+00', '2e-04', '2e-05']
    """
    smallest = np.concatenate(([1], groups.highs[:-1] + 1))
    parts = groups.differ + 1
    return np.where(parts > 1, parts * np.exp(-2 * smallest / parts), 0.0)
