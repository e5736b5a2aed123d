"""Similarities have the expected values; Jaccard, Hamming and angular distances are metrics."""

from fractions import Fraction
from itertools import combinations, product
from math import acos, isclose, pi

import pytest

from neardup.similarity.definitions import (
    containment,
    cosine,
    dice,
    overlap_coefficient,
    resemblance,
)
from tests.support.oracle import angular_distance, weighted_cosine

ROUNDING = 1e-12
SETS = [frozenset(x) for size in range(1, 5) for x in combinations("abcd", size)]
VECTORS = list(product([-2, 0, 1, 5], repeat=2))
POINTS = [dict(zip("ab", v)) for v in VECTORS if any(v)]


def jaccard_distance(x, y):
    return 1 - resemblance(x, y)


def is_a_metric(distance, items, same=lambda x, y: x == y, rounding=0):
    """Return whether a distance is a metric on the items, by trying all pairs and triples."""
    d = {(x, y): distance(items[x], items[y]) for x, y in product(range(len(items)), repeat=2)}
    zero = all(
        d[x, y] >= 0 and (d[x, y] <= rounding) == same(items[x], items[y])
        for x, y in product(range(len(items)), repeat=2)
    )
    symmetric = all(d[x, y] == d[y, x] for x, y in d)
    triangle = all(
        d[x, z] <= d[x, y] + d[y, z] + rounding for (x, y), z in product(d, range(len(items)))
    )
    return zero and symmetric and triangle


def parallel(x, y):
    """Return whether two vectors in the plane have the same direction."""
    return x["a"] * y["b"] == x["b"] * y["a"] and x["a"] * y["a"] + x["b"] * y["b"] > 0


def test_jaccard_distance_is_a_metric():
    assert is_a_metric(jaccard_distance, SETS)


def test_angular_distance_is_a_metric_of_directions():
    assert is_a_metric(angular_distance, POINTS, parallel, ROUNDING)
    assert is_a_metric(angular_distance, [dict.fromkeys(x, 1) for x in SETS], rounding=ROUNDING)


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


@pytest.mark.parametrize("x", POINTS)
def test_the_angle_is_that_of_the_cosine(x):
    for y in POINTS:
        expected = acos(weighted_cosine(x, y)) / pi
        assert isclose(angular_distance(x, y), expected, abs_tol=1e-7)
