"""The interval agrees with its definition in fractions, and with floats for large n."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, comb, floor

import pytest

from neardup.similarity.intervals import MILLION, clopper_pearson, exact_interval

ALPHAS = [Fraction("0.05"), Fraction("0.001"), Fraction(1, 3)]


def tail(k: int, n: int, p: Fraction) -> Fraction:
    """Return Pr[X ≥ k] as an exact fraction."""
    return sum((comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)), Fraction(0))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_the_ends_are_the_outer_millionths(n: int, alpha: Fraction) -> None:
    for k in range(n + 1):
        low, high = exact_interval(k, n, alpha)
        assert low == 0 if k == 0 else tail(k, n, Fraction(low, MILLION)) <= alpha / 2
        assert low == MILLION or k == 0 or tail(k, n, Fraction(low + 1, MILLION)) > alpha / 2
        mirrored = exact_interval(n - k, n, alpha)
        assert (low, high) == (MILLION - mirrored[1], MILLION - mirrored[0])


@pytest.mark.parametrize("n", [64, 256, 5000])
def test_floats_give_the_same_but_for_their_error(n: int) -> None:
    for k in {0, 1, n // 2, n * 9 // 10, n - 1, n}:
        low, high = clopper_pearson(k, n, 0.01)
        expected = floor(low * MILLION), ceil(high * MILLION)
        found = exact_interval(k, n, Fraction("0.01"))
        assert all(abs(a - b) <= 1 for a, b in zip(found, expected))
