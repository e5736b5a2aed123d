"""The threshold: the least similarity of a pair, as an exact fraction.

It enters as text and lives as a fraction: with floats, ceil(t·n) is wrong for some t and n, and
pairs that lie exactly at the threshold get lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

Size = TypeVar("Size", int, np.ndarray)

MAX_DENOMINATOR = 10**9  # keeps denominator · size inside int64 for sets of up to 10^9 elements


@dataclass(frozen=True)
class Threshold:
    """The least similarity of a pair, as the fraction `num/den` with 0 < num/den ≤ 1.

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

    @classmethod
    def at_most(cls, value: Fraction) -> Threshold:
        """The largest one with a denominator in bounds that is not above `value`; ValueError."""
        if value.denominator > MAX_DENOMINATOR:
            value = Fraction(
                value.numerator * MAX_DENOMINATOR // value.denominator, MAX_DENOMINATOR
            )
        if not value:
            raise ValueError("a pair may have next to no Jaccard similarity; take a larger one")
        return cls(value.numerator, value.denominator)

    def __float__(self) -> float:
        return self.num / self.den

    def __str__(self) -> str:
        return f"{float(self):.9g}"

    def exactly(self) -> str:
        """As it can be read again.

        >>> Threshold(9, 10).exactly(), Threshold(1, 3).exactly()
        ('0.9', '1/3')
        """
        text = str(self)
        return text if Fraction(text) == Fraction(self.num, self.den) else f"{self.num}/{self.den}"

    def reached(self, common: np.ndarray, union: np.ndarray) -> np.ndarray:
        """Whether common/union ≥ t, element by element (int64 arrays)."""
        return common * self.den >= union * self.num

    def largest_partner(self, size: np.ndarray) -> np.ndarray:
        """The length filter: no set larger than this, ⌊size/t⌋, can pair with one of `size`."""
        return size * self.den // self.num

    def smallest_partner(self, size: Size) -> Size:
        """The length filter: no set smaller than this, ⌈t·size⌉, can pair with one of `size`.

        >>> NINE_TENTHS.smallest_partner(11)
        10
        """
        return -(-size * self.num // self.den)


NINE_TENTHS = Threshold(9, 10)
