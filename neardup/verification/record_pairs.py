"""Parts of a join: which records of similar sets are pairs, and which lines are written.

A bucket holds sets, each with the ids of its records.  Ids of two collections are tagged, old ones
before new ones (`lines.tagged_ids`).

The lines of two collections (--against):

    NEW TAB OTHER TAB SIMILARITY TAB new|old [TAB contained|contains]

The first record is always a new one, and the fourth field is the collection of the second.  With a
measure that has a direction, the fifth says whether the new record is contained in the other one,
or contains it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from math import comb

import numpy as np

from neardup.lines import answer_lines
from neardup.lines.tagged_ids import VALUED, Tag, hash_digits, is_old, without_value
from neardup.runtime.counters import Counters
from neardup.runtime.summary import CANDIDATES, COMPARISONS, KEPT_OUT, PAIRS, USED
from neardup.similarity.measures import Measure, Verified, eighteen_decimals, six_decimals
from neardup.verification.bucket_batch import BucketBatch
from neardup.verification.not_pairs import NotPairs, set_digests

Columns = tuple[np.ndarray, np.ndarray]  # left and right: numbers of sets in a batch (int64)
Ids = Iterable[tuple[bytes, bytes]]


@dataclass
class EveryPair:
    """The part of a join that selects pairs of records: any two similar records.

    across: there are two collections, and two old records are not a pair (--against); between: nor
    are two new ones (--between); nested: for a decision, nor are an old record and a larger new
    one, which must not be removed because of it; not_pairs: the pairs to keep out, or None.
    equal_values: True for pairs of records with equal values, False for those with different ones,
    None for both.
    """

    counters: Counters
    across: bool = False
    between: bool = False
    nested: bool = False
    not_pairs: NotPairs | None = None
    equal_values: bool | None = None
    _marked: tuple[BucketBatch, np.ndarray] | None = field(default=None, init=False, repr=False)
    compared, found = CANDIDATES, PAIRS  # the names of what is counted
    first_only = False

    def kind_of(self, id_: bytes) -> bytes:
        """Return what records must have in common to be joined as one set, besides their set."""
        apart = id_ if self.not_pairs and self.not_pairs.is_apart(id_) else b""
        if self.equal_values is None:
            return apart
        value = hash_digits(id_)
        return (value if self.equal_values else id_[:1] + value) + apart

    def rows(self, batch: BucketBatch) -> BucketBatch:
        """Return the batch with a row for each set and kind of record."""
        by_ids = self.first_only and self.not_pairs and self.not_pairs.by_ids
        if (self.equal_values is None and not by_ids) or not len(batch):
            return batch
        kinds = [_by_kind(ids, self.kind_of) if len(ids) > 1 else [ids] for ids in batch.ids]
        if self.first_only and self.equal_values is False and not by_ids:
            # Old records are always kept.  Of three values, any two records have one as a reason.
            kinds = [
                [part for k, part in enumerate(parts) if k < 3 or not is_old(part[0])]
                for parts in kinds
            ]
        return batch.divided(kinds)

    def wanted(self, batch: BucketBatch, left: np.ndarray, right: np.ndarray) -> Columns:
        """Return the pairs of sets that have at least one pair of records to compare."""
        old, new = batch.old_records > 0, batch.old_records < batch.records
        if self.first_only and (self.nested or not self.between):
            new = ~old  # an old copy is the reason for new ones
        may_keep = old[left]
        if self.nested:  # the left set, which is not the larger one
            may_keep &= batch.sets.sizes[left] == batch.sets.sizes[right]
        chosen = (may_keep & new[right]) | (new[left] & old[right])
        if not self.between:
            chosen |= new[left] & new[right]
        if self.equal_values is not None:
            chosen &= (batch.values[left] == batch.values[right]) == self.equal_values
        return left[chosen], right[chosen]

    def touched(self, batch: BucketBatch) -> np.ndarray:
        """Mark the sets that may lack a partner because of --not-pairs (bool)."""
        if self.not_pairs is None:
            return np.zeros(len(batch), bool)
        if self._marked is None or self._marked[0] is not batch:
            self._marked = batch, self.not_pairs.touched(batch.ids, batch.sets)
        return self._marked[1]

    def left_in(self, pairs: Ids, batch: BucketBatch, i: int, j: int) -> Ids:
        """Return the pairs of records of sets i and j that are not kept out; count the others."""
        touched = self.touched(batch) if self.not_pairs else ()
        if self.not_pairs is None or not (touched[i] and touched[j]):
            return pairs
        return self._left_in(pairs, set_digests(batch.sets.take(np.array([i, j]))))

    def _left_in(self, pairs: Ids, digests: list[bytes]) -> Ids:
        assert self.not_pairs
        for pair in pairs:
            if self.not_pairs.has(*pair, *digests):
                self.counters.add(KEPT_OUT, 1)
            else:
                yield pair

    def candidates(self, batch: BucketBatch, left: np.ndarray, right: np.ndarray) -> int:
        """Return the number of pairs of records to compare in the given pairs of sets."""
        count = np.dot(batch.records[left], batch.records[right])
        if self.across:
            old = batch.old_records
            count -= np.dot(old[left], old[right])
            if self.between:
                new = batch.records - old
                count -= np.dot(new[left], new[right])
        return int(count)

    def copies(self, ids: list[bytes]) -> Ids:
        """Count and return the pairs of records with the same set."""
        if self.equal_values is False:
            return ()
        first_new = sum(map(is_old, ids)) if self.across else 0
        old, new = ids[:first_new], ids[first_new:]
        self.counters.add(CANDIDATES, len(old) * len(new) + (not self.between) * comb(len(new), 2))
        return chain(product(new, old), () if self.between else combinations(new, 2))

    def matches(self, ids: list[bytes], others: list[bytes]) -> Ids:
        """Return the pairs of records of two similar sets, given the ids of both."""
        pairs = product(ids, others)
        return (pair for pair in pairs if self._are_pair(*pair)) if self.across else pairs

    def _are_pair(self, a: bytes, b: bytes) -> bool:
        if self.equal_values is False and without_value(a) == without_value(b):
            self.counters.repeated_id(VALUED.id_of(a))  # two records with one id are not a pair
            return False
        return is_old(a) != is_old(b) or not (is_old(a) or self.between)


class FirstPair(EveryPair):
    """The part of a join that pairs first records of sets, and each first record with its copies.

    Old records are always kept: the new copies of an old set are paired with its first old record.
    """

    compared, found = COMPARISONS, USED
    first_only = True

    def candidates(self, batch: BucketBatch, left: np.ndarray, right: np.ndarray) -> int:
        return len(left)

    def copies(self, ids: list[bytes]) -> Ids:
        if self.equal_values is False:  # twins, see `TwinEdges`; old records are always kept
            return [(ids[0], id_) for id_ in ids[1:] if not is_old(id_)]
        pairs = [(ids[0], id_) for id_ in ids[1:]]
        return [pair for pair in pairs if self._are_pair(*pair)] if self.across else pairs

    def matches(self, ids: list[bytes], others: list[bytes]) -> Ids:
        if not self.between:
            return super().matches(ids[:1], others[:1])
        both = (ids, others), (others, ids)  # each new record has its own pair
        return [(a[0], b) for a, some in both if is_old(a[0]) for b in some if not is_old(b)]


def _by_kind(ids: list[bytes], kind_of: Callable[[bytes], bytes]) -> list[list[bytes]]:
    kinds: dict[bytes, list[bytes]] = {}
    for id_ in ids:
        kinds.setdefault(kind_of(id_), []).append(id_)
    return list(kinds.values())


@dataclass
class PairLines:
    """The part of a join that formats pair lines, with the similarity in six decimals.

    tag: the format of the ids in buckets, or None if they are as in the input.
    """

    measure: Measure
    tag: Tag | None = None
    equal = b"1.000000"  # the similarity of two records with the same set

    @property
    def endings(self) -> list[bytes]:
        """What may follow the similarity in a line, ascending."""
        return [b""]

    def begin(self) -> None:
        """Prepare for another batch of buckets, or another large bucket."""

    def similarities(self, found: Verified) -> list[bytes]:
        return six_decimals(found.part, found.whole)

    def equal_sets(self, batch: BucketBatch, i: int) -> bytes:
        """Return the similarity, as text, of two records with the same set i."""
        return self.equal

    def format(self, a: bytes, b: bytes, similarity: bytes) -> bytes:
        if self.tag:
            a, b = self.tag.ids_of([a, b])
        return answer_lines.format_pair(a, b, similarity, self.measure.directed)

    def id_of(self, id_: bytes) -> bytes:
        """Return an id as in the input, without a tag."""
        return self.tag.id_of(id_) if self.tag else id_


class IntervalLines(PairLines):
    """Pair lines with a confidence interval, for sets that are samples (--verify sketch)."""

    def similarities(self, found: Verified) -> list[bytes]:
        return [
            answer_lines.format_interval(*ends)
            for ends in zip(found.part.tolist(), found.whole.tolist())
        ]

    def equal_sets(self, batch: BucketBatch, i: int) -> bytes:
        # Equal samples prove that sets are equal only if the samples are whole sets.
        row = np.array([i])
        return self.similarities(self.measure.verified(batch.sets, row, row))[0]


class CollectionLines(PairLines):
    """Pair lines of two collections (--against)."""

    @property
    def endings(self) -> list[bytes]:
        ways = [b"\tcontained", b"\tcontains"] if self.measure.directed else [b""]
        return [b"\t" + kind + way for kind in (b"new", b"old") for way in ways]

    def format(self, a: bytes, b: bytes, similarity: bytes) -> bytes:
        # Of two new records the smaller id is first, or with a direction the contained record.
        swapped = is_old(a) or (not is_old(b) and b < a and not self.measure.directed)
        first, second = (b, a) if swapped else (a, b)
        fields = [*map(self.id_of, (first, second)), similarity]
        fields.append(b"old" if is_old(second) else b"new")
        if self.measure.directed:
            contains = swapped != self.measure.larger_first
            fields.append(b"contains" if contains else b"contained")
        return b"\t".join(fields) + b"\n"


class EdgeLines(PairLines):
    """Edge lines for a decision; every record of a pair is the first field of some line."""

    equal = answer_lines.SAME_SET

    def begin(self) -> None:
        self._present: set[bytes] = set()  # records that have begun a line

    def similarities(self, found: Verified) -> list[bytes]:
        return eighteen_decimals(found.part, found.whole)

    def format(self, a: bytes, b: bytes, similarity: bytes) -> bytes:
        edge, earlier = answer_lines.format_edge(a, b, similarity), min(a, b)
        if earlier in self._present:
            return edge
        self._present.add(earlier)
        return edge + answer_lines.format_presence(earlier)


class TwinEdges(EdgeLines):
    """Edge lines with --across, where records with one set and one value share their fate.

    They are twins, not a pair.  So their line does not say that the first of them is in a pair.
    """

    equal = answer_lines.TWIN

    def format(self, a: bytes, b: bytes, similarity: bytes) -> bytes:
        if similarity == self.equal:
            return answer_lines.format_edge(a, b, similarity)
        return super().format(a, b, similarity)
