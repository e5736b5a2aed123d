"""The rules that decide which records are kept, given the edges between records.

--rule direct: the lexicographically first maximal independent set.  In order of priority a record
is kept unless it is similar to one that is kept before it.  Otherwise it is removed, and its reason
is the most similar of these; ties go to the best priority.  An old record is always kept, and is a
better reason than a new one; with --merge a worse one, since only new ones get values.

Copies of a set have an edge to the first of them only.  If that is kept, it is their reason.  If it
is removed, they are removed for its reason, or for a better reason found since.  So the best reason
so far is held for each removed record.

Twins (--across) have one set and one value: the same records are similar to each of them.  Of all
that are similar to a kept record, earlier ones are removed, and later ones will be.  So its twins
are kept, too, and twins of a removed record are removed like copies.  Twins have an edge of
similarity 0 to the first of them only, which has all other edges.

--rule cluster: the first record of each connected component is kept.  The others are removed
because of it, including those that are only *chained* to it, not similar: their line has `-` for
the similarity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from neardup.decisions.edge_file import EdgeFile, Head, Heads
from neardup.lines.answer_lines import IDENTICAL, NO_PAIR, as_decimals
from neardup.sets.ragged import Forest

AT_ONCE = 1 << 16
KEPT, COPY, OPEN = -1, -2, 0  # instead of a rank, in `Direct`
OLD_FIRST = 2 * IDENTICAL  # added to the rank of an old record, or with --merge of a new one
NOBODY, SMALLEST, UNKNOWN = -1, -1, -2  # in `WholeClusters`


class Components:
    """The connected components of an `EdgeFile`, in four bytes for each record.

    complete: True to connect all records at once.
    """

    def __init__(self, edges: EdgeFile, complete: bool):
        self.forest = Forest(edges.count)
        self._in_dense: dict[bytes, int] = {}  # a member of each dense cluster
        for heads in edges.batches() if complete else ():
            self.connect(heads)

    def connect(self, heads: Heads) -> None:
        self.forest.join_all(heads.numbers[heads.owners()], heads.near)
        for number, record in zip(heads.numbers.tolist(), heads.records) if heads.clusters else ():
            for member in heads.clusters.get(record, []):
                self.forest.join(number, self._in_dense.setdefault(member.cluster, number))

    def sizes(self) -> np.ndarray:
        """Return an array: the size of a cluster at its first record's number, and 0 elsewhere."""
        sizes = np.zeros_like(self.forest.parents)
        for low in range(0, len(sizes), AT_ONCE):
            np.add.at(sizes, self.forest.roots(np.arange(low, min(low + AT_ONCE, len(sizes)))), 1)
        return sizes


class Reason(NamedTuple):
    """The reason for a removal: a kept record (tagged id), and the similarity (`-`: not a pair)."""

    kept: bytes
    similarity: bytes


class Rule:
    """The base class of rules; a rule decides, in order of priority, which records are kept."""

    help: str
    components_first = False  # whether all components must be known before the first decision
    merges = False  # whether a new record is a better reason than an old one

    def __init__(self, edges: EdgeFile, components: Components):
        self.edges, self.components, self.old = edges, components, edges.old

    def at_once(self, heads: Heads) -> dict[int, Reason | None]:
        """Decide many records of a batch at once; `decide` must decide each record left out.

        Returns {index in the batch: the reason, or None for a kept record}.
        """
        raise NotImplementedError

    def may_be_kept(self, head: Head) -> bool:
        """Return False if earlier decisions already remove this record."""
        raise NotImplementedError

    def decide(self, head: Head) -> Reason | None:
        """Return the reason why a record is removed, or None if it is kept."""
        raise NotImplementedError

    def is_kept(self, number: int) -> bool:
        raise NotImplementedError


