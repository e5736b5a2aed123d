"""--rule cluster: of each connected component the first record stays.

The others go because of it, also those that are no pair with it: these were only chained to it, and
their line says `-` for the similarity.
"""

from __future__ import annotations

import numpy as np

from neardup.decisions.components import Components
from neardup.decisions.edge_file import EdgeFile, Head, Heads
from neardup.decisions.rule import Reason, Rule, as_decimals

NOBODY, STAYS, OPEN = -1, -1, -2
NO_PAIR = b"-"


class WholeClusters(Rule):
    """For each record eight bytes, and eight: its similarity to who stays, and where that is."""

    components_first = True

    def __init__(self, edges: EdgeFile, components: Components):
        super().__init__(edges, components)
        self.similarity = np.full(edges.count, OPEN, np.int64)  # 0 if they are no pair
        self.kept = np.full(edges.count, NOBODY, np.int64)  # of the component of this number

    def stays(self, number: int) -> bool:
        return bool(self.similarity[number] == STAYS)

    def may_stay(self, head: Head) -> bool:
        return bool(self.kept[self.components.of_record(head.number)] == NOBODY)

    def at_once(self, heads: Heads) -> dict[int, Reason | None]:
        """All records, but for clusters with crowds and copies of records that are among these."""
        component = self.components.of_records(heads.numbers)
        alone = ~np.isin(component, component[~heads.alone()])
        new = np.flatnonzero(alone & (self.kept[component] == NOBODY))
        first = new[np.unique(component[new], return_index=True)[1]]
        self.kept[component[first]] = heads.positions[first]
        self.similarity[heads.numbers[first]] = STAYS

        similarity = self.similarity[heads.near]
        stays = similarity == STAYS
        open_ = heads.same & (similarity == OPEN)
        found = np.where(stays, heads.similarity, np.where(heads.same, similarity, 0))
        best = np.zeros(len(heads.records), np.int64)
        np.maximum.at(best, heads.owners(), found)
        alone[heads.owners()[open_]] = False
        alone[first] = False
        goes = np.flatnonzero(alone)
        self.similarity[heads.numbers[goes]] = best[goes]
        kept = map(self.edges.record_at, self.kept[component[goes]].tolist())
        reasons = map(Reason, kept, map(_in_words, best[goes].tolist()))
        return {**dict.fromkeys(first.tolist()), **dict(zip(goes.tolist(), reasons))}

    def decide(self, head: Head) -> Reason | None:
        component = self.components.of_record(head.number)
        if self.may_stay(head):
            self.similarity[head.number] = STAYS
            self.kept[component] = head.position
            return None
        best = 0
        for near in head.edges:
            if self.stays(near.number):
                best = max(best, near.similarity)
            elif near.same:
                best = max(best, int(self.similarity[near.number]))
        self.similarity[head.number] = best
        return Reason(self.edges.record_at(int(self.kept[component])), _in_words(best))


def _in_words(similarity: int) -> bytes:
    return as_decimals(similarity) if similarity else NO_PAIR
