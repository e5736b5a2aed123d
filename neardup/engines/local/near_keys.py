"""Which keys of fingerprints to post, found by an exact join instead of a shuffle of all keys.

A fingerprint has a hundred keys or more, most of which nobody shares, or only strangers.  On one
machine all fingerprints fit into memory, so those that are near each other are found first
(`joins.near_bits`), and a record posts only the keys that it shares with such a one.  What follows
is as for other schemes, and so are the pairs: a pair that shares no key is not found here either.

    mapper 1 ── prints ─┬─ blocks 1, 3 … ── marks ─┬─ mapper 1 posts marked keys
    mapper 2 ── prints ─┴─ blocks 2, 4 … ── marks ─┴─ mapper 2

A mark is a record and one of its bands.  A pair is written at the first band in which its records
share a key, and only --output links looks at others, where an edge may connect two without being
written.  Equal records are compared once.
"""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from neardup.engines.local.plan import Plan, everywhere, parsed_records
from neardup.engines.local.workers import Workers, total_size
from neardup.joins.near_bits import near_records
from neardup.lines.keyed_lines import BAND_BITS, HASH_BITS, MAX_BANDS
from neardup.runtime.counters import Counters
from neardup.schemes.fingerprints import Fingerprints, Prints
from neardup.sets.ragged import Batch, Ragged, distinct, first_of_run, shared, spans
from neardup.verification import OUTPUTS

PAIRS_AT_ONCE = 1 << 12
MOST_NEW = 1 << 21  # marks with repeats


@dataclass(eq=False)
class Near:
    """The distinct records among some, and marks of the keys that they share with near ones."""

    prints: Prints  # of n distinct records
    alike: np.ndarray  # int64, which of them each record equals
    marks: np.ndarray  # int64: a record, and a band in the lower bits
    _new: list[np.ndarray] = field(default_factory=list)  # more marks

    @classmethod
    def of(cls, prints: Prints, scheme: Fingerprints, every: bool) -> "Near":
        """Find equal records, and mark the first band of those that have copies, or `every` one."""
        first, alike, copies = prints.distinct()
        bands = np.arange(len(scheme.ways) if every else 1)
        marks = (np.flatnonzero(copies > 1)[:, np.newaxis] << BAND_BITS | bands).ravel()
        return cls(prints.take(first), alike, marks)

    def mark(self, scheme: Fingerprints, every: bool, turn: int = 0, turns: int = 1) -> None:
        """Mark the bands of keys that near records share; calls with all turns share the work."""
        how = scheme.bits, scheme.distance, turn, turns
        for left, right in near_records(self.prints.rows, None, *how):
            self._mark(scheme, every, left, right)
        self._merge()

    def _merge(self) -> None:
        self.marks = distinct(np.concatenate((self.marks, *self._new)))[0]
        self._new.clear()

    def of_records(self) -> np.ndarray:
        """Return the marks of all records, as `marks` has those of the distinct ones."""
        order = np.argsort(self.alike, kind="stable")
        sizes = np.bincount(self.alike, minlength=len(self.prints.counts))
        kind, band = self.marks >> BAND_BITS, self.marks & (MAX_BANDS - 1)
        records = order[spans((np.cumsum(sizes) - sizes)[kind], sizes[kind])]
        return np.sort(records << BAND_BITS | np.repeat(band, sizes[kind]))

    def _mark(self, scheme: Fingerprints, every: bool, left: np.ndarray, right: np.ndarray) -> None:
        """Mark the first band in which records (int64) share a key, or `every` one.

        As in `pair_join`, keys of more and more bands are made for fewer and fewer pairs.
        """
        if sum(map(len, self._new)) > MOST_NEW:
            self._merge()
        low, high = 0, len(scheme.ways) if every else 1
        while low < len(scheme.ways) and len(left):
            open_ = np.ones(len(left), dtype=bool)
            for start in range(0, len(left), PAIRS_AT_ONCE):
                some = slice(start, start + PAIRS_AT_ONCE)
                rows, place = np.unique((left[some], right[some]), return_inverse=True)
                keys = scheme.keys_of(self.prints.take(rows), low, high)
                a, b = place.reshape(2, -1)
                found = shared(keys, a, b)
                pair = np.repeat(np.arange(len(a)), found.sizes)
                band = (found.values >> np.uint64(HASH_BITS)).astype(np.int64)
                if not every:
                    pair, band = pair[firsts := first_of_run(pair)], band[firsts]
                marked = np.concatenate((rows[a[pair]], rows[b[pair]])) << BAND_BITS
                self._new.append(marked | np.tile(band, 2))
                open_[start + pair] = False
            left, right = left[open_], right[open_]
            low, high = high, 2 * high


