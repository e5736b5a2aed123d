"""Peer programs: the reader and candidate check are correct, and four find the expected pairs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from bench.peers.answers import unique, write_verified
from bench.peers.reading import Records, read_sets, read_texts
from bench.workloads import ROOT
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.similarity.measures import NINE_TENTHS

pytestmark = pytest.mark.slow

VIDEOS = ROOT / "data" / "videos.txt"


def test_the_reader_of_the_peers_reads_what_ours_does() -> None:
    ours, bad = parse_shingle_lines(VIDEOS.read_bytes())
    theirs = read_sets(str(VIDEOS))
    assert not bad
    assert theirs.ids == ours.ids
    assert np.array_equal(theirs.sets.values, ours.sets.values)
    assert np.array_equal(theirs.sets.offsets, ours.sets.offsets)
    assert [id_ for id_, _ in read_texts(str(VIDEOS))] == ours.ids


def test_only_candidates_that_reach_the_threshold_are_written(
    capfdbinary: pytest.CaptureFixture,
) -> None:
    rows = [range(10), range(5, 15), range(1, 10), [1 << 60, 1]]
    values = np.array([value for row in rows for value in row], np.uint64)
    records = Records([b"a", b"b", b"d", b"c"], values, np.array([0, 10, 20, 29, 31]))
    write_verified(records, np.array([[2, 0], [0, 0], [0, 1], [0, 2], [3, 2]]), NINE_TENTHS)
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"a\td\n"
    assert unique(np.array([[1, 0], [0, 1]]), 2).tolist() == [[0, 1]]


@pytest.mark.parametrize("banding", [["--bands", "15", "--rows", "7"], []])
@pytest.mark.parametrize("name", ["duckdb", "polars", "sketchsort", "near_dupes"])
def test_a_join_finds_the_pairs(name: str, banding: list[str]) -> None:
    pytest.importorskip(name)
    if name == "sketchsort":
        banding = ["--rounding", "1"] if banding else []
    elif name == "near_dupes":
        banding = []
    command = [sys.executable, "-m", f"bench.peers.{name}", str(VIDEOS), *banding]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert done.stderr == b""
    exact = {
        (a, b): similarity
        for a, b, similarity in (
            line.split(b"\t") for line in VIDEOS.with_suffix(".pairs.tsv").read_bytes().splitlines()
        )
    }
    lines = done.stdout.splitlines()
    found = {tuple(line.split(b"\t")) for line in lines}
    assert len(found) == len(lines)
    if name == "sketchsort" and not banding:  # its floats lose what is exactly at the threshold
        assert {exact[pair] for pair in exact.keys() - found} == {b"0.900000"}
        exact = {pair: one for pair, one in exact.items() if one != b"0.900000"}
    assert found == exact.keys()
