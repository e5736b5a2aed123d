"""Pair lines as a graph: records as numbers, pairs as arrays, and clusters.

In memory: the id of each record that is in a pair, and all pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neardup.lines.answer_lines import exact_pair
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
    int64 (n,), for each record the first one of its cluster.
    """

    nodes: list[Node]
    left: np.ndarray
    right: np.ndarray
    similarity: np.ndarray
    roots: np.ndarray

    @classmethod
    def of(cls, found: Iterable[Found]) -> PairGraph:
        """Make the graph.  A pair that was found twice, as by containment in both directions, has
        the higher similarity.

        >>> a, b, c = map(Node, (b"a", b"b", b"c"))
        >>> graph = PairGraph.of([Found(c, b, 900000), Found(b, c, 950000), Found(a, a, 1)])
        >>> graph.nodes == [a, b, c], graph.left.tolist(), graph.right.tolist()
        (True, [1], [2])
        >>> graph.similarity.tolist(), graph.roots.tolist()
        ([950000], [0, 1, 1])
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
        forest = Forest(len(nodes))
        forest.join_all(left, right)
        roots = forest.roots(np.arange(len(nodes))).astype(np.int64)
        return cls(nodes, left, right, similarities[order[first]], roots)

    def pair(self, number: int) -> Found:
        a, b = self.nodes[self.left[number]], self.nodes[self.right[number]]
        return Found(a, b, int(self.similarity[number]))


def found_pair(line: bytes) -> Found:
    r"""Parse a pair line.

    >>> found_pair(b"a\tb\t0.912345\told")
    Found(a=Node(id=b'a', old=False), b=Node(id=b'b', old=True), similarity=912345)
    """
    a, b, similarity = exact_pair(line)
    old = line.split(b"\t")[3:4] == [b"old"]
    return Found(Node(a), Node(b, old), int(similarity.replace(b".", b"")))
