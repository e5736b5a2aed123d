"""The threshold is a fraction, and every bound agrees with exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.similarity.measures import six_decimals
from neardup.similarity.threshold import MAX_DENOMINATOR, Threshold

HUNDREDTHS = [Fraction(k, 100) for k in range(1, 101)]
SIZES = np.arange(1, 201)


def of(t):
    return Threshold(t.numerator, t.denominator)


def test_reached_begins_exactly_at_the_threshold():
    for t in HUNDREDTHS:
        for union in range(1, 201):
            least = ceil(t * union)
            reached = of(t).reached(np.arange(union + 1), np.int64(union)).tolist()
            assert reached == [False] * least + [True] * (union + 1 - least)


def test_the_largest_partner_is_the_largest_set_that_could_reach_the_threshold():
    for t in HUNDREDTHS:
        assert of(t).largest_partner(SIZES).tolist() == [floor(n / t) for n in range(1, 201)]


def test_a_pair_just_inside_and_just_outside_a_billionth_is_told_apart():
    t = Threshold.parse("0.900000001")
    common = np.array([900_000_001, 900_000_000])
    assert t.reached(common, np.int64(10**9)).tolist() == [True, False]


def decimals(value):
    """As Python rounds a fraction: half to even."""
    return b"%d.%06d" % divmod(round(value * 10**6), 10**6)


@given(st.lists(st.tuples(st.integers(0, 3 * 10**7), st.integers(1, 3 * 10**7)), max_size=20))
def test_six_decimals_are_rounded_from_the_exact_fraction(pairs):
    pairs = [(min(pair), max(pair)) for pair in pairs]
    common, union = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
    assert six_decimals(common, union) == [decimals(Fraction(c, u)) for c, u in pairs]


def test_a_tie_goes_to_the_even_digit():
    odd = np.arange(1, 128, 2)  # k/128 = ….…5 in the seventh decimal
    fractions = [Fraction(k, 128) for k in odd.tolist()]
    assert all((f * 10**6 * 2).denominator == 1 != (f * 10**6).denominator for f in fractions)
    assert six_decimals(odd, np.int64(128) + 0 * odd) == [decimals(f) for f in fractions]


@pytest.mark.parametrize(
    ("text", "num", "den"),
    [
        ("0.9", 9, 10),
        ("9/10", 9, 10),
        ("1", 1, 1),
        (".5", 1, 2),
        ("0.900000001", 900_000_001, MAX_DENOMINATOR),
    ],
)
def test_a_threshold_is_read_exactly(text, num, den):
    t = Threshold.parse(text)
    assert (t.num, t.den) == (num, den)
    assert float(t) == num / den
    assert Fraction(str(t)) == Fraction(num, den)


@pytest.mark.parametrize(
    "text", ["", "x", "1/0", "nan", "inf", "0.9.1", "0,9", "1/2/3", "--1", "1e-3"]
)
def test_what_is_no_number_is_no_threshold(text):
    with pytest.raises(ValueError, match="is neither a decimal number nor a fraction"):
        Threshold.parse(text)


@pytest.mark.parametrize("text", ["0", "1.1", "-1", "-0.5", "1.000000001", "2/1"])
def test_a_threshold_lies_above_0_and_up_to_1(text):
    with pytest.raises(ValueError, match=f"^{text} is outside 0 < t <= 1$"):
        Threshold.parse(text)


def test_a_threshold_has_at_most_nine_decimals():
    with pytest.raises(ValueError, match=r"^0\.9000000001 has more than 9 decimals$"):
        Threshold.parse("0.9000000001")
