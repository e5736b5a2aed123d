"""The areas of false negatives and false positives equal the exact integrals."""

from __future__ import annotations

from fractions import Fraction
from math import acos, comb, pi, sqrt

import pytest

from neardup.schemes.banding import recall
from neardup.similarity.measures import Threshold
from neardup.tools.judge.curve import Areas, areas, integral, shown_area
from tests.support.drawn import settings_of

CURVES = [(1, 1), (1, 5), (2, 1), (3, 4), (5, 3), (15, 7), (16, 16), (32, 32), (128, 2), (60, 40)]


def below(b: int, r: int, t: Fraction) -> Fraction:
    """Return ∫ 1 - (1 - s^r)^b ds from 0 to t, by the binomial theorem."""
    terms = (comb(b, k) * (-1) ** (k + 1) * t ** (r * k + 1) / (r * k + 1) for k in range(1, b + 1))
    return sum(terms, Fraction(0))


@pytest.mark.parametrize(("b", "r"), CURVES)
def test_the_areas_of_bandings(b: int, r: int) -> None:
    for tenths in (1, 5, 8, 9):
        t = Fraction(tenths, 10)
        found = areas(lambda s: recall(s, b, r), tenths / 10)
        false_positives = below(b, r, t)
        false_negatives = (1 - t) - (below(b, r, Fraction(1)) - false_positives)
        assert abs(Fraction(found.false_positives) - false_positives) < 1e-14
        assert abs(Fraction(found.false_negatives) - false_negatives) < 1e-14


def test_a_curve_with_rows_by_the_hundred_is_not_stepped_over() -> None:
    """A curve that rises only between 0.95 and 1 is integrated exactly."""
    t = Fraction(99, 100)
    found = areas(lambda s: recall(s, 30, 250), 0.99)
    assert abs(Fraction(found.false_positives) - below(30, 250, t)) < 1e-14
    assert 0.004 < found.false_positives < 0.03


def test_an_endless_slope_at_the_end() -> None:
    """The areas of 1 - arccos(s)/π are exact, although the slope at 1 is infinite."""
    found = areas(lambda s: 1 - acos(min(s, 1)) / pi, 0.5)
    at_half, at_one, at_0 = (s - (s * acos(s) - sqrt(1 - s * s)) / pi for s in (0.5, 1, 0))
    assert found.false_positives == pytest.approx(at_half - at_0, abs=1e-13)
    assert found.false_negatives == pytest.approx(0.5 - (at_one - at_half), abs=1e-13)


def test_a_jump_at_the_threshold_belongs_to_both_sides() -> None:
    """`auto` has no false positives, and the same area of false negatives as MinHash."""
    scheme = settings_of("--scheme=auto", "--threshold=0.83", "--max-bands=32").scheme
    found = areas(scheme.recall, float(Threshold.parse("0.83")))
    minhash = areas(scheme.minhash.recall, 0.83)  # type: ignore[attr-defined]
    assert found == Areas(minhash.false_negatives, 0)
    assert found.false_negatives > 0


def test_nothing_between_equal_ends() -> None:
    assert integral(lambda s: s, 1, 1) == 0
    assert areas(lambda s: 1.0, 1) == (0, 1)


@pytest.mark.parametrize(
    ("area", "text"),
    [
        (0.25, "0.25"),
        (0.25000000000000006, "0.25"),
        (0.2501, "0.251"),
        (0.5, "0.5"),
        (0.99999, "1.00"),
        (1.001e-5, "0.0000101"),
        (1.2345e-9, "1.24e-9"),
        (0, "below 1e-12"),
    ],
)
def test_an_area_is_shown_rounded_up(area: float, text: str) -> None:
    assert shown_area(area) == text
