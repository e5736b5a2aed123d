"""Clusters in rounds: the components that networkx finds, the bytes that one process writes."""

from __future__ import annotations

import math
import random
import re
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Callable
from zlib import crc32

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.decisions.star_rounds import (
    Step,
    clusters_of,
    in_rounds,
    large_star,
    links_of,
    small_star,
)
from neardup.engines.steps import CONNECT, CONNECTING
from neardup.lines.answer_lines import (
    Member,
    format_edge,
    format_link,
    format_member,
    format_presence,
    parse_link,
)
from neardup.lines.tagged_ids import PRIORITIES
from neardup.runtime.counters import Counters
from neardup.runtime.errors import StageError
from neardup.runtime.summary import CLUSTERS, IN_CLUSTERS, LINKS, UNSETTLED
from neardup.sets.ragged import Batch, Ragged
from neardup.stages.deciding import decide_edges
from tests.support.drawn import settings_of
from tests.support.programs import CONNECT as CONNECT_PY
from tests.support.programs import (
    DECIDE,
    MAPPER,
    REDUCER,
    ROOT,
    VIDEOS,
    in_order,
    program,
    run,
    succeed,
)

Pairs = Iterable[tuple[int, int]]
TAG = PRIORITIES["smallest"]


def tagged(ids: list[bytes]) -> list[bytes]:
    """Records of these ids, each at the place of its number."""
    sets = Ragged.from_rows([[1]] * len(ids))
    places = np.arange(len(ids), dtype=np.uint64) + np.uint64(1 << 63)
    return TAG.tagged(Batch(ids, sets, places=places)).ids


def edge_lines(records: list[bytes], pairs: Pairs) -> list[bytes]:
    """As reducers write them: every edge, and each record that is the earlier one of any."""
    return [
        line
        for i, j in pairs
        for line in (
            format_edge(records[i], records[j], b"0.912345000000000000"),
            format_presence(min(records[i], records[j])),
        )
    ]


def of_one_process(edges: list[bytes]) -> bytes:
    return b"".join(decide_edges(sorted(edges), settings_of("--output=clusters"), Counters("")))


class Cluster:
    """Map-reduce in this process: folders of lines, and reducers that each get their share."""

    def __init__(self, edges: list[bytes], reducers: int = 1):
        self.folders = {"edges": edges}
        self.reducers = reducers
        self.counters: list[dict[str, int]] = []  # of each step
        self.steps: list[Step] = []

    def __call__(self, step: Step) -> dict[str, int]:
        counters = Counters(step.reducer)
        lines = self.folders[step.source]
        if step.mapper:
            lines = split(CONNECTING[step.mapper](lines, Counters("mapper")))
        parts: list[list[bytes]] = [[] for _ in range(self.reducers)]
        for line in lines:
            parts[crc32(line.split(b"\t")[0]) % self.reducers].append(line)
        for part in parts:
            # Hadoop adds a tab where all of a line is its key.
            part = [line.replace(b"\n", b"\t\n") for line in sorted(part)]
            written = split(CONNECTING[step.reducer](part, counters))
            self.folders.setdefault(step.target, []).extend(written)
        self.steps.append(step)
        self.counters.append(dict(counters.counts))
        return counters.counts

    def remove(self, folders: list[str]) -> None:
        for name in folders:
            del self.folders[name]

    def connect(self) -> tuple[bytes, int]:
        """CLUSTER TAB ID lines in order of reducers, and the number of rounds."""
        rounds = in_rounds("edges", "between", "clusters", self, self.remove)
        return b"".join(self.folders["clusters"]), rounds


def split(pieces: Iterator[bytes]) -> list[bytes]:
    return b"".join(pieces).splitlines(keepends=True)


def components(ids: list[bytes], pairs: Pairs) -> list[bytes]:
    """The lines, by networkx."""
    graph = nx.Graph()
    graph.add_edges_from(pairs)
    records = tagged(ids)
    lines = []
    for component in nx.connected_components(graph):
        first = min(component, key=records.__getitem__)
        lines += [b"%b\t%b\n" % (ids[first], ids[i]) for i in component]
    return sorted(lines)


