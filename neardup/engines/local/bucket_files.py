"""What mappers send to reducers on one machine: records beside the keys they meet at, as arrays.

    batches, keys ─┬─ partition 0: run, run, run … ─── whole buckets at a time, as piles
                   └─ partition 1: run, run …       └─ a large one as lines in a file: a spool

A *run* has some mebibytes of records in order of keys, so that those of any range of keys are one
slice of it.  A reducer looks at the keys of all runs first, and then reads the slices of so many
buckets as memory may hold.  Nothing is written as text, sorted as text and parsed again.

A run lies in a file as a pickled `_Head` and, behind it, its tokens, weights and ids.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from neardup.lines.keyed_lines import format_keyed_lines
from neardup.process.counters import Counters
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged, chunks
from neardup.sets.runs import starts_of_runs
from neardup.verification.buckets import BUCKET_BYTES, SHARED_BUCKETS, Spool, sort_lines
from neardup.verification.pile import Pile, in_piles, record_bytes

RUN_BYTES = 8 << 20  # what a mapper holds
READ_BYTES = 16 << 20  # what a reducer reads at once; a larger bucket goes to a spool
FILES = 4  # of these for a file of bare keys, at least
MOST_FILES = 256


def files_for(partitions: int, jobs: int) -> int:
    """How many files each mapper writes; a power of two, which gives each reducer two.

    >>> files_for(1, 1), files_for(1, 8), files_for(256, 240)
    (4, 16, 256)
    """
    return min(max(FILES * partitions, 1 << (2 * jobs - 1).bit_length()), MOST_FILES)


class _Head(NamedTuple):
    """keys: uint64 (n,), ascending; sizes: int64 (n,), of the sets; lengths: int64 (n,), of ids in
    bytes; kind: of tokens; weighted: whether there are weights (int64)."""

    keys: np.ndarray
    sizes: np.ndarray
    lengths: np.ndarray
    kind: np.dtype
    weighted: bool


class BucketWriter:
    """The records of one mapper, a file for each partition of the keys.

    written: bytes of records, whichever runs they are in.
    """

    def __init__(self, files: Sequence[BinaryIO]):
        self.files = files
        self.written = 0
        self.held: list[tuple[Batch, Ragged]] = []
        self.size = 0

    def add(self, batch: Batch, keys: Ragged) -> None:
        """Each record at each of its keys (a row of `keys`)."""
        self.held.append((batch, keys))
        self.size += int(np.dot(record_bytes(batch.sets.sizes), keys.sizes))
        if self.size >= RUN_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is held, a run to each file at most."""
        if not self.held:
            return
        sets = _narrow(Ragged.end_to_end([batch.sets for batch, _ in self.held]))
        keys = Ragged.end_to_end([keys for _, keys in self.held])
        ids = [id_ for batch, _ in self.held for id_ in batch.ids]
        self.held, self.size = [], 0
        owner = np.repeat(np.arange(len(keys)), keys.sizes)
        parts = keys.values & np.uint64(len(self.files) - 1)
        order = np.lexsort((keys.values, parts))
        bounds = np.searchsorted(parts[order], np.arange(len(self.files) + 1)).tolist()
        for file, low, high in zip(self.files, bounds, bounds[1:]):
            if low < high:
                some = order[low:high]
                self.written += _write_run(file, keys.values[some], ids, sets, owner[some])


def _narrow(sets: Ragged) -> Ragged:
    """The same, in the narrowest integers that hold all tokens."""
    kind = np.min_scalar_type(int(sets.values.max(initial=0)))
    return Ragged(sets.values.astype(kind), sets.offsets, sets.weights)


def _write_run(
    file: BinaryIO, keys: np.ndarray, ids: list[bytes], sets: Ragged, some: np.ndarray
) -> int:
    rows = sets.take(some)
    names = [ids[i] for i in some.tolist()]
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    head = _Head(keys, rows.sizes, lengths, rows.values.dtype, rows.weights is not None)
    pickle.dump(tuple(head), file, protocol=5)
    columns = [rows.values] if rows.weights is None else [rows.values, rows.weights]
    file.writelines([*(column.data for column in columns), *names])
    return int(lengths.sum()) + sum(each.nbytes for each in (keys, rows.sizes, lengths, *columns))


