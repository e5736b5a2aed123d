"""Verification: finds the pairs of similar records in buckets of records with a common key.

In: keyed lines in order of keys.
Out: pair lines, each written in one bucket only: that of the smallest common key.
May import: runtime, sets, similarity, lines.

An output is one line in `OUTPUTS`, made of three parts: which pairs of sets are verified
(`PairJoin`, `LinkJoin`, `EdgeJoin`), which records of two sets are pairs, and what is written
(both in `record_pairs.py`).  A new part is a class in a file here.
"""

from typing import NamedTuple

from neardup.verification import record_pairs
from neardup.verification.edge_join import EdgeJoin, LinkJoin
from neardup.verification.pair_join import PairJoin
from neardup.verification.record_pairs import EdgeLines, EveryPair, FirstPair, PairLines


class JoinParts(NamedTuple):
    edges: type[PairJoin] = PairJoin
    pairs: type[EveryPair] = EveryPair
    lines: type[PairLines] = PairLines


class Output(NamedTuple):
    """A value of --output: its help text, and the parts of the joins that it needs."""

    help: str
    parts: JoinParts  # for one collection
    across: "JoinParts | None" = None  # for the R-S join of two
    between: "JoinParts | None" = None  # with --between, if it differs
    directed: bool = False  # both (x, y) and (y, x) may be written, as for containment
    decides: str = ""  # what a decision makes from the edges: RECORDS, "clusters", or nothing
    rows: bool = False  # whether lines or rows of the input are written


RECORDS = "records"
EDGES = JoinParts(EdgeJoin, FirstPair, EdgeLines)
DECISION = EDGES, EDGES, JoinParts(PairJoin, FirstPair, EdgeLines)
OUTPUTS = {
    "pairs": Output(
        "every pair", JoinParts(), JoinParts(lines=record_pairs.CollectionLines), directed=True
    ),
    "links": Output(
        "only the edges of a spanning forest of each bucket, so that a thousand copies give 999 "
        "lines instead of 499,500",
        JoinParts(LinkJoin, FirstPair),
    ),
    "kept": Output(
        "the lines of the input without near-duplicates", *DECISION, decides=RECORDS, rows=True
    ),
    "marked": Output(
        "all lines of the input with four more columns: the record that each one duplicates, the "
        "similarity, its cluster, and how many records it stands for",
        *DECISION,
        decides=RECORDS,
        rows=True,
    ),
    "removed": Output(
        "each removed record and the record it duplicates", *DECISION, decides=RECORDS
    ),
    "clusters": Output(
        "for each record of a cluster: the smallest id of the cluster, tab, id",
        JoinParts(LinkJoin, FirstPair, EdgeLines),
        decides="clusters",
    ),
}
MARKED = "marked"
OF_FILES = [name for name in OUTPUTS if name != MARKED]  # where records are files, without columns


# --output pairs if pairs are verified by samples (--verify sketch).
ESTIMATED = Output(
    "every pair that may reach the threshold, with an interval",
    JoinParts(lines=record_pairs.IntervalLines),
)
