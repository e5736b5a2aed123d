"""What a rule is: who stays, and because of whom another goes."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from neardup.decisions.components import Components
from neardup.decisions.edge_file import EdgeFile, Head

MILLION = 10**6


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

    def may_stay(self, head: Head) -> bool:
        """False if what is known by now rules out that this record stays."""
        raise NotImplementedError

    def decide(self, head: Head) -> Reason | None:
        """Why this record goes; None if it stays."""
        raise NotImplementedError

    def stays(self, number: int) -> bool:
        """Whether the record of this number was decided to stay."""
        raise NotImplementedError


def integers(kind: str, value: int, count: int) -> array[int]:
    """So many, of four bytes ("i") or eight ("q")."""
    return array(kind, [value]) * count


def as_millionths(similarity: bytes) -> int:
    """
    >>> as_millionths(b"0.912345")
    912345
    """
    return int(similarity.replace(b".", b""))


def as_decimals(similarity: int) -> bytes:
    """
    >>> as_decimals(912345)
    b'0.912345'
    """
    return b"%d.%06d" % divmod(similarity, MILLION)
