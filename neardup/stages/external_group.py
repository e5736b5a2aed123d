"""External grouping: group rows of two words by their first word, in bounded memory.

    rows ── partition 0 ─┬─ range of keys ── sorted in memory
            partition 1  ├─ range of keys ── sorted in memory
            …            └─ a hot key     ── streamed, as it was written

A row is a key and a value, both uint64: a key and a record that has it, or a token and its count.
The lowest bits of a key select the partition of its rows (`write_rows`).  A partition is divided
into ranges of keys (`key_ranges`), as even as a count of 65,536 parts allows, and sorted one range
at a time.  A *hot* key is in so many rows that these alone do not fit into memory.
"""

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import IO, NamedTuple, Union

import numpy as np

from neardup.lines.keyed_lines import KEY_BITS
from neardup.sets.ragged import chunks

ROW_BYTES = 16
ROWS_AT_ONCE = 1 << 20  # sorted in memory, at some 70 bytes each
READ_BYTES = ROW_BYTES << 16
PARTITION_BYTES = 32 << 20  # of the input; its rows usually take a third of that
MAX_PARTITIONS = 256
STREAM_PARTITIONS = 64
DIGIT_BITS = 16
WORD_BITS = 64
NO_ROWS = np.empty((0, 2), np.uint64)

Source = Union[Path, IO[bytes]]  # a file of rows


def partitions_for(input_bytes: int) -> int:
    """Return the number of partitions of keys for an input's size: a power of two, at most 256.

    >>> partitions_for(0), partitions_for(100 << 20), partitions_for(1 << 50)
    (1, 4, 256)
    """
    return min(1 << (input_bytes // PARTITION_BYTES).bit_length(), MAX_PARTITIONS)


def write_rows(rows: np.ndarray, files: Sequence[IO[bytes]], shift: int = 0) -> None:
    """Write each row of uint64 (n, 2) to the file that bits of its key select, from bit `shift`."""
    parts = (rows[:, 0] >> np.uint64(shift) & np.uint64(len(files) - 1)).astype(np.uint8)
    order = np.argsort(parts, kind="stable")
    bounds = np.searchsorted(parts[order], np.arange(len(files) + 1)).tolist()
    rows = rows[order]  # reordered once, since each of many files gets few rows
    for file, low, high in zip(files, bounds, bounds[1:]):
        file.write(rows[low:high].data)


def pieces_of(source: Source) -> Iterator[np.ndarray]:
    """Yield the rows of a file in arrays, uint64 (n, 2), of at most 65,536 rows."""
    with open(source, "rb") if isinstance(source, Path) else nullcontext(source) as file:
        file.seek(0)
        while data := file.read(READ_BYTES):
            yield np.frombuffer(data, dtype=np.uint64).reshape(-1, 2)


class KeyRange(NamedTuple):
    """The keys from `first` to `last`; if `hot`, one key with too many rows for memory."""

    first: int
    last: int
    hot: bool = False

    def pieces(self, source: Source) -> Iterator[np.ndarray]:
        """Yield the rows of a file that have keys in this range, in arrays, uint64 (n, 2)."""
        for rows in pieces_of(source):
            keys = rows[:, 0]
            yield rows[(keys >= np.uint64(self.first)) & (keys <= np.uint64(self.last))]

    def rows(self, sources: Sequence[Source]) -> np.ndarray:
        """Return, from all files, the rows with keys in this range, sorted by key."""
        pieces = [piece for source in sources for piece in self.pieces(source)]
        return by_key(np.concatenate([NO_ROWS, *pieces]))


def key_ranges(
    sources: Sequence[Source], bits: int = KEY_BITS, most: int = sys.maxsize
) -> list[KeyRange]:
    """Divide the keys of files into ranges of bounded size; a hot key is a range of its own.

    A range has at most ROWS_AT_ONCE rows, or more if there would be more than `most` ranges.
    """
    sizes = (x.stat().st_size if isinstance(x, Path) else x.seek(0, 2) for x in sources)
    count = sum(sizes) // ROW_BYTES
    # Two neighbouring ranges together have more than `at_once` rows, or else they are merged.
    at_once = max(ROWS_AT_ONCE, -(-count // ((most + 1) // 2)))
    end = 1 << WORD_BITS
    if count <= at_once:
        return [KeyRange(0, end - 1)]
    starts, counts = zip(*_histogram(sources, 0, bits, at_once))
    ranges = []
    for low, high in chunks(np.array(counts), at_once):
        last = (starts[high] if high < len(starts) else end) - 1
        ranges.append(KeyRange(starts[low], last, hot=sum(counts[low:high]) > at_once))
    return ranges


def in_order(sources: Sequence[Source]) -> Iterator[np.ndarray]:
    """Yield all rows of files as arrays, in order of keys; a hot key may fill several arrays."""
    for keys in key_ranges(sources):
        if keys.hot:
            for source in sources:
                yield from keys.pieces(source)
        else:
            yield keys.rows(sources)


def _histogram(
    sources: Sequence[Source], first: int, bits: int, at_once: int
) -> list[tuple[int, int]]:
    """Divide the 2^bits keys from `first`; return (first key, number of rows) for non-empty parts.

    A part with more rows than `at_once` is divided again, down to a single key.
    """
    shift = max(0, bits - DIGIT_BITS)
    counts = np.zeros(1 << bits - shift, dtype=np.int64)
    for source in sources:
        for rows in pieces_of(source):
            # keys outside this range become large numbers
            digits = rows[:, 0] - np.uint64(first) >> np.uint64(shift)
            digits = digits[digits < np.uint64(len(counts))].astype(np.int64)
            counts += np.bincount(digits, minlength=len(counts))
    parts = []
    for digit in np.flatnonzero(counts).tolist():
        start, count = first + (digit << shift), int(counts[digit])
        if count > at_once and shift:
            parts += _histogram(sources, start, shift, at_once)
        else:
            parts.append((start, count))
    return parts


def grouped(pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield arrays of rows (uint64 (n, 2)), each sorted by key; all rows of a key are in one array.

    >>> pieces = [np.array([[7, 1], [5, 2]], np.uint64), np.array([[7, 3]], np.uint64)]
    >>> [rows.tolist() for rows in grouped(pieces)]
    [[[5, 2], [7, 1], [7, 3]]]
    """
    files: list[IO[bytes]] = []
    held, count = [NO_ROWS], 0
    with ExitStack() as stack:
        for rows in pieces:
            held.append(rows)
            count += len(rows)
            if count > ROWS_AT_ONCE:
                while len(files) < STREAM_PARTITIONS:
                    files.append(stack.enter_context(tempfile.TemporaryFile()))
                write_rows(np.concatenate(held), files)
                held, count = [NO_ROWS], 0
        if not files:
            yield by_key(np.concatenate(held))
            return
        write_rows(np.concatenate(held), files)
        held = []
        for file in files:
            for keys in key_ranges([file], WORD_BITS):
                yield keys.rows([file])


def by_key(rows: np.ndarray) -> np.ndarray:
    return rows[np.argsort(rows[:, 0])]
