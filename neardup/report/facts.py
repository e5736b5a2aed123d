"""The figures of a graph of pairs: all that the page says of numbers, as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from neardup.report.pair_graph import MILLION, Chains, Found, Node, PairGraph, chains_of

SHOWN = 10  # clusters, and pairs of each kind
MEMBERS = 4  # of a cluster that is shown
SPARE = 50  # equal pairs, some of which may have other texts
STEPS = (1000, 2000, 5000, 10000, 20000, 50000, 100000)  # of the histogram, in millionths
MOST_STEPS = 12


@dataclass(frozen=True)
class Bar:
    label: str
    count: int


class Cluster(NamedTuple):
    """A cluster: how many records and pairs it has, and the first of its members."""

    size: int
    pairs: int
    members: list[Node]


@dataclass(frozen=True)
class Facts:
    """What was found.  Pairs and clusters are the first some; the counts are of all.

    equal: pairs of similarity 1; most, least: the most similar below 1 and the least similar ones,
    one of each cluster as far as there are so many; same: some of those that are equal; old:
    whether there are old records, which are not compared with each other.
    """

    lines: int
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
    def would_go(self) -> int:
        """Records, if one of each cluster stayed."""
        return self.records - self.clusters


def facts_of(graph: PairGraph, threshold: Fraction | None) -> Facts:
    """threshold: where the histogram begins; None where it is not known."""
    roots, sizes = np.unique(graph.roots, return_counts=True)
    below = np.flatnonzero(graph.similarity < MILLION)
    equal = np.flatnonzero(graph.similarity == MILLION)
    return Facts(
        lines=graph.lines,
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
        chains=chains_of(graph),
        old=any(node.old for node in graph.nodes),
    )


def _first(graph: PairGraph, order: np.ndarray, count: int) -> list[Found]:
    """The first pairs of an order; one of each cluster, and then others if there are too few."""
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
    """
    >>> _sizes(np.array([2, 2, 3, 9]))
    [Bar(label='2', count=2), Bar(label='3', count=1), Bar(label='4', count=0), \
Bar(label='5–8', count=0), Bar(label='9–16', count=1)]
    """
    top = int(sizes.max(initial=0))
    return [
        Bar(f"{low:,}" if low == high else f"{low:,}–{high:,}", _between(sizes, low, high))
        for low, high in _doubling(top)
    ]


def _doubling(top: int) -> Iterator[tuple[int, int]]:
    """2, 3, 4, and on to `top` in runs that double."""
    yield from ((size, size) for size in range(2, min(top, 4) + 1))
    low = 5
    while low <= top:
        high = 2 * (low - 1)
        yield low, high
        low = high + 1


def _similarities(similarity: np.ndarray, threshold: Fraction | None) -> list[Bar]:
    """From the threshold up in even steps, and those of similarity 1 by themselves.

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
