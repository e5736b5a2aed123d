"""Files with a checksum for each block, and the segments of an index.

A *segment* has the records of one build, looked up by their keys.  Its *postings*, a key and the
number of a record, are in order of keys in each partition of the keys (by their lowest bits).  A
*fence* is every 8192nd key of a partition: one read covers what is between two of them.
"""

import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from neardup.lines.keyed_lines import decode_sets, encode_sets
from neardup.reading.blocks import LINE_BITS, first_place
from neardup.runtime.program import StageError, UsageError, naming
from neardup.sets.ragged import Batch, chunks, spans

BLOCK = 1 << 16  # bytes, a multiple of 4, 8 and 16
PIECE = 1 << 20  # bytes read at once
SUM = np.dtype("<u4")
Columns = tuple[np.ndarray, np.ndarray]  # keys, and the numbers of their records
AGAIN = "make the index again"

KEY, HOLDER, SKETCH, ROW = "<u8", "<u4", "<u8", "<u8"
FILES = ("keys", "records", "holders", "record_sketches", "rows", "fences")
SUMS = "sums"
REMOVED = "removed"  # in the manifest: the numbers of a segment's records that are removed
COUNTS = "counts"  # of tokens, in the first segment, if keys depend on them
MAX_RECORDS = 1 << 32
OLD = np.uint64(1 << 63)  # in a sketch, beside the size: the record is an old one
FENCE = 8192  # postings
KEY_BYTES = np.dtype(KEY).itemsize
TEXT_BYTES = 1 << 20  # of records, decoded at once


def write_checked(path: Path, pieces: Iterable[bytes]) -> np.ndarray:
    """Write a file, durably (fsync); return the checksums of its blocks (uint32)."""
    sums: list[int] = []
    pending = bytearray()  # bytes of the block that is not full yet
    with open(path, "wb") as file:
        for piece in pieces:
            with naming(path):
                file.write(piece)
            pending += piece
            full = len(pending) // BLOCK * BLOCK
            sums += [zlib.crc32(pending[i : i + BLOCK]) for i in range(0, full, BLOCK)]
            del pending[:full]
        with naming(path):
            file.flush()
            os.fsync(file.fileno())
    return np.array(sums + [zlib.crc32(pending)] * bool(pending), dtype=SUM)


def record_lines(batch: Batch) -> list[bytes]:
    """Return the lines of the file `records`."""
    return [b"%b\t%b\n" % line for line in zip(batch.ids, encode_sets(batch.sets))]


def write(
    folder: Path, contents: Mapping[str, Iterable[bytes]], records: int, partitions: list[int]
) -> dict[str, Any]:
    """Write all FILES of a segment, and their checksums; return its description for the manifest.

    records: how many there are; partitions: the number of postings in each.
    """
    sums = [write_checked(folder / name, contents[name]) for name in FILES]
    of_sums = write_checked(folder / SUMS, [np.concatenate(sums).tobytes()])
    return {
        "records": records,
        "partitions": partitions,
        "sizes": {name: (folder / name).stat().st_size for name in FILES},
        SUMS: of_sums.tolist(),
    }


def damaged(path: Path, why: str, remedy: str = AGAIN) -> StageError:
    return StageError(f"{path}: damaged, {why}; {remedy}")


def _missing(path: Path, remedy: str) -> StageError:
    if path.parent.exists():
        return damaged(path, "it is missing", remedy)
    again = "run again if the index was compacted and changed meanwhile"
    return StageError(f"{path.parent}: is missing; {again}, else {remedy}")


