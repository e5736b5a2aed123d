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
    values = np.sort(values)
    starts = starts_of_runs(values)
    return values[starts], np.diff(starts, append=len(values))
