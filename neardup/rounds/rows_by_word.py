"""Rows of two words, brought together by the first one, in bounded memory.

Those that are too many to be sorted at once go to files by a few bits of a hash of it, and come
back a file at a time: of n rows, n/64 are in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO

import numpy as np

from neardup.sets.hashing import mix

ROWS_AT_ONCE = 1 << 21  # at some 60 bytes each
FILE_BITS = 6


class RowsByWord:
    """A context; what it has written is gone with it."""

    def __init__(self) -> None:
        self.held: list[np.ndarray] = []
        self.count = 0
        self.files: list[IO[bytes]] = []
        self.stack = ExitStack()

    def __enter__(self) -> RowsByWord:
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
