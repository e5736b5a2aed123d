"""The benchmark program: it measures what it says, and it tells a wrong answer from a right one."""

from __future__ import annotations

import doctest
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

import bench.answer_quality
import bench.data.graded_pairs
import bench.measure
import bench.report.tables
import bench.run
import bench.workloads
from bench.answer_quality import components, quality
from bench.checks import problems
from bench.contestants import CONTESTANTS, OURS, missing
from bench.measure import DONE, ROOT, TIME_LIMIT, measured, measured_apart
from bench.report.tables import DOCUMENT, between_markers, tables
from bench.run import add_earlier, save, turns
from bench.workloads import QUICK_WORKLOADS, WORKLOADS, CannotMakeError, Workload, prepare

MIB = 1 << 20
TRUTH = b"a\tb\t1.000000\nb\tc\t0.950000\nx\ty\t0.900000\n"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def shell(script: str) -> list[str]:
    return ["bash", "-c", script]


def eventually_gone(pid: int) -> bool:
    """Does the process end within five seconds?  A zombie has ended."""
    for _ in range(100):
        status = Path(f"/proc/{pid}/stat")
        try:
            if status.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


# measure


def test_output_seconds_and_end(tmp_path: Path) -> None:
    output = tmp_path / "out"
    run = measured(shell("sleep 0.2; echo pairs; echo noise >&2; echo last words >&2"), output, 9)
    assert (run.status, run.said) == (DONE, "last words")
    assert 0.2 <= run.seconds < 5
    assert output.read_bytes() == b"pairs\n"


def test_cpu_seconds_are_those_of_children_too(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    run = measured(python(code), tmp_path / "out", 20)
    assert run.status == DONE
    assert 0.3 <= run.cpu < 5


def test_memory_is_that_of_the_largest_process(tmp_path: Path) -> None:
    child = f"x = bytearray({100 * MIB})"
    start = f"subprocess.run([sys.executable, '-c', {child!r}])"
    two = python(f"import subprocess, sys\nfor _ in range(2): {start}")
    run = measured_apart(two, str(tmp_path / "out"), 20)
    assert 100 <= run.mebibytes < 150


def test_memory_is_not_that_of_the_benchmark(tmp_path: Path) -> None:
    ballast = bytearray(200 * MIB)
    run = measured_apart(["true"], str(tmp_path / "out"), 20)
    assert len(ballast) == 200 * MIB
    assert run.status == DONE
    assert 0 < run.mebibytes < 60


def test_a_failure_and_its_last_words(tmp_path: Path) -> None:
    run = measured(shell("echo no memory >&2; exit 3"), tmp_path / "out", 9)
    assert (run.status, run.said) == ("failed with 3", "no memory")


def test_a_killed_process(tmp_path: Path) -> None:
    run = measured(shell("kill -KILL $$"), tmp_path / "out", 9)
    assert run.status == "killed by SIGKILL"


def test_a_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    output = tmp_path / "out"
    started = time.monotonic()
    run = measured(shell("sleep 60 & echo $!; wait"), output, 0.3)
    assert run.status == TIME_LIMIT
    assert 0.3 <= run.seconds < 10
    assert time.monotonic() - started < 10
    assert eventually_gone(int(output.read_text()))


def test_what_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.measure, "GRACE", 0.3)
    run = measured(shell("trap '' TERM; while :; do sleep 0.1; done"), tmp_path / "out", 0.2)
    assert run.status == TIME_LIMIT
    assert run.seconds < 10


def test_what_is_left_behind_is_ended(tmp_path: Path) -> None:
    output = tmp_path / "out"
    assert measured(shell("sleep 60 & echo $!"), output, 9).status == DONE
    assert eventually_gone(int(output.read_text()))


def test_temporary_files_go_away(tmp_path: Path) -> None:
    output = tmp_path / "out"
    measured(shell('touch "$TMPDIR/file"; echo "$TMPDIR"'), output, 9)
    folder = Path(output.read_text().strip())
    assert folder.name.startswith("bench.")
    assert not folder.exists()


