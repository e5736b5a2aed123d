"""The figures of a graph of pairs: everything that the page says in numbers, as plain values.

A chain is in a cluster of which not every two members are a pair:

    A ~ B ~ C       A and B are a pair, and B and C, but not A and C

In each such cluster a breadth-first search goes from its first record to the farthest one, and from
there to the farthest again.  The path between these two is a shortest one, so no other pair of the
graph is a short cut; in a tree it is the longest there is (and else at least half as long).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from neardup.report.pair_graph import MILLION, Found, Node, PairGraph

SHOWN = 10  # clusters, and pairs of each kind
MEMBERS = 4  # of a cluster that is shown
SPARE = 50  # equal pairs, some of which may have other texts
STEPS = (1000, 2000, 5000, 10000, 20000, 50000, 100000)  # of the histogram, in millionths
MOST_STEPS = 12
MOST_WALKED = 500_000  # pairs, in all searches: the largest clusters first
Links = Mapping[int, Mapping[int, int]]  # record → each that it is a pair with → the pair's number


@dataclass(frozen=True)
class Bar:
    label: str
    count: int


class Cluster(NamedTuple):
    """size: of its records; pairs: how many it has; members: the first ones."""

    size: int
    pairs: int
    members: list[Node]


@dataclass(frozen=True)
class Chains:
    """clusters: with a chain; couples: of members of one cluster; apart: those of them that are
    not a pair; searched: clusters; longest: the pairs of the longest chain that was found."""

    clusters: int
    apart: int
    couples: int
    searched: int
    longest: list[Found]


@dataclass(frozen=True)
class Facts:
    """The figures.  Lists have the first few pairs and clusters; counts are of all.

    equal: pairs of similarity 1; most, least: the most similar pairs below 1, and the least similar
    ones, from different clusters if there are enough; same: some of the equal pairs; old: whether
    there are old records, which are not compared with each other.
    """

    pairs: int
    records: int
    clusters: int
    equal: int
    sizes: list[Bar]
    similarities: list[Bar]
    largest: list[Cluster]
    most: list[Found]
    least: list[Found]
    same: list[Found]
    chains: Chains
    old: bool

    @property
    def to_remove(self) -> int:
        """The number of records to remove, if one of each cluster is kept."""
        return self.records - self.clusters


def facts_of(graph: PairGraph, threshold: Fraction | None) -> Facts:
    """Compute the figures; the histogram begins at `threshold`, if that is known."""
    roots, sizes = np.unique(graph.roots, return_counts=True)
    below = np.flatnonzero(graph.similarity < MILLION)
    equal = np.flatnonzero(graph.similarity == MILLION)
    return Facts(
        pairs=len(graph.left),
        records=len(graph.nodes),
        clusters=len(roots),
        equal=len(equal),
        sizes=_sizes(sizes),
        similarities=_similarities(graph.similarity, threshold),
        largest=_largest(graph, roots, sizes),
        most=_first(graph, below[np.argsort(-graph.similarity[below], kind="stable")], SHOWN),
        least=_first(graph, np.argsort(graph.similarity, kind="stable"), SHOWN),
        same=_first(graph, equal, SPARE),
        chains=_chains(graph),
        old=any(node.old for node in graph.nodes),
    )


def _first(graph: PairGraph, order: np.ndarray, count: int) -> list[Found]:
    """The first pairs in this order: one of each cluster, then others if there are too few."""
    _, places = np.unique(graph.roots[graph.left[order]], return_index=True)
    places.sort()
    others = np.setdiff1d(np.arange(min(len(order), 2 * count)), places)
    chosen = np.sort(np.concatenate((places[:count], others[: max(0, count - len(places))])))
    return [graph.pair(number) for number in order[chosen].tolist()]


def _largest(graph: PairGraph, roots: np.ndarray, sizes: np.ndarray) -> list[Cluster]:
    pairs = np.bincount(graph.roots[graph.left], minlength=len(graph.nodes))
    clusters = []
    for place in np.argsort(-sizes, kind="stable")[:SHOWN].tolist():
        root = int(roots[place])
        members = np.flatnonzero(graph.roots == root)[:MEMBERS].tolist()
        nodes = [graph.nodes[member] for member in members]
        clusters.append(Cluster(int(sizes[place]), int(pairs[root]), nodes))
    return clusters


def _sizes(sizes: np.ndarray) -> list[Bar]:
    """The histogram of the sizes of clusters: 2, 3, 4, and on in ranges that double.

    >>> _sizes(np.array([2, 2, 3, 9]))
    [Bar(label='2', count=2), Bar(label='3', count=1), Bar(label='4', count=0), \
Bar(label='5–8', count=0), Bar(label='9–16', count=1)]
    """
    bars, low, high = [], 2, 2
    while low <= sizes.max(initial=0):
        label = f"{low:,}" if low == high else f"{low:,}–{high:,}"
        bars.append(Bar(label, _between(sizes, low, high)))
        low, high = high + 1, high + 1 if high < 4 else 2 * high
    return bars


def _similarities(similarity: np.ndarray, threshold: Fraction | None) -> list[Bar]:
    """The histogram of similarities from the threshold up; similarity 1 has its own bar.

    >>> _similarities(np.array([900000, 951000, 1000000]), Fraction(19, 20))[-3:]
    [Bar(label='0.990–0.995', count=0), Bar(label='0.995–1', count=0), Bar(label='1', count=1)]
    """
    if not len(similarity):
        return []
    given = similarity.min() if threshold is None else int(threshold * MILLION)
    step = next((each for each in STEPS if (MILLION - given) <= MOST_STEPS * each), STEPS[-1])
    places = 3 if step < 10000 else 2
    bars = []
    for low in range(int(given) // step * step, MILLION, step):
        high = min(low + step, MILLION)
        end = "1" if high == MILLION else f"{high / MILLION:.{places}f}"
        bars.append(Bar(f"{low / MILLION:.{places}f}–{end}", _between(similarity, low, high - 1)))
    return [*bars, Bar("1", _between(similarity, MILLION, MILLION))]


def _between(values: np.ndarray, low: int, high: int) -> int:
    return int(np.count_nonzero((values >= low) & (values <= high)))


def _chains(graph: PairGraph) -> Chains:
    """Count the chains, and find the longest one."""
    count = len(graph.nodes)
    sizes = np.bincount(graph.roots, minlength=count)
    pairs = np.bincount(graph.roots[graph.left], minlength=count)
    couples = sizes * (sizes - 1) // 2
    chained = np.flatnonzero(couples > pairs)
    chained = chained[np.argsort(-sizes[chained], kind="stable")]
    walked = np.cumsum(pairs[chained]) - pairs[chained]
    searched = chained[walked < MOST_WALKED]
    links = _links(graph, np.isin(graph.roots[graph.left], searched))
    ends = (_farthest(links, root)[-1] for root in searched.tolist())
    longest = max((_farthest(links, end) for end in ends), key=len, default=[])
    return Chains(
        len(chained),
        int((couples - pairs).sum()),
        int(couples.sum()),
        len(searched),
        [graph.pair(links[a][b]) for a, b in zip(longest, longest[1:])],
    )


def _links(graph: PairGraph, wanted: np.ndarray) -> Links:
    links: dict[int, dict[int, int]] = {}
    numbers = np.flatnonzero(wanted)
    columns = numbers, graph.left[numbers], graph.right[numbers]
    for number, a, b in zip(*(column.tolist() for column in columns)):
        links.setdefault(a, {})[b] = number
        links.setdefault(b, {})[a] = number
    return links


def _farthest(links: Links, start: int) -> Sequence[int]:
    """The shortest path from `start` to the record farthest away.

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
