"""--exact on whole files prints exactly the pairs of the join in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from neardup.commands.example import lines as videos
from neardup.joins import JOINS
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.similarity.measures import Threshold, six_decimals
from tests.support.cases import crossed
from tests.support.drawn import record_lines
from tests.support.engines import RUN_LOCAL, VIDEOS, succeed

THRESHOLDS = ["0.95", "0.9", "0.8", "0.7"]


def answer(data: bytes, t: str) -> list[bytes]:
    batch, _ = parse_shingle_lines(data)
    joined = JOINS["ppjoin_plus"](batch.sets, Threshold.parse(t))
    sizes = batch.sets.sizes
    union = sizes[joined.left] + sizes[joined.right] - joined.common
    lines = []
    for i, j, similarity in zip(joined.left, joined.right, six_decimals(joined.common, union)):
        a, b = sorted((batch.ids[i], batch.ids[j]))
        lines.append(b"%b\t%b\t%b\n" % (a, b, similarity))
    return sorted(lines)


@pytest.mark.first_case
@crossed(t=THRESHOLDS, kind=["videos", "small sets"])
def test_exact_finds_every_pair_and_nothing_else(kind: str, t: str, tmp_path: Path) -> None:
    path = VIDEOS
    if kind == "small sets":  # of 1 to 12 shingles, many of them alike
        path = tmp_path / "small.txt"
        sets = ([i // 7 * k % 97 for k in range(1 + i % 12)] for i in range(3000))
        path.write_bytes(record_lines({b"v%d" % i: set_ for i, set_ in enumerate(sets)}))
    expected = answer(path.read_bytes(), t)
    assert len(expected) > 300
    found = succeed([*RUN_LOCAL, "--exact", f"--threshold={t}", path], tmp_path)
    assert found.lines() == expected
    assert "\nexact: every pair shares " in found.err


@pytest.mark.slow
def test_the_cost_is_said_first(tmp_path: Path) -> None:
    path = tmp_path / "videos.txt"
    path.write_bytes(b"".join(videos(1000, 1, 0.1)))
    said = succeed([*RUN_LOCAL, "--exact", path], tmp_path).err.splitlines()
    costs = [line for line in said if line.startswith("sizes ")]
    assert costs
    assert said.index(costs[-1]) < said.index(next(x for x in said if " pairs among " in x))
