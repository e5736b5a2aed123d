"""From edges to a decision, record after record in order of priority."""

from __future__ import annotations

from collections.abc import Iterator

from neardup.decisions.components import Components
from neardup.decisions.crowds import BATCH, Crowds
from neardup.decisions.edge_file import EdgeFile, Head
from neardup.decisions.rule import Reason, Rule, integers
from neardup.decisions.whole_clusters import NO_PAIR, NOBODY
from neardup.process.counters import Counters
from neardup.process.summary import CHAINED, CHAINED_AWAY, CLUSTERS, IN_CLUSTERS, LARGEST, REMOVED
from neardup.similarity.measures import Measure


def decided(
    edges: EdgeFile, rule_kind: type[Rule], measure: Measure, counters: Counters
) -> Iterator[tuple[bytes, Reason]]:
    """The tagged ids of the records that go, in order of priority, and why each goes."""
    known_first = rule_kind.components_first
    components = Components.of(edges) if known_first else Components(edges)
    rule = rule_kind(edges, components)
    crowds = Crowds(edges, measure, counters)
    gone = chained = 0
    for heads in _batches(edges):
        counters.alive()
        crowds.with_edges(heads, rule)
        for head in heads:
            if reason := rule.decide(head):
                gone += 1
                chained += reason.similarity == NO_PAIR
                yield head.record, reason
        crowds.decided(heads, rule)
    del rule, crowds  # half of the memory; what follows needs some
    if not known_first:
        chained = components.would_go() - gone
    counters.add(REMOVED, gone)
    counters.add(CHAINED if not known_first else CHAINED_AWAY, chained)
    if not edges.old:  # of two collections, only edges to new records are known
        counters.add(LARGEST, components.largest())


def clusters(edges: EdgeFile, counters: Counters) -> Iterator[tuple[bytes, bytes]]:
    """(the first record of a cluster, a record of it), as tagged ids, in order of records."""
    components = Components.of(edges)
    first = integers("q", NOBODY, edges.count)  # where it is, of the component of this number
    for heads in edges.batches():
        counters.alive()
        for head in heads:
            component = components.of_record(head.number)
            if first[component] == NOBODY:
                first[component] = head.position
            yield edges.record_at(first[component]), head.record
    counters.add(IN_CLUSTERS, edges.count)
    counters.add(CLUSTERS, components.count())
    counters.add(LARGEST, components.largest())


def _batches(edges: EdgeFile) -> Iterator[list[Head]]:
    for heads in edges.batches():
        for low in range(0, len(heads), BATCH):
            yield heads[low : low + BATCH]
