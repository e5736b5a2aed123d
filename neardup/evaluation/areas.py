"""How far an S-curve is from the ideal, a step at the threshold: the two areas between them.

    false negatives   ∫ 1 - P(s) ds, t … 1     above the curve: pairs that never meet
    false positives   ∫ P(s) ds,     0 … t     below it: strangers that meet, and are compared

(Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, ch. 3.)  Were all similarities from 0 to 1
equally likely, they would be the shares of all pairs that are the one or the other.

Each integral is by Gauss's rule of 16 points, and in two halves wherever these differ from the
whole.  The rule never asks at the ends: a curve may jump at the threshold.

Letters: t threshold (0.9), P(s) the chance to meet at similarity s.  For 15 bands of 7 rows the
areas are 5·10^-7 and 0.27.  Cost: some hundred values of P.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_UP, Context
from typing import NamedTuple

import numpy as np

POINTS, WEIGHTS = (column.tolist() for column in np.polynomial.legendre.leggauss(16))  # on -1 … 1
PRECISION = 1e-15  # of an interval that is not halved again
MOST_HALVINGS = 40
KNOWN = 1e-12  # what is less than this may be nothing but rounding
UP = Context(prec=3, rounding=ROUND_UP)


class Areas(NamedTuple):
    """false_positives: 0 where the scheme tells nothing about pairs below the threshold."""

    false_negatives: float
    false_positives: float


def areas(recall: Callable[[float], float], threshold: float) -> Areas:
    """Of the curve `recall`, on both sides of the threshold.

    >>> [round(area, 12) for area in areas(lambda s: s**2, 0.5)]
    [0.208333333333, 0.041666666667]
    """
    missed = integral(lambda s: 1 - recall(s), threshold, 1)
    return Areas(missed, integral(recall, 0, threshold))


def integral(f: Callable[[float], float], low: float, high: float) -> float:
    """Of f from `low` to `high`.

    >>> round(integral(lambda x: x**0.5, 0, 1), 12)
    0.666666666667
    """
    return _halved(f, low, high, _by_gauss(f, low, high), MOST_HALVINGS)


def shown_area(area: float) -> str:
    """Three digits, rounded up: no error is told smaller than it is.

    >>> shown_area(0.26806), shown_area(4.80823e-7), shown_area(1e-17)
    ('0.269', '4.81e-7', 'below 1e-12')
    """
    if area < KNOWN:
        return "below 1e-12"
    return str(UP.create_decimal(f"{area:.12g}")).replace("E", "e")  # 0.25 may lie a hair above


def _halved(
    f: Callable[[float], float], low: float, high: float, whole: float, halvings: int
) -> float:
    middle = (low + high) / 2
    left, right = _by_gauss(f, low, middle), _by_gauss(f, middle, high)
    if abs(left + right - whole) <= PRECISION or not halvings:
        return left + right
    first = _halved(f, low, middle, left, halvings - 1)
    return first + _halved(f, middle, high, right, halvings - 1)


def _by_gauss(f: Callable[[float], float], low: float, high: float) -> float:
    middle, half = (low + high) / 2, (high - low) / 2
    return half * sum(weight * f(middle + half * x) for x, weight in zip(POINTS, WEIGHTS))
