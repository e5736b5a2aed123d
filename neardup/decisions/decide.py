"""Decisions: which records are removed, or the members of each cluster, from edges on disk.

Subtle is a *dense cluster* (`verification.edge_join`): many similar sets of one bucket, whose pairs
are not among the edges.  There are n²/2 of them, and a record is decided by those with the few that
are kept.  So the members come in order of priority, a batch at a time, and are compared with those
that are kept so far, and within the batch with those that may be kept.  The sets are read from disk
when they are needed.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, partial

import numpy as np

from neardup.decisions.edge_file import EdgeFile, Head, Heads, as_number
from neardup.decisions.rules import NO_PAIR, NOBODY, Components, Reason, Rule
from neardup.lines.keyed_lines import decode_sets
from neardup.lines.tagged_ids import Tag, is_old
from neardup.runtime import summary
from neardup.runtime.counters import Counters
from neardup.sets.ragged import chunks
from neardup.similarity.measures import Measure, eighteen_decimals

BATCH = 256
TOKENS_AT_ONCE = 1 << 22


class DenseClusters:
    """The positions of the lines of kept members, and of removed ones with copies, by cluster."""

    def __init__(self, edges: EdgeFile, measure: Measure, counters: Counters):
        self.edges = edges
        self.measure = measure
        self.counters = counters
        self._kept: dict[bytes, array[int]] = defaultdict(partial(array, "q"))
        self._removed: dict[bytes, array[int]] = defaultdict(partial(array, "q"))

    def with_edges(self, heads: list[Head], rule: Rule) -> None:
        """Add to the members of a batch the edges to kept ones, and to those that may be kept."""
        members = [head for head in heads if head.clusters]
        if not members:
            return
        self._compare((head, line) for head in members for line in _lines(head, self._kept))
        open_ = [head for head in members if rule.may_be_kept(head)]
        # A kept one may be a better reason for the copies of those that were removed before it.
        self._compare((head, line) for head in open_ for line in _lines(head, self._removed))
        self._compare(_among(members, {head.number for head in open_}))

    def decided(self, heads: list[Head], rule: Rule) -> None:
        """Remember the members of a batch that later ones may be compared with."""
        for head in heads:
            kept = bool(head.clusters) and rule.is_kept(head.number)
            if kept or any(member.has_copies for member in head.clusters):
                lines = self._kept if kept else self._removed
                for member in head.clusters:
                    lines[member.cluster].append(head.clusters[0].line)

    def _compare(self, candidates: Iterable[tuple[Head, int]]) -> None:
        """Add an edge where a record is similar to the earlier one whose line begins there."""
        earlier = cache(self.edges.member_at)
        pairs = [(head, *earlier(line)) for head, line in candidates if not is_old(head.record)]
        texts = [(head.clusters[0].set_text, text) for head, _, text in pairs]
        weights = np.array([len(a) + len(b) for a, b in texts], dtype=np.int64)
        for low, high in chunks(weights, TOKENS_AT_ONCE):
            numbers: dict[bytes, int] = {}  # of the distinct sets
            rows = [numbers.setdefault(x, len(numbers)) for some in texts[low:high] for x in some]
            left, right = np.array(rows, dtype=np.int64).reshape(-1, 2).T
            place = {pair: low + p for p, pair in enumerate(zip(left.tolist(), right.tolist()))}
            found = self.measure.verified(decode_sets(list(numbers)), left, right)
            self.counters.add(summary.COMPARISONS, len(left))
            self.counters.add(summary.USED, len(found.left))
            similarities = map(as_number, eighteen_decimals(found.part, found.whole))
            for *pair, similarity in zip(found.left.tolist(), found.right.tolist(), similarities):
                head, near, _ = pairs[place[tuple(pair)]]
                head.edges.append(near._replace(similarity=similarity))


def _lines(head: Head, known: dict[bytes, array[int]]) -> set[int]:
    return {line for member in head.clusters for line in known.get(member.cluster, ())}


def _among(members: list[Head], open_: set[int]) -> Iterator[tuple[Head, int]]:
    """Yield the pairs in a batch with an open record: the later one, and the earlier one's line."""
    earlier: dict[bytes, list[Head]] = defaultdict(list)
    for head in members:
        lines = set()
        for member in head.clusters:
            for other in earlier[member.cluster]:
                if other.number in open_ or head.number in open_:
                    lines.add(other.clusters[0].line)
        for member in head.clusters:
            earlier[member.cluster].append(head)
        yield from ((head, line) for line in lines)


def decided(
    edges: EdgeFile,
    rule_kind: type[Rule],
    measure: Measure,
    counters: Counters,
    collections: bool = False,
) -> Iterator[tuple[list[bytes], list[Reason]]]:
    """Yield the tagged ids of removed records in order of priority, and the reasons; many at once.

    `collections`: whether there are two.
    """
    known_first = rule_kind.components_first
    components = Components(edges, known_first)
    rule = rule_kind(edges, components)
    dense = DenseClusters(edges, measure, counters)
    count = chained = 0
    for heads in edges.batches():
        counters.alive()
        if not known_first:
            components.connect(heads)
        reasons = rule.at_once(heads)
        places = [i for i in range(len(heads.records)) if i not in reasons]
        opened = dict(zip(places, heads.one_by_one(places)))
        for low in range(0, len(places), BATCH):
            some = places[low : low + BATCH]
            dense.with_edges([opened[i] for i in some], rule)
            reasons.update((i, rule.decide(opened[i])) for i in some)
            dense.decided([opened[i] for i in some], rule)
        for i in _of_own_id(edges.tag, heads, opened):
            counters.repeated_id(edges.tag.id_of(heads.records[i]))
        removed = sorted((i, reason) for i, reason in reasons.items() if reason)
        count += len(removed)
        chained += sum(reason.similarity == NO_PAIR for _, reason in removed)
        yield [heads.records[i] for i, _ in removed], [reason for _, reason in removed]
    del rule, dense  # what is counted now takes room, too
    if not known_first:
        chained = components.would_be_removed() - count
    counters.add(summary.REMOVED, count)
    counters.add(summary.CHAINED if not known_first else summary.CHAINED_AWAY, chained)
    if not collections:  # of two, only edges to new records are known
        counters.add(summary.LARGEST, components.largest())


def clusters(edges: EdgeFile, counters: Counters) -> Iterator[tuple[bytes, bytes]]:
    """Yield (the first record of a cluster, a record of it), tagged ids, in order of records."""
    components = Components(edges, complete=True)
    first = np.full(edges.count, NOBODY)  # where it is, of the component of this number
    for heads in edges.batches():
        counters.alive()
        component = components.forest.roots(heads.numbers)
        new = np.flatnonzero(first[component] == NOBODY)[::-1]  # so that the first one is the last
        first[component[new]] = heads.positions[new]
        names = map(edges.record_at, first[component].tolist())
        yield from zip(names, heads.records)
    counters.add(summary.IN_CLUSTERS, edges.count)
    counters.add(summary.CLUSTERS, components.count_from(0))
    counters.add(summary.LARGEST, components.largest())


def _of_own_id(tag: Tag, heads: Heads, opened: dict[int, Head]) -> set[int]:
    """Return which of these records have an edge to a record with the same id."""
    ids, near = tag.ids_of(heads.records), tag.ids_of(heads.near_records)
    found = {i for i, id_ in zip(heads.owners().tolist(), near) if ids[i] == id_}
    for i, head in opened.items():
        if head.clusters and any(tag.id_of(near.record) == ids[i] for near in head.edges):
            found.add(i)
    return found
