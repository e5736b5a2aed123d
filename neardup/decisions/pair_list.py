"""Decide on pairs that are at hand: which records are removed, and the clusters.

As `decide` does for the edges of a run, but for pairs in memory, and in an order of priority that
the caller has.  A record is named by its rank in that order, old records (--against) first.

    pairs (later, earlier, similarity), ranks ─▶ edge lines ─▶ EdgeFile ─▶ decided, clusters

Memory: a line of 70 bytes for each pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from neardup.decisions import decide
from neardup.decisions.edge_file import EdgeFile
from neardup.decisions.rules import Direct
from neardup.lines.answer_lines import format_edge, format_presence
from neardup.lines.tagged_ids import tag_of
from neardup.reading.blocks import NEW
from neardup.runtime.counters import Counters
from neardup.similarity.measures import NINE_TENTHS, Jaccard

TAG = tag_of("first")
DECIMALS = 10**18

RankedPair = tuple[int, int, float]  # later, and earlier in the order; 0 < similarity <= 1


def removed(
    pairs: Iterable[RankedPair], old: int, folder: Path
) -> Iterator[tuple[int, int, float]]:
    """Yield each removed record, the kept one that it duplicates, and their similarity.

    A record is removed if it is in a pair, as the later one, with one that is kept; the first `old`
    ranks are kept.  A pair whose later record must not be removed for the earlier one is left out
    by the caller.  `folder` is for a temporary file.
    """
    with _edges(pairs, old, folder) as edges:
        counters = Counters("")
        none = Jaccard(NINE_TENTHS)  # that of sets in dense clusters, of which there are none
        for records, reasons in decide.decided(edges, Direct, none, counters, bool(old)):
            for record, reason in zip(records, reasons):
                yield _rank(record), _rank(reason.kept), float(reason.similarity)


def clusters(pairs: Iterable[RankedPair], folder: Path) -> Iterator[tuple[int, int]]:
    """Yield each record that is in a pair, behind the first record of its cluster, in order."""
    with _edges(pairs, 0, folder) as edges:
        for first, record in decide.clusters(edges, Counters("")):
            yield _rank(first), _rank(record)


@contextmanager
def _edges(pairs: Iterable[RankedPair], old: int, folder: Path) -> Iterator[EdgeFile]:
    lines = set()
    for later, earlier, similarity in pairs:
        a, b = _tagged(later, old), _tagged(earlier, old)
        number = round(min(similarity, 1.0) * DECIMALS)
        lines.add(format_edge(a, b, b"%d.%018d" % divmod(number, DECIMALS)))
        lines.update((format_presence(a), format_presence(b)))
    with open(folder / "edges", "w+b") as file:
        yield EdgeFile(file, [b"".join(sorted(lines))] if lines else [], TAG, Counters(""))


def _tagged(rank: int, old: int) -> bytes:
    new = rank >= old
    return b"%d%016x%d" % (new, NEW + rank if new else rank, rank)


def _rank(tagged: bytes) -> int:
    return int(TAG.id_of(tagged))
