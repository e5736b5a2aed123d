"""The keys that two records share, grouped in bounded memory.

The lines of a partition in byte order, however many: by the system's sort, in bounded memory.

Rows of two words, brought together by the first one, in bounded memory.

Those that are too many to be sorted at once go to files by a few bits of a hash of it, and come
back a file at a time: of n rows, n/64 are in memory.

Which keys of a partition two records share, and of those that bring the same records together,
the smallest.

    key     records
    000:a   1  7         lines
    001:b   9            no lines: nobody to meet
    002:c   1  7         no lines: the same group of records as at 000:a
    003:d   1  7  9      lines

Near-copies share a dozen keys.  No pair is lost by that: it is printed at the smallest key it
shares, and a key is left out only if a smaller one has the same records.  A group is known by the
sum of its records' hashes; a key of very many records is a group of its own.  Of the keys of other
partitions nothing is known here, so with many partitions fewer keys are left out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import IO

import numpy as np

from neardup.reading.blocks import blocks_of
from neardup.runtime.counters import Counters
from neardup.runtime.errors import StageError
from neardup.runtime.program import system_sort
from neardup.sets.hashing import mix
from neardup.sets.ragged import starts_of_runs
from neardup.stages.key_blocks import SHARED, digests_of, partition_of, unpack

SORT_MEMORY = "128M"


def sorted_lines(blocks: Iterable[bytes], counters: Counters) -> Iterator[bytes]:
    """Blocks of whole lines → blocks of the same lines, in order."""
    with tempfile.TemporaryFile() as result:
        flags = ["-S", SORT_MEMORY]
        with system_sort(None, result, flags, counters.alive) as sink:
            assert sink
            for block in blocks:
                counters.alive()
                sink.write(block)
        result.seek(0)
        yield from blocks_of(result)


ROWS_AT_ONCE = 1 << 21  # at some 60 bytes each
FILE_BITS = 6


class ExternalGroup:
    """A context; what it has written is gone with it."""

    def __init__(self) -> None:
        self.held: list[np.ndarray] = []
        self.count = 0
        self.files: list[IO[bytes]] = []
        self.stack = ExitStack()

    def __enter__(self) -> ExternalGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def add(self, rows: np.ndarray) -> None:
        """rows: uint64 (n, 2)"""
        self.held.append(rows)
        self.count += len(rows)
        if self.count > ROWS_AT_ONCE:
            self._to_files()

    def together(self) -> Iterator[np.ndarray]:
        """All rows, some at a time: those with equal first words at the same time, in order of
        these."""
        if not self.files:
            yield _by_first(self._taken())
            return
        self._to_files()
        for file in self.files:
            file.seek(0)
            yield _by_first(np.frombuffer(file.read(), np.uint64).reshape(-1, 2))

    def _taken(self) -> np.ndarray:
        rows = np.concatenate([np.empty((0, 2), np.uint64), *self.held])
        self.held, self.count = [], 0
        return rows

    def _to_files(self) -> None:
        self.files = self.files or [
            self.stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            for _ in range(1 << FILE_BITS)
        ]
        rows = self._taken()
        number = (mix(rows[:, 0]) >> np.uint64(64 - FILE_BITS)).astype(np.uint8)
        order = np.argsort(number, kind="stable")
        bounds = np.searchsorted(number[order], np.arange(len(self.files) + 1)).tolist()
        for file, low, high in zip(self.files, bounds, bounds[1:]):
            file.write(rows[order[low:high]].data)


def _by_first(rows: np.ndarray) -> np.ndarray:
    return rows[np.argsort(rows[:, 0])]


def meeting_keys(
    blocks: Iterable[bytes], partition: int, partitions: int, options: bytes = b""
) -> Iterator[np.ndarray]:
    """uint64, each key once: where records that are in these blocks meet.

    StageError where a block is none of this partition, or damaged, or of other options.
    """
    with ExternalGroup() as entries, ExternalGroup() as groups:
        for block in blocks:
            entries.add(_checked(block, partition, partitions, options))
        for some in entries.together():
            groups.add(groups_of(some))
        for some in groups.together():
            starts = starts_of_runs(some[:, 0])
            yield np.minimum.reduceat(some[:, 1], starts) if len(starts) else some[:, 1]


def groups_of(entries: np.ndarray) -> np.ndarray:
    """Of entries (uint64 (n, 2), by key) the keys of several records, as (group, key)."""
    starts = starts_of_runs(entries[:, 0])
    if not len(starts):
        return entries
    keys, hashes = entries[starts, 0], entries[:, 1]
    several = np.diff(starts, append=len(entries)) > 1
    sums = np.add.reduceat(mix(hashes + np.uint64(1)), starts)
    of_its_own = np.logical_or.reduceat(hashes == SHARED, starts)
    sums[of_its_own] = mix(keys[of_its_own] + np.uint64(1))
    return np.column_stack((sums[several], keys[several]))


def _checked(block: bytes, partition: int, partitions: int, options: bytes) -> np.ndarray:
    try:
        entries = unpack(block, options)
        if (partition_of(digests_of(entries[:, 0]), partitions) == partition).all():
            return entries
    except ValueError:
        pass
    raise StageError(
        "expected blocks of keys, as step.py share map writes them: this one is damaged, or no "
        "such, or map had other options: give reduce the same"
    )
