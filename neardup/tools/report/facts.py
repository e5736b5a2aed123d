"""The figures of a report, computed from the graph of the pairs.

A cluster has a chain if not every two members are a pair:

    A ~ B ~ C       A and B are a pair, and B and C, but not A and C

In each such cluster a breadth-first search goes from its first record to the farthest one, and from
there to the farthest again.  The path between these two is a shortest one: no other pair of the
graph is a short cut.  In a tree it is the longest such path, and else at least half as long.

In memory: the id of each record that is in a pair, and all pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from neardup.lines.answer_lines import exact_pair
from neardup.sets.ragged import Forest

MILLION = 10**6
SHOWN = 10  # clusters, and pairs of each kind
MEMBERS = 24  # of a cluster that is shown
SPARE = 50  # equal pairs that are read, since some may have different texts
STEPS = (1000, 2000, 5000, 10000, 20000, 50000, 100000)  # bars of the histogram, in millionths
MAX_STEPS = 12
MAX_WALKED = 500_000  # pairs, in all searches: the largest clusters first
Links = Mapping[int, Mapping[int, int]]  # record → partner → number of the pair


class Node(NamedTuple):
    id: bytes
    old: bool = False  # a record of --against


class Found(NamedTuple):
    a: Node
    b: Node
    similarity: int  # in millionths


@dataclass(frozen=True)
class PairGraph:
    """n records in bytewise order of their ids, and m pairs, each once, in order of their records.

    left, right: int64 (m,), left < right; similarity: int64 (m,), in millionths; roots: int64 (n,),
    the first record of the cluster of each.
    """

    nodes: list[Node]
    left: np.ndarray
    right: np.ndarray
    similarity: np.ndarray
    roots: np.ndarray

    @classmethod
    def of(cls, found: Iterable[Found]) -> PairGraph:
        """Build the graph of the pairs found; a repeated pair gets its highest similarity.

        >>> a, b, c = map(Node, (b"a", b"b", b"c"))
        >>> graph = PairGraph.of([Found(c, b, 900000), Found(b, c, 950000), Found(a, a, 1)])
        >>> graph.nodes == [a, b, c], graph.left.tolist(), graph.right.tolist()
        (True, [1], [2])
        >>> graph.similarity.tolist(), graph.roots.tolist()
        ([950000], [0, 1, 1])
        """
        numbers, ends, likeness = dict[Node, int](), list[int](), list[int]()
        for a, b, similarity in found:
            ends += numbers.setdefault(a, len(numbers)), numbers.setdefault(b, len(numbers))
            likeness.append(similarity)
        nodes = sorted(numbers)
        place = np.empty(len(nodes), np.int64)
        place[[numbers[node] for node in nodes]] = np.arange(len(nodes))
        rows = np.sort(place[np.array(ends, np.int64)].reshape(-1, 2), axis=1)
        similarities = np.array(likeness, np.int64)
        order = np.lexsort((-similarities, rows[:, 1], rows[:, 0]))
        order = order[rows[order, 0] != rows[order, 1]]
        rows = rows[order]
        first = np.ones(len(order), bool)
        first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        left, right = rows[first].T
        forest = Forest(len(nodes))
        forest.join_all(left, right)
        roots = forest.roots(np.arange(len(nodes))).astype(np.int64)
        return cls(nodes, left, right, similarities[order[first]], roots)

    def pair(self, number: int) -> Found:
        a, b = self.nodes[self.left[number]], self.nodes[self.right[number]]
        return Found(a, b, int(self.similarity[number]))


def found_pair(line: bytes) -> Found:
    r"""Parse a pair line into two records and their similarity in millionths.

    >>> found_pair(b"a\tb\t0.912345\told")
    Found(a=Node(id=b'a', old=False), b=Node(id=b'b', old=True), similarity=912345)
    """
    a, b, similarity = exact_pair(line)
    old = line.split(b"\t")[3:4] == [b"old"]
    return Found(Node(a), Node(b, old), int(similarity.replace(b".", b"")))


@dataclass(frozen=True)
class Bar:
    label: str
    count: int


class Cluster(NamedTuple):
    size: int  # in records
    pairs: int
    members: list[Node]  # the first ones


@dataclass(frozen=True)
class Chains:
    clusters: int  # with a chain
    apart: int  # possible pairs in a cluster that are not pairs
    possible: int  # pairs in a cluster
    searched: int  # clusters
    longest: list[Found]  # the pairs of the longest chain found
    path: list[Node]  # the records along it


@dataclass(frozen=True)
class Facts:
    """The figures of a report about its pairs, and the pairs and clusters that it shows.

    equal: pairs of similarity 1; same: some of them; most, least: the most similar pairs below 1,
    and the least similar ones, from different clusters if possible; old: some records are old, and
    these are not compared with each other.
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


