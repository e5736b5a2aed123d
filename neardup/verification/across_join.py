r"""Pairs of two collections, old records and new ones (--against).

    NEW TAB OTHER TAB SIMILARITY TAB new|old [TAB contained|contains]

The first record is always a new one, and the fourth field says what the second is.  No two old ones
are compared.  With a measure that has a direction the fifth field says which way a line goes: the
new record is contained in the other one, or contains it.

Ids come tagged here, old ones before new ones; see `lines.tagged_ids`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np

from neardup.lines.tagged_ids import COLLECTION, is_old
from neardup.process.counters import Counters
from neardup.process.summary import CANDIDATES
from neardup.schemes.scheme import Scheme
from neardup.similarity.measures import Measure
from neardup.verification.pair_join import PairJoin
from neardup.verification.pile import Pile


class AcrossJoin(PairJoin):
    """Pairs of which at least one record is new; `between`: and the other one old."""

    def __init__(self, scheme: Scheme, measure: Measure, counters: Counters, between: bool = False):
        super().__init__(scheme, measure, counters)
        self.between = between

    def _possible(
        self, pile: Pile, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        old, new = pile.has_old, pile.has_new
        wanted = (old[left] & new[right]) | (new[left] & old[right])
        if not self.between:
            wanted |= new[left] & new[right]
        return super()._possible(pile, left[wanted], right[wanted])

    def _candidates(self, pile: Pile, left: np.ndarray, right: np.ndarray) -> int:
        old = pile.old_records
        unwanted = np.dot(old[left], old[right])
        if self.between:
            new = pile.records - old
            unwanted += np.dot(new[left], new[right])
        return super()._candidates(pile, left, right) - int(unwanted)

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
