r"""Joins that write pairs, each in the bucket of the smallest key that both records have.

Where records meet: each pair is printed at the smallest key that both have.

The sets themselves tell their keys, so nothing but shingles travels.  Near-copies share one of the
first bands most of the time, and few others stay to be compared in many; so the keys of bands are
made only as far as they are asked for: first of band 0, then 1, then 2-3, 4-7 …, and each time
only of the sets of pairs that have not met so far.

The reducer's join: from the records of many buckets to the pairs that reach the threshold.

What it adds to the nested loop of `neardup.joins`: equal sets are compared once; the length filter
is a window over the sets in order of size; a pair is verified in one bucket only, that of the
smallest key both sets have, which the sets themselves tell; and all of it in vector steps.

Pairs of two collections, old records and new ones (--against).

    NEW TAB OTHER TAB SIMILARITY TAB new|old [TAB contained|contains]

The first record is always a new one, and the fourth field says what the second is.  No two old ones
are compared.  With a measure that has a direction the fifth field says which way a line goes: the
new record is contained in the other one, or contains it.

Ids come tagged here, old ones before new ones; see `lines.tagged_ids`.

Pairs whose similarity is estimated (--verify sketch): an interval stands where it would.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product

import numpy as np

from neardup.lines.answer_lines import format_interval, format_pair
from neardup.lines.keyed_lines import HASH_BITS
from neardup.lines.tagged_ids import COLLECTION, UNMARKED, Travel, all_ways, is_old
from neardup.runtime.counters import Counters
from neardup.runtime.errors import StageError
from neardup.runtime.summary import CANDIDATES, PAIRS, REPEATED
from neardup.schemes.scheme import Scheme
from neardup.sets.ragged import Ragged, distinct, first_of_run, shared
from neardup.similarity.measures import Measure, Verified, six_decimals
from neardup.similarity.sketches import may_reach
from neardup.verification.bucket_batch import BucketBatch
from neardup.verification.buckets import SpilledBucket


class OwnerKey:
    """What the keys of a batch's sets tell."""

    def __init__(self, scheme: Scheme):
        self.scheme = scheme
        self.way = UNMARKED  # in which the lines of a batch have travelled

    def first_at(self, batch: BucketBatch, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Whether sets left[p] and right[p] (int64, of one bucket each) share no smaller key."""
        met = self._unmarked(batch.keys[left])
        band = met >> np.uint64(HASH_BITS)
        first = np.ones(len(left), dtype=bool)
        low, high = 0, 1
        own = int(not self.scheme.one_a_band)  # whether the key's own band may have a smaller one
        asking = np.flatnonzero(band + np.uint64(own) > low)
        while len(asking):
            sets, place = np.unique((left[asking], right[asking]), return_inverse=True)
            keys = self.scheme.keys(batch.sets.take(sets), low, high)
            a, b = place.reshape(2, -1)
            first[asking] = ~_share_below(keys, a, b, met[asking])
            low, high = high, 2 * high
            asking = np.flatnonzero(first & (band + np.uint64(own) > low))
        return first

    def alone_before(self, batch: BucketBatch, sets: np.ndarray) -> np.ndarray:
        """Whether the bucket's key is the smallest of all that these sets have."""
        return self.first_at(batch, sets, sets)

    def owned(self, batch: BucketBatch, sets: np.ndarray) -> np.ndarray:
        """Whether these sets have the key of their bucket."""
        owned = np.zeros(len(sets), dtype=bool)
        met = self._unmarked(batch.keys[sets])
        bands = (met >> np.uint64(HASH_BITS)).astype(np.int64)
        for band in distinct(bands)[0].tolist():
            some = np.flatnonzero(bands == band)
            keys = self.scheme.keys(batch.sets.take(sets[some]), band, band + 1)
            same = keys.values == np.repeat(met[some], keys.sizes)
            owned[some[np.repeat(np.arange(len(some)), keys.sizes)[same]]] = True
        return owned

    def ways_of(self, batch: BucketBatch, sets: np.ndarray) -> list[Travel]:
        """Return the ways in which these sets may have travelled, judged by their keys."""
        mine, found = self.way, []
        for self.way in all_ways():
            if self.owned(batch, sets).all():
                found.append(self.way)
        self.way = mine
        return found

    def _unmarked(self, keys: np.ndarray) -> np.ndarray:
        return keys ^ np.uint64(self.way.mark)


def _share_below(keys: Ragged, a: np.ndarray, b: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Whether rows a[p] and b[p] share a key below bound[p].

    >>> keys = Ragged.from_rows([[1, 5, 9], [5, 9], [9]])
    >>> _share_below(keys, np.array([0, 0]), np.array([1, 2]), np.array([9, 9], np.uint64)).tolist()
    [True, False]
    """
    width = int(keys.sizes[0])
    if width and (keys.sizes == width).all():
        table = keys.values.reshape(-1, width)
        bands = table >> np.uint64(HASH_BITS)
        if (bands == bands[0]).all() and first_of_run(bands[0]).all():  # a column for each band
            return ((table[a] == table[b]) & (table[a] < bound[:, np.newaxis])).any(axis=1)
    common = shared(keys, a, b)
    below = common.values < np.repeat(bound, common.sizes)
    found = np.zeros(len(a), dtype=bool)
    found[np.repeat(np.arange(len(a)), common.sizes)[below]] = True
    return found


IDENTICAL = b"1.000000"
SAMPLE = 16
Found = Iterator[Verified]


class PairJoin:
    """Turns whole buckets into the lines of all pairs."""

    compared, found = CANDIDATES, PAIRS  # the names of what it counts

    def __init__(self, scheme: Scheme, measure: Measure, counters: Counters):
        self.owner_key = OwnerKey(scheme)
        self.measure = measure
        self.counters = counters
        self._crowded = False

    def __call__(self, work: BucketBatch | SpilledBucket) -> Iterator[bytes]:
        """`work`: many buckets, or one large bucket in a file."""
        if isinstance(work, SpilledBucket):
            yield from self._join_pieces(work)
        elif len(work):
            self._begin(len(work))
            yield from self._join(work)

    def _begin(self, sets: int) -> None:
        """A new piece of work, of so many sets in all."""

    def _join(self, batch: BucketBatch) -> Iterator[bytes]:
        self._check(batch)
        several = np.flatnonzero(
            [len(ids) > 1 or bool(again) for ids, again in zip(batch.ids, batch.repeats)]
        )
        # The copies of a set have their turn in the bucket of its smallest key.
        several = several[self.owner_key.alone_before(batch, several)]
        self.counters.add(REPEATED, 0)
        for i in several.tolist():
            for id_ in batch.repeats[i]:
                self._again(id_)
            yield from self._copy_lines(batch.ids[i], self._with_itself(batch, i))
        first, stop = batch.windows(self.measure)
        yield from self._lines(batch, first, stop)

    def _join_pieces(self, spilled: SpilledBucket) -> Iterator[bytes]:
        """Each piece by itself, and with every later one that the sizes allow."""
        starts, counts = list(spilled.starts()), []
        for start in starts:
            self.counters.alive()
            counts.append(len(BucketBatch.of_lines(spilled.piece(start))))
        nodes = np.cumsum([0, *counts]).tolist()
        self._begin(nodes[-1])
        for i, start in enumerate(starts):
            piece = BucketBatch.of_lines(spilled.piece(start), nodes[i])
            yield from self._join(piece)
            for j in range(i + 1, len(starts)):
                self.counters.alive()
                later = BucketBatch.of_lines(spilled.piece(starts[j]), nodes[j])
                if later.sizes[0] > self.measure.largest_partner(piece.sizes[-1:])[0]:
                    break
                both = piece.beside(later)
                _, stop = both.windows(self.measure)
                stop[len(piece) :] = 0  # the later piece has a turn of its own
                first = np.full(len(both), len(piece))
                yield from self._lines(both, first, stop)

    def _check(self, batch: BucketBatch) -> None:
        """Whether the keys on the lines are those of their sets: a sample tells."""
        some = np.arange(0, len(batch), SAMPLE)
        if self.owner_key.owned(batch, some).all():
            return
        for way in self.owner_key.ways_of(batch, some):
            raise StageError(
                f"these lines are of mapper.py {way}; give reducer.py the same --output, --keep, "
                "--against and --between"
            )
        raise StageError(
            "these keys do not come from the options given here: mapper and reducer need the "
            "same --scheme and all that belongs to it, --measure, --threshold, --seed, "
            "--counts, --verify"
        )

    def _lines(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> Iterator[bytes]:
        # In buckets of two or three, bitmaps cost more than the comparisons that they save.
        self._crowded = int(np.maximum(stop - first, 0).sum()) > len(batch)
        for found in self._found(batch, first, stop):
            yield from self._found_lines(batch, found)

    def _found_lines(self, batch: BucketBatch, found: Verified) -> Iterator[bytes]:
        similarities = self._similarities(found)
        for i, j, similarity in zip(found.left.tolist(), found.right.tolist(), similarities):
            for a, b in self._matches(batch.ids[i], batch.ids[j]):
                if a == b:
                    self._again(a)
                else:
                    yield self._line(a, b, similarity)

    def _similarities(self, found: Verified) -> list[bytes]:
        return six_decimals(found.part, found.whole)

    def _with_itself(self, batch: BucketBatch, i: int) -> bytes:
        """How similar two records are that have set i both."""
        return IDENTICAL

    def _copy_lines(self, ids: list[bytes], similarity: bytes = IDENTICAL) -> Iterator[bytes]:
        """The lines of records with one and the same set."""
        for a, b in self._copies(ids):
            yield self._line(a, b, similarity)
            if self.measure.directed:
                yield self._line(b, a, similarity)

    def _found(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> Found:
        """The pairs of set i and sets first[i] ≤ j < stop[i] that are printed here."""
        everyone = np.arange(len(batch))
        for left, right in batch.pairs(everyone, first, stop, everyone):
            left, right = self._possible(batch, left, right)
            mine = self.owner_key.first_at(batch, left, right)
            left, right = left[mine], right[mine]
            self.counters.add(self.compared, self._candidates(batch, left, right))
            yield self.measure.verified(batch.sets, left, right)

    def _candidates(self, batch: BucketBatch, left: np.ndarray, right: np.ndarray) -> int:
        """The number of pairs of records that have these sets."""
        return int(np.dot(batch.records[left], batch.records[right]))

    def _possible(
        self, batch: BucketBatch, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Those that may reach the threshold, as far as bitmaps tell."""
        if not self._crowded:
            return left, right
        possible = may_reach(self.measure, batch.bitmaps, batch.sizes, left, right)
        return left[possible], right[possible]

    def _line(self, a: bytes, b: bytes, similarity: bytes) -> bytes:
        self.counters.add(self.found, 1)
        return self._text(a, b, similarity)

    def _text(self, a: bytes, b: bytes, similarity: bytes) -> bytes:
        """What is printed of a pair."""
        return format_pair(a, b, similarity, self.measure.directed)

    def _again(self, id_: bytes) -> None:
        """A record with the id of another one; the two are no pair."""
        self.counters.repeated_id(id_)

    def _copies(self, ids: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        """The pairs of them that are printed."""
        self.counters.add(CANDIDATES, len(ids) * (len(ids) - 1) // 2)
        return combinations(ids, 2)

    def _matches(self, ids: list[bytes], others: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        """The pairs of records with two matching sets."""
        return product(ids, others)


class AcrossJoin(PairJoin):
    """Pairs of which at least one record is new; `between`: and the other one old."""

    def __init__(self, scheme: Scheme, measure: Measure, counters: Counters, between: bool = False):
        super().__init__(scheme, measure, counters)
        self.between = between

    def _possible(
        self, batch: BucketBatch, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        old, new = batch.has_old, batch.has_new
        wanted = (old[left] & new[right]) | (new[left] & old[right])
        if not self.between:
            wanted |= new[left] & new[right]
        return super()._possible(batch, left[wanted], right[wanted])

    def _candidates(self, batch: BucketBatch, left: np.ndarray, right: np.ndarray) -> int:
        old = batch.old_records
        unwanted = np.dot(old[left], old[right])
        if self.between:
            new = batch.records - old
            unwanted += np.dot(new[left], new[right])
        return super()._candidates(batch, left, right) - int(unwanted)

    def _copies(self, ids: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        first_new = sum(map(is_old, ids))
        pairs = list(product(ids[first_new:], ids[:first_new]))
        if not self.between:
            pairs += super()._copies(ids[first_new:])
        self.counters.add(CANDIDATES, first_new * (len(ids) - first_new))
        return pairs

    def _matches(self, ids: list[bytes], others: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        return [pair for pair in product(ids, others) if self._wanted(*map(is_old, pair))]

    def _wanted(self, old: bool, other_old: bool) -> bool:
        return old != other_old or not (old or self.between)

    def _again(self, id_: bytes) -> None:
        super()._again(COLLECTION.id_of(id_))

    def _text(self, a: bytes, b: bytes, similarity: bytes) -> bytes:
        # Of two new ones the smaller id is the first, and of a pair with a direction the contained.
        swapped = is_old(a) or (not is_old(b) and b < a and not self.measure.directed)
        first, second = (b, a) if swapped else (a, b)
        fields = [*map(COLLECTION.id_of, (first, second)), similarity]
        fields.append(b"old" if is_old(second) else b"new")
        if self.measure.directed:
            fields.append(b"contains" if swapped else b"contained")
        return b"\t".join(fields) + b"\n"


class SketchJoin(PairJoin):
    """Turns keyed lines whose sets are samples into the lines of all pairs that may be ones."""

    def _similarities(self, found: Verified) -> list[bytes]:
        return [format_interval(*ends) for ends in zip(found.part.tolist(), found.whole.tolist())]

    def _with_itself(self, batch: BucketBatch, i: int) -> bytes:
        """Equal samples are of equal sets for certain only where they are the sets."""
        alone = np.array([i])
        return self._similarities(self.measure.verified(batch.sets, alone, alone))[0]
