"""Random projection has the recall of the angle's S-curve, for plain and weighted sets."""

import numpy as np
import pytest

from neardup.schemes.projection import Projection
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Cosine, Jaccard
from neardup.similarity.weighted_measures import WeightedCosine
from tests.schemes.test_schemes import PAIRS, interval, pairs_of_similarity
from tests.support.cases import crossed
from tests.support.drawn import COUNTS, settings_of

LEFT = np.arange(0, 2 * PAIRS, 2)


@pytest.mark.first_case
@crossed(ids=["consecutive", "a small universe", "random"], common=[50, 80, 90])
def test_pairs_meet_as_often_as_their_angle_says(common, ids):
    cosine = 2 * common / (100 + common)  # sets of equal size
    for bands, rows in [(4, 6), (20, 17)]:
        scheme = Projection(bands, rows, seed=common)
        low, high = interval(scheme, pairs_of_similarity(common, 100, ids))
        assert low <= scheme.recall(cosine) <= high


@pytest.mark.parametrize("rows", [5, 7])
def test_one_bit_too_many_or_too_few_would_show(rows):
    low, high = interval(Projection(4, 6), pairs_of_similarity(50, 100, "consecutive"))
    assert low <= Projection(4, 6).recall(2 / 3) <= high
    assert not low <= Projection(4, rows).recall(2 / 3) <= high


def rows_of_pairs(size, common):
    """Yield 2·PAIRS sets of this size; sets 2i and 2i+1 have `common` tokens in common."""
    rng = np.random.default_rng(size)
    for tokens in rng.integers(0, 1 << 63, (PAIRS, 2 * size - common)).tolist():
        yield tokens[:size]
        yield tokens[:common] + tokens[size:]


@pytest.mark.parametrize(("size", "common"), [(2, 1), (4, 3), (5, 4), (10, 9), (21, 19)])
def test_small_sets_meet_no_less_often_than_in_the_model(size, common):
    scheme = Projection(20, 17)
    pairs = Ragged.from_rows(list(rows_of_pairs(size, common))), LEFT, LEFT + 1
    assert interval(scheme, pairs)[1] >= scheme.recall(common / size)


def test_bands_of_more_bits_than_a_word():
    sets = Ragged.from_rows([[1, 2], [1, 2], [3]])
    keys = Projection(3, 100).keys(sets)
    assert keys.row(0).tolist() == keys.row(1).tolist() != keys.row(2).tolist()
    assert Projection(3, 100).keys(sets, 1, 3).row(2).tolist() == keys.row(2)[1:].tolist()


@pytest.mark.parametrize(
    ("flags", "cosine"),
    [
        ([], 0.9),
        (["--threshold=0.8"], 0.8),
        (["--measure=jaccard"], 1.8 / 1.9),
        (["--measure=dice"], 0.9),
    ],
)
def test_the_promise_is_for_the_cosine_that_the_measure_implies(flags, cosine):
    scheme = settings_of("--scheme=projection", *flags).scheme
    assert scheme.cosine == pytest.approx(cosine)
    assert 0.9999 <= scheme.recall(cosine) < 0.99999
    assert scheme.bands <= 128


def test_the_measure_weighs_when_the_scheme_does():
    assert type(settings_of("--scheme=projection").measure) is Cosine
    assert type(settings_of("--scheme=projection", "--measure=jaccard").measure) is Jaccard
    weighted = settings_of("--scheme=projection", "--weights=idf", counts=COUNTS)
    assert type(weighted.measure) is WeightedCosine
