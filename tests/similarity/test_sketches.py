"""Sketches follow their definitions, and their estimates are right on average.

The averages are over thousands of disjoint pairs of one known resemblance, with fixed seeds.  The
exact statements behind the bounds, each of which fails in at most one of 10^9 draws (ALPHA):

* one place of a signature agrees or not: the hits are binomial, so Clopper-Pearson is exact;
* a sample of k hashes from a union without replacement holds a hypergeometric number of common
  ones, and Hoeffding's bound for k independent draws holds for those too (Hoeffding 1963, theorem
  4), also for the sum over many pairs.  For MOD_m it holds given the sizes of the unions.
"""

from fractions import Fraction
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.sets.ragged import Ragged, shared
from neardup.similarity.definitions import containment, resemblance
from neardup.similarity.intervals import clopper_pearson
from neardup.similarity.sketches import min_s, mod_m, sample_of_min_s, signatures
from neardup.tools.sketches.sketch_kinds import Multiples, Signatures
from tests.support.drawn import shingle_sets

ALPHA = 1e-9
PAIRS = 4000
LEFT = np.arange(0, 2 * PAIRS, 2)
RIGHT = LEFT + 1
some_sets = st.lists(shingle_sets, min_size=1, max_size=6)
SHAPES = [  # |x∩y|, |x - y|, |y - x|
    (67, 33, 33),
    (90, 5, 5),
    (20, 0, 180),  # contained, and ten times smaller
    (30, 100, 10),
]
every_shape = pytest.mark.parametrize("shape", SHAPES)


def pairs(shape: tuple[int, int, int]) -> tuple[Ragged, Fraction, Fraction]:
    """Return PAIRS pairs (2i, 2i+1) of a shape, their resemblance, and the first's containment."""
    common, left, right = shape
    x = np.arange(common + left)
    y = np.concatenate((x[:common], common + left + np.arange(right)))
    starts = np.arange(PAIRS)[:, np.newaxis] * (common + left + right)
    sizes = np.tile([len(x), len(y)], PAIRS)
    sets = Ragged.from_unsorted((starts + np.concatenate((x, y))).ravel().astype(np.uint64), sizes)
    return sets, resemblance(x.tolist(), y.tolist()), containment(x.tolist(), y.tolist())


def share(part, whole):
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def resemblance_of_min_s(sketches, s, left, right):
    return share(*sample_of_min_s(sketches, s, left, right)[:2])


def resemblance_of_mod_m(sketches, left, right, measure="jaccard"):
    return share(*Multiples("", 5).counted(sketches, left, right, measure)[:2])


def containment_of_mod_m(sketches, left, right):
    return resemblance_of_mod_m(sketches, left, right, "containment")


def agreement(made, left, right):
    kind = Signatures("", made.shape[1])
    part, _, _ = kind.counted(kind.rows(made), left, right, "jaccard")
    return part / made.shape[1]


def hoeffding(trials: int) -> float:
    """Return the largest likely deviation of a mean of `trials` draws in 0 … 1 (Hoeffding)."""
    return sqrt(log(2 / ALPHA) / (2 * trials))


@every_shape
@pytest.mark.parametrize("s", [1, 16, 64])
def test_min_s_estimates_resemblance(shape, s):
    sets, expected, _ = pairs(shape)
    estimates = resemblance_of_min_s(min_s(sets, s, seed=s), s, LEFT, RIGHT)
    assert abs(estimates.mean() - expected) <= hoeffding(PAIRS * s)


@every_shape
def test_the_bound_would_catch_a_missing_outer_min_s(shape):
    sets, expected, _ = pairs(shape)
    sketches = min_s(sets, 16, seed=16)
    common = shared(sketches, LEFT, RIGHT).sizes
    naive = common / (sketches.sizes[LEFT] + sketches.sizes[RIGHT] - common)
    assert abs(naive.mean() - expected) > 2 * hoeffding(PAIRS * 16)


@every_shape
def test_mod_m_estimates_resemblance_and_containment(shape):
    sets, expected, contained = pairs(shape)
    sketches = mod_m(sets, 5, seed=1)
    common = shared(sketches, LEFT, RIGHT).sizes
    for estimates, value, sizes in [
        (
            resemblance_of_mod_m(sketches, LEFT, RIGHT),
            expected,
            sketches.sizes[LEFT] + sketches.sizes[RIGHT] - common,
        ),
        (containment_of_mod_m(sketches, LEFT, RIGHT), contained, sketches.sizes[LEFT]),
    ]:
        known = sizes > 0
        assert np.isnan(estimates[~known]).all()
        estimates, sizes = estimates[known], sizes[known]
        assert abs(estimates.mean() - value) <= hoeffding(len(sizes))
        pooled = (estimates * sizes).sum() / sizes.sum()
        assert abs(pooled - value) <= hoeffding(sizes.sum())


@pytest.mark.slow
def test_m_divides_one_hash_in_m():
    sets, _, _ = pairs((90, 5, 5))
    everything = Ragged.from_unsorted(np.unique(sets.values), np.array([100 * PAIRS]))
    for m in (2, 5, 12):
        low, high = clopper_pearson(len(mod_m(everything, m).values), 100 * PAIRS, ALPHA)
        assert low <= 1 / m <= high
        assert not low <= 1 / (m + 1) <= high


