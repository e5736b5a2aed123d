"""The made-up data have the promised shape, and the exact answers are exact."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import bench.data.exact_answer
import bench.data.videos
from bench.data.exact_answer import Pairs, nested_loop, pair_lines, partition, read_records
from bench.data.videos import LARGEST, SMALLEST, UNIVERSE, lines
from neardup.sets.hashing import random_words
from neardup.sets.ragged import Ragged
from neardup.similarity.definitions import resemblance
from neardup.similarity.threshold import Threshold

ROOT = Path(__file__).resolve().parents[2]
VIDEOS = ROOT / "data" / "videos.txt"
ANSWER = ROOT / "data" / "videos.pairs.tsv"
T = Threshold.parse("0.9")


def run(*arguments: str, **environment: str) -> bytes:
    """What `python3 -m arguments…` prints."""
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
    """The pairs of data/videos.txt with 0.8 or more, from the nested loop."""
    return nested_loop(videos[1], Threshold.parse("0.8"))


def test_lines_have_the_promised_shape() -> None:
    records = [line.split() for line in lines(records=12_000, seed=5, copies=0.1)]
    assert [record[0] for record in records] == [b"VIDEO_%09d" % i for i in range(1, 12_001)]
    repeated = []
    for _, *tokens in records:
        shingles = list(map(int, tokens))
        times = Counter(shingles)
        assert SMALLEST <= len(times) <= LARGEST
        assert min(shingles) >= 0
        assert max(shingles) < UNIVERSE
        assert shingles != sorted(shingles)
        repeated.append((len(tokens) - len(times)) / len(times))
    assert 0.09 <= np.mean(repeated) <= 0.11
    sizes = [len(set(tokens)) for _, *tokens in records]
    assert 95 <= np.median(sizes) <= 107
    assert min(sizes) == SMALLEST
    assert max(sizes) == LARGEST


def test_lines_are_plain_text() -> None:
    for line in lines(records=300, seed=5, copies=0.1):
        assert line == b" ".join(line.split()) + b"\n"
        assert line.isascii()


def test_same_seed_same_bytes_in_every_process() -> None:
    command = ("bench.data.videos", "--records", "400", "--cluster", "5", "--hot", "6", "--seed")
    once = run(*command, "3", PYTHONHASHSEED="1")
    assert run(*command, "3", PYTHONHASHSEED="2") == once
    assert run(*command, "4") != once


def test_a_closed_pipe_is_a_quiet_success() -> None:
    command = [sys.executable, "-m", "bench.data.videos", "--records", "50000"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"VIDEO_000000001 ")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.parametrize("records", [0, 1, 7, 12_000])
def test_planted_sets_are_all_there_and_spread(records: int) -> None:
    hot = records // 3
    sets = [
        frozenset(line.split()[1:])
        for line in lines(records=records, seed=2, copies=0, cluster=records - 2 * hot, hot=hot)
    ]
    assert len(sets) == records
    if hot > 1:
        hottest, times = Counter(sets).most_common(1)[0]
        assert times == hot
        places = [i for i, x in enumerate(sets) if x == hottest]
        assert places[0] < records / 2 < places[-1]


def test_videos_are_what_the_stated_command_prints() -> None:
    command = "bench.data.videos --records 2000 --seed 1 --cluster 30"
    assert bench.data.videos.__doc__ is not None
    assert f"python3 -m {command} > data/videos.txt" in bench.data.videos.__doc__
    assert run(*command.split()) == VIDEOS.read_bytes()


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


def test_videos_pairs_have_every_kind(videos: tuple[list[bytes], Ragged]) -> None:
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
    """60 sets, two thirds of which are an earlier one with some elements taken out or put in."""
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


@pytest.mark.parametrize("text", ["0.05", "1/3", "0.5", "2/3", "0.8", "0.9", "0.95", "1"])
@pytest.mark.parametrize(
    ("smallest", "largest", "universe"),
    [(1, 2, 4), (1, 12, 15), (1, 12, 1 << 64), (5, 40, 60), (50, 100, 1 << 40)],
)
def test_partition_is_the_nested_loop(
    smallest: int, largest: int, universe: int, text: str
) -> None:
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
    """Sorted (smaller row, larger row, common), so that a pair found twice shows."""
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


@pytest.mark.parametrize("module", [bench.data.exact_answer, bench.data.videos])
def test_examples_in_docstrings(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0
