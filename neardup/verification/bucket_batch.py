"""A batch of buckets that are joined together, as arrays.

In a bucket, records with equal sets become one set with several ids: a set is decoded once, and a
thousand copies cost one comparison.  A batch is in the byte order of its keyed lines, in whatever
order an engine sends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from neardup.lines.keyed_lines import decode_sets, encode_sets, parse_keyed_lines, parse_keys
from neardup.lines.tagged_ids import is_old, values_of
from neardup.runtime.program import WireError
from neardup.sets.ragged import Ragged, chunks, first_of_run, spans, starts_of_runs
from neardup.similarity.measures import Measure
from neardup.similarity.sketches import wide_bitmaps

TOGETHER_BYTES = 2 << 20  # of records from arrays, in one batch
RECORD_BYTES = 64  # the overhead of a record, besides its tokens and its id
TOKENS_AT_ONCE = 1 << 23  # less than a second's work
PAIR_TOKENS = 32  # the overhead of a pair, as tokens to compare


def in_batches(
    keys: np.ndarray, records: np.ndarray, ids: list[bytes], sets: Ragged
) -> Iterator[BucketBatch]:
    """Yield batches of buckets of records; record records[i] (int64) has key keys[i] (uint64)."""
    order = np.argsort(keys, kind="stable")
    keys, records = keys[order], records[order]
    starts = starts_of_runs(keys)
    if not len(starts):
        return
    weights = np.add.reduceat(record_bytes(sets.sizes, lengths_of(ids))[records], starts)
    ends = np.append(starts, len(keys)).tolist()
    for low, high in chunks(weights, TOGETHER_BYTES):
        some = slice(ends[low], ends[high])
        mine = records[some]
        yield BucketBatch.of_records(keys[some], [ids[i] for i in mine.tolist()], sets.take(mine))


def record_bytes(sizes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the memory of each record in bytes, given token counts and id lengths (int64)."""
    return sizes.astype(np.int64) * 8 + lengths + RECORD_BYTES


def lengths_of(ids: list[bytes]) -> np.ndarray:
    """Return the lengths of ids in bytes (uint32)."""
    return np.fromiter(map(len, ids), np.uint32, len(ids))


def _ids_of_sets(
    records: Iterable[tuple[tuple[Any, ...], bytes]],
) -> tuple[dict[tuple[Any, ...], list[bytes]], list[list[bytes]], list[int]]:
    """Group ids by set: return each set's ids, its repeated ids, and the index of its first record.

    records: (set with its bucket, id), with equal ids of a set one after the other.
    """
    found: dict[tuple[Any, ...], list[bytes]] = {}
    repeats: dict[tuple[Any, ...], list[bytes]] = {}
    first = []
    for i, (set_, id_) in enumerate(records):
        ids = found.get(set_)
        if ids is None:
            found[set_] = [id_]
            first.append(i)
        elif ids[-1] == id_:
            repeats.setdefault(set_, []).append(id_)
        else:
            ids.append(id_)
    return found, [repeats.get(set_, []) for set_ in found], first


def _line_order(keys: np.ndarray, ids: list[bytes], sets: Ragged) -> list[int]:
    """Return the indices of records in byte order of their keyed lines; keys must ascend."""
    names = [id_ + b"\t" for id_ in ids]  # for ids with a byte below the tab
    by_name = np.array(sorted(range(len(ids)), key=names.__getitem__), dtype=np.int64)
    order = by_name[np.lexsort((sets.sizes[by_name], keys[by_name]))]
    alike = ~first_of_run(keys) & ~first_of_run(sets.sizes[order])
    pairs = np.column_stack((order[:-1], order[1:]))[alike[1:]]
    if any(ids[a] == ids[b] for a, b in pairs.tolist()):  # lines that tie are ordered by sets
        texts, sizes = encode_sets(sets), sets.sizes.tolist()
        return sorted(order.tolist(), key=lambda i: (keys[i], sizes[i], names[i], texts[i]))
    return order.tolist()


