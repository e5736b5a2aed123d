"""--rule direct: the lexicographically first maximal independent set.

In order of priority a record stays unless one that stays before it is a pair with it: then it goes,
and its reason is the most similar one of these, of several the one with the best priority.  An old
record always stays, and is a better reason than a new one.

Copies of a set are tied to the first of them, and to nobody else.  If that stays, they go because
of it.  If it goes, they go too: because of its reason, or of a better one that has come since.
What is held of a record that goes is therefore its best reason so far.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neardup.decisions.components import Components
from neardup.decisions.edge_file import IDENTICAL, EdgeFile, Head, Heads
from neardup.decisions.rule import Reason, Rule, as_decimals

STAYS, COPY, OPEN = -1, -2, 0  # instead of a rank
OLD_FIRST = 2 * IDENTICAL


class Direct(Rule):
    """For each record eight bytes, and eight: the rank of its reason, and where that is written."""

    def __init__(self, edges: EdgeFile, components: Components):
        super().__init__(edges, components)
        self.ranks = np.full(edges.count, OPEN, np.int64)  # or STAYS, or COPY
        self.places = np.zeros(edges.count, np.int64)  # or of a COPY, the number of the first one
        self.rank, self.where = self.ranks.data, self.places.data  # whose items are read faster
        self.old = edges.old

    def stays(self, number: int) -> bool:
        return self.rank[number] == STAYS

    def may_stay(self, head: Head) -> bool:
        return head.number < self.old or not any(
            near.same or self.stays(near.number) for near in head.edges
        )

    def at_once(self, heads: Heads) -> dict[int, Reason | None]:
        """Who has no edges stays.  Who has one to a record that stays goes, if what its other edges
        lead to is decided too, and has another set.
        """
        edges = np.diff(heads.bounds)
        alone = heads.alone()
        staying = np.flatnonzero(alone & (edges == 0))
        self.ranks[heads.numbers[staying]] = STAYS
        later = np.flatnonzero(edges)
        runs = heads.bounds[later]
        ranks = self.ranks[heads.near]
        stays = ranks == STAYS
        known = stays | ((ranks != OPEN) & ~heads.same)
        best, rank = _best(np.where(stays, self._rank(heads.similarity, heads.near), 0), runs)
        goes = np.logical_and.reduceat(known, runs) & (rank > 0)
        goes &= alone[later] & (heads.numbers[later] >= self.old)
        later, best, rank = later[goes], best[goes], rank[goes]
        self.ranks[heads.numbers[later]] = rank
        self.places[heads.numbers[later]] = heads.near_positions[best]
        kept = map(heads.near_records.__getitem__, best.tolist())
        reasons = map(Reason, kept, map(as_decimals, (rank % OLD_FIRST).tolist()))
        return {**dict.fromkeys(staying.tolist()), **dict(zip(later.tolist(), reasons))}

    def decide(self, head: Head) -> Reason | None:
        rank, where, kept, copy_of = 0, 0, b"", -1
        for near in [] if head.number < self.old else head.edges:
            if self.rank[near.number] == STAYS:
                place, record = near.position, near.record
                found = self._rank(near.similarity, near.number)
            elif near.same:
                copy_of = self._first(near.number)
                found, place = self.rank[copy_of], self.where[copy_of]
                record = self.edges.record_at(place)
            else:
                continue
            if found > rank or (found == rank and record < kept):
                rank, where, kept = found, place, record
        if not rank:
            self._stay(head)
            return None
        self.rank[head.number] = rank if copy_of < 0 else COPY
        self.where[head.number] = where if copy_of < 0 else copy_of
        return Reason(kept, as_decimals(rank % OLD_FIRST))

    def _stay(self, head: Head) -> None:
        self.rank[head.number] = STAYS
        for near in head.edges:  # all go, and their copies to come may have a better reason now
            first = self._first(near.number)
            rank = self._rank(near.similarity, head.number)
            if 0 < self.rank[first] < rank:
                self.rank[first], self.where[first] = rank, head.position

    def _first(self, number: int) -> int:
        """The first of the copies of a set."""
        return self.where[number] if self.rank[number] == COPY else number

    def _rank(self, similarity: Any, kept: Any) -> Any:
        """What makes a reason better: one or many."""
        return similarity + OLD_FIRST * (kept < self.old)


def _best(ranks: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the first of the largest is in each run that begins at `starts`, and the largest.

    >>> [column.tolist() for column in _best(np.array([3, 7, 7, 5]), np.array([0, 3]))]
    [[1, 3], [7, 5]]
    """
    largest = np.maximum.reduceat(ranks, starts)
    sizes = np.diff(starts, append=len(ranks))
    places = np.where(ranks == np.repeat(largest, sizes), np.arange(len(ranks)), len(ranks))
    return np.minimum.reduceat(places, starts), largest
