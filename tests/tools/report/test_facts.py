"""Counts, clusters and shown pairs of a report agree with networkx and with loops over pairs."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations

import networkx as nx
import pytest

from neardup.tools.report.facts import (
    MEMBERS,
    MILLION,
    SHOWN,
    SPARE,
    Facts,
    Found,
    Node,
    PairGraph,
    facts_of,
)

Pairs = list[Found]


def drawn(seed: int) -> Pairs:
    """Return pairs that form clusters (single, chains, dense ones); some pairs also as (b, a)."""
    draw = random.Random(seed)
    pairs: Pairs = []
    for cluster in range(draw.randint(1, 60)):
        nodes = [Node(b"%d-%d" % (cluster, i)) for i in range(draw.choice([2, 2, 3, 5, 9, 12]))]
        likely = draw.choice([0.3, 0.7, 1])
        for a, b in combinations(nodes, 2):
            if draw.random() < likely or b == nodes[nodes.index(a) + 1]:
                pairs.append(Found(a, b, draw.choice([800000, 900000, 999999, MILLION])))
    pairs += [Found(pair.b, pair.a, 800000) for pair in draw.sample(pairs, len(pairs) // 5)]
    draw.shuffle(pairs)
    return pairs


def graph_of(pairs: Pairs) -> nx.Graph:
    graph = nx.Graph()
    for a, b, similarity in pairs:
        known = graph.edges[a, b]["alike"] if graph.has_edge(a, b) else 0
        graph.add_edge(a, b, alike=max(similarity, known))
    return graph


def facts(pairs: Pairs) -> Facts:
    return facts_of(PairGraph.of(pairs), Fraction(4, 5))


each_seed = pytest.mark.parametrize("seed", range(12))


@each_seed
def test_the_counts(seed: int) -> None:
    pairs = drawn(seed)
    graph, found = graph_of(pairs), facts(pairs)
    clusters = list(nx.connected_components(graph))
    assert found.pairs == graph.number_of_edges()
    assert (found.records, found.clusters) == (len(graph), len(clusters))
    alike = [alike for *_, alike in graph.edges.data("alike")]
    assert found.equal == alike.count(MILLION)
    assert sum(bar.count for bar in found.sizes) == len(clusters)
    assert sum(bar.count for bar in found.similarities) == len(alike)
    assert found.similarities[-1].count == alike.count(MILLION)
    assert found.similarities[0].label == "0.80–0.82"
    assert found.similarities[0].count == alike.count(800000)


@each_seed
def test_the_largest_clusters(seed: int) -> None:
    pairs = drawn(seed)
    graph = graph_of(pairs)
    clusters = sorted(map(sorted, nx.connected_components(graph)), key=lambda c: (-len(c), c))
    assert len(facts(pairs).largest) == min(len(clusters), SHOWN)
    for shown, members in zip(facts(pairs).largest, clusters[:SHOWN]):
        assert shown.size == len(members)
        assert shown.members == members[:MEMBERS]
        assert shown.pairs == graph.subgraph(members).number_of_edges()


@each_seed
def test_the_most_and_the_least_similar(seed: int) -> None:
    pairs = drawn(seed)
    graph, found = graph_of(pairs), facts(pairs)
    cluster_of = {node: i for i, all_ in enumerate(nx.connected_components(graph)) for node in all_}
    edges = sorted((min(a, b), max(a, b), alike) for a, b, alike in graph.edges.data("alike"))

    def best(edges: list) -> list[int]:
        """Return the similarities of the pairs to show: each cluster's best, and further pairs."""
        firsts = {cluster_of[a]: i for i, (a, _, _) in reversed(list(enumerate(edges)))}
        chosen = sorted(firsts.values())[:SHOWN]
        rest = [i for i in range(len(edges)) if i not in chosen]
        return [edges[i][2] for i in sorted(chosen + rest[: SHOWN - len(chosen)])]

    below = sorted((edge for edge in edges if edge[2] < MILLION), key=lambda edge: -edge[2])
    assert [pair.similarity for pair in found.most] == best(below)
    least = sorted(edges, key=lambda edge: edge[2])
    assert [pair.similarity for pair in found.least] == best(least)
    for pair in [*found.most, *found.least, *found.same]:
        assert graph.edges[pair.a, pair.b]["alike"] == pair.similarity
    assert len(found.same) == min(SPARE, found.equal)


@each_seed
def test_chains(seed: int) -> None:
    pairs = drawn(seed)
    graph, found = graph_of(pairs), facts(pairs).chains
    chained, apart, possible, diameter = 0, 0, 0, 0
    for members in nx.connected_components(graph):
        part = graph.subgraph(members)
        missing = len(members) * (len(members) - 1) // 2 - part.number_of_edges()
        chained += missing > 0
        apart += missing
        possible += missing + part.number_of_edges()
        diameter = max(diameter, nx.diameter(part))
    assert (found.clusters, found.apart, found.possible) == (chained, apart, possible)
    assert found.searched == chained
    if chained:
        way = nx.Graph((pair.a, pair.b) for pair in found.longest)
        ends = [node for node, degree in way.degree if degree == 1]
        assert diameter / 2 <= len(found.longest) <= diameter
        assert nx.shortest_path_length(graph, *ends) == len(found.longest) >= 2
        assert not graph.has_edge(*ends)
    else:
        assert not found.longest


def test_the_graphs_have_chains_and_cliques() -> None:
    chains = [facts(drawn(seed)).chains for seed in range(12)]
    assert any(chain.clusters for chain in chains)
    assert any(chain.apart < chain.possible for chain in chains)


def test_no_pair_at_all() -> None:
    found = facts([])
    assert (found.pairs, found.records, found.clusters, found.equal) == (0, 0, 0, 0)
    assert found.largest == found.most == found.least == found.same == found.chains.longest == []
