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

Clusters in rounds, on any engine: which step reads what, and when to stop.

    edges ── links ~ large ~ small ~ … ~ large ─ nothing unsettled: what it has read ~ clusters

An engine says how to run a step, and reads the counter of `decisions.star_rounds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Callable, NamedTuple

from neardup.lines.answer_lines import Member, format_link, parse_edge_line, parse_link
from neardup.lines.tagged_ids import PRIORITIES
from neardup.runtime.counters import Counters
from neardup.runtime.errors import StageError, WireError, shown
from neardup.runtime.summary import CLUSTERS, EDGES, IN_CLUSTERS, LINKS, UNSETTLED

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


class Step(NamedTuple):
    """A job: from one folder to another, with steps of connect.py as its mapper and reducer."""

    source: str
    mapper: str  # "" where lines are to be sorted as they are
    reducer: str
    target: str


def in_rounds(
    edges: str,
    between: str,
    clusters: str,
    run_step: Callable[[Step], Mapping[str, int]],
    remove: Callable[[list[str]], None],
) -> int:
    """From a folder of edges to one of clusters; how many rounds that took.

    `between` is a folder for those of the rounds; `remove` is told which of them no step needs any
    more, but for the last.  `run_step` carries out a step, lines sorted by both their fields and
    parted by the first of them, and gives its counters.
    """
    source, mapper = edges, "links"
    for number in count():
        large = Step(source, mapper, "large", f"{between}/large-{number}")
        counters = run_step(large)
        if UNSETTLED not in counters:
            raise StageError(f"cannot tell whether to go on: {large.target} has no counters")
        if not counters[UNSETTLED]:
            break
        small = Step(large.target, "", "small", f"{between}/links-{number}")
        run_step(small)
        remove([large.target, *[source] * (source != edges)])
        source, mapper = small.target, ""
    run_step(Step(source, mapper, "clusters", clusters))
    return number
