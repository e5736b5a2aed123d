"""Equal values side by side: where runs of them start, and what is distinct."""

from __future__ import annotations

import numpy as np


def first_of_run(values: np.ndarray) -> np.ndarray:
    """True where a value is another than the one before it.

    >>> first_of_run(np.array([7, 7, 5, 7])).tolist()
    [True, False, True, True]
    """
    first = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first


def starts_of_runs(values: np.ndarray) -> np.ndarray:
    """Where each run begins (int64); of no values there are none.

    >>> starts_of_runs(np.array([7, 7, 5, 7])).tolist(), starts_of_runs(np.empty(0)).tolist()
    ([0, 2, 3], [])
    """
    return np.flatnonzero(first_of_run(values))


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, ascending, and how often each is there (int64)."""
    # Numbers of a vocabulary, many of each: counting them takes a tenth of sorting them.
    if values.dtype == np.uint64 and len(values) and int(values.max()) < len(values):
        members = np.bincount(values.astype(np.int64))
        found = np.flatnonzero(members)
        return found.astype(np.uint64), members[found]
    values = np.sort(values)
    starts = starts_of_runs(values)
    return values[starts], np.diff(starts, append=len(values))


def in_rows(values: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """The order (int64) that puts values (uint64) in order of their rows (int64), and of size.

    >>> in_rows(np.array([7, 5, 9], np.uint64), np.array([1, 1, 0])).tolist()
    [2, 1, 0]
    """
    order = np.argsort(values)
    # In 16 bits, where they suffice, a stable sort is a radix sort.
    narrow = owner[order].astype(np.min_scalar_type(int(owner.max(initial=0))))
    return order[np.argsort(narrow, kind="stable")]


def spans(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The positions starts[i], starts[i]+1, … (sizes[i] of them), for all i end to end.

    >>> spans(np.array([10, 40]), np.array([3, 2])).tolist()
    [10, 11, 12, 40, 41]
    """
    shift = starts - (np.cumsum(sizes) - sizes)
    return np.arange(sizes.sum()) + np.repeat(shift, sizes)


def later_in_run(members: np.ndarray) -> np.ndarray:
    """How many values follow each in its run (int64), of runs of so many members, end to end.

    >>> later_in_run(np.array([2, 1, 3])).tolist()
    [1, 0, 0, 2, 1, 0]
    """
    ends = np.cumsum(members)
    return np.repeat(ends, members) - np.arange(members.sum()) - 1


def pairs_in_runs(later: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(left, right): each position with as many after it as `later` says; int64.

    >>> [column.tolist() for column in pairs_in_runs(np.array([2, 1, 0, 0]))]
    [[0, 0, 1], [1, 2, 2]]
    """
    everyone = np.arange(len(later))
    return np.repeat(everyone, later), spans(everyone + 1, later)
