"""Banding keeps the promised recall with as few bands and as many rows as possible."""

from fractions import Fraction
from itertools import product

import pytest

from neardup.schemes.banding import MAX_ROWS, bands_needed, choose, recall

SIMILARITIES = [Fraction(k, 20) for k in range(10, 21)]
HAIR = Fraction(1, 10**12)


def exact_recall(s, bands, rows):
    return 1 - (1 - s**rows) ** bands


def test_the_s_curve_is_the_formula():
    for s, bands, rows in product(SIMILARITIES, (1, 2, 15, 100), (1, 2, 7, 10)):
        assert recall(float(s), bands, rows) == pytest.approx(
            float(exact_recall(s, bands, rows)), rel=1e-9
        )


def test_the_recall_of_very_different_records_is_tiny_and_not_zero():
    assert recall(1e-9, 2, 2) == pytest.approx(2e-18)


def test_the_needed_bands_suffice_and_one_fewer_does_not():
    for s, rows, promise in product(SIMILARITIES, (1, 2, 5, 8), ("0.5", "0.9", "0.9999", "0.1")):
        bands = bands_needed(float(s), rows, float(promise))
        assert exact_recall(s, bands, rows) >= Fraction(promise) - HAIR
        assert bands == 1 or exact_recall(s, bands - 1, rows) < Fraction(promise) + HAIR


def test_a_promise_that_is_met_exactly_is_met():
    assert exact_recall(Fraction("0.9"), 4, 1) == Fraction("0.9999")
    assert bands_needed(0.9, 1, 0.9999) == 4


def test_the_choice_for_the_defaults():
    assert choose(0.9, 0.9999, 16) == (15, 7)


def test_a_choice_keeps_the_promise_with_as_many_rows_as_fit():
    for t, promise, most in product([0.3, 0.5, 0.8, 0.9, 0.99], [0.9, 0.9999], [40, 100]):
        bands, rows = choose(t, promise, most)
        assert bands <= most
        assert recall(t, bands, rows) >= promise
        assert rows == MAX_ROWS or recall(t, most, rows + 1) < promise
