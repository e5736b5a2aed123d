"""Choose which keys of fingerprints to use, by an exact join instead of a shuffle of all keys.

A fingerprint has a hundred keys or more; most of them are shared by no other record, or only by
dissimilar ones.  On one machine all fingerprints fit into memory, so records within the distance
are found first (`joins.near_bits`), and a record is sent only at keys that it shares with one of
these.  All later stages, and the pairs, are the same as for other schemes: a pair without a shared
key is not found here either.

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
from neardup.sets.ragged import Ragged, distinct, first_of_run, shared, spans

PAIRS_AT_ONCE = 1 << 12
MOST_NEW = 1 << 21  # marks with repeats


@dataclass(eq=False)
class NearRecords:
    """Finds the bands in which each record shares keys with the records within --distance of it."""

    scheme: Fingerprints
    every: bool  # if True, mark all bands in which two records share a key, otherwise the first
    prints: Prints  # of the distinct records
    alike: np.ndarray  # int64 (n,), for each record the number of its equal among `prints`
    starts: np.ndarray  # int64, the number of each file's first record, and n
    _marks: list[np.ndarray] = field(default_factory=list)  # int64: record << BAND_BITS | band

    @classmethod
    def of(cls, scheme: Scheme, files: "list[list[Prints]]", every: bool) -> "NearRecords":
        """Group equal records, given each file's fingerprints in parts, in order."""
        assert isinstance(scheme, Fingerprints)
        none = Prints.of(Ragged.from_rows([]), scheme.bits)
        prints = Prints.end_to_end([none, *chain.from_iterable(files)])
        counts = [sum(len(some.counts) for some in file) for file in files]
        first, alike = prints.distinct()
        return cls(scheme, every, prints.take(first), alike, np.append(0, np.cumsum(counts)))

    def marks(self, turn: int = 0, turns: int = 1) -> list[np.ndarray]:
        """Return each file's records and bands with shared keys: record << BAND_BITS | band.

        They are int64, ascending; each file's records are numbered from 0.  Each of `turns` calls
        does a part of the work, and returns its part of the marks.
        """
        copies = np.bincount(self.alike, minlength=len(self.prints.counts))
        bands = np.arange(len(self.scheme.ways) if self.every else 1)
        copied = np.flatnonzero(copies > 1)[turn::turns]
        self._marks = [(copied[:, np.newaxis] << BAND_BITS | bands).ravel()]
        how = self.scheme.bits, self.scheme.distance, turn, turns
        for left, right in near_records(self.prints.rows, None, *how):
            for start in range(0, len(left), PAIRS_AT_ONCE):
                some = slice(start, start + PAIRS_AT_ONCE)
                self._mark(left[some], right[some])
        return self._by_file(copies)

    def _merged(self) -> np.ndarray:
        self._marks = [distinct(np.concatenate(self._marks))[0]]
        return self._marks[0]

    def _by_file(self, copies: np.ndarray) -> list[np.ndarray]:
        marks = self._merged()
        kind, band = marks >> BAND_BITS, marks & (MAX_BANDS - 1)
        order = np.argsort(self.alike, kind="stable")
        records = order[spans((np.cumsum(copies) - copies)[kind], copies[kind])]
        marks = np.sort(records << BAND_BITS | np.repeat(band, copies[kind]))
        starts = self.starts << BAND_BITS
        cuts = np.searchsorted(marks, starts)
        return [marks[low:high] - start for low, high, start in zip(cuts, cuts[1:], starts)]

    def _mark(self, left: np.ndarray, right: np.ndarray) -> None:
        """Mark the first, or every, band in which `left[p]` and `right[p]` (int64) share a key.

        As in `pair_join`, keys of more and more bands are made for fewer and fewer pairs.
        """
        if sum(map(len, self._marks)) > MOST_NEW + 2 * len(self._marks[0]):
            self._merged()
        bands = len(self.scheme.ways)
        low, high = 0, bands if self.every else 1
        while low < bands and len(left):
            rows, place = np.unique((left, right), return_inverse=True)
            keys = self.scheme.keys_of(self.prints.take(rows), low, high)
            a, b = place.reshape(2, -1)
            found = shared(keys, a, b)
            pair = np.repeat(np.arange(len(a)), found.sizes)
            band = (found.values >> np.uint64(HASH_BITS)).astype(np.int64)
            if not self.every:
                band = band[first_of_run(pair)]
                pair = pair[first_of_run(pair)]
            marked = np.concatenate((left[pair], right[pair])) << BAND_BITS
            self._marks.append(marked | np.tile(band, 2))
            left, right = (np.delete(side, pair) for side in (left, right))
            low, high = high, 2 * high


def marked_keys(scheme: Scheme, parts: Iterable[Prints], marks: np.ndarray) -> Iterator[Ragged]:
    """Yield, for each part of a file, its records' keys in the bands that `NearRecords` has found.

    marks: of the file, see `NearRecords.marks`.
    """
    assert isinstance(scheme, Fingerprints)
    done = 0
    for part in parts:
        ends = np.arange(done, done + len(part.counts) + 1) << BAND_BITS
        cuts = np.searchsorted(marks, ends)
        mine = marks[cuts[0] : cuts[-1]] - ends[0]
        keys = scheme.keys_at(part.take(mine >> BAND_BITS), mine & (MAX_BANDS - 1))
        yield Ragged(keys.values, keys.offsets[cuts - cuts[0]])
        done += len(part.counts)


def prints_of(scheme: Scheme, sets: Ragged) -> Prints:
    """Return the fingerprints of records, given their sets."""
    assert isinstance(scheme, Fingerprints)
    return Prints.of(sets, scheme.bits)
