"""bench.compare_clusters prints the costs of a Hadoop job that only copies, and of two rounds."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cluster import daemons
from tests.support.engines import ROOT

pytestmark = pytest.mark.hadoop


def test_the_table_has_a_floor_and_what_travels() -> None:
    command = [sys.executable, "-m", "bench.compare_clusters", "--records=20000"]
    done = subprocess.run(
        [*command, "--without", "Spark", "one round"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env=daemons.environment(),
        text=True,
        check=True,
    )
    rows = [line.split("|")[2:-1] for line in done.stdout.splitlines() if "Hadoop" in line]
    floor, two = ([float(cell) for cell in row if "–" not in cell] for row in rows)
    seconds, ratio, shuffled, disk, _ = floor
    assert ratio == 1
    assert seconds > 0
    assert shuffled < 1  # packed
    assert disk >= shuffled  # what travels was written first
    assert two[2] < 0.8
    assert two[-1] == 1  # precision
