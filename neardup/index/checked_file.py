"""Files that are read in places, every block of 64 KiB against its checksum."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from neardup.process.errors import StageError
from neardup.process.program import naming

BLOCK = 1 << 16  # bytes; whole rows fit in, of 4, 8 or 16 bytes
PIECE = 1 << 20  # read at once
SUM = np.dtype("<u4")
AGAIN = "make the index again"


def write_checked(path: Path, pieces: Iterable[bytes | memoryview]) -> np.ndarray:
    """Write a file, to the disk itself; the checksums of its blocks (uint32)."""
    sums: list[int] = []
    running = length = 0  # of the block that is not full yet
    with open(path, "wb") as file:
        for piece in pieces:
            with naming(path):
                file.write(piece)
            view, start = memoryview(piece).cast("B"), 0
            while start < len(view):
                part = view[start : start + BLOCK - length]
                running, length = zlib.crc32(part, running), length + len(part)
                start += len(part)
                if length == BLOCK:
                    sums.append(running)
                    running = length = 0
        with naming(path):
            file.flush()
            os.fsync(file.fileno())
    return np.array(sums + [running] * (length > 0), dtype=SUM)


def damaged(path: Path, why: str, remedy: str = AGAIN) -> StageError:
    return StageError(f"{path}: damaged, {why}; {remedy}")


class CheckedFile:
    """A file of `size` bytes whose blocks have these checksums; StageError where they have not.

    `behind` more bytes may follow them; `remedy`: what to do with a damaged one.
    """

    def __init__(
        self, path: Path, size: int, sums: np.ndarray, behind: int = 0, remedy: str = AGAIN
    ):
        self.path, self.sums, self.remedy = path, sums, remedy
        try:
            self.size = path.stat().st_size - behind
        except FileNotFoundError:
            raise damaged(path, "it is missing", remedy) from None
        if self.size != size or len(sums) != -(-size // BLOCK):
            raise damaged(path, f"it has {self.size:,} bytes and not {size:,}", remedy)

    def read(self, start: int, stop: int) -> np.ndarray:
        """The bytes (uint8) from `start` to `stop`."""
        first = start // BLOCK * BLOCK
        last = min(-(-stop // BLOCK) * BLOCK, self.size)
        with open(self.path, "rb", buffering=0) as file:
            data = os.pread(file.fileno(), last - first, first)
        if len(data) < last - first:
            raise damaged(self.path, "it ends too early", self.remedy)
        view = memoryview(data)
        for i in range(0, len(data), BLOCK):
            self._check((first + i) // BLOCK, view[i : i + BLOCK])
        return np.frombuffer(data, np.uint8)[start - first : stop - first]

    def array(self, kind: str) -> np.ndarray:
        """All of it."""
        return self.read(0, self.size).view(kind)

    def rows(self, wanted: np.ndarray, kind: str, columns: int = 1) -> np.ndarray:
        """Rows of numbers of this kind, by their numbers (int64, ascending); (n, columns)."""
        width = np.dtype(kind).itemsize * columns
        found = np.empty((len(wanted), columns), dtype=kind)
        for low, high in stretches(wanted * width, (wanted + 1) * width):
            first, last = int(wanted[low]), int(wanted[high - 1])
            some = self.read(first * width, (last + 1) * width).view(kind).reshape(-1, columns)
            found[low:high] = some[wanted[low:high] - first]
        return found

    def ranges(self, starts: np.ndarray, stops: np.ndarray) -> Iterator[bytes]:
        """The bytes of each range, of which none begins before the one before it has ended."""
        for low, high in stretches(starts, stops):
            first = int(starts[low])
            data = self.read(first, int(stops[high - 1])).tobytes()
            bounds = (starts[low:high] - first).tolist(), (stops[low:high] - first).tolist()
            yield from (data[a:b] for a, b in zip(*bounds))

    def mapped(self, wanted: np.ndarray, kind: str, columns: int) -> np.ndarray:
        """As `rows`, in any order, for what is asked for again and again."""
        width = np.dtype(kind).itemsize * columns
        rows, checked = self._map
        touched = np.zeros(len(self.sums), dtype=bool)
        touched[wanted * width // BLOCK] = True
        for block in np.flatnonzero(touched & ~checked).tolist():
            self._check(block, rows[block * BLOCK : (block + 1) * BLOCK].data)
            checked[block] = True
        return rows.view(kind).reshape(-1, columns)[wanted]

    @cached_property
    def _map(self) -> tuple[np.ndarray, np.ndarray]:
        if not self.size:
            return np.empty(0, np.uint8), np.empty(0, bool)
        rows = np.memmap(self.path, dtype=np.uint8, mode="r").view(np.ndarray)
        return rows, np.zeros(len(self.sums), dtype=bool)

    def _check(self, block: int, data: memoryview) -> None:
        if zlib.crc32(data) != self.sums[block]:
            why = f"its bytes from {block * BLOCK:,} on are others"
            raise damaged(self.path, why, self.remedy)


def stretches(starts: np.ndarray, stops: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges in order, cut into those to read together: next to each other, and up to a mebibyte.

    >>> starts = np.array([0, 100, 1 << 20, 1 << 30])
    >>> list(stretches(starts, starts + 50))
    [(0, 2), (2, 3), (3, 4)]
    """
    far = starts[1:] // BLOCK > stops[:-1] // BLOCK + 1
    bounds = [0, *(np.flatnonzero(far) + 1).tolist(), len(starts)] if len(starts) else []
    for low, end in zip(bounds, bounds[1:]):
        while low < end:
            cut = int(np.searchsorted(stops[low:end], starts[low] + PIECE, side="right"))
            yield low, low + max(1, cut)
            low += max(1, cut)
