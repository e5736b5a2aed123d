"""Similarities, and the threshold, in exact integer arithmetic.

Resemblance (Jaccard) of two sets is |x∩y| / |x∪y| (Broder 1997).  A threshold enters as text and
lives as a fraction: with floats, ceil(t·n) is wrong for some t and n, and pairs that lie exactly
at the threshold get lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

MAX_DENOMINATOR = 10**9  # keeps denominator · size inside int64 for sets of up to 10^9 elements


@dataclass(frozen=True)
class Threshold:
    """The least resemblance of a pair, as the fraction `num/den` with 0 < num/den ≤ 1.

    >>> t = Threshold.parse("0.9")
    >>> t.num, t.den
    (9, 10)
    >>> t.reached(np.array([9, 89]), np.array([10, 99]))
    array([ True, False])
    >>> t.largest_partner(np.array([9, 10, 90]))
    array([ 10,  11, 100])
    """

    num: int
    den: int

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """Read "0.9", "9/10" or "1"; ValueError says what is wrong with anything else."""
        try:
            value = Fraction(text if len(text) <= 20 and "e" not in text.lower() else "")
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"{text!r} is neither a decimal number nor a fraction") from None
        if not 0 < value <= 1:
            raise ValueError(f"{text} is outside 0 < t <= 1")
        if value.denominator > MAX_DENOMINATOR:
            raise ValueError(f"{text} has more than 9 decimals")
        return cls(value.numerator, value.denominator)

    def __float__(self) -> float:
        return self.num / self.den

    def __str__(self) -> str:
        return f"{float(self):.9g}"

    def reached(self, common: np.ndarray, union: np.ndarray) -> np.ndarray:
        """Whether common/union ≥ t, element by element (int64 arrays)."""
        return common * self.den >= union * self.num

    def largest_partner(self, size: np.ndarray) -> np.ndarray:
        """The length filter: no set larger than this, ⌊size/t⌋, can pair with one of `size`."""
        return size * self.den // self.num


def six_decimals(common: np.ndarray, union: np.ndarray) -> list[bytes]:
    """Format common/union with six decimals, rounded half-even from the exact fraction.

    >>> six_decimals(np.array([9, 2, 1]), np.array([10, 3, 1]))
    [b'0.900000', b'0.666667', b'1.000000']
    """
    quotient, remainder = np.divmod(common * 10**6, union)
    twice = 2 * remainder
    quotient += (twice > union) | ((twice == union) & (quotient % 2 == 1))
    return [b"%d.%06d" % divmod(q, 10**6) for q in quotient.tolist()]


def resemblance(x: Iterable[int], y: Iterable[int]) -> Fraction:
    """The definition, for two sets that are not both empty.

    >>> resemblance([1, 2, 3], [2, 3, 4])
    Fraction(1, 2)
    """
    x, y = frozenset(x), frozenset(y)
    return Fraction(len(x & y), len(x | y))
