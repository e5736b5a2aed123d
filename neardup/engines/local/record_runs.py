"""Runs: records beside keys, in order of these, in a file; a range of keys is one slice of each.

A run lies there as a pickled head and, behind it, its tokens, weights and ids.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from neardup.sets.ragged import Ragged
from neardup.verification.pile import lengths_of

_WEIGHTS = np.dtype(np.int64)


class Keyed(NamedTuple):
    """Record i, of id ids[i] and set sets.row(i), at keys[i] (uint64 below 2^52, ascending)."""

    keys: np.ndarray
    ids: list[bytes]
    sets: Ragged

    @classmethod
    def end_to_end(cls, parts: Iterable[Keyed]) -> Keyed:
        """All of them; no longer in order of keys."""
        keys, ids, sets = zip(*parts)
        return cls(
            np.concatenate(keys), [id_ for some in ids for id_ in some], Ragged.end_to_end([*sets])
        )


def write_run(file: BinaryIO, records: Keyed) -> int:
    """How many bytes the records take."""
    keys, ids, sets = records
    sizes, lengths = sets.sizes.astype(np.uint32), lengths_of(ids)
    columns = [sets.values] if sets.weights is None else [sets.values, sets.weights]
    head = keys, sizes, lengths, sets.values.dtype, sets.weights is not None
    pickle.dump(head, file, protocol=5)
    file.writelines([*(column.data for column in columns), *ids])
    return _sum(lengths) + sum(each.nbytes for each in (keys, sizes, lengths, *columns))


class Run(NamedTuple):
    """keys: uint64 (n,), ascending; sizes: uint32 (n,), of the sets; lengths: uint32 (n,), of ids
    in bytes; kind: of tokens; weighted: whether there are weights; start: where the head ends."""

    file: BinaryIO
    keys: np.ndarray
    sizes: np.ndarray
    lengths: np.ndarray
    kind: np.dtype
    weighted: bool
    start: int

    @classmethod
    def all_of(cls, file: BinaryIO) -> Iterator[Run]:
        """Those of a file, in order."""
        while True:
            try:
                keys, sizes, lengths, kind, weighted = pickle.load(file)
            except EOFError:
                return
            run = cls(file, keys, sizes, lengths, kind, weighted, file.tell())
            yield run
            file.seek(run.ids_start + _sum(run.lengths))

    @property
    def weights_start(self) -> int:
        return self.start + _sum(self.sizes) * self.kind.itemsize

    @property
    def ids_start(self) -> int:
        return self.weights_start + _sum(self.sizes) * _WEIGHTS.itemsize * self.weighted

    def between(self, first: int, last: int) -> Keyed | None:
        """The records whose keys are in this range, both ends with it; None if there are none."""
        low, high = np.searchsorted(self.keys, np.array([first, last + 1], np.uint64)).tolist()
        if low == high:
            return None
        offsets, bounds = (_ends(each[low:high]) for each in (self.sizes, self.lengths))
        before, count = _sum(self.sizes[:low]), int(offsets[-1])
        values = self._column(self.start, self.kind, before, count).astype(np.uint64)
        weights = None
        if self.weighted:
            weights = self._column(self.weights_start, _WEIGHTS, before, count)
        self.file.seek(self.ids_start + _sum(self.lengths[:low]))
        names = self.file.read(int(bounds[-1]))
        ids = [names[start:end] for start, end in zip(bounds.tolist(), bounds[1:].tolist())]
        return Keyed(self.keys[low:high], ids, Ragged(values, offsets, weights))

    def _column(self, start: int, kind: np.dtype, before: int, count: int) -> np.ndarray:
        self.file.seek(start + before * kind.itemsize)
        return np.frombuffer(self.file.read(count * kind.itemsize), kind)


def _sum(counts: np.ndarray) -> int:
    return int(counts.sum(dtype=np.int64))


def _ends(counts: np.ndarray) -> np.ndarray:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))
