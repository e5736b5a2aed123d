"""A scheme's recall is a probability, and is shown exactly or rounded down."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from neardup.schemes.banding import NEARLY_ONE, recall
from neardup.schemes.minhash import MinHash
from neardup.schemes.scheme import shown
from tests.support.drawn import every_scheme

SIMILARITIES = [10.0**-k for k in range(1, 12)] + [k / 1000 for k in range(1001)]
MILLION = 10**6


@pytest.mark.parametrize("scheme", every_scheme().values(), ids=every_scheme())
def test_a_recall_is_from_0_to_1_and_grows(scheme) -> None:
    chances = [scheme.recall(s) for s in sorted(SIMILARITIES)]
    assert all(0 <= chance <= 1 for chance in chances)
    assert chances == sorted(chances)
    assert chances[0] < chances[-1] or chances[0] == chances[-1] == 1


@pytest.mark.parametrize("scheme", every_scheme().values(), ids=every_scheme())
def test_nothing_is_shown_below_0_or_with_a_sign(scheme) -> None:
    assert math.copysign(1, scheme.recall(0.0)) == 1
    assert not shown(scheme.recall(0.0)).startswith("-")
    assert shown(-0.0) == "0.000000"


def test_no_promise_below_1_is_shown_as_1() -> None:
    for bands, rows in ((200, 1), (4000, 1), (60, 2), (20, 5)):
        assert recall(0.9, bands, rows) < 1
        assert "probability 0.999999" in MinHash(bands, rows).promise
    assert recall(1, 1, 1) == 1
    assert (shown(NEARLY_ONE), shown(1)) == ("0.999999", "1.000000")


def test_a_chance_is_shown_rounded_down() -> None:
    rng = random.Random(1)
    halves = [(k + 0.5) / MILLION for k in range(0, MILLION, 9973)]
    for chance in [*halves, *SIMILARITIES, *(rng.random() for _ in range(3000))]:
        text = shown(chance)
        assert len(text) == 8
        assert 0 <= Fraction(chance) - Fraction(text) + Fraction(1, 10**15) <= Fraction(1, MILLION)
    assert shown(0.9999419999) == "0.999941"  # which the nearest six decimals would not say


@pytest.mark.slow
def test_six_decimals_are_shown_as_they_are() -> None:
    assert Fraction(0.29) < Fraction(29, 100)
    for k in range(0, MILLION + 1, 7):
        assert shown(k / MILLION) == f"{k // MILLION}.{k % MILLION:06}"


def test_a_promise_that_has_six_decimals_is_shown_as_it_is() -> None:
    seen = below = 0
    for digits, bands, rows in np.ndindex(4, 7, 7):
        if 0 < digits * bands * rows <= 6:
            for k in range(1, 10**digits):
                exact = 1 - (1 - Fraction(k, 10**digits) ** rows) ** bands
                chance = recall(k / 10**digits, bands, rows)
                below += Fraction(chance) < exact
                seen += 1
                assert Fraction(shown(chance)) == exact
    assert 0 < below < seen
