"""Files of arrays that carry records and their keys from mappers to reducers on one machine.

    batches, keys ─┬─ partition 0: run, run, run … ─── whole buckets at a time, as batches
                   └─ partition 1: run, run …       └─ a large one as lines in a file, spilled

A mapper collects several mebibytes, and writes a *run* of them to each file: a pickled head with
keys and sizes, then tokens, weights and ids, all in order of keys, so that a range of keys is one
slice of each.  A reducer reads the keys of all runs of a partition, and then as many buckets as fit
into memory.  Nothing is formatted, sorted and parsed as text.
"""

import pickle
import resource
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Callable, NamedTuple

import numpy as np

from neardup.lines.keyed_lines import format_keyed_lines
from neardup.runtime.counters import Counters
from neardup.sets.ragged import Batch, Ragged, chunks, starts_of_runs
from neardup.verification.bucket_batch import BucketBatch, in_batches, lengths_of, record_bytes
from neardup.verification.buckets import BUCKET_BYTES, SHARED_BUCKETS, SpilledBucket, sort_lines

RUN_BYTES = 8 << 20  # a mapper collects so many before it writes a run
READ_BYTES = 16 << 20  # of buckets that a reducer holds; a larger one is spilled
FILES = 4  # files of records for each file of postings
MAX_FILES = 256
_WEIGHTS = np.dtype(np.int64)


class SpilledRun(NamedTuple):
    """A part of a bucket file, in order of keys: n records with their keys, sets and ids."""

    file: BinaryIO
    keys: np.ndarray  # uint64 (n,), below 2^52, ascending
    sizes: np.ndarray  # uint32 (n,), of the sets
    lengths: np.ndarray  # uint32 (n,), of the ids in bytes
    kind: np.dtype  # the type of tokens
    weighted: bool
    tokens_start: int  # offset in the file
    weights_start: int
    ids_start: int

    @classmethod
    def all_of(cls, file: BufferedReader) -> "Iterator[SpilledRun]":
        while file.peek(1):
            keys, sizes, lengths, kind, weighted = pickle.load(file)
            start, tokens = file.tell(), int(sizes.sum())
            weights_start = start + tokens * kind.itemsize
            ids_start = weights_start + tokens * _WEIGHTS.itemsize * weighted
            starts = start, weights_start, ids_start
            yield cls(file, keys, sizes, lengths, kind, weighted, *starts)
            file.seek(ids_start + int(lengths.sum()))

    def between(self, first: int, last: int) -> "tuple[np.ndarray, Batch] | None":
        """Return the keys from `first` to `last`, and their records, or None if there are none."""
        low, high = np.searchsorted(self.keys, np.array([first, last + 1], np.uint64)).tolist()
        if low == high:
            return None
        offsets, bounds = (
            np.append(0, np.cumsum(each[low:high], dtype=np.int64))
            for each in (self.sizes, self.lengths)
        )
        before, count = int(self.sizes[:low].sum()), int(offsets[-1])
        values = self._column(self.tokens_start, self.kind, before, count).astype(np.uint64)
        weights = None
        if self.weighted:
            weights = self._column(self.weights_start, _WEIGHTS, before, count)
        self.file.seek(self.ids_start + int(self.lengths[:low].sum()))
        names = self.file.read(int(bounds[-1]))
        ids = [names[start:end] for start, end in zip(bounds.tolist(), bounds[1:].tolist())]
        return self.keys[low:high], Batch(ids, Ragged(values, offsets, weights))

    def _column(self, start: int, kind: np.dtype, before: int, count: int) -> np.ndarray:
        self.file.seek(start + before * kind.itemsize)
        return np.frombuffer(self.file.read(count * kind.itemsize), kind)


def files_for(partitions: int, jobs: int) -> int:
    """Return the number of record files per mapper: a power of two, usually several per reducer.

    >>> files_for(1, 1), files_for(1, 8)
    (4, 16)
    """
    may_be_open = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = MAX_FILES
    while most > 1 and 0 < may_be_open < 3 * most:
        most //= 2
    return min(max(FILES * partitions, 1 << (2 * jobs - 1).bit_length()), most)


def write_buckets(records: Iterable[tuple[Batch, Ragged]], files: Sequence[BinaryIO]) -> int:
    """Write each record once per key, to the key's partition; return the number of bytes."""
    held: list[tuple[Batch, Ragged]] = []
    size = written = 0
    for batch, keys in records:
        held.append((batch, keys))
        size += int(np.dot(record_bytes(batch.sets.sizes, lengths_of(batch.ids)), keys.sizes))
        if size >= RUN_BYTES:
            written += _write_runs(held, files)
            size = 0
    return written + (_write_runs(held, files) if held else 0)