class _Run(NamedTuple):
    """A run in a file: its head, and where in the file its columns begin."""

    file: BinaryIO
    head: _Head
    offsets: np.ndarray  # int64 (n+1,): where the tokens of each record begin among all
    id_offsets: np.ndarray  # … and the bytes of its id
    start: int

    @classmethod
    def all_of(cls, file: BinaryIO) -> Iterator[_Run]:
        while True:
            try:
                head = _Head(*pickle.load(file))
            except EOFError:
                return
            offsets, id_offsets = (
                np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
                for sizes in (head.sizes, head.lengths)
            )
            run = cls(file, head, offsets, id_offsets, file.tell())
            yield run
            file.seek(run.names_start + int(id_offsets[-1]))

    @property
    def weights_start(self) -> int:
        return self.start + int(self.offsets[-1]) * self.head.kind.itemsize

    @property
    def names_start(self) -> int:
        return self.weights_start + int(self.offsets[-1]) * 8 * self.head.weighted

    def slices(self, first: int, last: int) -> tuple[np.ndarray, list[bytes], Ragged]:
        """Keys, ids and sets of the records whose keys are in this range, both ends with it."""
        low, high = np.searchsorted(self.head.keys, np.array([first, last + 1], np.uint64)).tolist()
        values = self._column(self.start, self.head.kind, low, high).astype(np.uint64)
        weights = None
        if self.head.weighted:
            weights = self._column(self.weights_start, np.dtype(np.int64), low, high)
        self.file.seek(self.names_start + int(self.id_offsets[low]))
        names = self.file.read(int(self.id_offsets[high] - self.id_offsets[low]))
        bounds = (self.id_offsets[low : high + 1] - self.id_offsets[low]).tolist()
        ids = [names[start:stop] for start, stop in zip(bounds, bounds[1:])]
        sets = Ragged(values, self.offsets[low : high + 1] - self.offsets[low], weights)
        return self.head.keys[low:high], ids, sets

    def _column(self, start: int, kind: np.dtype, low: int, high: int) -> np.ndarray:
        first, last = int(self.offsets[low]), int(self.offsets[high])
        self.file.seek(start + first * kind.itemsize)
        return np.frombuffer(self.file.read((last - first) * kind.itemsize), kind)


def buckets_of(
    paths: list[Path], counters: Counters, read_bytes: int = READ_BYTES
) -> Iterator[Pile | Spool]:
    """The buckets of a partition, that of all mappers: many at a time, or a large one in a file.

    A spool is gone with the next step.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, "rb")) for path in paths]
        runs = [run for file in files for run in _Run.all_of(file)]
        if not runs:
            return
        keys = np.concatenate([run.head.keys for run in runs])
        weights = record_bytes(np.concatenate([run.head.sizes for run in runs]))
        counters.add("keyed lines", len(keys))
        order = np.argsort(keys)
        starts = starts_of_runs(keys[order])
        sizes = np.add.reduceat(weights[order], starts)
        several = np.diff(starts, append=len(order)) > 1
        counters.add(SHARED_BUCKETS, int(np.count_nonzero(several)))
        keys = keys[order[starts]]
        for low, high in chunks(sizes, read_bytes):
            first, last = int(keys[low]), int(keys[high - 1])
            if sizes[low] > read_bytes:
                yield from _spools(runs, first, counters)
            else:
                yield from _piles(runs, first, last)


def _piles(runs: list[_Run], first: int, last: int) -> Iterator[Pile]:
    """Those of the buckets from one key to another."""
    found = [run.slices(first, last) for run in runs]
    keys = np.concatenate([keys for keys, _, _ in found])
    ids = [id_ for _, ids, _ in found for id_ in ids]
    sets = Ragged.end_to_end([sets for _, _, sets in found])
    yield from in_piles(keys, np.arange(len(keys)), ids, sets)


def _spools(runs: list[_Run], key: int, counters: Counters) -> Iterator[Spool]:
    """The bucket of a key, as lines."""
    with tempfile.TemporaryFile() as unsorted, tempfile.TemporaryFile() as lines:
        for run in runs:
            keys, ids, sets = run.slices(key, key)
            own = Ragged(keys, np.arange(len(keys) + 1))
            for _, some in format_keyed_lines(Batch(ids, sets), own):
                unsorted.write(some)
            counters.alive()
        sort_lines(unsorted, lines, counters, ["-u"])  # a record that comes again is the same one
        yield Spool(lines, BUCKET_BYTES // 2)
