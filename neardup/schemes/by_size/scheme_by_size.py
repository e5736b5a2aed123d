"""Schemes that go by size: each size group has its own way to meet.

A pair is looked for in the group of its smaller set (`groups`), where both meet the same way; so a
group may have any way (`ways_to_meet`), and nothing is missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from neardup.lines.keys import MAX_BANDS
from neardup.schemes.by_size.groups import Groups
from neardup.schemes.by_size.ways_to_meet import Way
from neardup.schemes.scheme import Scheme
from neardup.sets.ragged import Ragged


@dataclass(frozen=True, eq=False)
class BySize(Scheme):
    """ways: all that are in use; choice: int64 (G,), which of them each group has."""

    groups: Groups
    ways: tuple[Way, ...]
    choice: np.ndarray
    one_a_band: ClassVar[bool] = False

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        """See `Scheme.keys`."""
        found = [(np.empty(0, np.int64), np.empty(0, np.uint64))]
        for way, rows, group in self._meetings(sets.sizes):
            row, key = way.entries(sets.take(rows), group, low, high)
            found.append((rows[row], key))
        rows, keys = map(np.concatenate, zip(*found))
        order = np.argsort(rows, kind="stable")
        return Ragged.from_unsorted(keys[order], np.bincount(rows, minlength=len(sets)))

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        counts = np.zeros(len(sizes), dtype=np.int64)
        for way, rows, group in self._meetings(sizes):
            np.add.at(counts, rows, way.key_counts(sizes[rows], group))  # a row may come twice
        return counts

    def _meetings(self, sizes: np.ndarray) -> list[tuple[Way, np.ndarray, np.ndarray]]:
        """(way, rows, groups): which rows meet in which groups, and how."""
        rows, group = self.groups.meetings(sizes)
        way = self.choice[group]
        meetings = []
        for number in np.unique(way).tolist():
            mine = np.flatnonzero(way == number)
            if not self.ways[number].grouped:  # the keys for one group are those for both
                mine = mine[np.unique(rows[mine], return_index=True)[1]]
            meetings.append((self.ways[number], rows[mine], group[mine]))
        return meetings