def test_what_is_not_there_does_not_start(tmp_path: Path) -> None:
    run = measured_apart(["no-such-program"], str(tmp_path / "out"), 9)
    assert run.status == bench.measure.NOT_STARTED


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_benchmark_ends_the_command(number: signal.Signals, tmp_path: Path) -> None:
    output = tmp_path / "out"
    command = [sys.executable, "-m", "bench.measure", "--output", str(output), "--", "bash", "-c"]
    script = "trap 'sleep 0.2; exit' TERM; echo $$; while :; do sleep 0.05; done"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([*command, script], cwd=ROOT, env=environment) as helper:
        while not (output.exists() and output.read_text().endswith("\n")):
            time.sleep(0.02)
        helper.send_signal(number)
        time.sleep(0.1)
        helper.send_signal(signal.SIGTERM)  # once more, while it tidies up
        assert helper.wait(20) == 128 + number
    assert eventually_gone(int(output.read_text()))
    assert os.listdir(tmp_path) == ["out"]


# quality


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    path = tmp_path / "truth.tsv"
    path.write_bytes(TRUTH)
    return path


def judged(tmp_path: Path, truth: Path, prints: str, answer: bytes) -> bench.answer_quality.Quality:
    output = tmp_path / "answer.tsv"
    output.write_bytes(answer)
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


def test_components_of_a_long_chain() -> None:
    chain = [b"%05d\t%05d" % (i, i + 1) for i in range(20_000)]
    assert set(components(reversed(chain)).values()) == {b"00000"}


def test_equal_sets_of_lines_have_equal_digests(tmp_path: Path, truth: Path) -> None:
    one, other, less = (
        judged(tmp_path, truth, "pairs", answer).digest
        for answer in (b"a\tb\nx\ty\n", b"x\ty\na\tb\n", b"a\tb\n")
    )
    assert one == other != less


def test_nothing_is_no_answer() -> None:
    assert quality("nothing", Path(os.devnull), None) == bench.answer_quality.Quality()


def test_the_curve_counts_by_similarity(tmp_path: Path, truth: Path) -> None:
    output = tmp_path / "answer.tsv"
    output.write_bytes(b"a\tb\t1.000000\n")
    met = quality("pairs", output, truth, curve=True).met
    assert met == {"0.900000": [0, 1], "0.950000": [0, 1], "1.000000": [1, 1]}


# checks


def a_run(contestant: str = OURS, **changed: object) -> dict:
    return {
        "workload": "W1 20k",
        "contestant": contestant,
        "command": "",
        "round": 1,
        "seconds": 2.0,
        "cpu": 3.0,
        "mebibytes": 100.0,
        "status": DONE,
        "said": "",
        "shuffled": 500,
        "prints": "pairs",
        "lines": 2000,
        "right": 2000,
        "true": 2000,
        "digest": "same",
        "connected": None,
        "met": {},
        **changed,
    }


def quick(*runs: dict) -> dict:
    return {"workloads": [{"name": "W1 20k", "bytes": 1000}], "runs": list(runs)}


def test_good_answers_are_no_problem() -> None:
    two_missed = {"lines": 1998, "right": 1998}
    links = a_run("pipe", prints="links", right=None, true=None, digest="other", connected=True)
    floor = a_run("floor", prints="nothing", lines=None, right=None, true=None, digest="")
    assert problems(quick(a_run(), a_run("pipe"), links, floor)) == []
    assert problems(quick(a_run(**two_missed), a_run("pipe", shuffled=9000, **two_missed))) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lines": 1997, "right": 1997}, "3 of 2000 pairs are missing"),
        ({"lines": 2001}, "1 of 2001 lines are wrong"),
        ({"lines": 0, "right": 0, "true": 0}, "0 of 0 pairs are missing"),
        ({"digest": "another"}, "not all print the same pairs"),
        ({"shuffled": 1001}, "shuffles 1.00 bytes for a byte of input, at most 1.0"),
        ({"shuffled": None}, "does not say how many bytes"),
        ({"status": "failed with 1", "said": "oh"}, "failed with 1: oh"),
        ({"prints": "links", "connected": False}, "links do not connect"),
        ({"prints": "clusters", "connected": False}, "clusters do not connect"),
        ({"prints": "removed", "right": 1999}, "1999 of 2000 removed records have a verified pair"),
    ],
)
def test_each_fault_is_a_problem(changed: dict, message: str) -> None:
    found = problems(quick(a_run(**changed), a_run("pipe")))
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize("fault", ["missing", "wrong"])
def test_a_quick_run_fails_where_an_answer_is_wrong(
    fault: str,
    tmp_path: Path,
    truth: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture,
) -> None:
    """The whole way: prepared workload, run, quality, checks, exit code."""
    answer = {"missing": b"", "wrong": TRUTH + b"a\ty\t0.900000\n"}[fault]
    records = truth.with_name("records.txt")
    records.write_bytes(b"a 1\n")
    for good, content in ((True, TRUTH), (False, answer)):
        truth.with_name("answer.tsv").write_bytes(content)
        assert quick_main(tmp_path, records, monkeypatch) == (0 if good else 1)
        said = capfd.readouterr().err
        assert ("missing" in said or "wrong" in said) is not good