def numbered(count: int) -> list[bytes]:
    return [b"v%07d" % i for i in range(count)]


# Whatever the graph.

ids = st.binary(min_size=1, max_size=4).filter(lambda id_: not set(id_) & set(b"\t\r\n\0"))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[bytes], list[tuple[int, int]]]:
    """Ids, some of them alike, and pairs, some of them twice."""
    names = draw(st.lists(ids | st.sampled_from([b"a", b"a\1", b"a\1\x7f"]), min_size=2))
    ends = st.integers(0, len(names) - 1)
    pairs = draw(st.lists(st.tuples(ends, ends).filter(lambda pair: pair[0] != pair[1])))
    return names, pairs


@given(graphs(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_any_graph(
    graph: tuple[list[bytes], list[tuple[int, int]]], reducers: int, rng: random.Random
) -> None:
    names, pairs = graph
    edges = edge_lines(tagged(names), pairs)
    rng.shuffle(edges)
    found, _ = Cluster(edges, reducers).connect()
    assert sorted(found.splitlines(keepends=True)) == components(names, pairs)
    one, _ = Cluster(edges).connect()
    assert one == of_one_process(edges)


@given(st.integers(2, 300), st.randoms(use_true_random=False), st.integers(1, 4))
def test_a_forest_takes_about_log_n_rounds(count: int, rng: random.Random, reducers: int) -> None:
    names = numbered(count)
    rng.shuffle(names)
    pairs = [(i, rng.randrange(max(0, i - 3), i)) for i in range(1, count) if rng.random() < 0.99]
    cluster = Cluster(edge_lines(tagged(names), pairs), reducers)
    found, rounds = cluster.connect()
    assert sorted(found.splitlines(keepends=True)) == components(names, pairs)
    assert rounds <= 2 + 2 * math.log2(count)


def path(count: int) -> list[tuple[int, int]]:
    return [(i, i + 1) for i in range(count - 1)]


SHAPES = {
    "path": path(1000),
    "circle": [*path(1000), (999, 0)],
    "star of the smallest": [(0, i) for i in range(1, 1000)],
    "star of the largest": [(999, i) for i in range(999)],
    "clique": [(i, j) for i in range(60) for j in range(i)],
    "two cliques and a bridge": [
        *((i + k, j + k) for k in (0, 40) for i in range(40) for j in range(i)),
        (39, 79),
    ],
    "pairs": [(2 * i, 2 * i + 1) for i in range(500)],
    "comb": [
        *((10 * i, 10 * i + 10) for i in range(99)),
        *((i, i - i % 10) for i in range(999) if i % 10),
    ],
    "none": [],
}
MOST_ROUNDS = {
    "star of the smallest": 0,
    "pairs": 0,
    "none": 0,
    "clique": 1,
    "star of the largest": 1,
}


@pytest.mark.parametrize("order", ["in order", "reversed", "shuffled"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str, order: str) -> None:
    pairs = SHAPES[shape]
    names = numbered(1000)
    if order == "reversed":
        names.reverse()
    elif order == "shuffled":
        random.Random(5).shuffle(names)
    edges = edge_lines(tagged(names), pairs)
    cluster = Cluster(edges, 3)
    found, rounds = cluster.connect()
    assert sorted(found.splitlines(keepends=True)) == components(names, pairs)
    assert in_order(found) == in_order(of_one_process(edges))
    assert rounds <= (MOST_ROUNDS.get(shape, 12) if order == "in order" else 12)


def test_rounds_grow_by_one_where_a_path_doubles() -> None:
    """… and not with its length; names in every order that is hard for the smallest to win."""
    for order in ("in order", "shuffled"):
        taken = []
        for log in range(3, 12):
            names = numbered(1 << log)
            if order == "shuffled":
                random.Random(log).shuffle(names)
            _, rounds = Cluster(edge_lines(tagged(names), path(1 << log))).connect()
            taken.append(rounds)
            assert rounds <= log + 1
        assert taken[-1] > taken[0]  # a test of rounds needs some


# What a round does.


def test_no_step_adds_a_link_and_the_last_one_counts_none_unsettled() -> None:
    names = numbered(600)
    pairs = [(i, random.Random(i).randrange(600)) for i in range(600)]
    pairs = [(i, j) for i, j in pairs if i != j]
    cluster = Cluster(edge_lines(tagged(names), pairs), 2)
    found, rounds = cluster.connect()
    reducers = [step.reducer for step in cluster.steps]
    assert reducers == ["large", "small"] * rounds + ["large", "clusters"]
    assert cluster.steps[-1].source == cluster.steps[-2].source
    larges = [counts for counts, name in zip(cluster.counters, reducers) if name == "large"]
    links = [counts[LINKS] for counts in larges]
    assert links == sorted(links, reverse=True)
    assert links[0] > links[-1]
    assert [counts[UNSETTLED] > 0 for counts in larges] == [True] * rounds + [False]
    assert set(cluster.folders) == {"edges", *cluster.steps[-2][::3], "clusters"}
    last = cluster.counters[-1]
    assert last[IN_CLUSTERS] == len(found.splitlines())
    assert last[CLUSTERS] == len({line.split(b"\t")[0] for line in found.splitlines()})
    assert last[LINKS] == 2 * (last[IN_CLUSTERS] - last[CLUSTERS])


def lines_of(text: str) -> list[bytes]:
    """Links in short: `2-1` of v2 to v1."""
    records = tagged(numbered(10))
    pairs = [word.split("-") for word in text.split()]
    return [format_link(records[int(a)], records[int(b)]) for a, b in pairs]


def step(function: Callable, text: str) -> list[bytes]:
    return sorted(set(split(function(sorted(lines_of(text)), Counters("")))))


def test_the_steps_as_the_docstring_shows_them() -> None:
    large = "2-1 4-1 4-3"
    assert step(large_star, "1-2 2-1 2-4 4-2 4-3 3-4") == lines_of(large)
    assert step(small_star, large) == lines_of("1-2 1-3 1-4 2-1 3-1 4-1")
    assert step(large_star, "1-2 1-3 1-4 2-1 3-1 4-1") == lines_of("2-1 3-1 4-1")


def test_a_step_holds_a_line_of_very_many_neighbours() -> None:
    first, second, *others = (b"1v%07d\1%016x" % (i, i) for i in range(3))
    neighbours = (b"1w%07d\1%016x" % (i, i) for i in range(20_000))
    links = (format_link(second, other) for other in [first, *others, *neighbours])
    tracemalloc.start()
    moved = sum(line.endswith(first + b"\n") for line in large_star(links, Counters("")))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert moved == 20_001
    assert peak < 300_000  # the neighbours alone would be five times that


# What is refused.


def refusal(function: Callable, lines: list[bytes]) -> str:
    with pytest.raises(StageError) as raised:
        list(function(lines, Counters("")))
    return str(raised.value)


@pytest.mark.parametrize("function", [large_star, small_star, clusters_of])
@pytest.mark.parametrize(
    "line",
    [b"\n", b"a\tb\n", b"a\tb\t0.912345\n", lines_of("3-3")[0], lines_of("2-1")[0] + b"x\n"]
    + [lines_of("2-1")[0].replace(b"\1", b"\1x"), lines_of("2-1")[0].replace(b"1v", b"v")],
)
def test_a_line_that_is_no_link(function: Callable, line: bytes) -> None:
    good = lines_of("1-0")[0]
    assert refusal(function, [good, line]).startswith("line 2: expected NODE NEIGHBOUR, as connect")


@pytest.mark.parametrize("function", [large_star, small_star, clusters_of])
def test_links_in_no_order(function: Callable) -> None:
    lines = lines_of("2-1 1-0")
    assert refusal(function, lines) == "line 2: links are not in order; put LC_ALL=C sort in front"


def test_edges_of_another_output() -> None:
    records = [b"1" + b"%016x" % i + b"v" for i in range(2)]  # as --output kept has them
    said = refusal(links_of, [format_presence(records[0]), format_edge(*records, b"=")])
    assert said.startswith("line 2: expected NODE NEIGHBOUR, as connect.py makes them of edges of")
    (record, *_) = tagged([b"v"])
    said = refusal(links_of, [format_member(record, Member(b"7.1", False, b"34o8"))])
    assert said.startswith("line 1: a crowd is for a decision on records; clusters take edges of")
    assert refusal(links_of, [b"a b c\n"]).startswith("line 1: expected an edge, as reducer.py")
    assert refusal(links_of, [b"%b\t%b\t=\n" % (record, record)]).startswith("line 1: expected NOD")


def test_steps_in_the_wrong_order() -> None:
    said = refusal(small_star, sorted(lines_of("1-2 2-1")))
    assert re.fullmatch(r"'1v.+' has a later neighbour; put the step large in front", said)
    said = refusal(clusters_of, sorted(lines_of("1-2 2-1 2-3 3-2")))
    assert re.fullmatch(r"'1v.+' has several .+; run the steps large and small once more", said)


@given(graphs())
def test_a_link_survives_the_round_trip(graph: tuple[list[bytes], list[tuple[int, int]]]) -> None:
    names, pairs = graph
    records = tagged(names)
    links = [(records[i], records[j]) for i, j in pairs]
    lines = [format_link(*link) for link in links]
    assert list(map(parse_link, lines)) == links
    assert list(map(parse_link, sorted(lines))) == sorted(links)


# The program.


def test_the_loop_of_the_help(tmp_path: Path) -> None:
    """As it is typed, on what real reducers write; and it stops where a step fails."""
    keyed = in_order(succeed([*MAPPER, "--output=clusters", VIDEOS], tmp_path).out)
    edges = succeed([*REDUCER, "--output=clusters"], tmp_path, keyed).out
    expected = succeed([*DECIDE, "--output=clusters"], tmp_path, in_order(edges)).out
    assert len(expected.splitlines()) > 100
    (tmp_path / "EDGES").write_bytes(edges)
    (tmp_path / "before").write_bytes(b"of another run\n")
    loop = re.search(r"set -eo pipefail:\n\n(.*?)\n\n", CONNECT, re.DOTALL)
    assert loop
    (tmp_path / "connect.py").symlink_to(ROOT / "connect.py")
    script = program(tmp_path / "loop.sh", "set -eo pipefail", loop[1])
    done = run(["bash", script], tmp_path, cwd=tmp_path)
    assert done.code == 0, done.err
    assert (tmp_path / "clusters.tsv").read_bytes() == expected
    (tmp_path / "EDGES").write_bytes(edges + b"no edge\n")
    done = run(["bash", script], tmp_path, cwd=tmp_path)
    assert done.code == 1
    assert done.err.startswith("connect.py: line ")


def test_a_step_that_tells_no_counters() -> None:
    with pytest.raises(StageError, match=r"whether to go on: between/large-0 has no counters$"):
        in_rounds("edges", "between", "clusters", lambda step: {}, lambda folders: None)


def test_the_counter_is_told(tmp_path: Path) -> None:
    links = b"".join(sorted(lines_of("1-2 2-1 2-3 3-2")))
    result = succeed([*CONNECT_PY, "large"], tmp_path, links)
    assert result.count(UNSETTLED) == 1
    hadoop = succeed([*CONNECT_PY, "large"], tmp_path, links, mapreduce_task_attempt_id="7")
    assert f"reporter:counter:neardup,{UNSETTLED},1\n" in hadoop.err
    assert hadoop.out == result.out
    assert result.count(LINKS) == 4
    edges = b"".join(edge_lines(tagged(numbered(3)), [(0, 1), (1, 2)]))
    assert succeed([*CONNECT_PY, "links"], tmp_path, edges).count("edges") == 2


def test_a_step_that_is_none(tmp_path: Path) -> None:
    result = run([*CONNECT_PY, "stars"], tmp_path)
    assert result.code == 2
    assert "invalid choice: 'stars'" in result.err
