"""Read a file for the peers: as numbers in flat arrays, or as the text of each record.

A peer reads a well-formed file, in one process, by the fastest way that was found: what stands
behind the ids of a block of lines goes into one `np.fromstring`.  Nothing is sorted or compared
before it has to be, since many peers take a set in any order, with repeats (bench/NOTES.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from neardup.sets.ragged import Batch, Ragged, spans

BLOCK_BYTES = 1 << 18  # stays in the cache


class Records(NamedTuple):
    """n records with T shingles in total, as read from a file: not sorted, and with repeats.

    values: uint64 (T,); offsets: int64 (n+1,), so that record i has values[offsets[i]:offsets[i+1]]
    """

    ids: list[bytes]
    values: np.ndarray
    offsets: np.ndarray

    def take(self, rows: np.ndarray) -> Records:
        """Return the records with these row numbers (int64)."""
        sizes = np.diff(self.offsets)[rows]
        values = self.values[spans(self.offsets[rows], sizes)]
        return Records([self.ids[row] for row in rows.tolist()], values, ends(sizes))

    def sets(self) -> Ragged:
        """Return the shingles of each record, ascending and distinct.

        >>> Records([b"a", b"b"], np.array([3, 1, 3, 2], np.uint64), np.array([0, 3, 4])).sets()
        Ragged(values=array([1, 3, 2], dtype=uint64), offsets=array([0, 2, 3]), weights=None)
        """
        ascends = self.values[1:] > self.values[:-1]
        ascends[self.offsets[1:-1] - 1] = True  # from one record to the next it need not
        if ascends.all():
            return Ragged(self.values, self.offsets)
        return Ragged.from_unsorted(self.values, np.diff(self.offsets))


def read_records(path: str) -> Records:
    """Read all records of a well-formed file, which has single blanks and no blank lines."""
    ids: list[bytes] = []
    sizes: list[int] = []
    values = [np.empty(0, np.uint64)]
    with open(path, "rb") as file:
        while lines := file.readlines(BLOCK_BYTES):
            heads, rests = zip(*[line.split(None, 1) for line in lines])
            ids += heads
            sizes += [rest.count(b" ") + 1 for rest in rests]
            with suppress(ValueError, DeprecationWarning):  # of what is no number
                values.append(np.fromstring(b"".join(rests), np.uint64, sep=" "))
    records = Records(ids, np.concatenate(values), ends(np.array(sizes, np.int64)))
    if records.offsets[-1] != len(records.values):
        raise SystemExit(f"{path}: expected lines `ID SHINGLE…` with single blanks")
    return records


def ends(sizes: np.ndarray) -> np.ndarray:
    """Return the offsets of rows with these sizes: 0, and then the end of each row (int64)."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))


def read_sets(path: str) -> Batch:
    """Read all records of a file as sets, ascending and distinct."""
    records = read_records(path)
    return Batch(records.ids, records.sets())


def lists(rows: Records | Ragged) -> list[list[int]]:
    """Return each row as a list of integers.

    >>> lists(Ragged.from_rows([[5, 1], [7]]))
    [[1, 5], [7]]
    """
    values, offsets = rows.values.tolist(), rows.offsets.tolist()
    return [values[start:stop] for start, stop in zip(offsets, offsets[1:])]


def ranks(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value among the distinct values (uint64).

    >>> ranks(np.array([1 << 60, 7, 1 << 60], np.uint64)).tolist()
    [1, 0, 1]
    """
    if len(values) and values.max() < len(values):  # then a table is faster than sorting
        there = np.zeros(int(values.max()) + 1, np.uint64)
        there[values] = 1
        number: np.ndarray = (np.cumsum(there) - there)[values]
        return number
    return np.unique(values, return_inverse=True)[1].astype(np.uint64)


def read_texts(path: str) -> Iterator[tuple[bytes, str]]:
    """Yield the id and the text of each line, for peers that split texts into words."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            id_, text = line.rstrip().split(None, 1)
            yield id_.encode(), text
