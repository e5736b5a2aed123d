"""Find the removed records, or the clusters, from pairs of records in memory.

This is `decide` for pairs in memory instead of the edges of a run; the caller defines the order of
priority.  A record is named by its rank in that order, old records (--against) first.

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
    """Yield each removed record, the kept record that it duplicates, and their similarity.

    A record is removed if it is the later record of a pair with a kept one; the first `old` ranks
    are always kept.  The caller leaves out pairs whose later record must not be removed because of
    the earlier one.  `folder` is for a temporary file.
    """
    with _edges(pairs, old, folder) as edges:
        counters = Counters("")
        none = Jaccard(NINE_TENTHS)  # the measure in dense clusters; here are none
        for records, reasons in decide.decided(edges, Direct, none, counters, bool(old)):
            for record, reason in zip(records, reasons):
                yield _rank(record), _rank(reason.kept), float(reason.similarity)


def clusters(pairs: Iterable[RankedPair], folder: Path) -> Iterator[tuple[int, int]]:
    """Yield (first record of its cluster, record) for each record in a pair, in record order."""
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
