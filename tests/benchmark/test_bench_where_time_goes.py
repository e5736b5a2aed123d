"""Seconds are attributed to the project file that spent them, and none are lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.measure import ROOT
from bench.where_time_goes import PACKAGE, own_times

pytestmark = pytest.mark.slow

PARSE, JOIN = ((f"{PACKAGE}{name}", 1, "f") for name in ("reading/a.py", "verification/b.py"))
SPANS = (f"{PACKAGE}sets/runs.py", 1, "spans")
SORT = ("~", 0, "sort")


def called(seconds: float, **by: tuple[tuple[str, int, str], float]) -> tuple:
    """Return a function's entry in pstats: its own seconds, and each caller's share of them."""
    callers = {caller: (1, 1, share, share) for caller, share in by.values()}
    return (1, 1, seconds, seconds, callers)


def test_a_tool_is_charged_to_those_who_call_it() -> None:
    stats = {
        PARSE: called(1.0),
        JOIN: called(2.0, a=(PARSE, 2.0)),
        SPANS: called(0.5, a=(PARSE, 0.5)),
        SORT: called(4.0, a=(SPANS, 3.0), b=(JOIN, 1.0)),
    }
    times = own_times(stats)
    assert times == pytest.approx({"reading/a.py": 4.5, "verification/b.py": 3.0})


def test_a_run_is_told_file_by_file_and_prints_no_pairs() -> None:
    command = [sys.executable, "-m", "bench.where_time_goes", "--jobs", "2", "data/videos.txt"]
    lines = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.decode()
    rows = [line.split(" | ") for line in lines.splitlines()[2:]]
    files = [row[2].rstrip(" |") for row in rows[:-1]]
    assert any(file.startswith("stages/") for file in files)
    assert all((ROOT / "neardup" / file).exists() for file in files if file != "other")
    assert float(rows[-1][0].strip("| ")) > 0
