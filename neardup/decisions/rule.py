"""What a rule is: who stays, and because of whom another goes."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from neardup.decisions.components import Components
from neardup.decisions.edge_file import EdgeFile, Head, Heads


class Reason(NamedTuple):
    """The tagged id of the record that stays, and the similarity, or `-` if they are no pair."""

    kept: bytes
    similarity: bytes


class Rule:
    """Asked of one record after the other, in order of priority."""

    # Whether `components` must be known before the first record.
    components_first = False

    def __init__(self, edges: EdgeFile, components: Components):
        self.edges = edges
        self.components = components

    def at_once(self, heads: Heads) -> dict[int, Reason | None]:
        """What becomes of some of these records as far as it follows from what is decided by now:
        why they go, or None for those that stay; by their places among these."""
        raise NotImplementedError

    def may_stay(self, head: Head) -> bool:
        """False if what is known by now rules out that this record stays."""
        raise NotImplementedError

    def decide(self, head: Head) -> Reason | None:
        """Why this record goes; None if it stays."""
        raise NotImplementedError

    def stays(self, number: int) -> bool:
        """Whether the record of this number was decided to stay."""
        raise NotImplementedError


@lru_cache(1 << 12)
def as_decimals(similarity: int) -> bytes:
    """Six decimals of a number from 0 to 10^18, rounded half-even.

    >>> as_decimals(912345678901234567), as_decimals(5 * 10**11), as_decimals(15 * 10**11)
    (b'0.912346', b'0.000000', b'0.000002')
    """
    millionths, rest = divmod(similarity, 10**12)
    millionths += 2 * rest > 10**12 or (2 * rest == 10**12 and millionths % 2)
    return b"%d.%06d" % divmod(millionths, 10**6)