def marked_keys(scheme: Fingerprints, sets: Ragged, marks: np.ndarray) -> Ragged:
    """Return the marked keys of sets; marks: int64, ascending, see `Near`."""
    some = distinct(marks >> BAND_BITS)[0]
    keys = scheme.keys(sets.take(some))
    band = (keys.values >> np.uint64(HASH_BITS)).astype(np.int64)
    keys = keys.where(np.isin(np.repeat(some, keys.sizes) << BAND_BITS | band, marks))
    sizes = np.zeros(len(sets), np.int64)
    sizes[some] = keys.sizes
    return Ragged(keys.values, np.append(0, np.cumsum(sizes)))


def find_marks(workers: Workers, plan: Plan) -> None:
    """Parse the records, and write the marks of all workers."""
    plan.progress.stage("parse", total_size(plan.files), together=True)
    everywhere(workers, plan, "mapper", _write_prints)
    plan.progress.stage("near", 0)
    everywhere(workers, plan, "near", _write_marks)


def _write_prints(plan: Plan, k: int) -> None:
    """Parse mapper k's share of the input, and keep the fingerprints of its records."""
    counters = Counters("parse", reports=str(plan.folder))
    with open(plan.path("prints", k), "wb") as file:
        for batch in parsed_records(plan, k, counters):
            pickle.dump(Prints.of(batch.sets, _scheme(plan).bits), file, protocol=5)
    counters.report()


def _write_marks(plan: Plan, k: int) -> None:
    """Write worker k's share of the marks, packed, for the records of each mapper."""
    parts, counts = [Prints.of(Ragged.from_rows([]), _scheme(plan).bits)], []
    for path in plan.paths("prints"):
        before = sum(len(part.counts) for part in parts)
        with open(path, "rb") as file:
            while file.peek(1):
                parts.append(pickle.load(file))
        counts.append(sum(len(part.counts) for part in parts) - before)
    every = plan.settings.output is OUTPUTS["links"]
    near = Near.of(Prints.end_to_end(parts), _scheme(plan), every)
    parts.clear()
    near.mark(_scheme(plan), every, k, plan.jobs)
    marks, ends = near.of_records(), np.cumsum(counts) << BAND_BITS
    cuts = np.searchsorted(marks, np.append(0, ends))
    for mapper, (low, high) in enumerate(zip(cuts, cuts[1:])):
        np.save(
            plan.path("marks", k, mapper), marks[low:high] - (ends[mapper - 1] if mapper else 0)
        )


def marked(
    plan: Plan, k: int, batches: Iterable[Batch], counters: Counters
) -> Iterator[tuple[Batch, Ragged]]:
    """Yield the batches of mapper k with their marked keys."""
    scheme = _scheme(plan)
    counters.promise = scheme.promise
    counters.add("keys", 0)
    marks = reduce(np.union1d, [np.load(f"{path}.npy") for path in plan.paths("marks", k)])
    done = 0
    for batch in batches:
        low, high = np.searchsorted(marks, [done << BAND_BITS, done + len(batch.ids) << BAND_BITS])
        keys = marked_keys(scheme, batch.sets, marks[low:high] - (done << BAND_BITS))
        done += len(batch.ids)
        counters.add("keys", len(keys.values))
        yield batch, keys


def are_used(plan: Plan) -> bool:
    """Return whether keys are marked first; those of an index are on disk already."""
    return plan.settings.scheme.joined_in_memory and not plan.segments


def _scheme(plan: Plan) -> Fingerprints:
    assert isinstance(plan.settings.scheme, Fingerprints)
    return plan.settings.scheme
