"""A random sample of records, and all pairs of its records, by an exact comparison.

`neardup audit` and `neardup run --audit` compare what a run found with these pairs.  N ids are
drawn by a hash while records stream by (bottom-k sampling): all records of an id are in the sample
or none, and each set of N ids is equally likely.  The draw depends on the ids alone, not on the
engine, the machine or the order of the records.

In memory: the records of 2N ids, and an index of their tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Callable

import numpy as np

from neardup.joins import near_bits
from neardup.joins.inverted_index import InvertedIndex
from neardup.lines.answer_lines import format_pair
from neardup.reading.input_format import InputFormat
from neardup.runtime.counters import Counters
from neardup.runtime.summary import KEPT_OUT
from neardup.schemes.fingerprints import Hamming
from neardup.sets.bit_vectors import Prints
from neardup.sets.ragged import Batch, Ragged
from neardup.similarity.measures import Measure, six_decimals
from neardup.verification.not_pairs import NotPairs, set_digests

MAX_IDS = 10**6


class IdSample:
    """The records of the `size` ids with the smallest hashes: a random sample.

    >>> sample = IdSample(size=2, seed=0)
    >>> from neardup.sets.ragged import Ragged
    >>> sample.add(Batch([b"a", b"b", b"c", b"a"], Ragged.from_rows([[1], [2], [3], [4]])))
    >>> sample.records().ids, sample.whole
    ([b'a', b'b', b'a'], False)
    """

    def __init__(self, size: int, seed: int):
        self.size = size
        self.whole = True  # it has all ids
        self._secret = seed.to_bytes(8, "little")
        self._bound = (1 << 64) - 1  # no larger hash can be among the smallest
        self._enough = 2 * size  # records to hold before the sample is cut
        self._hashes = np.empty(0, np.uint64)
        self._held: list[Batch] = []

    def add(self, batch: Batch) -> None:
        digests = [blake2b(id_, digest_size=8, key=self._secret).digest() for id_ in batch.ids]
        hashes = np.frombuffer(b"".join(digests), dtype="<u8")
        mine = np.flatnonzero(hashes <= self._bound)
        self._hashes = np.append(self._hashes, hashes[mine])
        self._held.append(batch.take(mine))
        if len(self._hashes) > self._enough:
            self.records()

    def records(self) -> Batch:
        distinct = np.unique(self._hashes)
        if len(distinct) > self.size:
            self._bound, self.whole = int(distinct[self.size - 1]), False
        mine = np.flatnonzero(self._hashes <= self._bound)
        records = Batch.end_to_end(self._held).take(mine)
        self._held, self._hashes = [records], self._hashes[mine]
        self._enough = 2 * max(self.size, len(mine))
        return records


def near_rows(
    batches: Iterable[Batch], drawn: Batch, measure: Measure
) -> Iterator[tuple[Batch, np.ndarray, np.ndarray]]:
    """Yield (records, left, right): rows of records that may be a pair, the right one of `drawn`.

    Each batch is compared with all records of `drawn`; pairs within `drawn` come in both directions
    if its records are in the batches, too.
    """
    find = _candidates(drawn.sets, measure)
    for batch in batches:
        for asking, holder in find(batch.sets):
            if len(asking):
                (mine, left), (theirs, right) = (
                    np.unique(rows, return_inverse=True) for rows in (asking, holder)
                )
                both = Batch.end_to_end([batch.take(mine), drawn.take(theirs)])
                yield both, left, len(mine) + right


def _candidates(drawn: Ragged, measure: Measure) -> Callable[[Ragged], Iterator[near_bits.Pairs]]:
    """Return a function from sets to candidate pairs: (rows of the sets, rows of `drawn`)."""
    if isinstance(measure, Hamming):
        how = Prints.of(drawn, measure.bits).rows, measure.bits, measure.distance

        def near(sets: Ragged) -> Iterator[near_bits.Pairs]:
            yield near_bits.each_once(
                near_bits.near_records(Prints.of(sets, measure.bits).rows, *how)
            )

        return near
    index = InvertedIndex.of(drawn)

    def find(sets: Ragged) -> Iterator[near_bits.Pairs]:
        for asking, holder, common in index.overlaps(sets):
            good = measure.may_reach(common, sets.sizes[asking], drawn.sizes[holder])
            yield asking[good], holder[good]

    return find


@dataclass(frozen=True)
class Comparison:
    r"""An exact comparison of candidate pairs.

    form: whose --within or --across, if any, chooses the pairs by the last column of ranks

    >>> from neardup.sets.ragged import Ragged
    >>> from neardup.similarity.measures import NINE_TENTHS, Jaccard
    >>> records = Batch([b"b", b"a", b"c"], Ragged.from_rows([[1, 2], [1, 2], [3]]))
    >>> left, right = np.array([0, 0]), np.array([1, 2])
    >>> list(Comparison(Jaccard(NINE_TENTHS), Counters("")).lines(records, left, right))
    [b'a\tb\t1.000000\n']
    """

    measure: Measure
    counters: Counters
    not_pairs: NotPairs | None = None
    form: InputFormat | None = None

    def lines(self, records: Batch, left: np.ndarray, right: np.ndarray) -> Iterator[bytes]:
        """Yield the lines of `pairs`."""
        for i, j, similarity in self.pairs(records, left, right):
            yield format_pair(records.ids[i], records.ids[j], similarity, self.measure.directed)

    def pairs(
        self, records: Batch, left: np.ndarray, right: np.ndarray
    ) -> Iterator[tuple[int, int, bytes]]:
        """Yield the pairs `left[p], right[p]` (int64) that are similar, and their similarities.

        An id is never paired with itself; an id of several records may form a pair several times.
        """
        form = self.form
        if form and form.values and form.pairs_by_value and len(left):
            value = records.ranks[:, -1]
            some = (value[left] == value[right]) == form.values.equal
            left, right = left[some], right[some]
        found = self.measure.verified(records.sets, left, right)
        similarities = six_decimals(found.part, found.whole)
        for i, j, similarity in zip(found.left.tolist(), found.right.tolist(), similarities):
            a, b = records.ids[i], records.ids[j]
            if a == b:
                self.counters.repeated_id(a)
            elif self._kept_out(a, b, records.sets.take(np.array([i, j]))):
                self.counters.add(KEPT_OUT, 1)
            else:
                yield i, j, similarity

    def _kept_out(self, a: bytes, b: bytes, sets: Ragged) -> bool:
        return self.not_pairs is not None and self.not_pairs.has(a, b, *set_digests(sets))
