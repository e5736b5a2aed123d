"""--verify sketch gives the same lines on every engine, and at most one interval is wrong."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from neardup.similarity.definitions import resemblance
from tests.support.cases import in_turn
from tests.support.drawn import job, mapped, record_lines, reduced, settings_of
from tests.support.engines import (
    ANSWER,
    DECIDE,
    DEDUP,
    ENGINES,
    NEARDUP,
    RUN_LOCAL,
    VIDEOS,
    Input,
    in_order,
    run,
)

LINE = re.compile(rb"([^\t]+)\t([^\t]+)\t~([01]\.[0-9]{6})\.\.([01]\.[0-9]{6})\n")
SKETCH = ["--verify=sketch:64"]


def large_sets() -> dict[bytes, list[int]]:
    """Return families of five near-copies of 20 to 599 elements; two or more of each are equal."""
    rng = np.random.default_rng(5)
    records: dict[bytes, list[int]] = {}
    for family in range(12):
        base = rng.integers(0, 1 << 62, int(rng.integers(20, 600))).tolist()
        for member in range(5):
            cut = int(rng.integers(0, 1 + len(base) // 8)) if member > 1 else 0
            new = rng.integers(0, 1 << 62, cut).tolist()
            records[b"v%d.%d" % (family, member)] = base[cut:] + new
    return records


RECORDS = large_sets()
DATA = record_lines(RECORDS)


def read(lines: list[bytes]) -> dict[tuple[bytes, bytes], tuple[Fraction, Fraction]]:
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found)
    return {(m[1], m[2]): (Fraction(m[3].decode()), Fraction(m[4].decode())) for m in found if m}


@pytest.mark.slow
@in_turn(1, name=list(ENGINES), flags=[["--scheme=supershingle", "--threshold=0.85"], []])
def test_every_engine_writes_the_same(name, flags, tmp_path):
    files = ["input.txt"]
    (tmp_path / "input.txt").write_bytes(DATA)
    given = Input(DATA, [str(tmp_path / file) for file in files])
    out = in_order(ENGINES[name](given, [*SKETCH, *flags], tmp_path))
    expected = job(RECORDS, *SKETCH, *flags)
    assert out == b"".join(expected)
    assert len(expected) > 20


def test_intervals_hold_the_exact_similarities_and_reach_the_threshold():
    found = read(job(RECORDS, *SKETCH))
    exact = {pair: resemblance(*(RECORDS[id_] for id_ in pair)) for pair in found}
    outside = [pair for pair, (low, high) in found.items() if not low <= exact[pair] <= high]
    rounded = [pair for pair in outside if found[pair][0] == found[pair][1]]
    assert all(abs(found[pair][0] - exact[pair]) <= Fraction(1, 2 * 10**6) for pair in rounded)
    assert len(outside) - len(rounded) <= 1  # of some hundred, each with P = 0.001
    assert all(high >= Fraction("0.9") for _, high in found.values())
    wide = [pair for pair, (low, high) in found.items() if low < high]
    assert len(rounded) < len(found) > len(wide) > 0
    true = {tuple(line.split(b"\t")[:2]) for line in job(RECORDS)}
    assert true <= found.keys()
    assert not found.keys() <= true  # some may be pairs, and are none


@pytest.mark.slow
def test_small_sets_give_the_exact_answer_with_its_mark(tmp_path):
    result = run([*RUN_LOCAL, "--verify=sketch:4096", VIDEOS], tmp_path)
    exact = [line.rstrip().split(b"\t") for line in ANSWER.read_bytes().splitlines()]
    assert result.lines() == [b"%b\t%b\t~%b..%b\n" % (a, b, s, s) for a, b, s in exact]
    assert "pairs are estimates from 4096 hashes of each set" in result.err


@pytest.mark.slow
def test_in_pieces_of_a_large_bucket():
    lines = mapped(DATA, settings_of(*SKETCH))
    whole = sorted(reduced(lines, settings_of(*SKETCH)))
    assert sorted(reduced(lines, settings_of(*SKETCH), bucket_bytes=3000, at_once=5)) == whole


def test_estimates_and_exact_pairs_are_not_merged(tmp_path):
    mixed = b"a\tb\t0.950000\na\tc\t~0.900000..0.990000\n"
    result = run(DEDUP, tmp_path, mixed)
    assert result.code == 1
    assert "exact pairs and estimates of --verify sketch in one input, at 'a' 'c'" in result.err
    twice = b"a\tb\t~0.900000..0.990000\na\tb\t~0.910000..0.980000\n"
    assert run(DEDUP, tmp_path, twice).out == b"a\tb\t~0.910000..0.980000\n"


@pytest.mark.slow
def test_who_needs_exact_pairs_says_so(tmp_path):
    estimate = b"a\tb\t~0.900000..0.990000\n"
    (tmp_path / "pairs").write_bytes(estimate)
    for command in (
        [*NEARDUP, "evaluate", tmp_path / "pairs", ANSWER],
        [*NEARDUP, "audit", VIDEOS, tmp_path / "pairs"],
        [*DECIDE, "--output=removed"],
    ):
        result = run(command, tmp_path, estimate)
        assert result.code == 1
        assert "expected exact pairs, got an estimate of --verify sketch" in result.err
