"""The order of lines, blocks and tasks changes no answer; a higher threshold gives a subset."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.cases import in_turn, some
from tests.support.drawn import mapped, reduced, settings_of
from tests.support.engines import DEDUP, MAPPER, REDUCER, RUN_LOCAL, in_order, succeed

FLAGS = [[], ["--output", "links"], ["--threshold", "0.6", "--bands", "60", "--rows", "2"]]


def near_copies(count: int, seed: int, universe: int = 3000) -> list[tuple[bytes, list[int]]]:
    """Return records with unique ids, most of which are near-copies of an earlier one."""
    rng = random.Random(seed)
    records: list[tuple[bytes, list[int]]] = []
    for i in range(count):
        if i % 4:
            shingles = list(rng.choice(records)[1])
            for _ in range(rng.choice([0, 0, 1, 2, 6])):
                shingles[rng.randrange(len(shingles))] = rng.randrange(universe)
        else:
            shingles = rng.sample(range(universe), rng.randrange(20, 60))
        records.append((b"r%d" % i, shingles))
    return records


def lines_of(records: list[tuple[bytes, list[int]]]) -> list[bytes]:
    return [b"%b %b\n" % (id_, b" ".join(map(b"%d".__mod__, x))) for id_, x in records]


RECORDS = near_copies(120, seed=11)
LINES = lines_of(RECORDS)
TEXT = b"".join(LINES)


def job(lines: list[bytes], flags: list[str], mappers: int = 1, reducers: int = 1) -> list[bytes]:
    settings = settings_of(*flags)
    keyed = [line for i in range(mappers) for line in mapped(b"".join(lines[i::mappers]), settings)]
    parts: list[list[bytes]] = [[] for _ in range(reducers)]
    for line in sorted(keyed):
        parts[sum(line.split(b"\t")[0]) % reducers].append(line)
    return sorted(line for part in parts for line in reduced(part, settings))


@pytest.fixture(scope="module", params=FLAGS, ids=" ".join)
def flags(request: pytest.FixtureRequest) -> list[str]:
    return request.param


@pytest.fixture(scope="module")
def expected(flags: list[str]) -> list[bytes]:
    lines = job(LINES, flags)
    assert 20 < len(lines) < len(LINES) * (len(LINES) - 1) // 4
    return lines


@some("seed", range(5), 0, 1)
def test_order_of_lines_and_shingles_and_repeats(
    flags: list[str], expected: list[bytes], seed: int
) -> None:
    rng = random.Random(seed)
    records = [(id_, rng.sample(x, len(x)) + rng.choices(x, k=5)) for id_, x in RECORDS]
    lines = lines_of(rng.sample(records, len(records)))
    lines = [line.replace(b" ", b" \t00", rng.randrange(9)) for line in lines]
    assert job(lines, flags) == expected


@in_turn(2, mappers=[2, 3, 4, 1], reducers=[3, 4, 1, 2])
def test_mappers_and_reducers(
    flags: list[str], expected: list[bytes], mappers: int, reducers: int
) -> None:
    assert job(LINES, flags, mappers, reducers) == expected


def hot_buckets() -> list[bytes]:
    """Return keyed lines of 300 near-copies in thirty versions, which make two large buckets."""
    rng = random.Random(4)
    versions = [[*range(50), *rng.sample(range(3000, 3100), 1 + i % 2)] for i in range(30)]
    lines = lines_of([(b"h%03d" % i, rng.choice(versions)) for i in range(300)])
    return mapped(b"".join(lines), settings_of("--bands", "2", "--rows", "1"))


@pytest.mark.first_case
@some("at_once", [(600, 299, 70), (600, 1)], (600, 299, 70))
@pytest.mark.parametrize("output", ["pairs", "links"])
def test_where_blocks_end_in_a_hot_bucket(output: str, at_once: tuple[int, ...]) -> None:
    """The answer for large buckets does not depend on where the reader's blocks end."""
    settings = settings_of("--bands", "2", "--rows", "1", "--output", output)
    lines = hot_buckets()
    limit = sum(map(len, lines)) // 3  # less than each of the two buckets
    answers = {tuple(sorted(reduced(lines, settings, limit, rows))) for rows in at_once}
    assert len(answers) == 1


def test_a_higher_threshold_gives_a_subset() -> None:
    """With the same bands and rows, a higher threshold gives exactly the pairs that reach it."""
    answers = [
        job(LINES, ["--bands", "60", "--rows", "2", "--threshold", t])
        for t in ("0.5", "0.75", "9/10", "0.95", "1")
    ]
    for lower, higher, t in zip(answers, answers[1:], (0.75, 0.9, 0.95, 1)):
        assert higher == [line for line in lower if float(line.split(b"\t")[2]) >= t]
        assert 0 < len(higher) < len(lower)


ENVIRONMENTS = [
    {"PYTHONHASHSEED": "1", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8"},
    {"PYTHONHASHSEED": "4294967295", "LC_ALL": "POSIX", "PYTHONUTF8": "0"},
]
IDS = ["é", "z", "Z", "ß", "日本", "\U0001f600", "a-b", "a.b", "ab", "_"]


@pytest.mark.slow
@pytest.mark.parametrize("env", ENVIRONMENTS, ids=lambda env: env["LC_ALL"])
def test_environment(env: dict[str, str], tmp_path: Path) -> None:
    lines = [line.replace(b"r", IDS[i % 10].encode(), 1) for i, line in enumerate(LINES)]
    expected = b"".join(job(lines, []))
    keyed = succeed(MAPPER, tmp_path, b"".join(lines), **env)
    pairs = succeed(REDUCER, tmp_path, in_order(keyed.out), **env)
    assert in_order(pairs.out) == expected
    assert succeed(DEDUP, tmp_path, in_order(pairs.out), **env).out == expected
    assert succeed([*RUN_LOCAL, "-"], tmp_path, b"".join(lines), **env).out == expected
