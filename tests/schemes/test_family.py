"""Super-shingles against their formula, and the job against the keys of every scheme.

The intervals are exact, as in test_schemes.py: α = 1e-9, and the seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.evaluation.intervals import clopper_pearson
from neardup.schemes import supershingle
from neardup.schemes.supershingle import SuperShingle
from neardup.sets.ragged import Ragged, shared
from tests.schemes.test_schemes import ALPHA, PAIRS, pairs_of_similarity
from tests.support.drawn import (
    every_scheme,
    foreign_counts,
    job,
    pairs_in,
    settings_of,
    shingle_sets,
)


def interval(scheme, pairs):
    """Of the probability that such a pair shares a key."""
    sets, left, right = pairs
    met = int(np.count_nonzero(shared(scheme.keys(sets), left, right).sizes))
    return clopper_pearson(met, PAIRS, ALPHA)


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


@pytest.mark.parametrize("flags", [flags.split() for flags in every_scheme()], ids=" ".join)
@settings(max_examples=30)
@given(st.lists(shingle_sets.filter(bool), max_size=5), st.lists(st.integers(0, 40), max_size=5))
def test_the_job_prints_once_each_pair_that_shares_a_key_and_reaches_the_threshold(
    flags, sets, dropped
):
    base = frozenset(range(30))
    sets = [base, *sets, *(base - {token} for token in dropped)]
    counts = foreign_counts(" ".join(flags))
    wanted = settings_of(*flags, counts=counts)
    rows = Ragged.from_rows([list(x) for x in sets])
    left, right = np.triu_indices(len(sets), 1)
    met = shared(wanted.scheme.keys(rows), left, right).sizes > 0
    found = wanted.measure.verified(rows, left[met], right[met])
    expected = [(b"%02d" % i, b"%02d" % j) for i, j in zip(found.left, found.right)]
    records = {b"%02d" % i: x for i, x in enumerate(sets)}
    assert pairs_in(job(records, *flags, counts=counts)) == expected
    copies = [i for i, token in enumerate(dropped, len(sets) - len(dropped)) if token >= 30]
    assert len(expected) >= len(copies)