def _write_runs(held: list[tuple[Batch, Ragged]], files: Sequence[BinaryIO]) -> int:
    ids = [id_ for batch, _ in held for id_ in batch.ids]
    sets = Ragged.end_to_end([batch.sets for batch, _ in held])
    keys = Ragged.end_to_end([keys for _, keys in held])
    held.clear()
    weights = record_bytes(sets.sizes, lengths_of(ids))
    narrowest = np.min_scalar_type(int(sets.values.max(initial=0)))
    sets = Ragged(sets.values.astype(narrowest), sets.offsets, sets.weights)
    owner = np.repeat(np.arange(len(keys)), keys.sizes)
    parts = keys.values & np.uint64(len(files) - 1)
    order = np.lexsort((keys.values, parts))
    bounds = np.searchsorted(parts[order], np.arange(len(files) + 1)).tolist()
    written = 0
    for file, start, stop in zip(files, bounds, bounds[1:]):
        mine = order[start:stop]
        for low, high in chunks(weights[owner[mine]], RUN_BYTES):
            some = mine[low:high]
            rows = owner[some]
            names, run = [ids[i] for i in rows.tolist()], sets.take(rows)
            lengths, weighted = lengths_of(names), run.weights is not None
            head = [keys.values[some], run.sizes.astype(np.uint32), lengths]
            pickle.dump((*head, run.values.dtype, weighted), file, protocol=5)
            columns = [run.values] if run.weights is None else [run.values, run.weights]
            file.writelines([*(column.data for column in columns), *names])
            written += int(lengths.sum()) + sum(each.nbytes for each in (*head, *columns))
    return written


def buckets_of(
    paths: Sequence[Path],
    counters: Counters,
    read_bytes: int = READ_BYTES,
    passed: Callable[[int], None] = lambda _: None,
    spend: Callable[[Path], None] = Path.unlink,
) -> "Iterator[BucketBatch | SpilledBucket]":
    """Yield the buckets of a partition: small ones together in batches, each large one alone.

    A large bucket is in a file, which is removed when the next one is taken; `spend` is called with
    each of the mappers' files at the end.  `passed` is called with the bytes of these files that
    are done.
    """
    counters.add(SHARED_BUCKETS, 0)
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, "rb")) for path in paths]
        runs = [run for file in files for run in SpilledRun.all_of(file)]
        for path in paths:
            stack.callback(spend, path)
        if not runs:
            return
        keys, sizes = _buckets(runs, counters)
        scale = sum(path.stat().st_size for path in paths) / int(sizes.sum())
        for low, high in chunks(sizes, read_bytes):
            first, last = int(keys[low]), int(keys[high - 1])
            if sizes[low] > read_bytes:
                yield from _spilled(runs, first, counters)
            else:
                found = filter(None, (run.between(first, last) for run in runs))
                some, batches = zip(*found)
                ids = [id_ for batch in batches for id_ in batch.ids]
                sets = Ragged.end_to_end([batch.sets for batch in batches])
                del batches  # `sets` is a copy
                yield from in_batches(np.concatenate(some), np.arange(len(ids)), ids, sets)
            passed(round(int(sizes[low:high].sum()) * scale))


def _buckets(runs: list[SpilledRun], counters: Counters) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys (uint64, ascending) and the sizes in bytes (int64) of all buckets."""
    keys = np.concatenate([run.keys for run in runs])
    weights = np.concatenate([record_bytes(run.sizes, run.lengths) for run in runs])
    order = np.argsort(keys)
    keys = keys[order]
    starts = starts_of_runs(keys)
    several = np.diff(starts, append=len(keys)) > 1
    counters.add("keyed lines", len(keys))
    counters.add(SHARED_BUCKETS, int(np.count_nonzero(several)))
    return keys[starts], np.add.reduceat(weights[order], starts)


def _spilled(runs: list[SpilledRun], key: int, counters: Counters) -> Iterator[SpilledBucket]:
    """Yield the large bucket of `key` as a file of sorted lines."""
    with tempfile.TemporaryFile() as unsorted, tempfile.TemporaryFile() as lines:
        for keys, batch in filter(None, (run.between(key, key) for run in runs)):
            for _, some in format_keyed_lines(batch, Ragged(keys, np.arange(len(keys) + 1))):
                unsorted.write(some)
            counters.alive()
        sort_lines(unsorted, lines, counters, ["-u"])  # equal lines are one record, sent twice
        yield SpilledBucket(lines, BUCKET_BYTES // 2)
