"""Tests of `example`: the shape of the synthetic videos, seeds, memory and refusals."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from neardup.commands import example as synthetic_videos
from neardup.commands.example import LARGEST, SMALLEST, UNIVERSE, lines
from tests.support.engines import NEARDUP, VIDEOS, succeed


@pytest.mark.slow
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


@pytest.mark.slow
def test_same_seed_same_bytes_in_every_process(tmp_path: Path) -> None:
    command = [*NEARDUP, *["example", "--records", "400", "--cluster", "5", "--hot", "6", "--seed"]]
    once = succeed([*command, "3"], tmp_path, PYTHONHASHSEED="1").out
    assert once.count(b"\n") == 400
    assert succeed([*command, "3"], tmp_path, PYTHONHASHSEED="2").out == once
    assert succeed([*command, "4"], tmp_path).out != once


@pytest.mark.slow
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


@pytest.mark.slow
def test_videos_are_what_the_stated_command_prints(tmp_path: Path) -> None:
    words = "example --records 2000 --seed 1 --cluster 30"
    assert f"python3 -m neardup {words} > data/videos.txt" in (synthetic_videos.__doc__ or "")
    assert succeed([*NEARDUP, *words.split()], tmp_path).out == VIDEOS.read_bytes()
    assert succeed([*NEARDUP, "example", "--cluster=30"], tmp_path).out == VIDEOS.read_bytes()