@every_shape
def test_each_place_of_a_signature_agrees_with_the_probability_of_resemblance(shape):
    sets, expected, _ = pairs(shape)
    made = signatures(sets, 8, seed=3)
    for place in range(8):
        one = made[:, place : place + 1]
        hits = agreement(one, LEFT, RIGHT).sum()
        low, high = clopper_pearson(int(hits), PAIRS, ALPHA)
        assert low <= expected <= high


def test_the_places_of_a_signature_differ_in_what_they_say():
    """The places of a signature are independent: the variance of estimates is the binomial's."""
    sets, expected, _ = pairs((67, 33, 33))
    estimates = agreement(signatures(sets, 256, seed=9), LEFT, RIGHT)
    binomial = float(expected * (1 - expected)) / 256
    assert 0.8 * binomial < ((estimates - float(expected)) ** 2).mean() < 1.25 * binomial


@given(some_sets, st.integers(1, 6), st.integers(0, 3))
def test_min_s_are_the_smallest_of_all_hashes_and_mod_m_the_multiples(sets, number, seed):
    rows = Ragged.from_rows([list(x) for x in sets])
    hashes, smallest, multiples = (
        sketch(rows, parameter, seed)
        for sketch, parameter in [(min_s, 1000), (min_s, number), (mod_m, number)]
    )
    for i, x in enumerate(sets):
        row = hashes.row(i).tolist()
        assert len(row) == len(x)
        assert smallest.row(i).tolist() == sorted(row)[:number]
        assert multiples.row(i).tolist() == [h for h in sorted(row) if h % number == 0]


@given(some_sets, st.integers(1, 6))
def test_estimates_are_what_their_definitions_say(sets, number):
    rows = Ragged.from_rows([list(x) for x in sets])
    left, right = (index.ravel() for index in np.indices((len(sets), len(sets))))
    of_min, of_mod = (
        [set(sketch.row(i).tolist()) for i in range(len(sets))]
        for sketch in (min_s(rows, number), mod_m(rows, number))
    )
    outer = [
        of_min[i] | of_min[j]  # both sets as a whole
        if max(len(of_min[i]), len(of_min[j])) < number
        else set(sorted(of_min[i] | of_min[j])[:number])
        for i, j in zip(left, right)
    ]
    for estimates, parts in [
        (
            resemblance_of_min_s(min_s(rows, number), number, left, right),
            [(u & of_min[i] & of_min[j], u) for u, i, j in zip(outer, left, right)],
        ),
        (
            resemblance_of_mod_m(mod_m(rows, number), left, right),
            [(of_mod[i] & of_mod[j], of_mod[i] | of_mod[j]) for i, j in zip(left, right)],
        ),
        (
            containment_of_mod_m(mod_m(rows, number), left, right),
            [(of_mod[i] & of_mod[j], of_mod[i]) for i, j in zip(left, right)],
        ),
    ]:
        expected = [len(part) / len(whole) if whole else np.nan for part, whole in parts]
        np.testing.assert_array_equal(estimates, expected)


@given(st.lists(shingle_sets.filter(bool), min_size=1, max_size=6), st.integers(1, 4))
def test_a_sketch_does_not_depend_on_its_company(sets, number):
    together = Ragged.from_rows([list(x) for x in sets])
    for i, x in enumerate(sets):
        alone = Ragged.from_rows([list(x)])
        for sketch in (min_s, mod_m):
            assert sketch(alone, number).row(0).tolist() == sketch(together, number).row(i).tolist()
        assert (signatures(alone, number)[0] == signatures(together, number)[i]).all()


def test_another_seed_is_another_order():
    sets = Ragged.from_rows([list(range(50))])
    for sketch in (min_s, mod_m):
        made = {tuple(sketch(sets, 3, seed).row(0).tolist()) for seed in range(20)}
        assert len(made) == 20
    assert len({signatures(sets, 2, seed).tobytes() for seed in range(20)}) == 20


def test_pieces_give_what_the_whole_gives(monkeypatch):
    sets, _, _ = pairs((20, 10, 10))
    few = sets.take(np.arange(60))
    left, right = LEFT[:30], RIGHT[:30]

    def everything():
        return (
            resemblance_of_min_s(min_s(few, 8), 8, left, right).tolist(),
            agreement(signatures(few, 8), left, right).tolist(),
        )

    whole = everything()
    for name in (
        "similarity.sketches.PAIR_STEP",
        "sets.ragged.PAIR_STEP",
        "similarity.sketches.CACHE_TOKENS",
    ):
        monkeypatch.setattr(f"neardup.{name}", 50)
    assert everything() == whole


def test_no_pairs_have_no_estimates():
    sketches = min_s(Ragged.from_rows([[1]]), 2)
    none = np.empty(0, np.int64)
    for estimates in (
        resemblance_of_min_s(sketches, 2, none, none),
        resemblance_of_mod_m(sketches, none, none),
        agreement(np.zeros((1, 2), np.uint32), none, none),
    ):
        assert estimates.shape == (0,)
