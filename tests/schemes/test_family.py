"""With every scheme, the job prints once each pair that shares a key and reaches the threshold.

As in test_schemes.py: α = 1e-9, and the seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.sets.ragged import Ragged, shared
from neardup.similarity.intervals import clopper_pearson
from tests.schemes.test_schemes import ALPHA, PAIRS
from tests.support.drawn import (
    every_scheme,
    foreign_counts,
    job,
    pairs_in,
    settings_of,
    shingle_sets,
)


def interval(scheme, pairs):
    """Return the confidence interval of the probability that a pair of this kind shares a key."""
    sets, left, right = pairs
    met = int(np.count_nonzero(shared(scheme.keys(sets), left, right).sizes))
    return clopper_pearson(met, PAIRS, ALPHA)


@pytest.mark.first_case
@pytest.mark.parametrize("flags", [flags.split() for flags in every_scheme()], ids=" ".join)
@settings(max_examples=15)
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
