"""The benchmarks of decisions and of added records judge each run by the exact pairs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import bench.answer_quality
import bench.compare_decisions
import bench.compare_increments
import bench.decision_memory
from bench.answer_quality import quality
from bench.compare_decisions import Verdict, ids_of, judged, pairs_of, row_of_ours, row_of_peer
from bench.compare_increments import Program, pairs_in, row
from bench.decision_memory import ASKED, edge_lines
from bench.workloads import ROOT, Workload
from neardup.options import table
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.runtime.counters import Counters
from neardup.stages.pairs import decide_edges

VIDEOS = Workload("data/videos.txt", "quick", "data/videos.txt", [], [])


@pytest.mark.slow
def test_a_row_of_ours_is_judged_by_the_exact_pairs() -> None:
    ids, pairs = ids_of(VIDEOS), pairs_of(VIDEOS)
    direct = row_of_ours(VIDEOS, "direct", ids, pairs).split(" | ")
    assert direct[2:4] == ["1,727", "273"]
    assert direct[4:] == ["0", "0", "273 of 273 |"]
    cluster = row_of_ours(VIDEOS, "cluster", ids, pairs).split(" | ")
    assert cluster[2:5] == ["1,699", "301", "29"]


def test_a_removal_without_a_pair_and_a_pair_that_stays_are_counted() -> None:
    ids = {b"a", b"b", b"c", b"d", b"e"}
    pairs = [(b"a", b"b"), (b"b", b"a"), (b"c", b"d"), (b"d", b"c")]
    assert judged(ids, {b"b", b"e"}, pairs) == Verdict(stay=3, removed=2, without=1, left=1)
    assert judged(ids, {b"b", b"c"}, pairs) == Verdict(stay=3, removed=2, without=0, left=0)
    with pytest.raises(SystemExit, match="not in the file"):
        judged(ids, {b"f"}, pairs)


def test_a_peer_that_is_not_there_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bench.compare_decisions.NAMES, "no_such_peer", "a peer")
    cells = row_of_peer(VIDEOS, "no_such_peer", "15×7", set(), {}, sys.executable)
    assert "does not run: " in cells
    assert "no_such_peer" in cells


def test_removed_lines_and_clusters_are_judged(tmp_path: Path) -> None:
    truth, output = tmp_path / "pairs.tsv", tmp_path / "answer.tsv"
    truth.write_bytes(b"a\tb\t0.900000\nb\tc\t0.950000\n")
    for removed, right in (
        (b"b\ta\t0.900000\n", 1),
        (b"b\ta\t0.910000\n", 0),
        (b"b\ta\t0.900000\nc\tb\t0.950000\n", 1),
        (b"c\ta\t-\n", 0),
    ):
        output.write_bytes(removed)
        assert quality("removed", output, truth).right == right
    output.write_bytes(b"a\ta\na\tb\na\tc\n")
    assert quality("clusters", output, truth).connected
    output.write_bytes(b"a\ta\na\tb\nc\tc\n")
    assert not quality("clusters", output, truth).connected


@pytest.mark.parametrize(("asked", "lines"), [*zip(ASKED, (3, 6, 9))])
def test_edges_of_the_memory_table_can_be_decided(asked: list[str], lines: int) -> None:
    settings = Settings.of(Options.of(table.parser("bench", "").parse_args(asked)))
    edges = list(edge_lines(9, smallest="clusters" in asked))
    assert edges == sorted(edges)
    decided = b"".join(decide_edges([b"".join(edges)], settings, Counters("decide")))
    assert decided.count(b"\n") == lines


@pytest.mark.slow
def test_a_row_of_an_increment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.compare_increments, "ANSWER", tmp_path / "answer.tsv")
    monkeypatch.setattr(bench.compare_increments, "INDEX", tmp_path / "index")
    lines = (ROOT / VIDEOS.file).read_bytes().splitlines(keepends=True)
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_bytes(b"".join(lines[100:]))
    new.write_bytes(b"".join(lines[:100]))
    ids = {line.split(b" ")[0] for line in lines[:100]}
    true = {pair for pair in pairs_in(VIDEOS.truth.read_bytes()) if ids & set(pair)}
    assert 0 < len(true) < 790
    ask = ["./run_local.sh", "--against", str(old), str(new)]
    cells = row(Program("ours", [], ask), true, ids, 1).split(" | ")
    assert cells[:3] == ["ours", "–", "–"]
    assert cells[5:] == [f"{len(true):,} pairs", "1", "1"]
    assert "failed with" in row(Program("wrong", [], ["false"]), true, ids, 1)
