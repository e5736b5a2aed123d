"""Buckets → verified pairs.

In: keyed lines in order of keys.
Out: pair lines, each printed in one bucket: that of the smallest key both records have.
May import: process, sets, similarity, lines, schemes.

An output is a join in a file of its own here, and one line in `OUTPUTS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, NamedTuple

from neardup.process.on_use import imported

if TYPE_CHECKING:
    from neardup.verification.pair_join import PairJoin


class Output(NamedTuple):
    """file: of the join that turns the lines of buckets into pair lines, FILE.CLASS; directed:
    whether it may write (x, y) and (y, x), as containment has them; help: what --help says of it.

    file_across: of the join of two collections, that takes `between`; "" if it has none.  decides:
    what a decision makes of the edges that the join writes: "records", or "clusters"; "" without
    one.
    """

    file: str
    directed: bool
    help: str
    file_across: str = ""
    decides: str = ""

    @property
    def join(self) -> type[PairJoin]:
        return imported(__name__, self.file)

    @property
    def across(self) -> Callable[..., PairJoin]:
        return imported(__name__, self.file_across)


RECORDS = "records"
OUTPUTS = {
    "pairs": Output("pair_join.PairJoin", True, "every pair", "across_join.AcrossJoin"),
    "links": Output(
        "link_join.LinkJoin",
        False,
        "only the edges that a spanning forest of each bucket needs, so a thousand copies give 999 "
        "lines and not 499,500",
    ),
    "kept": Output(
        "edge_join.EdgeJoin",
        False,
        "the lines of the input that stay, without near-duplicates",
        "edges_across_join.edges_across",
        RECORDS,
    ),
    "removed": Output(
        "edge_join.EdgeJoin",
        False,
        "each record that goes, and because of whom",
        "edges_across_join.edges_across",
        RECORDS,
    ),
    "clusters": Output(
        "edge_join.LinkEdgeJoin",
        False,
        "each record of each cluster, behind its smallest id",
        "",
        "clusters",
    ),
}
# What --output pairs is where pairs are verified by samples.
ESTIMATED = Output("sketch_join.SketchJoin", False, "every pair that may be one, with an interval")
