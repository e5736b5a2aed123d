"""Where two rows hold the same value, for what is asked of both places: their weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.sets.ragged import PAIR_STEP, Ragged, chunks
from neardup.sets.runs import spans


class CommonPlaces(NamedTuple):
    """int64 arrays: the pair, and where its left row and its right row have the value."""

    pair: np.ndarray
    left: np.ndarray
    right: np.ndarray


def common_places(rows: Ragged, left: np.ndarray, right: np.ndarray) -> CommonPlaces:
    """For each pair (left[p], right[p]) of row numbers, the places of all values both rows hold.

    >>> rows = Ragged.from_rows([[1, 5, 9], [5], [5, 9]])
    >>> [column.tolist() for column in common_places(rows, np.array([0, 1]), np.array([2, 2]))]
    [[0, 0, 1], [1, 2, 3], [4, 5, 4]]
    """
    found = [CommonPlaces(*(np.empty(0, np.int64) for _ in range(3)))]
    for low, high in chunks(rows.sizes[left] + rows.sizes[right], PAIR_STEP):
        step = _common_places(rows, left[low:high], right[low:high])
        found.append(step._replace(pair=step.pair + low))
    return CommonPlaces(*(np.concatenate(column) for column in zip(*found)))


def _common_places(rows: Ragged, left: np.ndarray, right: np.ndarray) -> CommonPlaces:
    """All in one sort: with the pair's number in front, equal values of a pair come together."""
    sizes = [rows.sizes[side] for side in (left, right)]
    places = np.concatenate([spans(rows.offsets[r], n) for r, n in zip((left, right), sizes)])
    pair = np.concatenate([np.repeat(np.arange(len(left)), n) for n in sizes])
    values = rows.values[places]
    shift = 64 - len(left).bit_length()
    if len(values) and int(values.max()) >> shift:  # no room for the number: ranks leave some
        values = np.unique(values, return_inverse=True)[1].astype(np.uint64)
    packed = values | pair.astype(np.uint64) << np.uint64(shift)
    order = np.argsort(packed, kind="stable")  # of equals, that of the left row comes first
    first = np.flatnonzero(packed[order[1:]] == packed[order[:-1]])
    return CommonPlaces(pair[order[first]], places[order[first]], places[order[first + 1]])
