"""The stages on records in memory: no process, no file, and no output.

Counters that are not told: a library says nothing on stderr, and there may be none.

The engine of the library: the stages of run_local.sh in one process, and all in memory.

    records ── keys ── the keys where two may meet ── batches of buckets ── pairs, or edges
             with_keys           sifted                in_batches           a join

What is held: the records' sets; and 40 bytes for each of their keys, while these are sifted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import chain

import numpy as np

from neardup.engines.local.key_pruning import Traits, keys_to_meet_at, sifted, traits
from neardup.lines.keyed_lines import encode_sets
from neardup.options.settings import Settings
from neardup.reading.blocks import NEW
from neardup.runtime.counters import Counters
from neardup.sets.ragged import Batch, Ragged
from neardup.stages.pairs import portions, tagged, with_keys
from neardup.verification.bucket_batch import BucketBatch, in_batches


class NullCounters(Counters):
    """Counts, in memory."""

    def __init__(self) -> None:
        self.counts = {}
        self.promise = ""
        self.repeated = b""

    def alive(self) -> None:
        """Nobody waits for it."""


Similarities = dict[tuple[int, int], Fraction]  # of positions


@dataclass(frozen=True)
class Meeting:
    """n records that have shingles, and where they may meet.

    sets: n rows; places: uint64 (n,); keys: n rows, mostly empty; numbers: int64, of all records
    that were given, what each is called on lines, so that these are in the order of their ids.
    """

    sets: Ragged
    places: np.ndarray
    keys: Ragged
    numbers: np.ndarray

    @classmethod
    def of(cls, batches: Iterable[Batch], numbers: np.ndarray, settings: Settings) -> Meeting:
        kept: list[Batch] = []
        entries, known = [np.empty((0, 2), np.uint64)], [np.empty((0, 2), np.uint64)]
        done = 0
        for batch, keys in with_keys(portions(batches, settings), settings, NullCounters()):
            records = np.arange(done, done + len(batch.ids), dtype=np.uint64)
            done += len(batch.ids)
            entries.append(np.column_stack((keys.values, np.repeat(records, keys.sizes))))
            known.append(traits(batch))
            kept.append(batch)
        of_all = Traits([], [np.concatenate(known)])
        _, rows = sifted(np.concatenate(entries), of_all, settings.measure)
        return cls(
            Ragged.end_to_end([batch.sets for batch in kept]),
            np.concatenate([np.empty(0, np.uint64), *(batch.places for batch in kept)]),
            keys_to_meet_at(rows, np.arange(done + 1, dtype=np.uint64)),
            numbers,
        )

    def lines(self, settings: Settings) -> list[bytes]:
        """What the output's join makes of all buckets, sorted; ids are numbers."""
        join = settings.join(NullCounters())
        found = b"".join(chain.from_iterable(map(join, self._batches(settings))))
        return sorted(found.splitlines(keepends=True))

    def similarities(self, numbers: np.ndarray, settings: Settings) -> Similarities:
        """Of pairs that reach the threshold (numbers, int64 (p, 2)), in their order; of a measure
        with a direction, of both that reach it."""
        rows, place = np.unique(self._row_of[numbers].ravel(), return_inverse=True)
        sets = self.sets.take(rows)
        first: dict[bytes, int] = {}  # of equal sets: a thousand copies are compared once
        same = np.array([first.setdefault(t, i) for i, t in enumerate(encode_sets(sets))], np.int64)
        pairs = list(zip(*same[place].reshape(-1, 2).T.tolist()))
        left, right = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2).T
        verified = settings.measure.verified(sets, left, right)
        fractions = map(cache(Fraction), verified.part.tolist(), verified.whole.tolist())
        known = dict(zip(zip(verified.left.tolist(), verified.right.tolist()), fractions))
        found: Similarities = {}
        ends = self._positions[rows][place].reshape(-1, 2).tolist()
        for (i, j), (x, y) in zip(ends, pairs):
            if (x, y) in known:
                found[i, j] = known[x, y]
            if settings.measure.directed and (y, x) in known:
                found[j, i] = known[y, x]
        return found

    @property
    def _positions(self) -> np.ndarray:
        return (self.places - np.uint64(NEW)).astype(np.int64)

    @property
    def _row_of(self) -> np.ndarray:
        """The row of each number; -1 without shingles."""
        rows = np.full(len(self.numbers), -1)
        rows[self.numbers[self._positions]] = np.arange(len(self.places))
        return rows

    def _batches(self, settings: Settings) -> Iterator[BucketBatch]:
        some = np.flatnonzero(self.keys.sizes)
        ids = [b"%010d" % number for number in self.numbers[self._positions[some]].tolist()]
        batch = tagged(Batch(ids, self.sets.take(some), places=self.places[some]), settings)
        keys = self.keys.take(some)
        owner = np.repeat(np.arange(len(some)), keys.sizes)
        return in_batches(keys.values, owner, batch.ids, batch.sets)
