"""Decisions: which records are removed, or the members of each cluster, from edges on disk.

The pairs of crowds, as far as a decision asks for them.

A crowd is many alike sets of one bucket (`verification.edge_join`), which has n²/2 pairs; and a
record is decided by those with the few that stay.  So the members come in order of priority, a
batch at a time, and are compared with those that stay so far, and within the batch with those that
may stay.  What stays on disk is read when it is needed.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import islice
from operator import attrgetter

import numpy as np

from neardup.decisions.edge_file import EdgeFile, Head, Heads, as_number
from neardup.decisions.rules import NO_PAIR, NOBODY, Components, Reason, Rule
from neardup.lines.keyed_lines import decode_sets
from neardup.lines.tagged_ids import Tag, is_old
from neardup.runtime.counters import Counters
from neardup.runtime.summary import (
    CHAINED,
    CHAINED_AWAY,
    CLUSTERS,
    COMPARISONS,
    IN_CLUSTERS,
    LARGEST,
    REMOVED,
    USED,
)
from neardup.sets.ragged import Ragged, chunks
from neardup.similarity.measures import Measure, eighteen_decimals

BATCH = 256
TOKENS_AT_ONCE = 1 << 22


class Crowds:
    """Of each crowd, who stays, and who has gone and has copies, by the places of their lines."""

    def __init__(self, edges: EdgeFile, measure: Measure, counters: Counters):
        self.edges = edges
        self.measure = measure
        self.counters = counters
        self._staying: dict[bytes, array[int]] = defaultdict(partial(array, "q"))
        self._gone: dict[bytes, array[int]] = defaultdict(partial(array, "q"))

    def with_edges(self, heads: list[Head], rule: Rule) -> None:
        """Add to a batch's members the edges to those that stay, and between those that may."""
        members = list(filter(_in_crowd, heads))
        if not members:
            return
        self._compare((head, line) for head in members for line in _lines(head, self._staying))
        open_ = [head for head in members if rule.may_stay(head)]
        # One that stays may be a better reason for the copies of those that went before it.
        self._compare((head, line) for head in open_ for line in _lines(head, self._gone))
        self._compare(_among(members, {head.number for head in open_}))

    def decided(self, heads: list[Head], rule: Rule) -> None:
        """Remember of a batch whom later members may be compared with."""
        for head in filter(_in_crowd, heads):
            stays = rule.stays(head.number)
            if stays or any(member.has_copies for member in head.crowds):
                kind = self._staying if stays else self._gone
                for member in head.crowds:
                    kind[member.crowd].append(head.crowds[0].line)

    def _compare(self, candidates: Iterable[tuple[Head, int]]) -> None:
        """Add an edge where a record is a pair with the earlier one whose line begins there."""
        earlier = cache(self.edges.member_at)
        pairs = [(head, *earlier(line)) for head, line in candidates if not is_old(head.record)]
        texts = [(head.crowds[0].set_text, text) for head, _, text in pairs]
        weights = np.array([len(a) + len(b) for a, b in texts], dtype=np.int64)
        for low, high in chunks(weights, TOKENS_AT_ONCE):
            self.counters.alive()
            for p, similarity in self._verified(texts[low:high]):
                head, near, _ = pairs[low + p]
                head.edges.append(near._replace(similarity=as_number(similarity)))

    def _verified(self, texts: list[tuple[bytes, bytes]]) -> Iterator[tuple[int, bytes]]:
        numbers: dict[bytes, int] = {}
        rows = [numbers.setdefault(text, len(numbers)) for pair in texts for text in pair]
        left, right = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        sets: Ragged = decode_sets(list(numbers))
        place = {pair: p for p, pair in enumerate(zip(left.tolist(), right.tolist()))}
        self.counters.add(COMPARISONS, len(left))
        found = self.measure.verified(sets, left, right)
        self.counters.add(USED, len(found.left))
        pairs = zip(found.left.tolist(), found.right.tolist())
        for pair, similarity in zip(pairs, eighteen_decimals(found.part, found.whole)):
            yield place[pair], similarity


