"""Decisions on pairs in memory agree with the definition."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neardup.decisions.pair_list import RankedPair, clusters, removed

COUNT = 9
ranks = st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1))
pairs_of_ranks = st.dictionaries(
    ranks.filter(lambda pair: pair[0] > pair[1]), st.integers(1, 8).map(lambda k: k / 8)
).map(lambda found: [(*pair, similarity) for pair, similarity in found.items()])
anew = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)


def by_definition(pairs: list[RankedPair], old: int) -> dict[int, tuple[int, float]]:
    gone: dict[int, tuple[int, float]] = {}
    for rank in range(old, COUNT):
        near = [(-s, b >= old, b) for a, b, s in pairs if a == rank and b not in gone]
        best = min(near, key=lambda reason: (reason[1], reason[0], reason[2]), default=None)
        if best:
            gone[rank] = best[2], -best[0]
    return gone


@pytest.mark.slow
@given(pairs_of_ranks, st.integers(0, COUNT))
@anew
def test_removed(tmp_path: Path, pairs: list[RankedPair], old: int) -> None:
    found = {rank: (kept, s) for rank, kept, s in removed(pairs, old, tmp_path)}
    assert found == by_definition(pairs, old)


def test_an_example(tmp_path: Path) -> None:
    """Record 2, similar to 0 and 1, is removed; record 3 is similar only to 2, and is kept."""
    pairs = [(2, 0, 0.5), (2, 1, 0.75), (3, 2, 1.0)]
    assert list(removed(pairs, 0, tmp_path)) == [(2, 1, 0.75)]
    assert list(removed([], 0, tmp_path)) == []
    assert list(removed(pairs, 3, tmp_path)) == [(3, 2, 1.0)]
    assert list(clusters(pairs, tmp_path)) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert list(clusters([(8, 5, 0.1)], tmp_path)) == [(5, 5), (5, 8)]
