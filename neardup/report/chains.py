"""Chains: clusters in which not every two members are a pair.

    A ~ B ~ C       A and B are a pair, and B and C, but A and C are none

In each such cluster a breadth-first search goes from its first record to the farthest one, and from
there to the farthest again.  The way between these two is a shortest one, so no other pair of the
graph leads across it; in a tree it is the longest there is (and else at least half as long).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neardup.report.pair_graph import Found, PairGraph

MOST_WALKED = 500_000  # pairs, in all searches: the largest clusters first


@dataclass(frozen=True)
class Chains:
    """clusters: that have one; apart: couples of members of one cluster that are no pair, of so
    many couples; searched: clusters; longest: the pairs of the longest chain that was found."""

    clusters: int
    apart: int
    couples: int
    searched: int
    longest: list[Found]


def chains_of(graph: PairGraph) -> Chains:
    count = len(graph.nodes)
    sizes = np.bincount(graph.roots, minlength=count)
    pairs = np.bincount(graph.roots[graph.left], minlength=count)
    couples = sizes * (sizes - 1) // 2
    chained = np.flatnonzero(couples > pairs)
    chained = chained[np.argsort(-sizes[chained], kind="stable")]
    walked = np.cumsum(pairs[chained]) - pairs[chained]
    searched = chained[walked < MOST_WALKED]
    links = _links(graph, np.isin(graph.roots[graph.left], searched))
    ways = (_across(links, root) for root in searched.tolist())
    longest = max(ways, key=len, default=[])
    return Chains(
        len(chained),
        int((couples - pairs).sum()),
        int(couples.sum()),
        len(searched),
        [graph.pair(links[a][b]) for a, b in zip(longest, longest[1:])],
    )


Links = Mapping[int, Mapping[int, int]]  # record → each that it is a pair with → the pair's number


def _links(graph: PairGraph, wanted: np.ndarray) -> Links:
    links: dict[int, dict[int, int]] = {}
    numbers = np.flatnonzero(wanted)
    for number, a, b in zip(
        numbers.tolist(), graph.left[numbers].tolist(), graph.right[numbers].tolist()
    ):
        links.setdefault(a, {})[b] = number
        links.setdefault(b, {})[a] = number
    return links


def _across(links: Links, start: int) -> Sequence[int]:
    return _farthest(links, _farthest(links, start)[-1])


def _farthest(links: Links, start: int) -> Sequence[int]:
    """The shortest way from `start` to the record that takes most steps.

    >>> _farthest({1: {2: 0}, 2: {1: 0, 3: 1}, 3: {2: 1}}, 1)
    [1, 2, 3]
    """
    came = {start: start}
    reached = [start]
    for node in reached:  # which grows
        for other in links[node]:
            if other not in came:
                came[other] = node
                reached.append(other)
    way = [reached[-1]]
    while way[-1] != start:
        way.append(came[way[-1]])
    return way[::-1]
