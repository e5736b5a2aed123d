"""Decide which records are removed, or which cluster each record is in, from edges on disk.

A *dense cluster* (`verification.edge_join`) has many similar sets of one bucket, whose n²/2 pairs
are not among the edges; a decision needs only those with the few records that are kept.  So its
members are read in order of priority, a batch at a time.  They are compared with the members kept
so far, and within the batch with those that may be kept.  Their sets are read from disk when
needed.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import islice
from typing import Callable

import numpy as np

from neardup.decisions.edge_file import EdgeFile, Head, Heads, Near
from neardup.decisions.rules import NOBODY, Components, Reason, Rule
from neardup.lines.answer_lines import NO_PAIR, as_number
from neardup.lines.keyed_lines import decode_sets
from neardup.lines.tagged_ids import Tag, hash_digits, is_old
from neardup.runtime import summary
from neardup.runtime.counters import Counters
from neardup.sets.ragged import chunks
from neardup.similarity.measures import Measure, eighteen_decimals

BATCH = 256
TOKENS_AT_ONCE = 1 << 22
PAIRS_AT_ONCE = 1 << 16
Named = Callable[[np.ndarray], object]  # is given a hash of the name of each cluster (int64)


class DenseClusters:
    """Finds the edges that a decision needs inside dense clusters, whose pairs are not listed."""

    def __init__(self, edges: EdgeFile, measure: Measure, counters: Counters):
        self.edges, self.measure, self.counters = edges, measure, counters
        # Line positions, by cluster: of kept members, and of removed members with copies.
        self._kept: dict[bytes, array[int]] = defaultdict(partial(array, "q"))
        self._removed: dict[bytes, array[int]] = defaultdict(partial(array, "q"))

    def with_edges(self, heads: list[Head], rule: Rule) -> None:
        """Add edges within dense clusters to the records `heads`, if the decision needs them."""
        members = [head for head in heads if head.clusters]
        if not members:
            return
        self._compare((head, line) for head in members for line in _lines(head, self._kept))
        open_ = [head for head in members if rule.may_be_kept(head)]
        # A record kept now may be a better reason for copies of members that were removed before.
        self._compare((head, line) for head in open_ for line in _lines(head, self._removed))
        if open_:
            self._compare(_among(members, {head.number for head in open_}))

    def decided(self, heads: list[Head], rule: Rule) -> None:
        """Store the members of a batch that later members must be compared with."""
        for head in heads:
            kept = bool(head.clusters) and rule.is_kept(head.number)
            if kept or any(member.has_copies for member in head.clusters):
                lines = self._kept if kept else self._removed
                for member in head.clusters:
                    lines[member.cluster].append(head.clusters[0].line)

    def _compare(self, candidates: Iterable[tuple[Head, int]]) -> None:
        """Compare new records with earlier ones, and add an edge for each similar pair."""
        new = (each for each in candidates if not is_old(each[0].record))
        while some := list(islice(new, PAIRS_AT_ONCE)):
            earlier = cache(self.edges.member_at)
            self._compare_some([(head, *earlier(line)) for head, line in some])

    def _compare_some(self, pairs: list[tuple[Head, Near, bytes]]) -> None:
        if self.edges.tag.apart:
            pairs = [
                each for each in pairs if hash_digits(each[0].record) != hash_digits(each[1].record)
            ]
        texts = [(head.clusters[0].set_text, text) for head, _, text in pairs]
        weights = np.array([len(a) + len(b) for a, b in texts], dtype=np.int64)
        for low, high in chunks(weights, TOKENS_AT_ONCE):
            numbers: dict[bytes, int] = {}  # the distinct sets, numbered
            rows = [numbers.setdefault(x, len(numbers)) for some in texts[low:high] for x in some]
            places: dict[tuple[int, int], list[int]] = defaultdict(list)
            for p, pair in enumerate(zip(rows[::2], rows[1::2]), low):
                places[pair].append(p)
            left, right = np.array(list(places), dtype=np.int64).T
            sets = decode_sets(list(numbers))
            if self.measure.nested:  # an old record may be smaller than the later one
                fit = sets.sizes[left] <= sets.sizes[right]
                left, right = left[fit], right[fit]
            found = self.measure.verified(sets, left, right)
            self.counters.add(summary.COMPARISONS, len(left))
            self.counters.add(summary.USED, len(found.left))
            similarities = map(as_number, eighteen_decimals(found.part, found.whole))
            each = zip(found.left.tolist(), found.right.tolist())
            for pair, similarity in zip(each, similarities):
                for p in places[pair]:
                    head, near, _ = pairs[p]
                    head.edges.append(near._replace(similarity=similarity))


def _lines(head: Head, known: dict[bytes, array[int]]) -> set[int]:
    return {line for member in head.clusters for line in known.get(member.cluster, ())}


def _among(members: list[Head], open_: set[int]) -> Iterator[tuple[Head, int]]:
    """Yield (later, line of earlier) for pairs of members of a cluster, at least one in `open_`."""
    earlier: dict[bytes, list[Head]] = defaultdict(list)
    for head in members:
        near = [other for member in head.clusters for other in earlier[member.cluster]]
        for line in {
            other.clusters[0].line
            for other in near
            if other.number in open_ or head.number in open_
        }:
            yield head, line
        for member in head.clusters:
            earlier[member.cluster].append(head)


def decided(
    edges: EdgeFile,
    rule_kind: type[Rule],
    measure: Measure,
    counters: Counters,
    collections: bool = False,
    merges: bool = False,
) -> Iterator[tuple[list[bytes], list[Reason]]]:
    """Yield batches of removed records, in order of priority, with the reason for each removal.

    collections: True if there are two collections (--against); merges: as in `Rule`.
    """
    known_first = rule_kind.components_first
    components = Components(edges, known_first)
    rule = rule_kind(edges, components)
    rule.merges = merges
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
        _count_own_ids(edges.tag, heads, opened, counters)
        removed = sorted((i, reason) for i, reason in reasons.items() if reason)
        count += len(removed)
        chained += sum(reason.similarity == NO_PAIR for _, reason in removed)
        yield [heads.records[i] for i, _ in removed], [reason for _, reason in removed]
    del rule, dense  # frees memory for the sizes
    sizes = components.sizes()
    if not known_first:
        # One record of each cluster, and all old records, would be kept; an old one is the root.
        chained = edges.count - edges.old - int(np.count_nonzero(sizes[edges.old :])) - count
    counters.add(summary.REMOVED, count)
    counters.add(summary.CHAINED_AWAY if known_first else summary.CHAINED, chained)
    if not collections:  # otherwise edges between old records are unknown
        counters.most(summary.LARGEST, int(sizes.max(initial=0)))


def clusters(edges: EdgeFile, counters: Counters, named: Named) -> Iterator[tuple[bytes, bytes]]:
    """Yield (first record of its cluster, record) as tagged ids, in order of priority."""
    components = Components(edges, complete=True)
    first = np.full(edges.count, NOBODY)  # the position of its line, by component number
    for heads in edges.batches():
        counters.alive()
        component = components.forest.roots(heads.numbers)
        new = np.flatnonzero(first[component] == NOBODY)[::-1]  # the first one is assigned last
        first[component[new]] = heads.positions[new]
        names = map(edges.record_at, first[component].tolist())
        yield from zip(names, heads.records)
    named(_names(edges, first))
    sizes = components.sizes()
    counters.add(summary.IN_CLUSTERS, edges.count)
    counters.add(summary.CLUSTERS, int(np.count_nonzero(sizes)))
    counters.most(summary.LARGEST, int(sizes.max(initial=0)))


class Copies:
    """Counts how many records each kept one stands for, in eight bytes for each record."""

    def __init__(self, edges: EdgeFile):
        self._edges, self._counts = edges, np.ones(edges.count, np.int64)  # 0 for removed ones

    def add(self, records: list[bytes], reasons: list[Reason]) -> None:
        """Count a batch of removed records."""
        np.add.at(self._counts, self._edges.numbers([reason.kept for reason in reasons]), 1)
        self._counts[self._edges.numbers(records)] = 0

    def marks(self, collections: bool, named: Named) -> Iterator[tuple[bytes, bytes, int]]:
        """Yield each new record, the smallest id of its cluster, and its copies.

        collections: as in `decided`; the clusters are then unknown, and b"".
        """
        edges, id_of = self._edges, self._edges.tag.id_of
        forest = Components(edges, complete=not collections).forest
        first = np.full(edges.count, NOBODY)  # the position of the smallest id, by component
        name = cache(lambda root: b"" if collections else id_of(edges.record_at(int(first[root]))))
        for heads in edges.batches() if not collections else ():
            roots, ids = forest.roots(heads.numbers).tolist(), edges.tag.ids_of(heads.records)
            rows = sorted(zip(ids, roots, heads.positions.tolist()), reverse=True)
            for root, (id_, position) in {root: (id_, at) for id_, root, at in rows}.items():
                if first[root] == NOBODY or id_ < id_of(edges.record_at(int(first[root]))):
                    first[root] = position
        named(_names(edges, first))
        for heads in edges.batches():
            roots = forest.roots(heads.numbers).tolist()
            each = zip(heads.records, map(name, roots), self._counts[heads.numbers].tolist())
            yield from (row for row in each if not is_old(row[0]))
            name.cache_clear()


def _names(edges: EdgeFile, first: np.ndarray) -> np.ndarray:
    """Return a hash (int64) of the name of each cluster, the id of a record.

    first: the position (int64) of that record's line, or NOBODY
    """
    positions = first[first != NOBODY].tolist()
    names = (hash(edges.tag.id_of(edges.record_at(position))) for position in positions)
    return np.fromiter(names, np.int64, len(positions))


def _count_own_ids(tag: Tag, heads: Heads, opened: dict[int, Head], counters: Counters) -> None:
    """Count the records that have an edge to a record with the same id."""
    ids, near = tag.ids_of(heads.records), tag.ids_of(heads.near_records)
    found = {i for i, id_ in zip(heads.owners().tolist(), near) if ids[i] == id_}
    for i, head in opened.items():
        if head.clusters and any(tag.id_of(near.record) == ids[i] for near in head.edges):
            found.add(i)
    for i in found:
        counters.repeated_id(ids[i])
