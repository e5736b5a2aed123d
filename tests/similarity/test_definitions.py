"""Similarities of sets have the values that counting gives."""

from fractions import Fraction
from itertools import combinations
from math import isclose

import pytest

from neardup.similarity.definitions import (
    containment,
    cosine,
    dice,
    overlap_coefficient,
    resemblance,
)
from tests.support.oracle import weighted_cosine

SETS = [frozenset(x) for size in range(1, 5) for x in combinations("abcd", size)]


@pytest.mark.parametrize("x", SETS)
def test_set_similarities_by_counting(x):
    for y in SETS:
        common = sum(element in y for element in x)
        assert resemblance(x, y) == Fraction(common, len(x) + len(y) - common)
        assert containment(x, y) == Fraction(common, len(x))
        assert dice(x, y) == Fraction(2 * common, len(x) + len(y))
        assert overlap_coefficient(x, y) == max(containment(x, y), containment(y, x))
        assert isclose(cosine(x, y) ** 2, containment(x, y) * containment(y, x))
        assert isclose(
            cosine(x, y), weighted_cosine(dict.fromkeys(x, 1), dict.fromkeys(y, 1)), abs_tol=0
        )


def test_repeats_do_not_count_and_containment_has_a_direction():
    assert resemblance("aab", "abb") == dice("aab", "abb") == 1
    assert containment("aa", "ab") == 1
    assert containment("ab", "aa") == Fraction(1, 2)


def test_what_divides_by_nothing_is_an_error():
    for similarity in (resemblance, dice, overlap_coefficient, cosine, containment):
        with pytest.raises(ZeroDivisionError):
            similarity([], [])
