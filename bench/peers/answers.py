"""Convert the pairs of row numbers that a peer returns to lines on stdout.

Pairs are an int64 array of shape (P, 2): the row numbers of two records.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import numpy as np

from bench.peers.reading import Records, ranks
from neardup.sets.ragged import Ragged, shared
from neardup.similarity.measures import Threshold


def unique(pairs: np.ndarray, records: int) -> np.ndarray:
    """Return each pair of different row numbers once, the smaller number first.

    >>> unique(np.array([[2, 0], [0, 2], [1, 1]]), 3).tolist()
    [[0, 2]]
    """
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    codes = np.unique((low * records + high)[low < high])
    return np.column_stack((codes // records, codes % records))


def verified(sets: Ragged, pairs: np.ndarray, threshold: Threshold) -> np.ndarray:
    """Return the candidate pairs whose sets reach the threshold, by exact integer arithmetic.

    >>> sets = Ragged.from_rows([[1, 2, 3], [7], [1, 2, 3, 4]])
    >>> verified(sets, np.array([[0, 1], [0, 2]]), Threshold.parse("0.75")).tolist()
    [[0, 2]]
    """
    sizes = sets.sizes[pairs]
    fits = threshold.reached(sizes.min(axis=1), sizes.max(axis=1))  # if one set were in the other
    pairs, sizes = pairs[fits], sizes[fits]
    small = Ragged(ranks(sets.values), sets.offsets)  # small numbers compare faster
    common = shared(small, *pairs.T).sizes
    similar: np.ndarray = pairs[threshold.reached(common, sizes.sum(axis=1) - common)]
    return similar


def write_verified(records: Records, pairs: np.ndarray, threshold: Threshold) -> None:
    """Print the distinct candidate pairs that reach the threshold.

    Only the sets of records that are in a candidate pair are sorted.
    """
    pairs = unique(pairs, len(records.ids))
    met = np.zeros(len(records.ids), dtype=bool)
    met[pairs] = True
    few = records.take(np.flatnonzero(met))
    places = (np.cumsum(met) - 1)[pairs]
    write_pairs(few.ids, verified(few.sets(), places, threshold).tolist())


def write_pairs(ids: list[bytes], pairs: Iterable[Sequence[int]]) -> None:
    """Print a line `A TAB B` for each pair of row numbers: the two ids, A < B bytewise."""
    names = (sorted((ids[i], ids[j])) for i, j in pairs)
    sys.stdout.buffer.writelines(b"%b\t%b\n" % (a, b) for a, b in names)


def write_flagged(ids: list[bytes], rows: Iterable[int]) -> None:
    """Print the ids of the rows, one per line."""
    sys.stdout.buffer.writelines(ids[i] + b"\n" for i in rows)
