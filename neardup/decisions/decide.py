"""From edges to a decision, record after record in order of priority."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from neardup.decisions.components import Components
from neardup.decisions.crowds import BATCH, Crowds
from neardup.decisions.edge_file import EdgeFile, Head, Heads
from neardup.decisions.rule import Reason, Rule
from neardup.decisions.whole_clusters import NO_PAIR, NOBODY
from neardup.lines.tagged_ids import Tag
from neardup.process.counters import Counters
from neardup.process.summary import CHAINED, CHAINED_AWAY, CLUSTERS, IN_CLUSTERS, LARGEST, REMOVED
from neardup.similarity.measures import Measure


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
