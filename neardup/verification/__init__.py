"""Buckets → verified pairs.

In: keyed lines in order of keys.
Out: pair lines, each printed in one bucket: that of the smallest key both records have.
May import: runtime, sets, similarity, lines, schemes.

An output is a join here and one line in `OUTPUTS`.
"""

from __future__ import annotations

from typing import Callable, NamedTuple

from neardup.verification.edge_join import EdgeJoin, LinkEdgeJoin, LinkJoin, edges_across
from neardup.verification.pair_join import AcrossJoin, PairJoin, SketchJoin


class Output(NamedTuple):
    """join: turns the lines of buckets into pair lines; directed: whether it may write (x, y) and
    (y, x), as containment has them; help: the text of --help.

    across: the R-S join of two collections, which takes `between`; None if there is none.  decides:
    what a decision makes of the edges that the join writes: "records", "clusters", or "" for
    outputs without a decision.
    """

    join: type[PairJoin]
    directed: bool
    help: str
    across: Callable[..., PairJoin] | None = None
    decides: str = ""


RECORDS = "records"
OUTPUTS = {
    "pairs": Output(PairJoin, True, "every pair", AcrossJoin),
    "links": Output(
        LinkJoin,
        False,
        "only the edges of a spanning forest of each bucket, so that a thousand copies give 999 "
        "lines instead of 499,500",
    ),
    "kept": Output(
        EdgeJoin,
        False,
        "the lines of the input without near-duplicates",
        edges_across,
        RECORDS,
    ),
    "removed": Output(
        EdgeJoin,
        False,
        "each removed record and the record it duplicates",
        edges_across,
        RECORDS,
    ),
    "clusters": Output(
        LinkEdgeJoin,
        False,
        "each record of each cluster, behind the smallest id of the cluster",
        None,
        "clusters",
    ),
}
# What --output pairs is where pairs are verified by samples.
ESTIMATED = Output(SketchJoin, False, "every pair that may be one, with an interval")