def differing(mine: Mapping[str, str], yours: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield each flag whose values differ in two sets of options, with both values as text.

    >>> list(differing({"--bands": "20", "--rows": "3"}, {"--rows": "3"}))
    [('--bands', 'with --bands 20', 'without --bands')]
    """
    for flag in dict.fromkeys([*mine, *yours]):
        first, second = (
            f"with {flag} {some[flag]}".removesuffix(" True")
            if some.get(flag)
            else f"without {flag}"
            for some in (mine, yours)
        )
        if first != second:
            yield flag, first, second


def refuse_unlike(
    one: object, mine: Mapping[str, str], other: object, yours: Mapping[str, str], remedy: str
) -> None:
    """Raise UsageError if two files were made with different options."""
    for _, first, second in differing(mine, yours):
        raise UsageError(f"{one} was made {first}, and {other} {second}; {remedy}")


class CheckedFile:
    """A file with a checksum per block; StageError, with `remedy`, if it is found to be damaged.

    A block is checked when it is first read.
    """

    def __init__(
        self, path: Path, size: int, sums: np.ndarray, behind: int = 0, remedy: str = AGAIN
    ):
        self.path, self.sums, self.remedy = path, sums, remedy
        self._checked = np.zeros(len(sums), dtype=bool)
        try:
            self.size = path.stat().st_size - behind
        except FileNotFoundError:
            raise _missing(path, remedy) from None
        if self.size != size or len(sums) != -(-size // BLOCK):
            raise damaged(path, f"it has {self.size:,} bytes instead of {size:,}", remedy)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read and check the bytes from `start` up to `stop` (uint8)."""
        blocks = range(start // BLOCK, -(-stop // BLOCK))
        if self._checked[blocks.start : blocks.stop].all():
            return self._bytes(start, stop)
        first = blocks.start * BLOCK
        data = self._bytes(first, min(blocks.stop * BLOCK, self.size))
        for i, block in enumerate(blocks):
            self._check(block, data[i * BLOCK : (i + 1) * BLOCK].data)
        return data[start - first : stop - first]

    def _bytes(self, start: int, stop: int) -> np.ndarray:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise _missing(self.path, self.remedy) from None
        try:
            data = os.pread(descriptor, stop - start, start)
        finally:
            os.close(descriptor)
        if len(data) < stop - start:
            raise damaged(self.path, "it ends too early", self.remedy)
        return np.frombuffer(data, np.uint8)

    def array(self, kind: str) -> np.ndarray:
        return self.read(0, self.size).view(kind)

    def rows(self, wanted: np.ndarray, kind: str, columns: int = 1) -> np.ndarray:
        """Read rows of a table by number (int64, ascending): dtype `kind`, shape (n, columns)."""
        width = np.dtype(kind).itemsize * columns
        found = np.empty((len(wanted), columns), dtype=kind)
        for low, high in stretches(wanted * width, (wanted + 1) * width):
            first, last = int(wanted[low]), int(wanted[high - 1])
            some = self.read(first * width, (last + 1) * width).view(kind).reshape(-1, columns)
            found[low:high] = some[wanted[low:high] - first]
        return found

    def ranges(self, starts: np.ndarray, stops: np.ndarray) -> Iterator[bytes]:
        """Yield the bytes from `starts[i]` up to `stops[i]`; ranges ascend and must not overlap."""
        for low, high in stretches(starts, stops):
            first = int(starts[low])
            data = self.read(first, int(stops[high - 1])).tobytes()
            bounds = (starts[low:high] - first).tolist(), (stops[low:high] - first).tolist()
            yield from (data[a:b] for a, b in zip(*bounds))

    def mapped(self, wanted: np.ndarray, kind: str, columns: int) -> np.ndarray:
        """Read rows of a table by number, in any order, with mmap; each block is checked once."""
        width = np.dtype(kind).itemsize * columns
        rows = self._map
        touched = np.zeros(len(self.sums), dtype=bool)
        touched[wanted * width // BLOCK] = True
        for block in np.flatnonzero(touched & ~self._checked).tolist():
            self._check(block, rows[block * BLOCK : (block + 1) * BLOCK].data)
        return rows.view(kind).reshape(-1, columns)[wanted]

    @cached_property
    def _map(self) -> np.ndarray:
        if not self.size:
            return np.empty(0, np.uint8)
        return np.memmap(self.path, dtype=np.uint8, mode="r").view(np.ndarray)

    def _check(self, block: int, data: memoryview) -> None:
        if zlib.crc32(data) != self.sums[block]:
            why = f"checksum mismatch from byte {block * BLOCK:,} on"
            raise damaged(self.path, why, self.remedy)
        self._checked[block] = True


def stretches(starts: np.ndarray, stops: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield groups (low, high) of byte ranges to read at once: up to 1 MiB, or one larger range.

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


@dataclass(frozen=True)
class Segment:
    """A segment of an index: the records that one build added; `about`: its manifest entry."""

    folder: Path
    about: dict[str, Any]
    first_file: int = 0

    def __len__(self) -> int:
        """Return the number of records that are not removed."""
        return self.stored - int(self.about.get(REMOVED, {REMOVED: 0})[REMOVED])

    @property
    def stored(self) -> int:
        """The number of records on disk, with removed ones."""
        return int(self.about["records"])

    @cached_property
    def present(self) -> np.ndarray:
        """A mask (bool) of the stored records that are not removed."""
        mask = np.ones(self.stored, bool)
        if REMOVED in self.about:
            packed = zlib.decompress(b64decode(self.about[REMOVED]["numbers"]))
            mask[np.frombuffer(packed, HOLDER)] = False
        return mask

    def has_records_of(self, file: int) -> bool:
        """Return whether a record is present that was read from file number `file` of the index."""
        rows = self.files["rows"].array(ROW).reshape(-1, 2)
        return bool((rows[self.present, 0] >> np.uint64(LINE_BITS) == file).any())

    @cached_property
    def files(self) -> dict[str, CheckedFile]:
        sizes: dict[str, int] = self.about["sizes"]
        counts = [-(-sizes[name] // BLOCK) for name in FILES]
        own = CheckedFile(
            self.folder / SUMS, SUM.itemsize * sum(counts), np.array(self.about[SUMS], SUM)
        )
        sums = np.split(own.array(SUM.str), np.cumsum(counts)[:-1])
        return {
            name: CheckedFile(self.folder / name, sizes[name], some)
            for name, some in zip(FILES, sums)
        }

    def find(self, keys: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the postings of distinct keys (uint64): arrays of keys and of records (int64)."""
        fences, starts, stops = self._pieces
        order = np.argsort(self._by_partition(keys))
        keys = keys[order]
        mixed = self._by_partition(keys)
        low = np.maximum(np.searchsorted(fences, mixed, "left") - 1, 0)
        high = np.searchsorted(fences, mixed, "right")
        wanted = np.unique(spans(low, np.maximum(high - low, 0)))
        ends = np.searchsorted(high, wanted, "right"), np.searchsorted(low, wanted, "right")
        pieces = zip(*(each.tolist() for each in (starts[wanted], stops[wanted], *ends)))
        while some := list(islice(pieces, PIECE // (FENCE * KEY_BYTES))):
            found = []
            for start, stop, i, j in some:
                held = self.files["keys"].read(start * KEY_BYTES, stop * KEY_BYTES).view(KEY)
                first = held.searchsorted(keys[i:j], "left")
                count = held.searchsorted(keys[i:j], "right") - first
                found.append((keys[i:j], start + first, count))
            shared, places, counts = map(np.concatenate, zip(*found))
            if counts.any():
                rows = self.files["holders"].rows(spans(places, counts), HOLDER)[:, 0]
                here = self.present[rows] if REMOVED in self.about else slice(None)
                yield np.repeat(shared, counts)[here], rows[here].astype(np.int64)

    def _by_partition(self, keys: np.ndarray) -> np.ndarray:
        """Rotate the bits of keys, so that they sort as in the file: by partition, then by key."""
        bits = len(self.partitions).bit_length() - 1
        if not bits:
            return keys
        rotated: np.ndarray = keys >> np.uint64(bits) | keys << np.uint64(64 - bits)
        return rotated

    @property
    def partitions(self) -> list[int]:
        """The number of postings in each partition; the number of partitions is a power of two."""
        counts: list[int] = self.about["partitions"]
        return counts

    @cached_property
    def _pieces(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The first key (rotated), start and stop (int64) of each piece of up to 8,192 postings."""
        counts = np.array(self.partitions)
        ends = np.cumsum(counts)
        pieces = -(-counts // FENCE)
        starts = np.repeat(ends - counts, pieces) + FENCE * spans(np.zeros_like(pieces), pieces)
        stops = np.minimum(starts + FENCE, np.repeat(ends, pieces))
        return self._by_partition(self.files["fences"].array(KEY)), starts, stops

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Return the size and bitmap of records by number: uint64 (n, 2), as in `key_pruning`."""
        return self.files["record_sketches"].mapped(rows.astype(np.int64), SKETCH, 2)

    def batches(self, numbers: np.ndarray) -> Iterator[tuple[int, Batch]]:
        """Read records by number (int64, ascending); yield (index of the first number, batch)."""
        place, starts, stops = self._lines_at(numbers)
        place = place + np.uint64(first_place(self.first_file, new=False))
        for low, high in chunks(stops - starts, TEXT_BYTES):
            lines = self.files["records"].ranges(starts[low:high], stops[low:high])
            fields = [line[:-1].split(b"\t") for line in lines]
            if any(len(some) != 2 for some in fields):
                raise damaged(self.folder / "records", "one of its lines is not a record")
            ids, texts = zip(*fields)
            yield low, Batch(list(ids), decode_sets(list(texts)), places=place[low:high])

    def _lines_at(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the places of records (uint64), and where their lines start and stop (int64)."""
        before = np.maximum(numbers - 1, 0)
        starts = self.files["rows"].rows(before, ROW, 2)[:, 1].astype(np.int64)
        starts[numbers == 0] = 0
        place, stops = self.files["rows"].rows(numbers, ROW, 2).T
        return place, starts, stops.astype(np.int64)

    def with_removed(self, more: list[int]) -> dict[str, Any]:
        """Return the manifest entry of the segment after `more` records, by number, are removed."""
        mask = self.present.copy()
        mask[more] = False
        gone = np.flatnonzero(~mask).astype(HOLDER)
        numbers = b64encode(zlib.compress(gone.tobytes())).decode()
        return {**self.about, REMOVED: {REMOVED: len(gone), "numbers": numbers}}

    def rewrite(self, folder: Path) -> dict[str, Any]:
        """Write the records that are not removed to another folder; return what `write` returns."""
        numbers, renumbered = np.flatnonzero(self.present), np.cumsum(self.present) - 1
        place, starts, stops = self._lines_at(numbers)
        ends = np.cumsum(stops - starts).astype(np.uint64)
        bounds = np.cumsum([0, *self.partitions]).tolist()

        def postings(start: int, stop: int) -> Iterator[Columns]:
            for low in range(start, stop, PIECE):
                high = min(low + PIECE, stop)
                keys = self.files["keys"].read(low * KEY_BYTES, high * KEY_BYTES).view(KEY)
                holders = self.files["holders"].read(low * 4, high * 4).view(HOLDER)
                here = self.present[holders]
                yield keys[here], renumbered[holders[here]].astype(HOLDER)

        def fences() -> Iterator[bytes]:
            for part in zip(bounds, bounds[1:]):
                done = 0
                for keys, _ in postings(*part):
                    yield keys[-done % FENCE :: FENCE].tobytes()
                    done += len(keys)

        contents = {
            "keys": (keys.tobytes() for keys, _ in postings(0, bounds[-1])),
            "records": self.files["records"].ranges(starts, stops),
            "holders": (holders.tobytes() for _, holders in postings(0, bounds[-1])),
            "record_sketches": (
                self[numbers[low : low + PIECE]].tobytes() for low in range(0, len(numbers), PIECE)
            ),
            "rows": [np.column_stack((place, ends)).tobytes()],
            "fences": fences(),
        }
        parts = zip(bounds, bounds[1:])
        partitions = [sum(len(keys) for keys, _ in postings(*part)) for part in parts]
        if (counts := self.folder / COUNTS).exists():
            write_checked(folder / COUNTS, [counts.read_bytes()])
        return write(folder, contents, len(numbers), partitions)
