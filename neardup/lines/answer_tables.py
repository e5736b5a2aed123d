"""The fields of answers that are written as JSON lines, CSV or Parquet instead of lines with tabs.

    a, b, similarity                                pairs and links
    a, b, low, high                                 pairs with --verify sketch: an interval
    new, other, similarity, collection[, direction] pairs with --against
    id, kept, similarity                            removed records; null where not a pair
    cluster, id                                     clusters

The lines are those of `answer_lines` and, with --against, of `verification.record_pairs`.
"""

from __future__ import annotations

from neardup.reading.row_files import LineTable, fields_table
from neardup.reading.text_rows import Row

REMOVED = fields_table(id=str, kept=str, similarity=float)
CLUSTERS = fields_table(cluster=str, id=str)
PAIRS = fields_table(a=str, b=str, similarity=float)
ACROSS = fields_table(new=str, other=str, similarity=float, collection=str)
DIRECTED_ACROSS = fields_table(new=str, other=str, similarity=float, collection=str, direction=str)


def interval_row(line: bytes) -> Row:
    r"""Return the table row of a pair line with an interval.

    >>> interval_row(b"a\tb\t~0.871123..1.000000\n")
    {'a': 'a', 'b': 'b', 'low': 0.871123, 'high': 1.0}
    """
    a, b, interval = line.decode().rstrip("\n").split("\t")
    low, high = map(float, interval[1:].split(".."))
    return {"a": a, "b": b, "low": low, "high": high}


INTERVALS = LineTable({"a": str, "b": str, "low": float, "high": float}, interval_row)


def answer_table(output: str, against: bool, directed: bool, estimated: bool) -> LineTable:
    """Return the table of an answer, given --output and the options that change its lines."""
    if output in ("kept", "removed"):  # for kept, the records that are written beside the answer
        return REMOVED
    if output == "clusters":
        return CLUSTERS
    if against:
        return DIRECTED_ACROSS if directed else ACROSS
    return INTERVALS if estimated else PAIRS
