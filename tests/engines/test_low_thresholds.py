"""At thresholds for which 16 bands are too few, a pipe, run_local.sh and mrjob find all pairs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import neardup
from tests.support.cases import in_turn
from tests.support.engines import ENGINES, Input, in_order, succeed
from tests.support.oracle import pair_lines
from tests.support.programs import RUN_LOCAL

LOW = ["0.3", "0.1"]  # 26 bands; --exact


def records(count: int = 40) -> dict[bytes, list[int]]:
    """Return sets of 1 to 30 of 60 numbers, with mostly low similarities."""
    draw = random.Random(7)
    return {b"r%02d" % i: draw.sample(range(60), draw.randint(1, 30)) for i in range(count)}


def lines_of(sets: dict[bytes, list[int]]) -> bytes:
    return b"".join(
        b"%b %b\n" % (id_, b" ".join(b"%d" % x for x in row)) for id_, row in sets.items()
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.txt"
    path.write_bytes(lines_of(records()))
    return path


def expected(threshold: str) -> bytes:
    found = pair_lines(list(records().items()), threshold)
    return in_order(found)


@in_turn(1, engine=["pipe+dedup", "run_local 2", "mrjob inline"], threshold=LOW)
def test_every_engine(engine: str, threshold: str, data: Path, tmp_path: Path) -> None:
    out = ENGINES[engine](Input(data.read_bytes(), [data]), ["--threshold", threshold], tmp_path)
    assert in_order(out) == expected(threshold)


@pytest.mark.parametrize("threshold", LOW)
def test_the_library(threshold: str) -> None:
    sets = records()
    pairs = neardup.pairs([(id_.decode(), row) for id_, row in sets.items()], threshold=threshold)
    lines = [f"{p.a}\t{p.b}\t{float(p.similarity):.6f}\n".encode() for p in pairs]
    ids = [line.rsplit(b"\t", 1)[0] for line in expected(threshold).splitlines()]
    assert sorted(line.rsplit(b"\t", 1)[0] for line in lines) == ids


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("flags", "promise"),
    [
        ("--threshold=0.3", "26 bands of 1 rows find a pair at 0.3 with probability 0.999906"),
        ("--threshold=0.3 --recall=0.99", "13 bands of 1 rows"),
        ("--threshold=0.1", "exact: every pair shares"),
        ("--threshold=0.3 --measure=cosine", "exact: every pair shares"),  # Jaccard 0.09
        ("--threshold=0.1 --recall=0.9", "22 bands of 1 rows find a pair at 0.1"),
    ],
)
def test_the_summary_reports_how(flags: str, promise: str, data: Path, tmp_path: Path) -> None:
    assert promise in succeed([*RUN_LOCAL, *flags.split(), data], tmp_path).err
