"""Records of an index in a run: one more mapper, whose keys are looked up where others are read.

    new keys of a partition ── segment 0 ── entries ─┐
                            └─ segment 1 ── entries ─┴─ sieve ── what it kept ── lines

Numbers of records are those of mappers: record i of segment j has number i · N + J + j, where J
mappers and the segments are N together.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import numpy as np

from neardup.engines.local import entries
from neardup.engines.local.entries import pieces_of
from neardup.engines.local.sieve import SharedKeys, Traits
from neardup.index.segment import Segment
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged
from neardup.sets.runs import first_of_run

RECORDS_AT_ONCE = 1 << 15


def keys_to_find(sources: list[Path], known: Traits) -> np.ndarray:
    """uint64, ascending: the keys that new records have in these files of entries."""
    found = np.empty(0, dtype=np.uint64)
    for source in sources:
        for piece in pieces_of(source):
            new = piece[~known.of(piece[:, 1]).old, 0]
            found = np.sort(np.concatenate((found, new)))
            found = found[first_of_run(found)]
    return found


def write_found(
    segment: Segment, keys: np.ndarray, number: int, of: int, path: Callable[[int], Path]
) -> int:
    """Entries of a segment with these keys, to files path(0), path(1) …: how many files it took.

    Each is in order of records, and small enough to be sorted in memory.
    """
    held: list[np.ndarray] = []
    size = files = 0

    def write() -> None:
        together = np.concatenate(held)
        path(files).write_bytes(together[np.argsort(together[:, 1])].tobytes())

    for found, records in segment.find(keys):
        numbers = records.astype(np.uint64) * np.uint64(of) + np.uint64(number)
        held.append(np.column_stack((found, numbers)))
        size += len(found)
        if size >= entries.ENTRIES_AT_ONCE:
            write()
            held, size, files = [], 0, files + 1
    if held:
        write()
        files += 1
    return files


def records_to_send(
    segment: Segment, shared: SharedKeys, number: int, of: int, turn: int, turns: int
) -> Iterator[tuple[Batch, Ragged]]:
    """Records of a segment that the sieve has kept, and their keys; every `turns`-th share."""
    for share, low in enumerate(range(0, len(segment), RECORDS_AT_ONCE)):
        high = min(low + RECORDS_AT_ONCE, len(segment))
        numbers = np.arange(low, high, dtype=np.uint64) * np.uint64(of) + np.uint64(number)
        keys = shared.keys(numbers)
        if share % turns == turn:
            some = np.flatnonzero(keys.sizes)
            keys = keys.take(some)
            for first, batch in segment.batches(low + some):
                yield batch, keys.take(np.arange(first, first + len(batch.ids)))
