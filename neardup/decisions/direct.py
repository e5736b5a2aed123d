"""--rule direct: the lexicographically first maximal independent set.

In order of priority a record stays unless one that stays before it is a pair with it: then it goes,
and its reason is the most similar one of these, of several the one with the best priority.  An old
record always stays, and is a better reason than a new one.

Copies of a set are tied to the first of them, and to nobody else.  If that stays, they go because
of it.  If it goes, they go too: because of its reason, or of a better one that has come since.
What is held of a record that goes is therefore its best reason so far.
"""

from __future__ import annotations

from neardup.decisions.components import Components
from neardup.decisions.edge_file import EdgeFile, Head
from neardup.decisions.rule import MILLION, Reason, Rule, as_decimals, as_millionths, integers
from neardup.lines.edge_lines import SAME_SET
from neardup.lines.tagged_ids import is_old

STAYS, COPY = -1, -2  # instead of a rank
OLD_FIRST = 2 * MILLION


class Direct(Rule):
    """For each record four bytes, and eight: the rank of its reason, and where that is written."""

    def __init__(self, edges: EdgeFile, components: Components):
        super().__init__(edges, components)
        self.rank = integers("i", 0, edges.count)  # or STAYS, or COPY
        self.where = integers("q", 0, edges.count)  # or of a COPY, the number of the first one

    def stays(self, number: int) -> bool:
        return self.rank[number] == STAYS

    def may_stay(self, head: Head) -> bool:
        return is_old(head.record) or not any(
            near.similarity == SAME_SET or self.stays(near.number) for near in head.edges
        )

    def decide(self, head: Head) -> Reason | None:
        self.components.connect(head)
        rank, where, kept, copy_of = 0, 0, b"", -1
        for near in [] if is_old(head.record) else head.edges:
            if self.rank[near.number] == STAYS:
                place, record = near.position, near.record
                found = _rank(near.similarity, record)
            elif near.similarity == SAME_SET:
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
            rank = _rank(near.similarity, head.record)
            if 0 < self.rank[first] < rank:
                self.rank[first], self.where[first] = rank, head.position

    def _first(self, number: int) -> int:
        """The first of the copies of a set."""
        return self.where[number] if self.rank[number] == COPY else number


def _rank(similarity: bytes, kept: bytes) -> int:
    """What makes a reason better."""
    rank = MILLION if similarity == SAME_SET else as_millionths(similarity)
    return rank + OLD_FIRST * is_old(kept)
