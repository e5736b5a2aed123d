"""The benchmark program detects wrong answers, and keeps the results it already has."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import bench.answer_quality
import bench.data.graded_pairs
import bench.measure
import bench.report.tables
import bench.run
import bench.workloads
from bench.answer_quality import quality
from bench.contestants import CONTESTANTS, OURS
from bench.run import add_earlier, save, turns
from bench.workloads import QUICK_WORKLOADS, WORKLOADS, Workload
from tests.support.bench_results import a_run, written
from tests.support.engines import a_file

pytestmark = pytest.mark.slow

TRUTH = b"a\tb\t1.000000\nb\tc\t0.950000\nx\ty\t0.900000\n"


# quality


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    path = a_file(tmp_path / "truth.tsv", TRUTH)
    return path


def judged(tmp_path: Path, truth: Path, prints: str, answer: bytes) -> bench.answer_quality.Quality:
    output = a_file(tmp_path / "answer.tsv", answer)
    return quality(prints, output, truth)


@pytest.mark.parametrize(
    ("answer", "lines", "right"),
    [
        (TRUTH, 3, 3),
        (b"a\tb\nx\ty\n", 2, 2),
        (b"a\tb\na\tc\n", 2, 1),
        (b"a\tb\na\tb\n", 2, 1),  # a line given twice is not right twice
        (b"a\tb\t1.000000\nb\tc\t0.960000\n", 2, 1),  # a wrong similarity is a wrong line
        (b"b\ta\t1.000000\n", 1, 0),
        (b"", 0, 0),
    ],
)
def test_pairs(tmp_path: Path, truth: Path, answer: bytes, lines: int, right: int) -> None:
    found = judged(tmp_path, truth, "pairs", answer)
    assert (found.lines, found.right, found.true) == (lines, right, 3)


def test_flags_are_judged_by_records(tmp_path: Path, truth: Path) -> None:
    found = judged(tmp_path, truth, "flags", b"a\nb\ny\nz\n")
    assert (found.lines, found.right, found.true) == (4, 3, 5)


def test_links_are_judged_by_what_they_connect(tmp_path: Path, truth: Path) -> None:
    assert judged(tmp_path, truth, "links", b"a\tc\t0.9\na\tb\t1.0\nx\ty\t1.0\n").connected
    assert judged(tmp_path, truth, "links", b"a\tb\t1.0\nx\ty\t1.0\n").connected is False
    assert judged(tmp_path, truth, "links", TRUTH + b"c\tx\t0.9\n").connected is False


def test_equal_sets_of_lines_have_equal_digests(tmp_path: Path, truth: Path) -> None:
    one, other, less = (
        judged(tmp_path, truth, "pairs", answer).digest
        for answer in (b"a\tb\nx\ty\n", b"x\ty\na\tb\n", b"a\tb\n")
    )
    assert one == other != less


def test_nothing_is_no_answer() -> None:
    assert quality("nothing", Path(os.devnull), None) == bench.answer_quality.Quality()


def test_the_curve_counts_by_similarity(tmp_path: Path, truth: Path) -> None:
    output = a_file(tmp_path / "answer.tsv", b"a\tb\t1.000000\n")
    met = quality("pairs", output, truth, curve=True).met
    assert met == {"0.900000": [0, 1], "0.950000": [0, 1], "1.000000": [1, 1]}


# run


@pytest.mark.parametrize("fault", ["missing", "wrong"])
def test_a_quick_run_fails_where_an_answer_is_wrong(
    fault: str,
    tmp_path: Path,
    truth: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture,
) -> None:
    """bench.run --quick returns 1 if a program's answer lacks a pair or has a wrong one."""
    answer = {"missing": b"", "wrong": TRUTH + b"a\ty\t0.900000\n"}[fault]
    records = truth.with_name("records.txt")
    records.write_bytes(b"a 1\n")
    for good, content in ((True, TRUTH), (False, answer)):
        truth.with_name("answer.tsv").write_bytes(content)
        assert quick_main(tmp_path, records, monkeypatch) == (0 if good else 1)
        said = capfd.readouterr().err
        assert ("missing" in said or "wrong" in said) is not good


def quick_main(tmp_path: Path, records: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the exit code of bench.run --quick on one program that prints answer.tsv."""
    workload = Workload("mine", "quick", str(records), [], [])
    (tmp_path / "records.pairs.tsv").write_bytes(TRUTH)
    command = ["cat", str(tmp_path / "answer.tsv")]
    contestant = CONTESTANTS[1]._replace(command=lambda _workload, _python: command)
    monkeypatch.setattr(bench.run, "QUICK_WORKLOADS", (workload,))
    monkeypatch.setattr(bench.run, "CONTESTANTS", [contestant])
    monkeypatch.setattr(bench.run, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench.run", "--quick"])
    return bench.run.main()


def test_rounds_go_in_turn_and_slow_ones_run_once() -> None:
    workloads = [workload for workload in WORKLOADS if workload.name in ("W1 100k", "W2")]
    results: dict = {"runs": []}
    order = []
    for workload, contestant, number in turns(2, workloads, CONTESTANTS[:3], results):
        order.append((number, workload.name, contestant.name))
        seconds = 61.0 if contestant.name == "plain pipe" else 1.0
        run = a_run(contestant.name, workload=workload.name, seconds=seconds)
        results["runs"].append(run)
    names = ["floor", OURS, "plain pipe"]
    first = [(1, workload, name) for workload in ("W1 100k", "W2") for name in names]
    assert order == first + [(2, w, name) for _, w, name in first if name != "plain pipe"]


def test_saved_results_and_what_is_added(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    save(path, written())
    here = [{"name": "rensa 15×7"}]
    new = {**written(), "contestants": here, "runs": [], "workloads": [], "skipped": ["W2: no apt"]}
    add_earlier(new, path, {("W1 100k", OURS)})
    earlier = {(run["workload"], run["contestant"]) for run in written()["runs"]}
    kept = {(run["workload"], run["contestant"]) for run in new["runs"]}
    assert earlier - kept == {("W1 100k", OURS)}
    assert kept
    assert [workload["name"] for workload in new["workloads"]] == ["W1 100k", "W1 1M"]
    assert new["skipped"] == ["W2: no apt"]  # and rensa is here now
    assert os.listdir(tmp_path) == ["results.json"]


def test_names_are_unique_and_kinds_known() -> None:
    for table in (WORKLOADS, QUICK_WORKLOADS, CONTESTANTS):
        names = [one.name for one in table]
        assert len(set(names)) == len(names)
    kinds = {workload.kind for workload in WORKLOADS + QUICK_WORKLOADS}
    assert kinds == {kind for one in CONTESTANTS for kind in one.kinds}


def test_curve_pairs_have_their_similarity() -> None:
    records = {line.split()[0]: set(line.split()[1:]) for line in bench.data.graded_pairs.lines()}
    answer = [line.split("\t") for line in bench.data.graded_pairs.answer()]
    assert (
        len(answer)
        == len(records) // 2
        == bench.data.graded_pairs.PAIRS * len(bench.data.graded_pairs.SHARED)
    )
    assert answer == sorted(answer)
    for a, b, similarity in answer[::97]:
        x, y = records[a], records[b]
        assert len(x & y) / len(x | y) == pytest.approx(float(similarity), abs=1e-9)
