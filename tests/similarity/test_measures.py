"""The threshold is a fraction, and every bound agrees with exact fractions."""

from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from math import ceil, floor, isqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.sets.ragged import Ragged
from neardup.similarity.measures import (
    MAX_DENOMINATOR,
    MEASURES,
    Threshold,
    millionths,
    six_decimals,
)

HUNDREDTHS = [Fraction(k, 100) for k in range(1, 101)]
SIZES = np.arange(1, 201)


def of(t):
    return Threshold(t.numerator, t.denominator)


@pytest.mark.slow
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
    """Return a fraction with six decimals, rounded half to even."""
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
    with pytest.raises(ValueError, match="is not a number such as"):
        Threshold.parse(text)


def cosine_decimals(dot, x, y):
    """Return dot / √(x·y) in millionths, rounded half to even from hundreds of digits."""
    with localcontext() as context:
        context.prec = 300
        value = Decimal(dot) / Decimal(x * y).sqrt()
        return int((value * 10**6).to_integral_value(ROUND_HALF_EVEN))


@given(
    st.lists(
        st.tuples(st.integers(1, 10**6), st.integers(1, 10**12), st.integers(1, 10**12)),
        max_size=20,
    )
)
@example([(125, 128, 128), (127, 128, 128), (1, 128, 128), (3, 128, 128), (1, 64, 256)])
@example([(10**6, 10**12, 10**12 - 1), (1, 2, 1)])
def test_a_cosine_is_rounded_from_the_exact_root(triples):
    dot, x, y = (np.array([t[k] for t in triples], dtype=np.int64) for k in range(3))
    part, whole = millionths(dot, x, y)
    assert part.tolist() == [cosine_decimals(*triple) for triple in triples]
    assert whole.tolist() == [10**6] * len(triples)


def test_a_cosine_that_is_a_tie_goes_to_the_even_digit():
    # d / √(128k² · 128m²) = d / 128km, which ends with …5 in the seventh decimal where km | d.
    ties = [(d * k * m, 128 * k * k, 128 * m * m) for d in range(1, 128, 2) for k in (1, 3)
            for m in (1, 7)]  # fmt: skip
    part, _ = millionths(*np.array(ties).T)
    expected = [round(Fraction(d, isqrt(x * y)) * 10**6) for d, x, y in ties]
    assert part.tolist() == expected == [cosine_decimals(*tie) for tie in ties]
    assert {e % 2 for e in expected} == {0}


def test_sets_of_one_size_have_one_cosine_dice_and_overlap():
    sets = Ragged.from_rows([range(128), *(range(k, 128 + k) for k in range(1, 128))])
    left, right = np.zeros(127, np.int64), np.arange(1, 128)
    texts = []
    for name in ("cosine", "dice", "overlap"):
        found = MEASURES[name](Threshold.parse("0.001")).verified(sets, left, right)
        texts.append(six_decimals(found.part, found.whole))
    assert texts[0] == texts[1] == texts[2]
    assert texts[0][2] == b"0.976562"  # 125/128
