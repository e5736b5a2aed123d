"""What the library answers: ids as they were given, or positions, and exact similarities."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple


class Pair(NamedTuple):
    """Two records that are near-duplicates, a before b.

    By the measure containment, a is contained in b, and a pair may be there twice.  The cosine is
    rounded to millionths; all others are exact.
    """

    a: Any
    b: Any
    similarity: Fraction


class Removed(NamedTuple):
    """A record that goes, and because of which one that stays; with the rule "cluster" the two may
    be no pair, and there is no similarity."""

    id: Any
    because: Any
    similarity: Fraction | None


class Deduplicated(NamedTuple):
    """The ids of the records that stay, and those that go, both in the order of the records."""

    kept: list[Any]
    removed: list[Removed]
