"""Bags as sets: the second, third … of equal values are values of their own.

A value that is there w times becomes w elements, value, value#2 … value#w, so that bags share the
smaller of two counts of each value: the Jaccard similarity of the sets is Σ min / Σ max of the
counts, and so it is where a weight is a whole number.
"""

from __future__ import annotations

import numpy as np

from neardup.sets.hashing import combine, mix
from neardup.sets.ragged import Ragged
from neardup.sets.runs import first_of_run, spans


def bags(sets: Ragged) -> Ragged:
    """Each row as large as its weights add up to.

    >>> rows = counted(np.array([7, 5, 7], np.uint64), np.array([3]))
    >>> bags(rows).sizes.tolist(), bool((bags(rows).row(0)[:2] == [5, 7]).all())
    ([3], True)
    """
    if sets.weights is None:
        return sets
    values = np.repeat(sets.values, sets.weights)
    ordinals = spans(np.ones(len(sets.weights), np.int64), sets.weights)
    sizes = np.diff(np.concatenate((np.zeros(1, np.int64), np.cumsum(sets.weights)))[sets.offsets])
    return Ragged.from_unsorted(_told_apart(values, ordinals), sizes)


def counted(values: np.ndarray, sizes: np.ndarray) -> Ragged:
    """Rows laid end to end, as `Ragged.from_unsorted` has them: each value weighs as often as it
    is there.

    >>> rows = counted(np.array([7, 5, 7, 7], np.uint64), np.array([3, 1]))
    >>> rows.values.tolist(), rows.weights.tolist()
    ([5, 7, 7], [1, 2, 1])
    """
    return Ragged.summed(values, sizes, np.ones(len(values), np.int64))


def bagged(values: np.ndarray, sizes: np.ndarray) -> Ragged:
    """The same as sets."""
    return bags(counted(values, sizes))


def numbered(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The same for rows laid end to end, each in its order, as `counted` takes them.

    >>> row = np.array([7, 7, 5, 7], dtype=np.uint64)
    >>> once, twice, other, of_next_row = numbered(row, np.array([3, 1])).tolist()
    >>> once, twice == 7, other, of_next_row
    (7, False, 5, 7)
    """
    owner = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((values, owner))
    starts = np.flatnonzero(first_of_run(values[order]) | first_of_run(owner[order]))
    lengths = np.diff(starts, append=len(values))
    ordinals = np.empty(len(values), dtype=np.int64)
    ordinals[order] = np.arange(1, len(values) + 1) - np.repeat(starts, lengths)
    return _told_apart(values, ordinals)


def _told_apart(values: np.ndarray, ordinals: np.ndarray) -> np.ndarray:
    again = np.flatnonzero(ordinals > 1)
    told = values.copy()
    told[again] = combine(np.stack((values[again], mix(ordinals[again].astype(np.uint64)))), seed=0)
    return told
