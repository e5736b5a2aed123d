"""Entries on disk: a key, or a mixed token, and a number; a file for each partition of the keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Callable

import numpy as np

from neardup.sets.ragged import Ragged

PARTITION_BYTES = 32 << 20  # of the input; its entries usually take a third of that
MOST_PARTITIONS = 256
ENTRIES_AT_ONCE = 1 << 20  # sorted in memory, at some 70 bytes each
ENTRY_BYTES = 16
READ_BYTES = ENTRY_BYTES << 18


def partitions_for(input_bytes: int) -> int:
    """How many files of entries each mapper writes; a power of two.

    >>> partitions_for(0), partitions_for(100 << 20), partitions_for(1 << 50)
    (1, 4, 256)
    """
    return min(1 << (input_bytes // PARTITION_BYTES).bit_length(), MOST_PARTITIONS)


class EntryWriter:
    """The entries of one mapper's records, as uint64 (key, record), a file for each partition."""

    def __init__(self, files: list[IO[bytes]]):
        self.files = files

    def add(self, keys: Ragged, records: np.ndarray) -> None:
        """Row i of `keys` belongs to number records[i] (uint64, ascending from call to call)."""
        entries = np.stack((keys.values, np.repeat(records, keys.sizes)), axis=1)
        parts = (keys.values & np.uint64(len(self.files) - 1)).astype(np.uint8)
        order = np.argsort(parts, kind="stable")
        bounds = np.searchsorted(parts[order], np.arange(len(self.files) + 1)).tolist()
        entries = entries[order]  # at once: of many files each gets few
        for file, low, high in zip(self.files, bounds, bounds[1:]):
            file.write(entries[low:high].data)


def pieces_of(source: Path) -> Iterator[np.ndarray]:
    """uint64 (n, 2): the entries of a file, some at a time."""
    with open(source, "rb") as file:
        while data := file.read(READ_BYTES):
            yield np.frombuffer(data, dtype=np.uint64).reshape(-1, 2)


def all_of(source: Path) -> np.ndarray:
    """uint64 (n, 2): the entries of a file."""
    return np.frombuffer(source.read_bytes(), dtype=np.uint64).reshape(-1, 2)


def chosen_of(source: Path, choice: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """uint64 (n, 2): those entries of a file whose keys are chosen (keys → bool)."""
    mine = [entries[choice(entries[:, 0])] for entries in pieces_of(source)]
    return np.concatenate([np.empty((0, 2), np.uint64), *mine])
