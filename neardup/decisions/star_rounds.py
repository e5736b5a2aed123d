r"""Clusters in rounds of map-reduce, for more records than one process can number.

    edges ~ links ~ large ~ small ~ … ~ large ~ small ~ clusters        ~ is a sort
                    └─ round 1 ─┘       └─ round R ─┘

After R. Kiveris, S. Lattanzi, V. Mirrokni, V. Rastogi, S. Vassilvitskii, "Connected components in
MapReduce and beyond", SoCC 2014.  A node (a record) knows its neighbours and no others.  In
a round it gives

    large   its larger neighbours,
    small   its smaller neighbours and itself

to the smallest node it knows, itself among them.

    path        large            small
    1-2-4-3     2-1, 4-1, 4-3    2-1, 4-1, 3-1      1 is told to 4 by 2, and then to 3 by 4

Each step leaves records connected that were, and connects no others.  A link only ever gets smaller
ends, and none is added; so it ends, and it ends in *stars*: each record linked to the smallest
record of its cluster, and to no other.  That takes O(log^2 n) rounds by the paper's proof, and
about log n wherever it was tried: 2 for data/videos.txt, 7 for 50,000 edges drawn among 100,000
records, 17 for a path of 100,000.

A sort brings the smallest neighbour of a node first, so all that a step holds is a line.  The links
of the first record of a cluster go through one process, though, as those of any key do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from neardup.lines.edge_lines import Member, parse_edge_line
from neardup.lines.link_lines import format_link, parse_link
from neardup.lines.tagged_ids import PRIORITIES
from neardup.process.counters import Counters
from neardup.process.errors import StageError, WireError, shown
from neardup.process.summary import CLUSTERS, EDGES, IN_CLUSTERS, LINKS, UNSETTLED

AT_ONCE = 1 << 12  # lines are counted together


def links_of(edges: Iterable[bytes], counters: Counters) -> Iterator[bytes]:
    """Edge lines in any order → each edge from both its ends."""
    for number, line in enumerate(edges, 1):
        try:
            later, told = parse_edge_line(line)
            if isinstance(told, Member):
                raise WireError(
                    f"a crowd is for a decision on records; clusters take edges of "
                    f"reducer.py --output clusters, and not {shown(line)}"
                )
            both = told and _both_ways(*parse_link(format_link(later, told.earlier)))
        except WireError as error:
            raise StageError(f"line {number}: {error}") from None
        if both:
            counters.add(EDGES, 1)
            yield both


def large_star(links: Iterable[bytes], counters: Counters) -> Iterator[bytes]:
    """Links from both ends, in order → for `small_star`, each from its later record.

    UNSETTLED counts what is no star yet: none, in all of a round, and `links` can go to
    `clusters_of`.
    """
    counters.add(UNSETTLED, 0)
    node = smallest = b""
    for record, neighbour in _in_order(links, counters):
        if record != node:
            node, smallest = record, min(record, neighbour)
        elif smallest != node:
            counters.add(UNSETTLED, 1)
        if neighbour > node:
            yield format_link(neighbour, smallest)


def small_star(links: Iterable[bytes], counters: Counters) -> Iterator[bytes]:
    """Links from their later records, in order → links from both ends, for the next round."""
    node = smallest = b""
    for record, neighbour in _in_order(links, counters):
        if neighbour > record:
            raise StageError(f"{shown(record)} has a later neighbour; put the step large in front")
        if record != node:
            node, smallest = record, neighbour
            yield _both_ways(node, smallest)
        else:
            yield _both_ways(neighbour, smallest)


def clusters_of(links: Iterable[bytes], counters: Counters) -> Iterator[bytes]:
    """Stars, from both ends, in order → CLUSTER TAB ID, in order of ids as tagged."""
    counters.add(IN_CLUSTERS, 0)
    counters.add(CLUSTERS, 0)
    id_of = PRIORITIES["smallest"].id_of
    node = smallest = b""
    for record, neighbour in _in_order(links, counters):
        if record != node:
            node, smallest = record, min(record, neighbour)
            counters.add(IN_CLUSTERS, 1)
            counters.add(CLUSTERS, smallest == node)
            yield b"%b\t%b\n" % (id_of(smallest), id_of(node))
        elif smallest != node:
            raise StageError(
                f"{shown(node)} has several clusters yet; run the steps large and small once more"
            )


def _both_ways(a: bytes, b: bytes) -> bytes:
    return format_link(a, b) + format_link(b, a)


def _in_order(links: Iterable[bytes], counters: Counters) -> Iterator[tuple[bytes, bytes]]:
    """Each link once, by node and then by neighbour; StageError where they are not in order."""
    before, some = (b"", b""), 0
    counters.add(LINKS, 0)
    for number, line in enumerate(links, 1):
        try:
            link = parse_link(line)
        except WireError as error:
            raise StageError(f"line {number}: {error}") from None
        if link < before:
            raise StageError(f"line {number}: links are not in order; put LC_ALL=C sort in front")
        if link != before:
            some += 1
            yield link
        if number % AT_ONCE == 0:
            counters.add(LINKS, some)
            some = 0
        before = link
    counters.add(LINKS, some)
