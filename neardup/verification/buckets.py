"""Buckets from sorted keyed lines, and the removal of copies within a large bucket.

Most keys belong to one record, and such a line is skipped without being decoded: only its first
fourteen bytes are read, in one vector step for a whole block of lines.  The lines of other buckets
are collected until there is enough work for the join.  Held in memory: one block, the batch, and
the bucket at the end of the block.  A bucket too large for that goes to a temporary file
(`SpilledBucket`) and is read back a piece at a time.

Copies in a large bucket are found while it is read.  In byte order, its lines are in order of size
and then of id: equal sets have one size, and the first line of a set has the smallest of its ids.
Sets of one size are held, up to `KNOWN_BYTES`.  Further sets are kept with their copies and sorted
by set; then copies follow the first line of their set, and only one set at a time is held.  Where
records have kinds (--across, --not-pairs), equal sets of different kinds are not copies.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import IO, Callable, NamedTuple

import numpy as np

from neardup.lines.keyed_lines import KEY_WIDTH, lines_of
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, system_sort
from neardup.verification.bucket_batch import BucketBatch

BATCH_BYTES = 1 << 20
BUCKET_BYTES = 8 << 20
SHARED_BUCKETS = "buckets with more than one record"
KNOWN_BYTES = 8 << 20
SET_BYTES = 256  # the overhead of a set that is held with its line
# Flags: the first id of each set and kind first; the kind is then behind the key.
BY_SET = ["-u", "-t", "\t", "-k2,2", "-k4,4", "-k1,1", "-k3"]
Copies = dict[bytes, list[bytes]]  # from the first line of a set, with its end, to later ids


class SpilledBucket(NamedTuple):
    """A large bucket in a file, with its lines in order of set size.

    Lines of one size are in byte order, or in that of `BY_SET`.
    """

    file: IO[bytes]
    piece_bytes: int

    def piece(self, start: int) -> list[bytes]:
        """Return some whole lines from position `start` on, without line ends; [] at the end."""
        self.file.seek(start)
        return [line[:-1] for line in self.file.readlines(self.piece_bytes)]

    def starts(self) -> Iterator[int]:
        position = 0
        while lines := self.piece(position):
            yield position
            position += sum(map(len, lines)) + len(lines)


def shared_lines(
    blocks: Iterable[bytes], counters: Counters, bucket_bytes: int = BUCKET_BYTES
) -> "Iterator[list[bytes] | SpilledBucket]":
    """Yield the lines of buckets with several records: many small buckets, or one large one.

    `blocks` hold whole keyed lines in ascending order of keys.  A spilled bucket's file is deleted
    when the next item is requested.
    """
    source = iter(blocks)
    batch: list[bytes] = []
    size = 0  # of the batch
    unfinished = b""  # the lines of the last key so far, which may go on in the next block
    line_number = 1
    while block := _next(source, min(len(unfinished), bucket_bytes - len(unfinished))):
        scan = _scan(unfinished + block, line_number, bucket_bytes)
        line_number += scan.lines
        counters.add("keyed lines", scan.lines)
        counters.add(SHARED_BUCKETS, scan.buckets)
        batch += scan.shared
        size += sum(map(len, scan.shared))
        unfinished = scan.unfinished
        if scan.large or size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        if scan.large:
            import tempfile  # here, as most inputs have no such bucket

            with tempfile.TemporaryFile() as unsorted, tempfile.TemporaryFile() as lines:
                count, rest = _spill(unfinished, source, unsorted, counters, line_number)
                # Hadoop sorts by keys alone.  An equal line is the same record.
                sort_lines(unsorted, lines, counters, ["-u"])
                counters.add(SHARED_BUCKETS, 1)
                yield SpilledBucket(lines, bucket_bytes // 2)
            line_number += count
            if rest and rest < unfinished:
                raise _out_of_order(line_number)
            unfinished = b""
            source = chain([rest] if rest else [], source)
    last = unfinished.splitlines()
    counters.add("keyed lines", len(last))
    counters.add(SHARED_BUCKETS, len(last) > 1)
    yield batch + (last if len(last) > 1 else [])


def batches_of_lines(
    blocks: Iterable[bytes], counters: Counters, bucket_bytes: int = BUCKET_BYTES
) -> "Iterator[BucketBatch | SpilledBucket]":
    """Yield batches of small buckets, and large buckets alone; see `shared_lines`."""
    for work in shared_lines(blocks, counters, bucket_bytes):
        yield work if isinstance(work, SpilledBucket) else BucketBatch.of_lines(work)


def _next(source: Iterator[bytes], size: int) -> bytes:
    """Return the next `size` bytes of `source`, or more, so that few lines are scanned twice."""
    blocks = [next(source, b"")]
    while size > sum(map(len, blocks)) and blocks[-1]:
        blocks.append(next(source, b""))
    return b"".join(blocks)


class _Scan(NamedTuple):
    """A block of lines, divided into finished buckets and an unfinished rest."""

    shared: list[bytes]  # the lines of the finished buckets that have more than one
    buckets: int  # how many such buckets
    lines: int  # how many lines all finished buckets have
    unfinished: bytes  # the rest
    large: bool  # whether the rest starts with a large bucket, finished or not


def _scan(block: bytes, line_number: int, bucket_bytes: int) -> _Scan:
    starts, ends, high, low = lines_of(block, line_number)
    equal = high[1:] == high[:-1]
    falls = (high[1:] < high[:-1]) | (equal & (low[1:] < low[:-1]))
    if falls.any():
        raise _out_of_order(line_number + 1 + int(np.argmax(falls)))
    same = np.concatenate(([False], equal & (low[1:] == low[:-1]), [False]))  # … as the line before
    buckets = np.flatnonzero(~same[:-1])
    several = np.diff(buckets, append=len(starts)) > 1
    large = several & (np.diff(starts[buckets], append=len(block)) > bucket_bytes)
    finished = int(buckets[np.argmax(large) if large.any() else -1])
    shared = np.flatnonzero((same[:-1] | same[1:])[:finished])
    return _Scan(
        shared=[block[a:b] for a, b in zip(starts[shared].tolist(), ends[shared].tolist())],
        buckets=len(shared) - int(np.count_nonzero(same[:finished])),
        lines=finished,
        unfinished=block[starts[finished] :],
        large=bool(large.any()),
    )


def _out_of_order(line_number: int) -> StageError:
    return StageError(f"line {line_number}: keys are not in order; sort them first: LC_ALL=C sort")


def _spill(
    start: bytes, source: Iterator[bytes], file: IO[bytes], counters: Counters, line_number: int
) -> tuple[int, bytes]:
    """Write the bucket that begins with `start` to `file`; return its lines and what follows."""
    count = 0
    for block in chain([start], source):
        _, ends, high, low = lines_of(block, line_number + count)  # raises if they are damaged
        if not count:
            key = high[0], low[0]
        others = np.flatnonzero((high != key[0]) | (low != key[1]))
        mine = int(others[0]) if len(others) else len(ends)
        end = int(ends[mine - 1]) + 1 if mine else 0
        file.write(block[:end])
        count += mine
        counters.add("keyed lines", mine)
        if end < len(block):
            return count, block[end:]
    return count, b""


def sort_lines(
    file: IO[bytes], result: IO[bytes], counters: Counters, flags: Sequence[str] = ()
) -> None:
    """Sort the lines of `file` into `result` with the program sort, in byte order or by `flags`."""
    file.seek(0)  # this also writes out what is buffered
    with system_sort(file, result, ["-S", "32M", *flags], counters.alive):
        pass


def without_copies(
    spilled: SpilledBucket,
    result: IO[bytes],
    kind_of: Callable[[bytes], bytes],
    by_set: bool = False,
) -> Iterator[Copies]:
    """Yield the copies found in a spilled bucket, and write its other lines to `result`.

    A copy is a later line with the same set.  Copies are yielded in order, a piece at a time.
    kind_of: returns the kind of an id.
    by_set: the lines are in order of `BY_SET`, and all copies are found.  Other lines are written
    with their kind behind the key, for such an order.
    """
    known: dict[bytes, bytes] = {}  # from a set to its first line
    room, before = KNOWN_BYTES, b""
    spilled.file.seek(0)
    while lines := spilled.file.readlines(spilled.piece_bytes):
        copies: Copies = {}
        for line in lines:
            key, size, id_, set_ = line.split(b"\t")
            kind = kind_of(id_)
            of_kind = kind + set_
            together = of_kind if by_set else size
            if together != before:
                known.clear()
                room, before = KNOWN_BYTES, together
            plain = key[:KEY_WIDTH] + line[len(key) :]
            left = plain if by_set else key + kind + line[len(key) :]
            first = known.get(of_kind)
            if first is not None:
                copies.setdefault(first, []).append(id_)
                continue
            result.write(left)
            if by_set or room > 0:
                room -= 2 * len(line) + SET_BYTES
                known[of_kind] = plain
        yield copies
