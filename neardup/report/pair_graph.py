"""Pairs as a graph: its clusters, and the longest chains in them.

Pair lines → a graph: records as numbers, pairs as arrays, clusters.

In memory: the id of each record that is in a pair, and all pairs.

Chains: clusters in which not every two members are a pair.

    A ~ B ~ C       A and B are a pair, and B and C, but A and C are none

In each such cluster a breadth-first search goes from its first record to the farthest one, and from
there to the farthest again.  The way between these two is a shortest one, so no other pair of the
graph leads across it; in a tree it is the longest there is (and else at least half as long).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neardup.evaluation.pair_files import MAX_LINE
from neardup.lines.answer_lines import exact_pair
from neardup.reading.blocks import read_files
from neardup.runtime.errors import StageError, WireError
from neardup.sets.union_find import Forest

MILLION = 10**6


class Node(NamedTuple):
    """A record: its id, and whether it is of the old collection (--against)."""

    id: bytes
    old: bool = False


class Found(NamedTuple):
    """A pair line; the similarity in millionths."""

    a: Node
    b: Node
    similarity: int


@dataclass(frozen=True)
class PairGraph:
    """Records in bytewise order of their ids, and each pair once, in order.

    nodes: n; left, right: int64 (m,), left < right; similarity: int64 (m,), in millionths; roots:
    int64 (n,), for each record the first one of its cluster; lines: how many were read.
    """

    nodes: list[Node]
    left: np.ndarray
    right: np.ndarray
    similarity: np.ndarray
    roots: np.ndarray
    lines: int

    @classmethod
    def of(cls, found: Iterable[Found]) -> PairGraph:
        """Of a pair that was found twice, as by containment in both directions, the higher
        similarity counts.

        >>> a, b, c = map(Node, (b"a", b"b", b"c"))
        >>> graph = PairGraph.of([Found(c, b, 900000), Found(b, c, 950000), Found(a, a, 1)])
        >>> graph.nodes == [a, b, c], graph.left.tolist(), graph.right.tolist()
        (True, [1], [2])
        >>> graph.similarity.tolist(), graph.roots.tolist(), graph.lines
        ([950000], [0, 1, 1], 3)
        """
        numbers: dict[Node, int] = {}
        ends: list[int] = []
        likeness: list[int] = []
        for a, b, similarity in found:
            ends += numbers.setdefault(a, len(numbers)), numbers.setdefault(b, len(numbers))
            likeness.append(similarity)
        nodes = sorted(numbers)
        place = np.empty(len(nodes), np.int64)
        place[[numbers[node] for node in nodes]] = np.arange(len(nodes))
        couples = np.sort(place[np.array(ends, np.int64)].reshape(-1, 2), axis=1)
        similarities = np.array(likeness, np.int64)
        order = np.lexsort((-similarities, couples[:, 1], couples[:, 0]))
        order = order[couples[order, 0] != couples[order, 1]]
        couples = couples[order]
        first = np.ones(len(order), bool)
        first[1:] = (couples[1:] != couples[:-1]).any(axis=1)
        left, right = couples[first].T
        roots = _roots(len(nodes), left, right)
        return cls(nodes, left, right, similarities[order[first]], roots, len(likeness))

    def pair(self, number: int) -> Found:
        a, b = self.nodes[self.left[number]], self.nodes[self.right[number]]
        return Found(a, b, int(self.similarity[number]))


def _roots(count: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    forest = Forest(count)
    for a, b in zip(left.tolist(), right.tolist()):
        forest.join(a, b)
    return forest.roots(np.arange(count)).astype(np.int64)


def read_found(files: list[str]) -> Iterator[Found]:
    """The pairs on the lines of some files; StageError names a line that is none."""
    for block in read_files(files, MAX_LINE):
        for number, line in enumerate(block.data.splitlines(), block.line):
            if line:
                try:
                    yield _found(line)
                except WireError as error:
                    raise StageError(f"{block.place}{number}: {error}") from None


def _found(line: bytes) -> Found:
    r"""
    >>> _found(b"a\tb\t0.912345\told")
    Found(a=Node(id=b'a', old=False), b=Node(id=b'b', old=True), similarity=912345)
    """
    a, b, similarity = exact_pair(line)
    old = line.split(b"\t")[3:4] == [b"old"]
    return Found(Node(a), Node(b, old), int(similarity.replace(b".", b"")))


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
