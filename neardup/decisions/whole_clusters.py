"""--rule cluster: of each connected component the first record stays.

The others go because of it, also those that are no pair with it: these were only chained to it, and
their line says `-` for the similarity.
"""

from __future__ import annotations

from neardup.decisions.components import Components
from neardup.decisions.edge_file import EdgeFile, Head
from neardup.decisions.rule import MILLION, Reason, Rule, as_decimals, as_millionths, integers
from neardup.lines.edge_lines import SAME_SET

NOBODY, STAYS = -1, -1
NO_PAIR = b"-"


class WholeClusters(Rule):
    """For each record four bytes, and eight: its similarity to who stays, and where that stands."""

    components_first = True

    def __init__(self, edges: EdgeFile, components: Components):
        super().__init__(edges, components)
        self.similarity = integers("i", 0, edges.count)  # 0 if they are no pair
        self.kept = integers("q", NOBODY, edges.count)  # of the component of this number

    def stays(self, number: int) -> bool:
        return self.similarity[number] == STAYS

    def may_stay(self, head: Head) -> bool:
        return self.kept[self.components.of_record(head.number)] == NOBODY

    def decide(self, head: Head) -> Reason | None:
        component = self.components.of_record(head.number)
        if self.may_stay(head):
            self.similarity[head.number] = STAYS
            self.kept[component] = head.position
            return None
        kept = self.edges.record_at(self.kept[component])
        for near in head.edges:
            if near.record == kept:
                same = near.similarity == SAME_SET
                found = MILLION if same else as_millionths(near.similarity)
            elif near.similarity == SAME_SET and not self.stays(near.number):
                found = self.similarity[near.number]
            else:
                continue
            self.similarity[head.number] = max(found, self.similarity[head.number])
        similarity = self.similarity[head.number]
        return Reason(kept, as_decimals(similarity) if similarity else NO_PAIR)
