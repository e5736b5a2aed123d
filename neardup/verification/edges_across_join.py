"""Edges of two collections, old records and new ones: what a decision about the new ones needs.

Old records always stay, so no two of them are compared, and the new copies of an old set go because
of it.  Ids come tagged, old ones before new ones; see `lines.tagged_ids`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from neardup.lines.tagged_ids import is_old
from neardup.process.counters import Counters
from neardup.schemes.scheme import Scheme
from neardup.similarity.measures import Measure
from neardup.verification.edge_join import EdgeJoin, EdgeLines
from neardup.verification.pile import Pile


def edges_across(scheme: Scheme, measure: Measure, counters: Counters, between: bool) -> EdgeLines:
    """The join for it; with `between`, two new records are no pair."""
    join = EdgesBetweenJoin if between else EdgesAcrossJoin
    return join(scheme, measure, counters)


class EdgesAcrossJoin(EdgeJoin):
    """Edges of which at least one record is new."""

    def _possible(
        self, pile: Pile, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        wanted = ~(pile.has_old[left] & pile.has_old[right])
        return super()._possible(pile, left[wanted], right[wanted])

    def _copies(self, ids: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        return [(ids[0], id_) for id_ in ids[1:] if not is_old(id_)]


class EdgesBetweenJoin(EdgeLines):
    """Edges of an old record and a new one; of an old set, only its first record has any."""

    def _possible(
        self, pile: Pile, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        wanted = pile.has_old[left] & pile.has_new[right]
        wanted |= pile.has_new[left] & pile.has_old[right]
        return super()._possible(pile, left[wanted], right[wanted])

    def _copies(self, ids: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        return [(ids[0], id_) for id_ in ids[1:] if is_old(ids[0]) and not is_old(id_)]

    def _matches(self, ids: list[bytes], others: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        both = (ids, others), (others, ids)
        return [(a[0], b) for a, some in both if is_old(a[0]) for b in some if not is_old(b)]
