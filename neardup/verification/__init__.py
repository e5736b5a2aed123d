"""Buckets → verified pairs.

In: keyed lines in order of keys.
Out: pair lines, each printed in one bucket: that of the smallest key both records have.
May import: process, sets, similarity, lines, schemes.

An output is a join in a file of its own here, and one line in `OUTPUTS`.
"""

from __future__ import annotations

from typing import NamedTuple

from neardup.verification.link_join import LinkJoin
from neardup.verification.pair_join import PairJoin


class Output(NamedTuple):
    """join: turns the lines of buckets into pair lines; directed: whether it may write (x, y) and
    (y, x), as containment has them; help: what --help says of it."""

    join: type[PairJoin]
    directed: bool
    help: str


OUTPUTS = {
    "pairs": Output(PairJoin, True, "every pair"),
    "links": Output(
        LinkJoin,
        False,
        "only the edges that a spanning forest of each bucket needs, so a thousand copies give 999 "
        "lines and not 499,500",
    ),
}
