"""The statistical schemes of the table beside MinHash: each promise against its own formula.

The intervals are exact, as in test_schemes.py: α = 1e-9, and the seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest

from neardup.ragged import shared
from neardup.schemes import supershingle
from neardup.schemes.supershingle import SuperShingle
from tests.test_schemes import PAIRS, clopper_pearson, pairs_of_similarity


def interval(scheme, pairs):
    """Of the probability that such a pair shares a key."""
    sets, left, right = pairs
    met = int(np.count_nonzero(shared(scheme.keys(sets), left, right).sizes))
    return clopper_pearson(met, PAIRS)


@pytest.mark.parametrize("ids", ["consecutive", "a small universe", "random"])
@pytest.mark.parametrize("common", [80, 90, 96])
def test_two_of_six_super_shingles_agree_as_often_as_the_binomial_says(common, ids):
    scheme = SuperShingle(seed=common)
    low, high = interval(scheme, pairs_of_similarity(common, 100, ids))
    assert low <= scheme.recall(common / 100) <= high


@pytest.mark.parametrize("minima", [13, 15])
def test_one_minimum_too_many_or_too_few_would_show(minima, monkeypatch):
    low, high = interval(SuperShingle(), pairs_of_similarity(90, 100, "consecutive"))
    assert low <= SuperShingle().recall(0.9) <= high
    monkeypatch.setattr(supershingle, "MINIMA", minima)
    assert not low <= SuperShingle().recall(0.9) <= high


def test_a_mega_shingle_needs_both_of_its_super_shingles():
    """A pair shares 0, 1, 3, 6, 10 or 15 keys: as many as there are pairs of equal ones."""
    sets, left, right = pairs_of_similarity(90, 100, "random")
    counts = np.unique(shared(SuperShingle().keys(sets), left, right).sizes)
    assert {0, 1, 3} <= set(counts.tolist()) <= {0, 1, 3, 6, 10, 15}
    assert SuperShingle().recall(0) == 0
    assert SuperShingle().recall(1) == 1
