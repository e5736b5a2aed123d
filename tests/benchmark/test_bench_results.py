"""Benchmark results: faults are reported as problems, and the report's tables are correct."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.checks import problems
from bench.measure import ROOT
from bench.report.tables import tables
from tests.support.bench_results import a_run, written

# checks


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
        ({"digest": "another"}, "contestants print different pairs"),
        ({"shuffled": 1001}, "shuffles 1.00 bytes for a byte of input, limit 1.0"),
        ({"shuffled": None}, "does not report how many bytes"),
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


# report


def test_the_table_of_targets() -> None:
    lines = tables(written()).splitlines()
    ours = "run_local.sh / fastest peer that gives pairs, our banding, W1 100k"
    for row in (
        "| run_local.sh / rensa 15×7 (flags only), W1 100k | ≤ 0.9 | not measured | – |",
        f"| {ours} | ≤ 0.8 | 0.80 (gaoya 15×7) | yes |",
        "| run_local.sh / fastest flags or unverified pairs, W4 | ≤ 1 | not measured | – |",
        "| plain pipe / run_local.sh, W1 100k | ≤ 3 | 4.50 | **no** |",
        "| --exact / default, W1 100k | ≤ 1.2 | 1.10 | yes |",
        "| ten lines, in seconds | ≤ 0.15 | not measured | – |",
        "| growth: W1 1M / W1 100k | ≤ 10.5 | 11.00 | **no** |",
        "| largest process at W1 1M, in MB | ≤ 100 | 419.43 | **no** |",
        "| shuffled / input, W1 100k | ≤ 2 | 0.50 | yes |",
        "| recall, W1 100k | ≥ 0.9999 | 1 | yes |",
        "| recall, W1 1M | ≥ 0.9999 | 0.999500 | **no** |",
        "| precision, W1 1M | = 1 | 1 | yes |",
        "| recall, W2 | ≥ 0.9999 | not measured | – |",
    ):
        assert row in lines


def test_the_report_is_written(tmp_path: Path) -> None:
    results, document = tmp_path / "results.json", tmp_path / "one-machine.md"
    results.write_text(json.dumps(written()))
    options = ["--results", results, "--into", document, "--plots", tmp_path / "docs"]
    command = [sys.executable, "-m", "bench.report.tables", *map(str, options)]
    subprocess.run(command, cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    text = document.read_text()
    assert text.startswith("# On one machine\n")
    assert "| run_local.sh | 15×7 | 3 | 2.00 |" in text
