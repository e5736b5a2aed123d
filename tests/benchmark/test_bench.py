"""The synthetic data have the promised shape, and the exact answers are the nested loop's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from bench.data.exact_answer import Pairs, nested_loop, pair_lines, partition, read_records
from neardup.sets.hashing import random_words
from neardup.sets.ragged import Ragged
from neardup.similarity.definitions import resemblance
from neardup.similarity.measures import Threshold
from tests.support.cases import in_turn

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
VIDEOS = ROOT / "data" / "videos.txt"
ANSWER = ROOT / "data" / "videos.pairs.tsv"
T = Threshold.parse("0.9")


def run(*arguments: str, **environment: str) -> bytes:
    """Return what `python3 -m arguments…` prints."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


@pytest.fixture(scope="module")
def videos() -> tuple[list[bytes], Ragged]:
    with VIDEOS.open("rb") as file:
        return read_records(file)


@pytest.fixture(scope="module")
def all_pairs(videos: tuple[list[bytes], Ragged]) -> Pairs:
    """Return the pairs of data/videos.txt at or above 0.8, from the nested loop."""
    return nested_loop(videos[1], Threshold.parse("0.8"))


def test_videos_pairs_are_the_nested_loop(
    videos: tuple[list[bytes], Ragged], all_pairs: Pairs
) -> None:
    ids, rows = videos
    assert len(ids) == len(set(ids)) == 2000
    union = rows.sizes[all_pairs.left] + rows.sizes[all_pairs.right] - all_pairs.common
    near = T.reached(all_pairs.common, union)
    assert near.any()
    assert not near.all()
    assert np.count_nonzero(~near) >= 50
    pairs = Pairs(*(column[near] for column in all_pairs))
    assert ANSWER.read_bytes().splitlines() == pair_lines(ids, rows.sizes, pairs)


def test_videos_pairs_have_every_kind() -> None:
    answer = [line.split("\t") for line in ANSWER.read_text().splitlines()]
    kinds = Counter(similarity for _, _, similarity in answer)
    assert kinds["0.900000"] >= 20
    assert kinds["1.000000"] >= 20
    assert sum("0.900000" < similarity < "1.000000" for _, _, similarity in answer) >= 100
    near = Counter(name for a, b, _ in answer for name in (a, b))
    cluster = {name for name, partners in near.items() if partners == 29}
    assert len(cluster) == 30
    assert sum(a in cluster and b in cluster for a, b, _ in answer) == 30 * 29 // 2


def test_answer_is_exact_sorted_and_rounded_half_even() -> None:
    with VIDEOS.open("rb") as file:
        sets = {line.split()[0]: set(line.split()[1:]) for line in file}
    answer = ANSWER.read_bytes().splitlines()
    assert answer == sorted(set(answer))
    assert answer
    for a, b, similarity in (line.split(b"\t") for line in answer):
        x, y = sets[a], sets[b]
        exact = Fraction(len(x & y), len(x | y))
        assert a < b
        assert exact >= Fraction(9, 10)
        assert Fraction(similarity.decode()) == Fraction(round(exact * 10**6), 10**6)


def test_the_partition_join_agrees_on_the_videos() -> None:
    assert run("bench.data.exact_answer", str(VIDEOS)) == ANSWER.read_bytes()


def random_sets(seed: int, smallest: int, largest: int, universe: int) -> Ragged:
    """Return 60 sets; two thirds are copies of earlier ones, many with some elements changed."""
    words = iter(random_words(seed, 60 * (largest + 20)).tolist())
    sets: list[list[int]] = []
    for i in range(60):
        if i % 3 and sets:
            base = sets[next(words) % len(sets)]
            changes = {next(words) % universe for _ in range(next(words) % (2 + len(base) // 6))}
            sets.append(sorted(set(base) ^ changes) or base)
        else:
            size = smallest + next(words) % (largest - smallest + 1)
            sets.append(sorted({next(words) % universe for _ in range(size)}))
    return Ragged.from_rows(sets)


@in_turn(
    2,
    text=["0.05", "1/3", "0.5", "2/3", "0.8", "0.9", "0.95", "1"],
    sizes=[(1, 2, 4), (1, 12, 15), (1, 12, 1 << 64), (5, 40, 60), (50, 100, 1 << 40)],
)
def test_partition_is_the_nested_loop(sizes: tuple[int, int, int], text: str) -> None:
    smallest, largest, universe = sizes
    threshold = Threshold.parse(text)
    found = 0
    compared = 0
    for seed in range(8):
        rows = random_sets(seed, smallest, largest, universe)
        expected = triples(nested_loop(rows, threshold))
        assert triples(partition(rows, threshold)) == expected
        found += len(expected)
        compared += len(rows) * (len(rows) - 1) // 2
    assert 0 < found < compared


def triples(pairs: Pairs) -> list[tuple[int, int, int]]:
    """Return the (lower row, higher row, size of the intersection) of all pairs, sorted."""
    columns = (column.tolist() for column in pairs)
    return sorted((min(i, j), max(i, j), common) for i, j, common in zip(*columns))


def test_nested_loop_is_the_definition() -> None:
    rows = random_sets(1, 1, 12, 20)
    half = Fraction(1, 2)
    expected = [
        (i, j)
        for i, j in combinations(range(len(rows)), 2)
        if resemblance(rows.row(i).tolist(), rows.row(j).tolist()) >= half
    ]
    found = triples(nested_loop(rows, Threshold.parse("0.5")))
    assert [(i, j) for i, j, _ in found] == expected
    assert 0 < len(expected) < len(rows) * (len(rows) - 1) // 2


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_records_have_no_pairs(count: int) -> None:
    rows = Ragged.from_rows([[1, 2]] * count)
    for join in (nested_loop, partition):
        assert [len(column) for column in join(rows, T)] == [0, 0, 0]
