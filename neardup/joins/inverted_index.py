"""The nested loop, which defines what a join returns, and an inverted index on arrays.

The nested loop compares every two rows and is the oracle of the tests.  A *posting* is a token and
a set that has it.  The index holds postings, and counts the tokens that an asking set shares with
each other set.

Letters: n asking sets, m indexed sets.  A *hit* is a posting with a token that is asked for.  Cost:
two binary searches for each asking token, and some nanoseconds for each hit.  A step holds STEP
hits and cells, or those of one set.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from neardup.sets.ragged import Ragged, chunks, distinct, spans
from neardup.similarity import definitions
from neardup.similarity.measures import Threshold

STEP = 1 << 21
SPARSE = 4  # cells for each hit, above which hits are sorted instead of counted in a table


@dataclass(frozen=True)
class Joined:
    """The result of a join: pairs of row numbers, their overlaps, and counts of candidates.

    left, right, common: int64 (P,), left < right; for weighted rows `common` is the numerator of
    the similarity, if large as Python's integers (object).  candidates: filter → how many pairs it
    leaves, in order; the first is "all", the pairs without an empty row, and the last "pairs",
    which is P.
    """

    left: np.ndarray
    right: np.ndarray
    common: np.ndarray
    candidates: dict[str, int]

    @classmethod
    def of(cls, row: np.ndarray, found: np.ndarray, candidates: dict[str, int]) -> "Joined":
        """Make the result from pairs (x, y, overlap) of records (P, 3), and the row of each record.

        >>> joined = Joined.of(np.array([5, 9, 7]), np.array([(1, 2, 30), (0, 2, 40)]), {"all": 3})
        >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist()
        ([5, 7], [7, 9], [40, 30])
        >>> joined.candidates
        {'all': 3, 'pairs': 2}
        """
        ends, common = found.reshape(-1, 3)[:, :2].astype(np.int64), found.reshape(-1, 3)[:, 2]
        x, y = ends.T
        left, right = np.minimum(row[x], row[y]), np.maximum(row[x], row[y])
        order = np.argsort(left << 32 | right)
        counts = {**candidates, "pairs": len(order)}
        return cls(left[order], right[order], common[order], counts)


def nested_loop(rows: Ragged, threshold: Threshold) -> Joined:
    """Return the pairs of non-empty rows whose resemblance reaches the threshold.

    >>> rows = Ragged.from_rows([[*range(9)], [*range(10)], [*range(5, 15)], []])
    >>> joined = nested_loop(rows, Threshold.parse("0.9"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist(), joined.candidates
    ([0], [1], [9], {'all': 3, 'pairs': 1})
    """
    sets = [frozenset(rows.row(i).tolist()) for i in range(len(rows))]
    every = [(i, j) for i, j in combinations(range(len(sets)), 2) if sets[i] and sets[j]]
    found = [
        (i, j, len(sets[i] & sets[j]))
        for i, j in every
        if definitions.resemblance(sets[i], sets[j]) * threshold.den >= threshold.num
    ]
    return Joined.of(np.arange(len(sets)), np.array(found, np.int64), {"all": len(every)})


@dataclass(frozen=True)
class InvertedIndex:
    """An inverted index of m sets: tokens[k] (uint64, ascending) is in set holders[k].

    >>> index = InvertedIndex.of(Ragged.from_rows([[1, 2, 3], [3, 4], [9]]))
    >>> asking = Ragged.from_rows([[2, 3], [5]])
    >>> [column.tolist() for column in next(index.overlaps(asking))]
    [[0, 0], [0, 1], [2, 1]]
    """

    m: int
    tokens: np.ndarray
    holders: np.ndarray

    @classmethod
    def of(cls, sets: Ragged) -> "InvertedIndex":
        order = np.argsort(sets.values, kind="stable")
        holders = np.repeat(np.arange(len(sets)), sets.sizes)
        return cls(len(sets), sets.values[order], holders[order])

    def overlaps(self, asking: Ragged) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield arrays (row, holder, common): row and holder share `common` tokens; rows ascend."""
        order = np.argsort(asking.values)  # each search begins near where the last one ended
        asked = asking.values[order]
        starts, hits = np.empty_like(order), np.empty_like(order)
        starts[order] = np.searchsorted(self.tokens, asked)
        hits[order] = np.searchsorted(self.tokens, asked, side="right")
        hits -= starts
        of_rows = np.diff(np.append(0, np.cumsum(hits))[asking.offsets])
        for low, high in chunks(of_rows + np.minimum(self.m, SPARSE * of_rows), STEP):
            some = slice(asking.offsets[low], asking.offsets[high])
            row = np.repeat(np.arange(high - low), of_rows[low:high])
            holder = self.holders[spans(starts[some], hits[some])]
            cells = row * self.m + holder
            if (high - low) * self.m > SPARSE * len(cells):
                found, common = distinct(cells)
            else:
                common = np.bincount(cells)
                found = np.flatnonzero(common)
                common = common[found]
            yield low + found // self.m, found % self.m, common
