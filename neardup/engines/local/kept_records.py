"""Records on disk between the two passes of run_local.sh, which need not be parsed again."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged


def keep_batch(batch: Batch, file: BinaryIO) -> None:
    """Write a batch, its shingles as the narrowest integers that hold them."""
    values = batch.sets.values
    narrow = values.astype(np.min_scalar_type(int(values.max(initial=0))))
    sets = batch.sets
    pickle.dump((batch.ids, narrow, sets.offsets, sets.weights, batch.places), file, protocol=5)


def kept_batches(file: BinaryIO) -> Iterator[Batch]:
    """The batches that `keep_batch` wrote, one at a time."""
    while True:
        try:
            ids, values, offsets, weights, places = pickle.load(file)
        except EOFError:
            return
        yield Batch(ids, Ragged(values.astype(np.uint64), offsets, weights), places=places)


def numbers(done: int, batch: Batch, k: int, of: int) -> np.ndarray:
    """uint64: numbers for a batch's records, after `done` others, that only mapper k of N gives.

    >>> numbers(2, Batch([b"a", b"b"], Ragged.from_rows([[1], [2]])), k=1, of=10).tolist()
    [21, 31]
    """
    return np.arange(done, done + len(batch.ids), dtype=np.uint64) * np.uint64(of) + np.uint64(k)