_in_crowd = attrgetter("crowds")


def _lines(head: Head, known: dict[bytes, array[int]]) -> set[int]:
    return {line for member in head.crowds for line in known.get(member.crowd, ())}


def _among(members: list[Head], open_: set[int]) -> Iterator[tuple[Head, int]]:
    """The pairs within a batch that have one who may stay: the later record, the earlier's line."""
    crowds: dict[bytes, list[Head]] = defaultdict(list)
    for head in members:
        earlier = (other for member in head.crowds for other in crowds[member.crowd])
        lines = {
            other.crowds[0].line
            for other in earlier
            if other.number in open_ or head.number in open_
        }
        for member in head.crowds:
            crowds[member.crowd].append(head)
        yield from ((head, line) for line in lines)


def decided(
    edges: EdgeFile,
    rule_kind: type[Rule],
    measure: Measure,
    counters: Counters,
    collections: bool = False,
) -> Iterator[tuple[list[bytes], list[Reason]]]:
    """The tagged ids of the records that go, in order of priority, and why each goes; some at a
    time.

    `collections`: whether there are two.
    """
    known_first = rule_kind.components_first
    components = Components.of(edges) if known_first else Components(edges)
    rule = rule_kind(edges, components)
    crowds = Crowds(edges, measure, counters)
    gone = chained = 0
    for heads in edges.batches():
        counters.alive()
        if not known_first:
            components.connect(heads)
        reasons = rule.at_once(heads)
        places = [i for i in range(len(heads.records)) if i not in reasons]
        opened = dict(zip(places, heads.one_by_one(places)))
        for some in _some_at_once(opened):
            crowds.with_edges(list(some.values()), rule)
            reasons.update((i, rule.decide(head)) for i, head in some.items())
            crowds.decided(list(some.values()), rule)
        for i in _of_own_id(edges.tag, heads, opened):
            counters.repeated_id(edges.tag.id_of(heads.records[i]))
        goes = sorted((i, reason) for i, reason in reasons.items() if reason)
        gone += len(goes)
        chained += sum(reason.similarity == NO_PAIR for _, reason in goes)
        yield [heads.records[i] for i, _ in goes], [reason for _, reason in goes]
    del rule, crowds  # what is counted now takes room, too
    if not known_first:
        chained = components.would_go() - gone
    counters.add(REMOVED, gone)
    counters.add(CHAINED if not known_first else CHAINED_AWAY, chained)
    if not collections:  # of two, only edges to new records are known
        counters.add(LARGEST, components.largest())


def clusters(edges: EdgeFile, counters: Counters) -> Iterator[tuple[bytes, bytes]]:
    """(the first record of a cluster, a record of it), as tagged ids, in order of records."""
    components = Components.of(edges)
    first = np.full(edges.count, NOBODY)  # where it is, of the component of this number
    for heads in edges.batches():
        counters.alive()
        component = components.of_records(heads.numbers)
        new = np.flatnonzero(first[component] == NOBODY)[::-1]  # so that the first one is the last
        first[component[new]] = heads.positions[new]
        names = map(edges.record_at, first[component].tolist())
        yield from zip(names, heads.records)
    counters.add(IN_CLUSTERS, edges.count)
    counters.add(CLUSTERS, components.count())
    counters.add(LARGEST, components.largest())


def _some_at_once(opened: dict[int, Head]) -> Iterator[dict[int, Head]]:
    items = iter(opened.items())
    while some := dict(islice(items, BATCH)):
        yield some


def _of_own_id(tag: Tag, heads: Heads, opened: dict[int, Head]) -> set[int]:
    """Which of these records have an edge to a record of the same id."""
    ids, near = tag.ids_of(heads.records), tag.ids_of(heads.near_records)
    found = {i for i, id_ in zip(heads.owners().tolist(), near) if ids[i] == id_}
    for i, head in opened.items():
        if head.crowds and any(tag.id_of(near.record) == ids[i] for near in head.edges):
            found.add(i)
    return found
