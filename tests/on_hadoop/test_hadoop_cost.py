"""The cost table can be made anywhere; what it costs is for docs/benchmarks.md to say."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from cluster import daemons
from tests.support.engines import ROOT

pytestmark = pytest.mark.hadoop


def test_the_table_has_a_floor_and_what_travels() -> None:
    command = [sys.executable, "-m", "bench.compare_hadoop", "--records=20000", "--rounds=1"]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, env=daemons.environment(), text=True, check=True
    )
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if re.search(r"\d", line)]
    figures = {cells[0].strip(): [float(cell) for cell in cells[1:]] for cells in rows if cells}
    floor, one, two = figures.values()
    seconds, ratio, output, shuffled, _ = floor
    assert (ratio, output) == (1, 1)
    assert seconds > 0
    assert shuffled < 1  # packed
    assert one[2] > 2  # 15 lines for each record, each shorter than the record
    assert two[3] < 0.8 < one[3]
    assert done.stdout.count("precision 1.000000\n") == 2
