"""The table of schemes: what it says of a run."""

from __future__ import annotations

from bench.compare_schemes import cell
from bench.workloads import Workload

VIDEOS = Workload("data/videos.txt", "quick", "data/videos.txt", [], [])


def test_a_cell_has_keys_compared_pairs_recall_and_seconds() -> None:
    keys, compared, recall, seconds = cell(VIDEOS, "minhash", 1).rsplit(", ", 3)
    assert (keys, recall) == ("15", "1")
    assert 790 <= int(compared) < 2000
    assert 0 < float(seconds) < 100
    assert cell(VIDEOS, "imatch", 1).split(", ")[2] != "1"
