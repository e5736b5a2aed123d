"""Sketches sent instead of sets give intervals with the promised coverage.

Coverage: of pairs of one known resemblance, the interval of confidence c misses it with probability
1 - c at most, so that many misses as are seen must not be a surprise (ALPHA) under that.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.sets.ragged import Ragged
from neardup.similarity.definitions import resemblance
from neardup.similarity.intervals import (
    CONFIDENCE,
    EstimatedJaccard,
    clopper_pearson,
    keys_of,
    sample_size,
    sampled,
    samples_of,
)
from neardup.similarity.measures import Threshold
from neardup.similarity.sketches import min_s
from tests.schemes.test_schemes import ALPHA, PAIRS, pairs_of_similarity
from tests.support.drawn import shingle_sets

LOWEST = Threshold(1, 10**9)
some_sets = st.lists(shingle_sets.filter(bool), min_size=1, max_size=6)


def no_keys(sets: Ragged) -> Ragged:
    return Ragged(np.empty(0, np.uint64), np.zeros(len(sets) + 1, np.int64))


@given(some_sets, st.integers(1, 12), st.lists(st.frozensets(st.integers(0, (1 << 52) - 1))))
def test_keys_and_samples_are_read_as_they_were_written(sets, size, keys):
    rows = Ragged.from_rows([list(x) for x in sets])
    given_keys = Ragged.from_rows([sorted(k) for k in (keys + [frozenset()] * 6)[: len(sets)]])
    travelling = sampled(rows, given_keys, size, seed=7)
    for i in range(len(sets)):
        row = travelling.row(i).tolist()
        assert row == sorted(set(row))
    for read, written in [
        (keys_of(travelling, size, 0, 1 << 52), given_keys),
        (samples_of(travelling), min_s(rows, size, seed=7)),
    ]:
        assert read.values.tolist() == written.values.tolist()
        assert read.offsets.tolist() == written.offsets.tolist()
    assert not len(keys_of(travelling, size + 1, 0, 1 << 52).values)  # another size, no keys


@given(some_sets)
def test_sets_that_travel_as_a_whole_have_one_number(sets):
    rows = Ragged.from_rows([list(x) for x in sets])
    travelling = sampled(rows, no_keys(rows), 16, seed=0)
    left, right = (index.ravel() for index in np.indices((len(sets), len(sets))))
    found = EstimatedJaccard(LOWEST, 16).verified(travelling, left, right)
    pairs = zip(found.left.tolist(), found.right.tolist(), found.part, found.whole)
    for i, j, low, high in pairs:
        assert low == high == round(resemblance(sets[i], sets[j]) * 10**6)
    expected = sum(bool(x & y) for x in sets for y in sets)
    assert len(found.left) == expected > 0


@pytest.mark.first_case
@pytest.mark.parametrize("common", [50, 80, 95])
def test_an_interval_misses_as_rarely_as_it_says(common):
    sets, left, right = pairs_of_similarity(common, 100, "random")
    travelling = sampled(sets, no_keys(sets), 32, seed=common)
    found = EstimatedJaccard(LOWEST, 32).verified(travelling, left, right)
    assert len(found.left) == PAIRS
    truth = common * 10**4
    missed = int(np.count_nonzero((found.part > truth) | (found.whole < truth)))
    assert clopper_pearson(missed, PAIRS, ALPHA)[0] <= 1 - CONFIDENCE
    quarter = (found.whole - found.part) // 4  # half as wide, it would miss too often
    missed = np.count_nonzero((found.part + quarter > truth) | (found.whole - quarter < truth))
    assert clopper_pearson(int(missed), PAIRS, ALPHA)[0] > 1 - CONFIDENCE


@pytest.mark.first_case
@pytest.mark.parametrize("common", [80, 90])
def test_pairs_are_those_whose_interval_reaches_the_threshold(common):
    sets, left, right = pairs_of_similarity(common, 100, "random")
    travelling = sampled(sets, no_keys(sets), 32, seed=1)
    every = EstimatedJaccard(LOWEST, 32).verified(travelling, left, right)
    found = EstimatedJaccard(Threshold(95, 100), 32).verified(travelling, left, right)
    good = every.whole >= 950_000
    assert 0 < good.sum() < PAIRS
    for column, mine in zip(every, found):
        assert column[good].tolist() == mine.tolist()


@pytest.mark.parametrize("text", ["", "sketch:", "sketch:15", "sketch:65537", "min:64", "sketch:x"])
def test_what_is_no_way_to_verify_is_refused(text):
    with pytest.raises(ValueError, match="neither exact nor sketch:S, with S from 16 to 65536"):
        sample_size(text)
