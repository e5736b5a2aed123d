"""Weights are the same integers everywhere, and the measure that weighs tokens is exact."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.schemes.request import Request
from neardup.schemes.weighting import IDF, WEIGHTS, asked_idf
from neardup.sets.ragged import Ragged
from neardup.similarity.threshold import NINE_TENTHS, Threshold
from neardup.similarity.weights import Idf, WeightedCosine
from neardup.token_counts.counts import TokenCounts
from tests.support.drawn import COUNTS, shingle_sets

TOP = (1 << 64) - 1


def counts_of(records, frequencies):
    """Tokens 0, 1, 2 … with these frequencies."""
    return TokenCounts(
        np.array([1]),
        np.array([records]),
        np.arange(len(frequencies), dtype=np.uint64),
        np.array(frequencies),
    )


def tokens(*values):
    return np.array(values, dtype=np.uint64)


def weight(records, frequency):
    """8·log2(N / df), rounded: the largest w with (N / df)^16 ≥ 2^(2w - 1), in exact fractions."""
    power = Fraction(records, frequency) ** 16
    return max([w for w in range(1, 256) if power >= 2 ** (2 * w - 1)], default=1)


@given(st.integers(2, 10**12), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_a_weight_is_the_idf_in_eighths_of_a_bit(records, shares):
    frequencies = [max(1, int(records**share)) for share in shares]
    weights = Idf(counts_of(records, frequencies)).of(tokens(*range(len(shares))))
    assert weights.tolist() == [weight(records, frequency) for frequency in frequencies]
    floats = np.clip(8 * np.log2(records / np.array(frequencies)), 1, 255)
    assert (np.abs(weights - floats) <= 0.5 + 1e-9).all()


def test_no_weight_is_below_1_or_above_255():
    frequencies = [10**12, 10**12 - 1, 10**6, 2, 1]
    weights = Idf(counts_of(10**12, frequencies)).of(tokens(0, 1, 2, 3, 4, 99))
    assert weights.tolist() == [1, 1, 159, 255, 255, 255]
    assert Idf(TokenCounts.empty()).of(tokens(1, 2)).tolist() == [1, 1]


@given(st.lists(shingle_sets.filter(bool), min_size=1, max_size=6))
def test_weights_do_not_depend_on_the_batch(sets):
    rows = Ragged.from_rows([list(x) for x in sets])
    together = Idf(COUNTS).of(rows.values)
    for i, x in enumerate(sets):
        alone = Idf(COUNTS).of(tokens(*sorted(x)))
        assert together[rows.offsets[i] : rows.offsets[i + 1]].tolist() == alone.tolist()


def square(x):
    """Σ w² of its tokens."""
    return sum(int(w) ** 2 for w in Idf(COUNTS).of(tokens(*sorted(x))))


def millionths_of_root(square):
    """As Python rounds: half to even, but of a root, whose nearest rationals are tried."""
    floor = isqrt(square.numerator * 10**12 // square.denominator)
    middle = Fraction(2 * floor + 1, 2 * 10**6) ** 2
    return floor + (square > middle or (square == middle and floor % 2))


@given(st.lists(shingle_sets.filter(bool), min_size=2, max_size=6), st.sampled_from(["1/3", ".9"]))
def test_the_weighted_cosine_is_that_of_the_definition(sets, t):
    threshold = Threshold.parse(t)
    left, right = np.triu_indices(len(sets), 1)
    measure = WeightedCosine(threshold, Idf(COUNTS))
    found = measure.verified(Ragged.from_rows([list(x) for x in sets]), left, right)
    expected = []
    for i, j in zip(left.tolist(), right.tolist()):
        cosine2 = Fraction(square(sets[i] & sets[j]) ** 2, square(sets[i]) * square(sets[j]))
        if cosine2 >= Fraction(threshold.num, threshold.den) ** 2:
            expected.append((i, j, millionths_of_root(cosine2)))
    columns = found.left.tolist(), found.right.tolist(), found.part.tolist()
    assert list(zip(*columns)) == expected
    assert set(found.whole.tolist()) <= {10**6}


@pytest.mark.parametrize(("t", "reached"), [("0.6", [600_000]), ("0.600000001", [])])
def test_a_pair_exactly_at_the_threshold_is_one(t, reached):
    """Weights 3, 4 and 4: a cosine of 9 / √(25·9) = 3/5."""
    records = 256
    idf = Idf(counts_of(records, [196, 182, 182]))  # 3.08 and 3.94 eighths of a bit
    assert idf.of(tokens(0, 1, 2)).tolist() == [3, 4, 4]
    sets = Ragged.from_rows([[0, 1], [0]])
    measure = WeightedCosine(Threshold.parse(t), idf)
    found = measure.verified(sets, np.array([0]), np.array([1]))
    assert found.part.tolist() == reached


def test_a_weighted_cosine_that_is_a_tie_goes_to_the_even_digit():
    """All weights are 1: 125 of 128 tokens in common."""
    sets = Ragged.from_rows([range(128), range(3, 131)])
    measure = WeightedCosine(Threshold.parse("0.9"), Idf(counts_of(100, [100] * 131)))
    found = measure.verified(sets, np.array([0]), np.array([1]))
    assert found.part.tolist() == [976_562]


def test_weights_need_counts():
    with pytest.raises(ValueError, match="--counts"):
        asked_idf(Request(NINE_TENTHS, None, values={WEIGHTS.flag: IDF}))
    assert asked_idf(Request(NINE_TENTHS, None)) is None
