"""Binomial intervals agree with exact sums and closed forms, and have the promised coverage."""

from fractions import Fraction
from math import ceil, comb, floor

import numpy as np
import pytest

from neardup.similarity.intervals import MILLION, clopper_pearson, exact_interval

ALPHAS = [1e-9, 0.01, 0.1, 0.5, 0.99]


def probability(outcomes: range, n: int, p: float) -> Fraction:
    """Return Pr[X in outcomes] as an exact fraction."""
    p = Fraction(p)
    return sum((comb(n, k) * p**k * (1 - p) ** (n - k) for k in outcomes), Fraction(0))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 41])
def test_at_each_end_the_tail_is_half_of_alpha(n, alpha):
    for hits in range(n + 1):
        low, high = clopper_pearson(hits, n, alpha)
        assert low <= hits / n <= high
        if hits:
            assert float(probability(range(hits, n + 1), n, low)) == pytest.approx(alpha / 2)
        if hits < n:
            assert float(probability(range(hits + 1), n, high)) == pytest.approx(alpha / 2)


def log_pmf(k: int, n: int, p: float) -> float:
    """Return the log of the binomial probability, by Loader's stable series (2000)."""
    x, y = k / n, (n - k) / n
    deviance = n * (x * np.log(x / p) + y * np.log(y / (1 - p)))
    stirling = (1 / n - 1 / k - 1 / (n - k)) / 12
    return stirling - deviance - np.log(2 * np.pi * n * x * y) / 2


@pytest.mark.parametrize("alpha", [1e-9, 0.05])
@pytest.mark.parametrize(
    ("hits", "n"), [(2000, 4000), (500, 10**5), (5 * 10**6, 10**7), (999, 10**7)]
)
def test_many_trials_have_the_same_tails(hits, n, alpha):
    low, _ = clopper_pearson(hits, n, alpha)
    k = np.arange(hits, min(n, hits + 100_000))
    tail = float(np.exp(log_pmf(k, n, low)).sum())
    assert tail == pytest.approx(alpha / 2, rel=1e-4)


def test_hits_and_misses_mirror_each_other():
    low, high = clopper_pearson(1234, 10_000, 0.01)
    assert clopper_pearson(10_000 - 1234, 10_000, 0.01) == (1 - high, 1 - low)


def test_no_trial_tells_nothing():
    assert clopper_pearson(0, 0, 0.1) == (0, 1)


@pytest.mark.parametrize("n", [5, 30])
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_it_misses_any_probability_at_most_as_often_as_alpha_says(n, alpha):
    ends = [clopper_pearson(hits, n, alpha) for hits in range(n + 1)]
    worst = 0.0
    for p in np.linspace(0.01, 0.99, 99).tolist():
        missed = [hits for hits, (low, high) in enumerate(ends) if not low <= p <= high]
        misses = float(sum(probability(range(hits, hits + 1), n, p) for hits in missed))
        assert misses <= alpha
        worst = max(worst, misses)
    assert worst > alpha / 4


@pytest.mark.parametrize(
    ("hits", "n", "alpha"), [(-1, 5, 0.1), (6, 5, 0.1), (2, 5, 0), (2, 5, 1), (2, 5, float("nan"))]
)
def test_what_makes_no_sense_is_refused(hits, n, alpha):
    with pytest.raises(ValueError, match="outside"):
        clopper_pearson(hits, n, alpha)


# In fractions.


@pytest.mark.parametrize("alpha", [Fraction("0.05"), Fraction("0.001"), Fraction(1, 3)])
@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_the_ends_are_the_outer_millionths(n: int, alpha: Fraction) -> None:
    for k in range(n + 1):
        low, high = exact_interval(k, n, alpha)
        assert (
            low == 0
            if k == 0
            else probability(range(k, n + 1), n, Fraction(low, MILLION)) <= alpha / 2
        )
        assert (
            low == MILLION
            or k == 0
            or probability(range(k, n + 1), n, Fraction(low + 1, MILLION)) > alpha / 2
        )
        mirrored = exact_interval(n - k, n, alpha)
        assert (low, high) == (MILLION - mirrored[1], MILLION - mirrored[0])


@pytest.mark.parametrize("n", [64, 256, 5000])
def test_floats_give_the_same_but_for_their_error(n: int) -> None:
    for k in {0, 1, n // 2, n * 9 // 10, n - 1, n}:
        low, high = clopper_pearson(k, n, 0.01)
        expected = floor(low * MILLION), ceil(high * MILLION)
        found = exact_interval(k, n, Fraction("0.01"))
        assert all(abs(a - b) <= 1 for a, b in zip(found, expected))