def quick_main(tmp_path: Path, records: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """bench.run --quick with one workload, and a contestant that prints answer.tsv."""
    workload = Workload("mine", "quick", str(records), [], [])
    (tmp_path / "records.pairs.tsv").write_bytes(TRUTH)
    command = ["cat", str(tmp_path / "answer.tsv")]
    contestant = CONTESTANTS[1]._replace(command=lambda _workload, _python: command)
    monkeypatch.setattr(bench.run, "QUICK_WORKLOADS", (workload,))
    monkeypatch.setattr(bench.run, "CONTESTANTS", [contestant])
    monkeypatch.setattr(bench.run, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench.run", "--quick"])
    return bench.run.main()


# run


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


def test_added_results_stand_in_the_order_of_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    save(path, {**written(), "workloads": [{"name": "W1 1M"}, {"name": "W2"}]})
    new = {**written(), "workloads": [{"name": "W4"}, {"name": "W1 100k"}]}
    add_earlier(new, path, {("W4", OURS)})
    assert [one["name"] for one in new["workloads"]] == ["W1 100k", "W2", "W4", "W1 1M"]


def test_a_workload_that_cannot_be_made(tmp_path: Path) -> None:
    workload = Workload("none", "all", str(tmp_path / "none.txt"), ["bench.nonsense"], [])
    with pytest.raises(CannotMakeError, match=r"bench\.nonsense"):
        prepare(workload)
    assert os.listdir(tmp_path) == []


def test_missing_modules_are_told() -> None:
    absent = CONTESTANTS[1]._replace(name="absent", module="no_such_module")
    no_program = CONTESTANTS[1]._replace(name="no program", program="no-such-program")
    here = CONTESTANTS[1]._replace(name="here", module="json", program="sh")
    found = missing(sys.executable, [absent, no_program, here])
    assert found == {"absent": "no_such_module", "no program": "no-such-program"}


def test_names_are_unique_and_kinds_known() -> None:
    for table in (WORKLOADS, QUICK_WORKLOADS, CONTESTANTS):
        names = [one.name for one in table]
        assert len(set(names)) == len(names)
    kinds = {workload.kind for workload in WORKLOADS + QUICK_WORKLOADS}
    assert kinds == {kind for one in CONTESTANTS for kind in one.kinds}


def test_a_long_record_comes_last() -> None:
    command = [sys.executable, "-m", "neardup", "videos", "--records", "3", "--long", "5"]
    lines = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    assert lines.splitlines()[-1] == b"VIDEO_000000004 0 1 2 3 4"
    assert lines.count(b"\n") == 4


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


# report


def written() -> dict:
    """Results as bench.run writes them, by hand."""
    contestants = [
        ("floor", "nothing", "–", False),
        (OURS, "pairs", "15×7", False),
        ("gaoya 15×7", "pairs", "15×7", True),
        ("spark 4 tables", "pairs", "4 tables", True),
        ("course 15×7", "pairs", "15×7", True),
    ]
    none = {"lines": None, "right": None, "true": None, "shuffled": None}
    w1 = {"workload": "W1 100k"}
    failed = {**w1, **none, "prints": "pairs"}
    return {
        "date": "2026-11-21",
        "command": "python3 -m bench.run",
        "rounds": 3,
        "limit": 300.0,
        "machine": {"processor": "Z80", "cores": 2, "memory_gib": 24, "system": "Debian"},
        "versions": {"Python": "3.11.7", "gaoya": "0.2.2"},
        "workloads": [
            {
                "name": name,
                "kind": "all",
                "command": "python3 -m neardup videos",
                "options": [],
                "bytes": 1000,
                "records": records,
            }
            for name, records in (("W1 100k", 100_000), ("W1 1M", 1_000_000))
        ],
        "contestants": [
            {"name": name, "tool": name.split()[0], "banding": banding, "prints": p, "peer": peer}
            for name, p, banding, peer in contestants
        ],
        "skipped": ["rensa 15×7: no rensa here"],
        "runs": [
            a_run("floor", **{**w1, **none}, prints="nothing", seconds=0.5),
            *(a_run(**w1, seconds=s) for s in (2.0, 9.0, 1.0)),
            a_run("gaoya 15×7", **w1, seconds=2.5, lines=1990, right=1950, shuffled=None),
            a_run("spark 4 tables", **failed, seconds=300.1, status=TIME_LIMIT),
            a_run("course 15×7", **failed, status="killed by SIGKILL"),
            a_run(workload="W1 1M", seconds=22.0, lines=1999, right=1999, mebibytes=400.0),
        ],
    }


def test_the_table_of_a_workload() -> None:
    lines = tables(written()).splitlines()
    assert "### W1 100k: 100,000 records, 0.0 MiB (`python3 -m neardup videos`)" in lines
    for row in (
        "| floor | – | 1 | 0.50 | 0.25 | 3.00 | 100 | – | – | – | – |",
        "| run_local.sh | 15×7 | 3 | 2.00 | 1.00 | 3.00 | 100 | 0.50 | 2,000 | 1 | 1 |",
        "| gaoya | 15×7 | 1 | 2.50 | 1.25 | 3.00 | 100 | – | 1,990 | 0.975000 | 0.979899 |",
        "| spark | 4 tables | 1 | > 300 | – | – | 100 | – | – | – | – |",
        "| course | 15×7 | 1 | does not survive: killed by SIGKILL | – | – | – | – | – | – | – |",
        "* rensa 15×7: no rensa here",
    ):
        assert row in lines


def test_the_table_of_targets() -> None:
    lines = tables(written()).splitlines()
    ours = "run_local.sh / fastest other peer with our banding, W1 100k"
    peak = "largest process at W1 1M, a sort with its buffer included, in MB"
    for row in (
        "| run_local.sh / gaoya 15×7, W1 100k | ≤ 1 | 0.80 | yes |",
        "| run_local.sh / rensa 15×7 (flags only), W1 100k | ≤ 2 | not measured | – |",
        f"| {ours} | < 1 | 0.80 (gaoya 15×7) | yes |",
        "| growth: W1 1M / W1 100k | ≤ 10.5 | 11.00 | **no** |",
        f"| {peak} | ≤ 400 | 419.43 | **no** |",
        "| shuffled / input, W1 100k | ≤ 2 | 0.50 | yes |",
        "| recall, W1 100k | ≥ 0.9999 | 1 | yes |",
        "| recall, W1 1M | ≥ 0.9999 | 0.999500 | **no** |",
        "| precision, W1 1M | = 1 | 1 | yes |",
        "| recall, W2 | ≥ 0.9999 | not measured | – |",
    ):
        assert row in lines


def test_text_around_the_markers_stays() -> None:
    document = "before\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nafter\n"
    once = between_markers(document, "new")
    assert once == "before\n<!-- bench:begin -->\n\nnew\n\n<!-- bench:end -->\nafter\n"
    assert between_markers(once, "new") == once
    with pytest.raises(SystemExit, match="lacks the lines"):
        between_markers("no markers", "new")


def test_the_report_goes_into_the_document(tmp_path: Path) -> None:
    results, document = tmp_path / "results.json", tmp_path / "benchmarks.md"
    results.write_text(json.dumps(written()))
    document.write_text("before\n<!-- bench:begin -->\n<!-- bench:end -->\nafter\n")
    options = ["--results", results, "--into", document, "--plots", tmp_path / "docs"]
    command = [sys.executable, "-m", "bench.report.tables", *map(str, options)]
    subprocess.run(command, cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| run_local.sh | 15×7 | 3 | 2.00 |" in text


def test_the_project_has_the_markers() -> None:
    document = DOCUMENT.read_text()
    assert "## On a cluster" in between_markers(document, "new")


@pytest.mark.parametrize(
    "module",
    [
        bench.data.graded_pairs,
        bench.measure,
        bench.answer_quality,
        bench.report.tables,
        bench.run,
        bench.workloads,
    ],
)
def test_examples(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)
