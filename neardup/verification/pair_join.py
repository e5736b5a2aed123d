"""The join of the reducer: finds all pairs in a batch of buckets, and formats their lines.

It adds to the nested loop of `neardup.joins`: equal sets are compared once; the length filter is a
window over the sets in order of size; a pair is verified in one bucket only, that of its *owner
key*, the smallest key that both sets have; and all work is done in vector steps.

The keys are made again from the sets, so nothing but shingles is sent.  Near-copies mostly share a
key of one of the first bands, and few pairs must be compared in many bands.  So the keys of bands
are made only as far as needed: band 0, then 1, then 2-3, 4-7 …, and each time only for the sets of
pairs that have not shared a key so far.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Protocol

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS
from neardup.lines.tagged_ids import is_old
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError
from neardup.runtime.summary import REPEATED
from neardup.sets.ragged import (
    Ragged,
    distinct,
    first_of_run,
    later_in_run,
    pairs_in_runs,
    shared,
    spans,
)
from neardup.similarity.intervals import MILLION
from neardup.similarity.measures import Measure, Verified, rounded_millionths
from neardup.similarity.sketches import may_reach
from neardup.verification.bucket_batch import BucketBatch
from neardup.verification.buckets import SpilledBucket
from neardup.verification.record_pairs import CollectionLines, EveryPair, PairLines

PAIRS_AT_ONCE = 1 << 16  # as lines, some hundred bytes each
SAMPLE = 16  # one in 16 sets is checked against its key
Found = Iterator[Verified]
Ranked = tuple[list[bytes], np.ndarray]


class Keys(Protocol):
    """The part of the interface of `Scheme` that a join needs."""

    one_a_band: ClassVar[bool]

    def keys(self, sets: Ragged, low: int, high: int) -> Ragged:
        """Return the keys of bands low … high-1: a row of ascending keys for each set."""


@dataclass
class PairJoin:
    """The join that finds and writes all pairs in each bucket.

    pairs, lines: which records are pairs, and which lines are written; see `record_pairs`.
    """

    scheme: Keys
    measure: Measure
    counters: Counters
    pairs: EveryPair
    lines: PairLines
    mark: int = 0  # is in the keys on lines, see `tagged_ids.mark_of`
    _dense = False

    def __call__(self, work: "BucketBatch | SpilledBucket") -> Iterator[bytes]:
        """Yield the lines of the pairs in many buckets, or in one large bucket in a file."""
        self.lines.begin()
        if isinstance(work, SpilledBucket):
            yield from self._spilled(work)
        elif len(work):
            batch = self.pairs.rows(work)
            self._begin(len(batch), in_pieces=False)
            yield from self._whole(batch)

    def _begin(self, sets: int, in_pieces: bool) -> None:
        """Prepare for a batch, or for all pieces of one bucket, with this total number of sets."""

    def _whole(self, batch: BucketBatch) -> Iterator[bytes]:
        self._check(batch)
        several = np.flatnonzero(batch.several)
        # The copies of a set are written in the bucket of its smallest key.
        yield from self._copies_of(batch, several[self._first_at(batch, several, several)])
        yield from self._written(batch, *batch.windows(self.measure))

    def of_pairs(self, batch: BucketBatch, left: np.ndarray, right: np.ndarray) -> Iterator[bytes]:
        """Yield the lines of all records, where only the sets left[p] and right[p] may be pairs.

        left, right: int64; left[p] is not larger than right[p].
        """
        self.lines.begin()
        yield from self._copies_of(batch, np.flatnonzero(batch.several))
        self.counters.add(self.pairs.found, 0)
        if self.pairs.across:
            left, right = self.pairs.wanted(batch, left, right)
        self.counters.add(self.pairs.compared, self.pairs.candidates(batch, left, right))
        for start in range(0, len(left), PAIRS_AT_ONCE):
            some = left[start : start + PAIRS_AT_ONCE], right[start : start + PAIRS_AT_ONCE]
            yield from self._lines_of(batch, self.measure.verified(batch.sets, *some))

    def in_order(
        self, batch: BucketBatch, left: np.ndarray, right: np.ndarray, most: int
    ) -> "Iterator[bytes] | None":
        """Return the lines of `of_pairs` as blocks in byte order, each pair once.

        None if there are more than `most` pairs of records, which take 100 bytes each, if two
        records of a collection have one id, or if a line has more than ids, a similarity, and the
        collection and direction of its pair.
        """
        members, across = batch.records, self.pairs.across
        later, matches = later_in_run(members), members[left] * members[right]
        plain = type(self.pairs) is EveryPair and type(self.lines) in (PairLines, CollectionLines)
        other = not plain or self.pairs.equal_values is not None or any(batch.repeats)
        other = other or bool(self.pairs.touched(batch).any())
        if other or later.sum() + matches.sum() > most:
            return None
        ids = list(chain.from_iterable(batch.ids))
        old = np.array([across and is_old(id_) for id_ in ids], bool)
        ranked = _ranked([self.lines.id_of(id_) for id_ in ids], old)
        if ranked is None:
            return None
        i, j = pairs_in_runs(later)
        if across:
            i, j = self._of_collections(old, i, j)
            left, right = self.pairs.wanted(batch, left, right)
        self.counters.add(REPEATED, 0)
        candidates = len(i) + self.pairs.candidates(batch, left, right)
        self.counters.add(self.pairs.compared, candidates)
        found = self.measure.verified(batch.sets, left, right)
        a, b, of = _records_of(found, members)
        if across:
            a, b, of = self._of_collections(old, a, b, of)
        if self.measure.directed:
            i, j = np.append(i, j), np.append(j, i)
        millionths = rounded_millionths(found.part, found.whole)[of]
        millionths = np.append(np.full(len(i), MILLION), millionths)
        self.counters.add(self.pairs.found, len(millionths))
        return self._lines_in_order(*ranked, old, np.append(i, a), np.append(j, b), millionths)

    def _of_collections(self, old: np.ndarray, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the pairs that are asked for; the first two columns are their records."""
        a, b = old[columns[0]], old[columns[1]]
        wanted = a != b if self.pairs.between else ~(a & b)
        return tuple(column[wanted] for column in columns)

    def _lines_in_order(
        self,
        names: list[bytes],
        rank: np.ndarray,
        old: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        millionths: np.ndarray,
    ) -> Iterator[bytes]:
        """Yield blocks of the lines of records a[p] and b[p], in byte order; see `_ranked`."""
        swapped = old[a] > old[b]
        if not self.measure.directed:
            swapped |= (old[a] == old[b]) & (rank[a] > rank[b])
        place = rank[np.where(swapped, b, a)] << 32 | rank[np.where(swapped, a, b)]
        endings, ending = self.lines.endings, np.zeros(len(a), np.int64)
        if len(endings) > 1:
            ending += old[a] | old[b]
        if len(endings) > 2:
            ending += ending + (swapped != self.measure.larger_first)
        rest = (millionths * len(endings) + ending).astype(np.int32)
        del a, b, swapped, ending, millionths  # this memory is in use until the last block
        order = np.argsort(place)
        if len(endings) > 1 and (place[order[1:]] == place[order[:-1]]).any():
            order = np.lexsort((rest, place))
        for start in range(0, len(order), PAIRS_AT_ONCE):
            some = order[start : start + PAIRS_AT_ONCE]
            values, at = np.unique(rest[some], return_inverse=True)
            texts = [
                b"%d.%06d%b" % (*divmod(q // len(endings), MILLION), endings[q % len(endings)])
                for q in values.tolist()
            ]
            first, second = np.divmod(place[some], 1 << 32)
            columns = (names, first), (names, second), (texts, at)
            fields = (map(words.__getitem__, which.tolist()) for words, which in columns)
            yield b"".join(map(b"%b\t%b\t%b\n".__mod__, zip(*fields)))

    def _copies_of(self, batch: BucketBatch, several: np.ndarray) -> Iterator[bytes]:
        """Yield the lines of records with the same set, for the sets `several` (int64)."""
        self.counters.add(REPEATED, 0)
        for i in several.tolist():
            for id_ in batch.repeats[i]:
                self.counters.repeated_id(self.lines.id_of(id_))
            similarity = self.lines.equal_sets(batch, i)
            for a, b in self.pairs.left_in(self.pairs.copies(batch.ids[i]), batch, i, i):
                for pair in [(a, b), (b, a)] if self.measure.directed else [(a, b)]:
                    self.counters.add(self.pairs.found, 1)
                    yield self.lines.format(*pair, similarity)

    def _spilled(self, spilled: SpilledBucket) -> Iterator[bytes]:
        """Join each piece of a bucket with itself and with later pieces whose sizes allow pairs."""
        starts, counts = list(spilled.starts()), []
        for start in starts:
            self.counters.alive()
            counts.append(len(self._piece(spilled, start)))
        nodes = np.cumsum([0, *counts]).tolist()
        self._begin(nodes[-1], in_pieces=True)
        for i, start in enumerate(starts):
            piece = self._piece(spilled, start, nodes[i])
            yield from self._whole(piece)
            for j in range(i + 1, len(starts)):
                self.counters.alive()
                if self._is_one_tree(nodes[i], nodes[i + 1], nodes[j], nodes[j + 1]):
                    continue
                later = self._piece(spilled, starts[j], nodes[j])
                if later.sets.sizes[0] > self.measure.largest_partner(piece.sets.sizes[-1:])[0]:
                    break
                both = piece.beside(later)
                _, stop = both.windows(self.measure)
                stop[len(piece) :] = 0  # the later piece is joined with itself in its own turn
                yield from self._written(both, np.full(len(both), len(piece)), stop)

    def _is_one_tree(self, *ends: int) -> bool:
        """Return whether two pieces, given the ends of their numbers, have no open pairs."""
        return False

    def _piece(self, spilled: SpilledBucket, start: int, first_node: int = 0) -> BucketBatch:
        return self.pairs.rows(BucketBatch.of_lines(spilled.piece(start), first_node))

    def _check(self, batch: BucketBatch) -> None:
        """Raise StageError unless sampled lines have the keys that are computed from their sets."""
        some = np.arange(0, len(batch), SAMPLE)
        if not self._owned(batch, some).all():
            own = ", ".join(option.name for option in getattr(self.scheme, "options", ()))
            raise StageError(
                "these keys were not made with the options given here: mapper and reducer need the "
                f"same --scheme{own and f' ({own})'}, --measure, --threshold, --seed, "
                "--counts, --verify, and --output, --rule, --keep, --against, --between, "
                "--not-pairs, --within, --across, --max-line, and options of reading such as --id, "
                "--text, --clean, --shingle"
            )

    def _written(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> Iterator[bytes]:
        """Yield the lines of similar pairs of sets i and j with first[i] ≤ j < stop[i]."""
        # In buckets of two or three, bitmaps cost more than the comparisons that they save.
        self._dense = int(np.maximum(stop - first, 0).sum()) > len(batch)
        for found in self._found(batch, first, stop):
            yield from self._lines_of(batch, found)

    def _found(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> Found:
        """Yield each similar pair in the windows if its smallest common key is the bucket's key."""
        everyone = np.arange(len(batch))
        for left, right in batch.pairs(everyone, first, stop, everyone):
            yield self._similar(batch, left, right)

    def _similar(self, batch: BucketBatch, left: np.ndarray, right: np.ndarray) -> Verified:
        left, right = self._possible(batch, left, right)
        mine = self._first_at(batch, left, right)
        left, right = left[mine], right[mine]
        self.counters.add(self.pairs.compared, self.pairs.candidates(batch, left, right))
        return self.measure.verified(batch.sets, left, right)

    def _possible(
        self, batch: BucketBatch, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs that pass --against and, in dense batches, the bitmap filter."""
        if self.pairs.across:
            left, right = self.pairs.wanted(batch, left, right)
        if not self._dense:
            return left, right
        possible = may_reach(self.measure, batch.bitmaps, batch.sets.sizes, left, right)
        return left[possible], right[possible]

    def _lines_of(self, batch: BucketBatch, found: Verified) -> Iterator[bytes]:
        similarities = self.lines.similarities(found)
        for i, j, similarity in zip(found.left.tolist(), found.right.tolist(), similarities):
            matches = self.pairs.matches(batch.ids[i], batch.ids[j])
            for a, b in self.pairs.left_in(matches, batch, i, j):
                if a == b:  # two records with one id are not a pair
                    self.counters.repeated_id(self.lines.id_of(a))
                else:
                    self.counters.add(self.pairs.found, 1)
                    yield self.lines.format(a, b, similarity)

    def _first_at(self, batch: BucketBatch, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Mark the pairs of sets (int64) whose smallest common key is the bucket's key (bool)."""
        own_key = batch.keys[left] ^ np.uint64(self.mark)
        band = own_key >> np.uint64(HASH_BITS)
        first = np.ones(len(left), dtype=bool)
        low, high = 0, 1
        own = int(not self.scheme.one_a_band)  # 1 if the key's own band may have a smaller key
        open_ = np.flatnonzero(band + np.uint64(own) > low)
        while len(open_):
            sets, place = np.unique((left[open_], right[open_]), return_inverse=True)
            keys = self.scheme.keys(batch.sets.take(sets), low, high)
            a, b = place.reshape(2, -1)
            first[open_] = ~_share_below(keys, a, b, own_key[open_])
            low, high = high, 2 * high
            open_ = np.flatnonzero(first & (band + np.uint64(own) > low))
        return first

    def _owned(self, batch: BucketBatch, sets: np.ndarray) -> np.ndarray:
        """Mark the sets (int64) that have the bucket's key among their computed keys (bool)."""
        owned = np.zeros(len(sets), dtype=bool)
        own_key = batch.keys[sets] ^ np.uint64(self.mark)
        bands = (own_key >> np.uint64(HASH_BITS)).astype(np.int64)
        for band in distinct(bands)[0].tolist():
            some = np.flatnonzero(bands == band)
            keys = self.scheme.keys(batch.sets.take(sets[some]), band, band + 1)
            same = keys.values == np.repeat(own_key[some], keys.sizes)
            owned[some[np.repeat(np.arange(len(some)), keys.sizes)[same]]] = True
        return owned


def _share_below(keys: Ragged, a: np.ndarray, b: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Mark each p for which the rows a[p] and b[p] share a key below bound[p] (bool).

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


def _records_of(found: Verified, members: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the pairs of records of pairs of sets (int64), and which pair of sets each is of.

    members: the number of records of each set, which are numbered set by set.
    """
    first, more = np.cumsum(members) - members, members[found.right]
    sizes = members[found.left] * more
    of = np.repeat(np.arange(len(sizes)), sizes)
    within = spans(np.zeros(len(sizes), np.int64), sizes)
    i, j = np.divmod(within, more[of])
    return first[found.left][of] + i, first[found.right][of] + j, of


def _ranked(names: list[bytes], old: np.ndarray) -> "Ranked | None":
    """Return the distinct names in order, and the place of each name (int64) among them.

    None if two names of a collection are equal, or if their order as fields of a line is another.

    >>> _ranked([b"c", b"a", b"a"], np.array([False, True, False]))
    ([b'a', b'c'], array([1, 0, 0]))
    """
    fields = [name + b"\t" for name in names]
    order = sorted(range(len(names)), key=fields.__getitem__)
    ascending = [names[i] for i in order]
    if any(map(bytes.__gt__, ascending, ascending[1:])):  # of bytes below the tab
        return None
    both = list(dict.fromkeys(ascending))
    if len(both) < len(names) and len(set(zip(names, old.tolist()))) < len(names):
        return None
    place = dict(zip(both, range(len(both))))
    return both, np.array([place[name] for name in names], np.int64)