@dataclass(eq=False)
class BucketBatch:
    """n sets, distinct within each bucket, in order of bucket, then size, then smallest id.

    keys: uint64 (n,), the bucket's key; buckets: int64 (n,), the bucket's number from 0; nodes:
    int64 (n,), the set's number in the join as a whole; ids: n lists, each ascending and distinct;
    repeats: n lists of repeated ids, one entry for each repeat; sets: n rows.
    """

    keys: np.ndarray
    buckets: np.ndarray
    nodes: np.ndarray
    ids: list[list[bytes]]
    repeats: list[list[bytes]]
    sets: Ragged

    @classmethod
    def of_lines(cls, lines: list[bytes], first_node: int = 0) -> BucketBatch:
        """Make a batch from keyed lines, in any order, of whole buckets or a piece of one."""
        found, repeats, _ = _ids_of_sets(
            ((key, size, set_), id_) for key, size, id_, set_ in parse_keyed_lines(sorted(lines))
        )
        sets = decode_sets([shingles for _, _, shingles in found])
        if not sets.sizes.all():
            raise WireError("expected shingles, got an empty set")
        written = b"".join([size + b" " for _, size, _ in found])
        if written != b"%08d " * len(sets) % tuple(sets.sizes.tolist()):
            raise WireError(
                "a line from the mapper was damaged: its size and shingles disagree; run "
                "mapper.py again"
            )
        numbers: dict[bytes, int] = {}
        buckets = [numbers.setdefault(key, len(numbers)) for key, _, _ in found]
        return cls(
            keys=parse_keys(list(numbers))[buckets],
            buckets=np.array(buckets, dtype=np.int64),
            nodes=np.arange(first_node, first_node + len(found)),
            ids=list(found.values()),
            repeats=repeats,
            sets=sets,
        )

    @classmethod
    def of_records(cls, keys: np.ndarray, ids: list[bytes], sets: Ragged) -> BucketBatch:
        """Make a batch from records, given keys (uint64, ascending), ids and sets."""
        order = _line_order(keys, ids, sets)
        buckets = np.cumsum(first_of_run(keys)) - 1
        texts = [part.tobytes() for part in (sets.values, sets.weights) if part is not None]
        bounds = sets.offsets * sets.values.itemsize
        ends = list(zip(bounds[:-1][order].tolist(), bounds[1:][order].tolist()))
        columns = [[text[low:high] for low, high in ends] for text in texts]
        records = zip(zip(buckets[order].tolist(), *columns), [ids[i] for i in order])
        found, repeats, rows = _ids_of_sets(records)
        first = np.array(order, dtype=np.int64)[rows]
        return cls(
            keys=keys[first],
            buckets=buckets[first],
            nodes=np.arange(len(rows)),
            ids=list(found.values()),
            repeats=repeats,
            sets=sets.take(first),
        )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def bitmaps(self) -> np.ndarray:
        return wide_bitmaps(self.sets)

    @property
    def several(self) -> list[bool]:
        """For each set, True if it has several records."""
        return [len(ids) > 1 or bool(again) for ids, again in zip(self.ids, self.repeats)]

    @cached_property
    def records(self) -> np.ndarray:
        """The number of records of each set (int64)."""
        return np.array([len(ids) for ids in self.ids], dtype=np.int64)

    @cached_property
    def old_records(self) -> np.ndarray:
        return np.array([sum(map(is_old, ids)) for ids in self.ids], dtype=np.int64)

    @cached_property
    def values(self) -> np.ndarray:
        """The hash of the value of each set's first record (uint64)."""
        return values_of([ids[0] for ids in self.ids])

    def divided(self, parts: list[list[list[bytes]]]) -> BucketBatch:
        """Return a batch with a row for each list in parts[i], which has the ids of set i."""
        sizes = np.array(list(map(len, parts)))
        if (sizes == 1).all():
            return self
        row, ids = np.repeat(np.arange(len(self)), sizes), list(chain.from_iterable(parts))
        columns = self.buckets[row].tolist(), self.sets.sizes[row].tolist()
        place = [(*where, some[0] + b"\t") for *where, some in zip(*columns, ids)]
        order = np.array(sorted(range(len(ids)), key=place.__getitem__), dtype=np.int64)
        repeats: list[list[bytes]] = [[] for _ in ids]
        for i, again in zip((np.cumsum(sizes) - sizes).tolist(), self.repeats):
            repeats[i] = again
        return BucketBatch(
            keys=self.keys[row[order]],
            buckets=self.buckets[row[order]],
            nodes=np.arange(len(ids)) + self.nodes[0],
            ids=[ids[k] for k in order.tolist()],
            repeats=[repeats[k] for k in order.tolist()],
            sets=self.sets.take(row[order]),
        )

    def beside(self, later: BucketBatch) -> BucketBatch:
        """Concatenate two pieces of one bucket into one batch."""
        return BucketBatch(
            np.concatenate((self.keys, later.keys)),
            np.concatenate((self.buckets, later.buckets)),
            np.concatenate((self.nodes, later.nodes)),
            self.ids + later.ids,
            self.repeats + later.repeats,
            self.sets.beside(later.sets),
        )

    def windows(self, measure: Measure) -> tuple[np.ndarray, np.ndarray]:
        """Return (first, stop): by size, set i may pair with sets first[i] … stop[i]-1."""
        place = self.buckets << 32 | self.sets.sizes  # ascending
        largest = np.minimum(measure.largest_partner(self.sets.sizes), (1 << 32) - 1)
        widest = self.buckets << 32 | largest
        return np.arange(1, len(self) + 1), np.searchsorted(place, widest, side="right")

    def pairs(
        self, left: np.ndarray, low: np.ndarray, high: np.ndarray, pool: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs of left[i] and each of pool[low[i]:high[i]], in batches of bounded work."""
        counts = np.maximum(high - low, 0)
        for start, stop in chunks(counts * (self.sets.sizes[left] + PAIR_TOKENS), TOKENS_AT_ONCE):
            some = counts[start:stop]
            yield np.repeat(left[start:stop], some), pool[spans(low[start:stop], some)]
