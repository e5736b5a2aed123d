"""Which keys of fingerprints to post, found by an exact join instead of a shuffle of all keys.

A fingerprint has a hundred keys or more, most of which nobody shares, or only strangers.  On one
machine all fingerprints fit into memory, so those that are near each other are found first
(`joins.near_bits`), and a record posts only the keys that it shares with such a one.  What follows
is as for other schemes, and so are the pairs: a pair that shares no key is not found here either.

A mark is a record and one of its bands.  A pair is written at the first band in which its records
share a key, and only --output links looks at others, where an edge may connect two without being
written.  Equal records are compared once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from neardup.joins.near_bits import near_records
from neardup.lines.keyed_lines import BAND_BITS, HASH_BITS, MAX_BANDS
from neardup.schemes.fingerprints import Fingerprints
from neardup.schemes.scheme import Scheme
from neardup.sets.bit_vectors import Prints
from neardup.sets.ragged import Batch, Ragged, distinct, first_of_run, shared, spans

PAIRS_AT_ONCE = 1 << 12
MOST_NEW = 1 << 21  # marks with repeats


@dataclass(eq=False)
class NearRecords:
    """The distinct records among some, and marks of the keys that they share with near ones."""

    prints: Prints  # of n distinct records
    alike: np.ndarray  # int64, which of them each record equals
    marks: np.ndarray  # int64: a record, and a band in the lower bits
    _new: list[np.ndarray] = field(default_factory=list)  # more marks

    @classmethod
    def of(cls, prints: Prints, scheme: Fingerprints, every: bool) -> "NearRecords":
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


def marked_keys(scheme: Scheme, sets: Ragged, marks: np.ndarray) -> Ragged:
    """Return the marked keys of sets; marks: int64, ascending, see `NearRecords`."""
    some = distinct(marks >> BAND_BITS)[0]
    keys = scheme.keys(sets.take(some))
    band = (keys.values >> np.uint64(HASH_BITS)).astype(np.int64)
    keys = keys.where(np.isin(np.repeat(some, keys.sizes) << BAND_BITS | band, marks))
    sizes = np.zeros(len(sets), np.int64)
    sizes[some] = keys.sizes
    return Ragged(keys.values, np.append(0, np.cumsum(sizes)))


def with_marked_keys(
    batches: Iterable[Batch], scheme: Scheme, marks: np.ndarray
) -> Iterator[tuple[Batch, Ragged]]:
    """Yield each batch with its marked keys; marks: of the records of all batches."""
    done = 0
    for batch in batches:
        low, high = np.searchsorted(marks, [done << BAND_BITS, done + len(batch.ids) << BAND_BITS])
        yield batch, marked_keys(scheme, batch.sets, marks[low:high] - (done << BAND_BITS))
        done += len(batch.ids)


def prints_of(scheme: Scheme, sets: Ragged) -> Prints:
    """Return the fingerprints of records."""
    return Prints.of(sets, _of_fingerprints(scheme).bits)


def marks_of(
    scheme: Scheme, parts: "list[list[Prints]]", every: bool, turn: int = 0, turns: int = 1
) -> list[np.ndarray]:
    """Return the marks of the records of each part (int64, ascending), numbered by part.

    parts: fingerprints, some records after the other; `every`, turn, turns: see `NearRecords`.
    """
    prints = _of_fingerprints(scheme)
    none = Prints.of(Ragged.from_rows([]), prints.bits)
    near = NearRecords.of(Prints.end_to_end([none, *chain.from_iterable(parts)]), prints, every)
    near.mark(prints, every, turn, turns)
    counts = [sum(len(some.counts) for some in part) for part in parts]
    starts = np.append(0, np.cumsum(counts)) << BAND_BITS
    marks = near.of_records()
    cuts = np.searchsorted(marks, starts)
    return [marks[low:high] - start for low, high, start in zip(cuts, cuts[1:], starts)]


def _of_fingerprints(scheme: Scheme) -> Fingerprints:
    assert isinstance(scheme, Fingerprints)
    return scheme
