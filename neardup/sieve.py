"""The sieve: count the keys first, so that shingles travel only for keys that records share.

Most keys belong to one record, and all that is ever done with their lines is to carry them.  So
run_local.sh lets the mappers run twice.  The first time they write bare keys, eight bytes each;
this module marks those that come more than once in a bit table, and the second time a mapper
sends the lines of marked keys alone.

A key that merely falls on the bit of a shared one travels for nothing, which costs a little and
changes no answer.  `python3 -m neardup.sieve TABLE FOLDER` reads the files keys.WORKER.PARTITION
of a folder, one partition at a time, and writes the table.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from neardup.hashing import mix
from neardup.ragged import Ragged
from neardup.streaming import run

PARTITIONS = 32  # key files of each mapper: one in 32 of the keys is in memory at once
LEAST_BITS, MOST_BITS = 1 << 16, 1 << 31  # 8 KiB to 256 MiB
BITS_A_KEY = 4


def partitioned(keys: np.ndarray) -> list[tuple[int, bytes]]:
    """(partition, keys as bytes): equal keys go the same way, whoever sends them."""
    parts = (keys % np.uint64(PARTITIONS)).astype(np.uint8)
    return [(part, keys[parts == part].tobytes()) for part in range(PARTITIONS)]


class Sieve:
    """A bit for each of the slots that keys fall on.

    >>> sieve = Sieve.for_keys(3)
    >>> sieve.mark(np.array([7, 5, 7], np.uint64))
    >>> sieve.passes(np.array([5, 7], np.uint64)).tolist()
    [False, True]
    """

    def __init__(self, table: np.ndarray):
        self.table = table  # uint8, a power of two long

    @classmethod
    def for_keys(cls, count: int) -> Sieve:
        """An empty one, large enough for so many keys."""
        wanted = min(max(BITS_A_KEY * count, LEAST_BITS), MOST_BITS)
        return cls(np.zeros((1 << (wanted - 1).bit_length()) // 8, dtype=np.uint8))

    def mark(self, keys: np.ndarray) -> None:
        """Let pass every key that comes more than once in `keys` (uint64)."""
        keys = np.sort(keys)
        slots, bits = self._places(keys[1:][keys[1:] == keys[:-1]])
        np.bitwise_or.at(self.table, slots, bits)

    def passes(self, keys: np.ndarray) -> np.ndarray:
        slots, bits = self._places(keys)
        return (self.table[slots] & bits) != 0

    def rows(self, keys: Ragged) -> Ragged:
        """The rows of `keys` without those that do not pass."""
        kept = self.passes(keys.values)
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(kept)))
        return Ragged(keys.values[kept], ends[keys.offsets])

    def _places(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places = mix(keys) & np.uint64(8 * len(self.table) - 1)
        return places >> np.uint64(3), np.uint8(1) << (places & np.uint64(7)).astype(np.uint8)


def main() -> None:
    table, folder = sys.argv[1:]
    files = [sorted(Path(folder).glob(f"keys.*.{part}")) for part in range(PARTITIONS)]
    size = sum(path.stat().st_size for group in files for path in group)
    sieve = Sieve.for_keys(size // 8)
    for group in files:
        sieve.mark(np.concatenate([np.fromfile(path, dtype=np.uint64) for path in group]))
    sieve.table.tofile(table)


if __name__ == "__main__":
    sys.exit(run("neardup.sieve", main))