class Direct(Rule):
    """The rule `direct`: a record is removed only if it is similar to an earlier, kept record.

    It stores a rank and a position of a reason, 16 bytes for each record.
    """

    help = "a record is removed only if it is similar to one that is kept and comes before it"

    def __init__(self, edges: EdgeFile, components: Components):
        super().__init__(edges, components)
        self.ranks = np.full(edges.count, OPEN, np.int64)  # the rank of a reason, KEPT or COPY
        self.places = np.zeros(edges.count, np.int64)  # of a reason; for a COPY, the first copy
        self.rank, self.where = self.ranks.data, self.places.data  # faster for single items

    def is_kept(self, number: int) -> bool:
        return self.rank[number] == KEPT

    def may_be_kept(self, head: Head) -> bool:
        return head.number < self.old or not any(
            near.same or self.is_kept(near.number) for near in head.edges
        )

    def at_once(self, heads: Heads) -> dict[int, Reason | None]:
        # Records without edges are kept.  Others are removed here if they have an edge to a kept
        # record, and all other edges lead to decided records with other sets.
        edges = np.diff(heads.bounds)
        alone = heads.alone()
        without_edges = np.flatnonzero(alone & (edges == 0))
        self.ranks[heads.numbers[without_edges]] = KEPT
        later = np.flatnonzero(edges)
        runs = heads.bounds[later]
        ranks = self.ranks[heads.near]
        kept_before = ranks == KEPT
        known = kept_before | ((ranks != OPEN) & ~heads.same)
        best, rank = _best(np.where(kept_before, self._rank(heads.similarity, heads.near), 0), runs)
        removed = np.logical_and.reduceat(known, runs) & (rank > 0)
        removed &= alone[later] & (heads.numbers[later] >= self.old)
        later, best, rank = later[removed], best[removed], rank[removed]
        self.ranks[heads.numbers[later]] = rank
        self.places[heads.numbers[later]] = heads.near_positions[best]
        kept = map(heads.near_records.__getitem__, best.tolist())
        reasons = map(Reason, kept, map(as_decimals, (rank % OLD_FIRST).tolist()))
        return {**dict.fromkeys(without_edges.tolist()), **dict(zip(later.tolist(), reasons))}

    def decide(self, head: Head) -> Reason | None:
        rank, where, kept, copy_of = 0, 0, b"", -1
        for near in [] if head.number < self.old else head.edges:
            if self.rank[near.number] == KEPT:
                place, record = near.position, near.record
                found = self._rank(near.similarity, near.number)
            elif near.same:
                copy_of = self._first_copy(near.number)
                found, place = self.rank[copy_of], self.where[copy_of]
                record = self.edges.record_at(place)
            else:
                continue
            if found > rank or (found == rank and record < kept):
                rank, where, kept = found, place, record
        if not rank:
            self._keep(head)
            return None
        self.rank[head.number] = rank if copy_of < 0 else COPY
        self.where[head.number] = where if copy_of < 0 else copy_of
        return Reason(kept, as_decimals(rank % OLD_FIRST))

    def _keep(self, head: Head) -> None:
        self.rank[head.number] = KEPT
        # Its partners are removed; copies of them that are decided later have a better reason.
        for near in head.edges:
            first = self._first_copy(near.number)
            rank = self._rank(near.similarity, head.number)
            if 0 < self.rank[first] < rank:
                self.rank[first], self.where[first] = rank, head.position

    def _first_copy(self, number: int) -> int:
        return self.where[number] if self.rank[number] == COPY else number

    def _rank(self, similarity: Any, kept: Any) -> Any:
        """Return the rank of a reason, or the ranks of an array; larger is better, 0 is no reason.

        Twins have the similarity 0.
        """
        better = (kept < self.old) != self.merges
        return (similarity + OLD_FIRST * better) * (similarity > 0)


def _best(ranks: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the index and value of the first maximum of each run that begins at `starts`.

    >>> [column.tolist() for column in _best(np.array([3, 7, 7, 5]), np.array([0, 3]))]
    [[1, 3], [7, 5]]
    """
    largest = np.maximum.reduceat(ranks, starts)
    sizes = np.diff(starts, append=len(ranks))
    places = np.where(ranks == np.repeat(largest, sizes), np.arange(len(ranks)), len(ranks))
    return np.minimum.reduceat(places, starts), largest


class WholeClusters(Rule):
    """The rule `cluster`: the first record of each cluster is kept; all other members are removed.

    It stores a similarity and a position, 16 bytes for each record.
    """

    help = "one record of each cluster is kept, even if some members are not similar to it"
    components_first = True

    def __init__(self, edges: EdgeFile, components: Components):
        super().__init__(edges, components)
        self.similarity = np.full(edges.count, UNKNOWN, np.int64)  # 0 if they are not a pair
        self.kept = np.full(edges.count, NOBODY, np.int64)  # by the number of the component

    def is_kept(self, number: int) -> bool:
        return bool(self.similarity[number] == SMALLEST)

    def may_be_kept(self, head: Head) -> bool:
        return bool(self.kept[self.components.forest.root(head.number)] == NOBODY)

    def at_once(self, heads: Heads) -> dict[int, Reason | None]:
        # All except components with members of dense clusters, and copies of records of this batch.
        component = self.components.forest.roots(heads.numbers)
        alone = ~np.isin(component, component[~heads.alone()])
        new = np.flatnonzero(alone & (self.kept[component] == NOBODY))
        first = new[np.unique(component[new], return_index=True)[1]]
        self.kept[component[first]] = heads.positions[first]
        self.similarity[heads.numbers[first]] = SMALLEST

        similarity = self.similarity[heads.near]
        kept_before = similarity == SMALLEST
        open_ = heads.same & (similarity == UNKNOWN)
        found = np.where(kept_before, heads.similarity, np.where(heads.same, similarity, 0))
        best = np.zeros(len(heads.records), np.int64)
        np.maximum.at(best, heads.owners(), found)
        alone[heads.owners()[open_]] = False
        alone[first] = False
        removed = np.flatnonzero(alone)
        self.similarity[heads.numbers[removed]] = best[removed]
        kept = map(self.edges.record_at, self.kept[component[removed]].tolist())
        reasons = map(Reason, kept, map(_in_words, best[removed].tolist()))
        return {**dict.fromkeys(first.tolist()), **dict(zip(removed.tolist(), reasons))}

    def decide(self, head: Head) -> Reason | None:
        component = self.components.forest.root(head.number)
        if self.may_be_kept(head):
            self.similarity[head.number] = SMALLEST
            self.kept[component] = head.position
            return None
        best = 0
        for near in head.edges:
            if self.is_kept(near.number):
                best = max(best, near.similarity)
            elif near.same:
                best = max(best, int(self.similarity[near.number]))
        self.similarity[head.number] = best
        return Reason(self.edges.record_at(int(self.kept[component])), _in_words(best))


def _in_words(similarity: int) -> bytes:
    return as_decimals(similarity) if similarity else NO_PAIR
