"""The angle of two sets, estimated from how many bits of their vectors are equal.

Each of F bits is equal with probability a = 1 - θ/π (Charikar 2002), so θ is about π·(1 - share).
How many are equal is binomial: the exact interval of a (intervals.py) gives one of θ, and one of
the cosine.  To each side that of θ is about 2·π·√(a·(1 - a) / F) wide, for 95 %.

Letters: F bits (384), of which 372 are equal: θ = 0.098, and the cosine 0.995.
"""

from __future__ import annotations

from math import cos, pi
from typing import NamedTuple

from neardup.evaluation.intervals import clopper_pearson


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
