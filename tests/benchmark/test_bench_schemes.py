"""Benchmark table of schemes: a row has keys, compared pairs, recall and seconds."""

from __future__ import annotations

from bench.compare_schemes import cells
from bench.workloads import Workload

VIDEOS = Workload("data/videos.txt", "quick", "data/videos.txt", [], [])


def test_a_row_has_keys_compared_pairs_recall_and_seconds() -> None:
    keys, compared, recall, seconds = cells(VIDEOS, "minhash", 1)
    assert (keys, recall) == ("15", "1")
    assert 790 <= int(compared) < 2000
    assert 0 < float(seconds) < 100
    assert cells(VIDEOS, "imatch", 1)[2] != "1"