def facts_of(graph: PairGraph, threshold: Fraction | None, bits: int = 0) -> Facts:
    """Compute the figures of a report; `threshold`, if known, is one end of the histogram.

    bits: of the fingerprints, whose histogram is by the number of differing bits; 0 for others.
    """
    roots, sizes = np.unique(graph.roots, return_counts=True)
    below = np.flatnonzero(graph.similarity < MILLION)
    equal = np.flatnonzero(graph.similarity == MILLION)
    return Facts(
        pairs=len(graph.left),
        records=len(graph.nodes),
        clusters=len(roots),
        equal=len(equal),
        sizes=_sizes(sizes),
        similarities=_distances(graph.similarity, threshold, bits)
        if bits
        else _similarities(graph.similarity, threshold),
        largest=_largest(graph, roots, sizes),
        most=_first(graph, below[np.argsort(-graph.similarity[below], kind="stable")], SHOWN),
        least=_first(graph, np.argsort(graph.similarity, kind="stable"), SHOWN),
        same=_first(graph, equal, SPARE),
        chains=_chains(graph),
        old=any(node.old for node in graph.nodes),
    )


def _first(graph: PairGraph, order: np.ndarray, count: int) -> list[Found]:
    """Return the first `count` pairs in `order`, from different clusters if possible."""
    _, places = np.unique(graph.roots[graph.left[order]], return_index=True)
    places.sort()
    others = np.setdiff1d(np.arange(min(len(order), 2 * count)), places)
    chosen = np.sort(np.concatenate((places[:count], others[: max(0, count - len(places))])))
    return [graph.pair(number) for number in order[chosen].tolist()]


def _largest(graph: PairGraph, roots: np.ndarray, sizes: np.ndarray) -> list[Cluster]:
    pairs = np.bincount(graph.roots[graph.left], minlength=len(graph.nodes))
    clusters = []
    for place in np.argsort(-sizes, kind="stable")[:SHOWN].tolist():
        members = np.flatnonzero(graph.roots == roots[place])[:MEMBERS].tolist()
        nodes = [graph.nodes[member] for member in members]
        clusters.append(Cluster(int(sizes[place]), int(pairs[roots[place]]), nodes))
    return clusters


def _sizes(sizes: np.ndarray) -> list[Bar]:
    """Return the histogram of cluster sizes: 2, 3, 4, and ranges that double.

    >>> _sizes(np.array([2, 2, 3, 9]))
    [Bar(label='2', count=2), Bar(label='3', count=1), Bar(label='4', count=0), \
Bar(label='5–8', count=0), Bar(label='9–16', count=1)]
    """
    bars, low, high = [], 2, 2
    while low <= sizes.max(initial=0):
        bars.append(_bar(sizes, low, high))
        low, high = high + 1, high + 1 if high < 4 else 2 * high
    return bars


