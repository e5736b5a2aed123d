"""How much many sets share with many others, by an inverted index and in vector steps.

Letters: n sets that ask, m sets in the index.  A *hit* is a token that a set which asks and one in
the index share.  Cost: a binary search for each token that asks, some nanoseconds for each hit,
and one for each of the n·m cells; a step holds STEP hits and cells, or those of one set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neardup.joins.joined import Joined
from neardup.sets.ragged import Ragged, chunks
from neardup.sets.runs import spans, starts_of_runs
from neardup.similarity.measures import SetMeasure

STEP = 1 << 20


@dataclass(frozen=True)
class Index:
    """sets: m of them; tokens: uint64 (k,), ascending; holders[offsets[i]:offsets[i+1]]: the sets
    that have tokens[i], int64.

    >>> index = Index.of(Ragged.from_rows([[1, 2, 3], [3, 4], [9]]))
    >>> asking = Ragged.from_rows([[2, 3], [5]])
    >>> [column.tolist() for column in next(index.overlaps(asking))]
    [[0, 0], [0, 1], [2, 1]]
    """

    sets: Ragged
    tokens: np.ndarray
    offsets: np.ndarray
    holders: np.ndarray

    @classmethod
    def of(cls, sets: Ragged) -> Index:
        order = np.argsort(sets.values, kind="stable")
        values = sets.values[order]
        starts = starts_of_runs(values)
        holders = np.repeat(np.arange(len(sets)), sets.sizes)[order]
        return cls(sets, values[starts], np.append(starts, len(values)), holders)

    def overlaps(self, asking: Ragged) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(row, holder, common): what share a token, and how many, in order of rows; int64."""
        if not len(self.tokens):
            return
        place = np.minimum(np.searchsorted(self.tokens, asking.values), len(self.tokens) - 1)
        starts = self.offsets[place]
        hits = np.where(self.tokens[place] == asking.values, self.offsets[place + 1] - starts, 0)
        until = np.concatenate((np.zeros(1, np.int64), np.cumsum(hits)))[asking.offsets]
        m = len(self.sets)
        for low, high in chunks(np.diff(until) + m, STEP):
            some = slice(asking.offsets[low], asking.offsets[high])
            row = np.repeat(np.arange(high - low), np.diff(until[low : high + 1]))
            holder = self.holders[spans(starts[some], hits[some])]
            cells = np.bincount(row * m + holder)
            met = np.flatnonzero(cells)
            yield low + met // m, met % m, cells[met]


def all_against_all(sets: Ragged, measure: SetMeasure) -> Joined:
    """The pairs of rows that may reach the threshold by a measure, though it bounds no resemblance.

    >>> from neardup.similarity.measures import Containment
    >>> from neardup.similarity.threshold import NINE_TENTHS
    >>> sets = Ragged.from_rows([[1, 2], [*range(50)], [2, 99]])
    >>> joined = all_against_all(sets, Containment(NINE_TENTHS))
    >>> joined.left.tolist(), joined.right.tolist(), joined.candidates
    ([0], [1], {'all': 3, 'a common shingle': 3, 'pairs': 1})
    """
    sizes = sets.sizes
    n, meet = int((sizes > 0).sum()), 0
    found = [np.empty((3, 0), np.int64)]
    for i, j, common in Index.of(sets).overlaps(sets):
        once = np.flatnonzero(i < j)
        i, j, common = i[once], j[once], common[once]
        meet += len(i)
        good = measure.may_reach(common, sizes[i], sizes[j])
        found.append(np.stack((i[good], j[good], common[good])))
    left, right, common = np.concatenate(found, axis=1)
    counts = {"all": n * (n - 1) // 2, "a common shingle": meet, "pairs": len(left)}
    return Joined(left, right, common, counts)
