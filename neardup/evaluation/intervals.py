"""Exact intervals for a probability, for precision and recall, and for an angle.

The exact interval of a binomial probability (Clopper, Pearson 1934).

Of n independent trials, each a hit with probability p, `hits` were hits.  The interval holds every
p under which neither so many hits nor so few would be a surprise of α/2 or less; so whatever p is,
it lies outside in at most a share α of all experiments.  No approximation: it holds for small n and
for p near 0 or 1.

The lower end solves Pr[X ≥ hits] = α/2.  With u = log p, the log of that tail is concave, and lies
below the line log C(n,hits) + hits·u (the union bound), so Newton's method started where the line
meets log α/2 climbs to the solution and never passes it.  There each term of the tail is smaller
than the one before it:

    Pr[X ≥ k] = Pr[X = k] · (1 + w·(n-k)/(k+1) + w²·(n-k)(n-k-1)/((k+1)(k+2)) + …),  w = p/(1-p)

Letters: n trials, k hits, p the probability of a hit.  Cost: up to 5 ms for n = 10^7, 0.1 ms for
n = 20.  The ends are right to 10 digits at n = 4000 and to 7 at n = 10^7, where lgamma ends.

The angle of two sets, estimated from how many bits of their vectors are equal.

Each of F bits is equal with probability a = 1 - θ/π (Charikar 2002), so θ is about π·(1 - share).
How many are equal is binomial: the exact interval of a gives one of θ, and one of
the cosine.  To each side that of θ is about 2·π·√(a·(1 - a) / F) wide, for 95 %.

Letters: F bits (384), of which 372 are equal: θ = 0.098, and the cosine 0.995.
"""

from __future__ import annotations

from math import ceil, cos, exp, floor, lgamma, log, log1p, pi
from typing import NamedTuple

import numpy as np

NEGLIGIBLE = 1e-17  # of a sum that is at least 1
PRECISION = 1e-13  # of p, relative; the last step of Newton's method is far below it


def clopper_pearson(hits: int, n: int, alpha: float) -> tuple[float, float]:
    """The interval (low, high) that misses p with probability at most `alpha`, half on each side.

    >>> [round(end, 4) for end in clopper_pearson(5, 10, alpha=0.05)]
    [0.1871, 0.8129]
    """
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} hits in {n} trials")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha = {alpha} is outside 0 < alpha < 1")
    return _low(hits, n, alpha / 2), 1 - _low(n - hits, n, alpha / 2)


def _low(k: int, n: int, tail: float) -> float:
    """The p with Pr[X ≥ k] = tail."""
    if k == 0:
        return 0.0
    log_ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    u = (log(tail) - log_ways) / k  # if k = n, this is the solution already
    step = 0.0 if k == n else 1.0
    while step > PRECISION:
        p = exp(u)
        terms = _terms(k, n, p / (1 - p))
        log_tail = log_ways + k * u + (n - k) * log1p(-p) + log(terms)
        step = (log(tail) - log_tail) * terms / k  # d log tail / du = k / terms
        u += step
    return exp(u)


def _terms(k: int, n: int, odds: float) -> float:
    """Pr[X ≥ k] / Pr[X = k]."""
    total, last, start, width = 1.0, 1.0, 0, 64
    while last > NEGLIGIBLE * total and start < n - k:
        i = np.arange(start, min(start + width, n - k))
        products = last * np.cumprod(odds * (n - k - i) / (k + 1 + i))
        total += float(products.sum())
        last = float(products[-1])
        start, width = start + width, 2 * width
    return total


MILLION = 10**6


def ratio(part: int, whole: int) -> str:
    """Six decimals, rounded down: 1.000000 is exactly 1.  Of nothing there is no share.

    >>> ratio(9999999, 10000000), ratio(3, 3), ratio(0, 0)
    ('0.999999', '1.000000', '-')
    """
    return "{}.{:06}".format(*divmod(part * MILLION // whole, MILLION)) if whole else "-"


def interval(hits: int, n: int, confidence: float) -> str:
    """The Clopper-Pearson interval of the probability of a hit, rounded outwards.

    >>> interval(788, 790, 0.95)
    '0.990885 to 0.999694 with confidence 0.95'
    >>> interval(0, 0, 0.95)
    ''
    """
    if not n:
        return ""
    low, high = clopper_pearson(hits, n, 1 - confidence)
    low, high = floor(low * MILLION) / MILLION, ceil(high * MILLION) / MILLION
    return f"{low:.6f} to {high:.6f} with confidence {confidence}"


def row(name: str, value: int | str, note: str = "") -> str:
    """A line of a table.

    >>> row("true pairs", 1790, "in the file")
    'true pairs                             1,790  in the file'
    """
    shown = value if isinstance(value, str) else f"{value:,}"
    return f"{name:33} {shown:>10}  {note}".rstrip()


class Angle(NamedTuple):
    """In radians, and its cosine, with the ends of the interval of each."""

    angle: float
    smallest: float
    largest: float

    @property
    def cosines(self) -> tuple[float, float, float]:
        """That of the angle, the least and the most."""
        return cos(self.angle), cos(self.largest), cos(self.smallest)


def angle(equal: int, bits: int, alpha: float) -> Angle:
    """Of vectors with so many equal bits; the interval misses it with probability `alpha` or less.

    >>> [round(each, 3) for each in angle(372, 384, 0.05)]
    [0.098, 0.051, 0.169]
    >>> [round(each, 3) for each in angle(372, 384, 0.05).cosines]
    [0.995, 0.986, 0.999]
    """
    low, high = clopper_pearson(equal, bits, alpha)
    return Angle(pi * (1 - equal / bits), pi * (1 - high), pi * (1 - low))
