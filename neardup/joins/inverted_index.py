"""Two plain joins: a nested loop, which is the definition, and an inverted index.

The nested loop: the definition of a join, and the oracle of the tests.

It compares every two rows, n·(n-1)/2 of them, and leaves nothing out.

How much many sets share with many others, by an inverted index and in vector steps.

Letters: n sets that ask, m sets in the index.  A *hit* is a token that a set which asks and one in
the index share.  Cost: a binary search for each token that asks, some nanoseconds for each hit,
and one for each of the n·m cells; a step holds STEP hits and cells, or those of one set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Callable

import numpy as np

from neardup.sets.ragged import Ragged, chunks, spans, starts_of_runs
from neardup.similarity.definitions import (
    Weights,
    resemblance,
    squared_weighted_cosine,
    weighted_dice,
    weighted_resemblance,
)
from neardup.similarity.measures import SetMeasure, Threshold


@dataclass(frozen=True)
class Joined:
    """Pairs of row numbers, ascending, and their overlaps.

    left, right, common: int64 arrays of shape (P,), left < right; what weighted rows share are
    sums of weights, Python's integers (object).
    candidates: filter → how many pairs are left after it, in the order of the filters; before them
    comes "all" that are no empty row's, and after them "pairs", which is P.
    """

    left: np.ndarray
    right: np.ndarray
    common: np.ndarray
    candidates: dict[str, int]

    @classmethod
    def of(
        cls,
        row: np.ndarray,
        found: np.ndarray | Sequence[tuple[int, int, int]],
        candidates: dict[str, int],
    ) -> Joined:
        """From (x, y, overlap) of records that are numbered in another order.

        row: the row number of each record (int64); found: shape (P, 3), int64 or object.

        >>> joined = Joined.of(np.array([5, 9, 7]), [(1, 2, 30), (0, 2, 40)], {"all": 3})
        >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist()
        ([5, 7], [7, 9], [40, 30])
        >>> joined.candidates
        {'all': 3, 'pairs': 2}
        """
        if not isinstance(found, np.ndarray):
            found = np.array(found, dtype=np.int64)
        ends, common = found.reshape(-1, 3)[:, :2].astype(np.int64), found.reshape(-1, 3)[:, 2]
        x, y = ends.T
        left, right = np.minimum(row[x], row[y]), np.maximum(row[x], row[y])
        order = np.lexsort((right, left))
        counts = {**candidates, "pairs": len(order)}
        return cls(left[order], right[order], common[order], counts)


# Of each measure of weighted rows: how similar two are, in which power, and what a token adds.
DEFINITIONS: dict[str, tuple[Callable[[Weights, Weights], Fraction], int, Callable[..., int]]] = {
    "jaccard": (weighted_resemblance, 1, min),
    "dice": (weighted_dice, 1, min),
    "cosine": (squared_weighted_cosine, 2, int.__mul__),
}


def nested_loop(rows: Ragged, threshold: Threshold) -> Joined:
    """The pairs of rows whose resemblance reaches the threshold; an empty row is in none.

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
        if resemblance(sets[i], sets[j]) * threshold.den >= threshold.num
    ]
    return Joined.of(np.arange(len(sets)), found, {"all": len(every)})


def weighted_nested_loop(rows: Ragged, measure: str, threshold: Threshold) -> Joined:
    """The same by a measure of weighted rows: jaccard, dice or cosine.

    >>> tokens, weights = np.array([5, 7, 5, 7], np.uint64), np.array([1, 9, 2, 8])
    >>> rows = Ragged(tokens, np.array([0, 2, 4]), weights)
    >>> joined = weighted_nested_loop(rows, "cosine", Threshold.parse("0.99"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist()
    ([0], [1], [74])
    """
    similarity, power, term = DEFINITIONS[measure]
    least = Fraction(threshold.num, threshold.den) ** power
    ends, weights = rows.offsets.tolist(), rows.weighed()
    sets = [
        dict(zip(rows.values[low:high].tolist(), weights[low:high].tolist()))
        for low, high in zip(ends, ends[1:])
    ]
    every = [(i, j) for i, j in combinations(range(len(sets)), 2) if sets[i] and sets[j]]
    found = [
        (i, j, sum(term(sets[i][token], sets[j][token]) for token in sets[i].keys() & sets[j]))
        for i, j in every
        if similarity(sets[i], sets[j]) >= least
    ]
    return Joined.of(np.arange(len(sets)), np.array(found, dtype=object), {"all": len(every)})


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
    >>> from neardup.similarity.measures import NINE_TENTHS
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