def _similarities(similarity: np.ndarray, threshold: Fraction | None) -> list[Bar]:
    """Return the histogram of similarities from the threshold up; 1 has its own bar.

    >>> _similarities(np.array([900000, 951000, 1000000]), Fraction(19, 20))[-3:]
    [Bar(label='0.990–0.995', count=0), Bar(label='0.995–1', count=0), Bar(label='1', count=1)]
    """
    if not len(similarity):
        return []
    given = similarity.min() if threshold is None else int(threshold * MILLION)
    step = next((each for each in STEPS if (MILLION - given) <= MAX_STEPS * each), STEPS[-1])
    places = 3 if step < 10000 else 2
    bars = []
    for low in range(int(given) // step * step, MILLION, step):
        high = min(low + step, MILLION)
        end = "1" if high == MILLION else f"{high / MILLION:.{places}f}"
        bars.append(_bar(similarity, low, high - 1, f"{low / MILLION:.{places}f}–{end}"))
    return [*bars, _bar(similarity, MILLION, MILLION, "1")]


def bits_apart(similarity: np.ndarray, bits: int) -> np.ndarray:
    """Convert similarities, in millionths, to numbers of differing bits, out of `bits`.

    >>> bits_apart(np.array([878906, 1000000]), 256).tolist()
    [31, 0]
    """
    return np.rint((MILLION - similarity) * bits / MILLION).astype(np.int64)


def _distances(similarity: np.ndarray, threshold: Fraction | None, bits: int) -> list[Bar]:
    """Return the histogram of differing bits, from 0 to the distance of the threshold.

    >>> _distances(np.array([1000000, 968750, 953125]), Fraction(60, 64), 64)
    [Bar(label='0', count=1), Bar(label='1', count=0), Bar(label='2', count=1), \
Bar(label='3', count=1), Bar(label='4', count=0)]
    """
    apart = bits_apart(similarity, bits)
    most = max(int(apart.max(initial=0)), 0 if threshold is None else int((1 - threshold) * bits))
    step = most // MAX_STEPS + 1
    ranges = [(0, 0), *((low, min(low + step - 1, most)) for low in range(1, most + 1, step))]
    return [_bar(apart, low, high) for low, high in ranges]


def _bar(values: np.ndarray, low: int, high: int, label: str = "") -> Bar:
    """Count values in a range, both ends included."""
    label = label or (f"{low:,}" if low == high else f"{low:,}–{high:,}")
    return Bar(label, int(np.count_nonzero((values >= low) & (values <= high))))


def _chains(graph: PairGraph) -> Chains:
    """Count clusters in which two members are not a pair; find a long chain in the largest ones."""
    count = len(graph.nodes)
    sizes = np.bincount(graph.roots, minlength=count)
    pairs = np.bincount(graph.roots[graph.left], minlength=count)
    possible = sizes * (sizes - 1) // 2
    chained = np.flatnonzero(possible > pairs)
    chained = chained[np.argsort(-sizes[chained], kind="stable")]
    walked = np.cumsum(pairs[chained]) - pairs[chained]
    searched = chained[walked < MAX_WALKED]
    links = _links(graph, np.isin(graph.roots[graph.left], searched))
    ends = (_farthest(links, root)[-1] for root in searched.tolist())
    longest = max((_farthest(links, end) for end in ends), key=len, default=[])
    return Chains(
        len(chained),
        int((possible - pairs).sum()),
        int(possible.sum()),
        len(searched),
        [graph.pair(links[a][b]) for a, b in zip(longest, longest[1:])],
        [graph.nodes[record] for record in longest],
    )


def _links(graph: PairGraph, wanted: np.ndarray) -> Links:
    links: dict[int, dict[int, int]] = {}
    for number in np.flatnonzero(wanted).tolist():
        a, b = int(graph.left[number]), int(graph.right[number])
        links.setdefault(a, {})[b] = number
        links.setdefault(b, {})[a] = number
    return links


def _farthest(links: Links, start: int) -> Sequence[int]:
    """Return a shortest path from `start` to the record that is farthest away.

    >>> _farthest({1: {2: 0}, 2: {1: 0, 3: 1}, 3: {2: 1}}, 1)
    [1, 2, 3]
    """
    came, reached = {start: start}, [start]
    for node in reached:  # `reached` grows during the loop
        for other in links[node]:
            if other not in came:
                came[other] = node
                reached.append(other)
    way = [reached[-1]]
    while way[-1] != start:
        way.append(came[way[-1]])
    return way[::-1]
