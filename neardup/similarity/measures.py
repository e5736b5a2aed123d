"""The threshold and the measures of similarity, in exact integer arithmetic.

The threshold is a fraction: with floats, ceil(t·n) is wrong for some t and n, and pairs exactly at
the threshold are lost.

    jaccard      |x∩y| / |x∪y|, the resemblance (Broder 1997)
    dice         2·|x∩y| / (|x| + |y|)
    cosine       |x∩y| / √(|x|·|y|)
    overlap      |x∩y| / min(|x|, |y|)
    containment  |x∩y| / |x|, of x in y: a pair has one for each direction

A measure also has the minimum resemblance of its pairs: the threshold of a scheme that finds pairs
by their Jaccard similarity.  A small set inside a large one has a resemblance close to 0.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from neardup.sets.ragged import Ragged, shared_sizes

Size = TypeVar("Size", int, np.ndarray)
Fractions = tuple[np.ndarray, np.ndarray]  # part and whole
MAX_DENOMINATOR = 10**9  # times the size of a set (up to 10^9) fits in int64
ANY_SIZE = (1 << 32) - 1


@dataclass(frozen=True)
class Threshold:
    """The minimum similarity of a pair, as the fraction `num/den` with 0 < num/den ≤ 1.

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
    def parse(cls, text: str) -> "Threshold":
        """Parse a threshold such as "0.9" or "9/10"; ValueError if invalid."""
        value = parse_fraction(text)
        if not 0 < value <= 1:
            raise ValueError(f"{text} is outside 0 < t <= 1")
        if value.denominator > MAX_DENOMINATOR:
            raise ValueError(f"{text} has more than 9 decimals, or a denominator above 10^9")
        return cls(value.numerator, value.denominator)

    @classmethod
    def at_most(cls, value: Fraction) -> "Threshold":
        """Convert to a threshold, rounded down to 9 decimals if needed; ValueError if that is 0."""
        if value.denominator > MAX_DENOMINATOR:
            part = value.numerator * MAX_DENOMINATOR // value.denominator
            value = Fraction(part, MAX_DENOMINATOR)
        if not value:
            raise ValueError(
                "a pair may have next to no Jaccard similarity; use a larger threshold"
            )
        return cls(value.numerator, value.denominator)

    def __float__(self) -> float:
        return self.num / self.den

    def __str__(self) -> str:
        text = f"{float(self):.9g}"  # `parse` does not read exponents
        return f"{float(self):.9f}".rstrip("0") if "e" in text else text

    def exactly(self) -> str:
        """Return the exact threshold as text: a decimal number, or a fraction such as 1/3.

        >>> Threshold(9, 10).exactly(), Threshold(1, 3).exactly(), Threshold(1, 100_000).exactly()
        ('0.9', '1/3', '0.00001')
        """
        text = str(self)
        return text if Fraction(text) == Fraction(self.num, self.den) else f"{self.num}/{self.den}"

    def reached(self, common: np.ndarray, union: np.ndarray) -> np.ndarray:
        """Mark the pairs for which common/union (int64 arrays) reaches the threshold (bool)."""
        return common * self.den >= union * self.num

    def largest_partner(self, size: np.ndarray) -> np.ndarray:
        """Return ⌊size/t⌋, the maximum size of a set with resemblance ≥ t to one of `size`."""
        return size * self.den // self.num

    def smallest_partner(self, size: Size) -> Size:
        """Return ⌈t·size⌉, the minimum size of a set with resemblance ≥ t to one of `size`.

        >>> NINE_TENTHS.smallest_partner(11)
        10
        """
        return -(-size * self.num // self.den)


NINE_TENTHS = Threshold(9, 10)


def parse_fraction(text: str) -> Fraction:
    """Parse a number such as "0.25" or "1/4", up to 20 characters; ValueError for other text."""
    try:
        return Fraction(text if len(text) <= 20 and "e" not in text.lower() else "")
    except (ValueError, ZeroDivisionError):
        raise ValueError(
            f"{text!r} is neither a decimal number nor a fraction of up to 20 characters"
        ) from None


class Verified(NamedTuple):
    """Pairs at or above the threshold: row numbers, and the similarity part/whole.

    All are int64 arrays; part and whole may also be arrays of Python integers (object).
    """

    left: np.ndarray
    right: np.ndarray
    part: np.ndarray
    whole: np.ndarray


class Measure(Protocol):
    """The interface of similarity measures.

    directed: (x, y) and (y, x) are two pairs; nested: a pair may be a small set inside a large one,
    so that a decision must keep the larger set.
    """

    @property
    def directed(self) -> bool: ...

    @property
    def nested(self) -> bool: ...

    def largest_partner(self, size: np.ndarray) -> np.ndarray:
        """Return an upper bound of the sizes of sets that can pair with one of `size` (int64)."""
        ...

    def may_reach(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Mark the pairs that may reach the threshold (bool).

        x, y: the sizes of both sets; common: their overlap, or an upper bound of it.
        """
        ...

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        """Return the pairs of rows left[p] and right[p] that are at or above the threshold.

        Pairs keep their order.  If `directed`, (right[p], left[p]) may also be a pair.
        """
        ...


class UnboundedMeasure:
    """Base class of measures; by default, neither size nor common tokens rule out a pair."""

    directed: ClassVar[bool] = False
    nested: ClassVar[bool] = False

    def largest_partner(self, size: np.ndarray) -> np.ndarray:
        return np.full(len(size), ANY_SIZE)

    def may_reach(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.ones(len(common), dtype=bool)


@dataclass
class SetMeasure(UnboundedMeasure):
    """Base class of measures that depend on two sizes and the number of common elements."""

    threshold: Threshold

    @property
    def resemblance(self) -> "Threshold | None":
        """The minimum resemblance of a pair, or None if it can be close to 0."""
        return None

    def fraction(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> Fractions:
        """Return the similarity (part, whole) of sets of sizes x and y with overlap `common`."""
        raise NotImplementedError

    def may_reach(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.threshold.reached(*self.fraction(common, x, y))

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        common = shared_sizes(sets, left, right)
        x, y = sets.sizes[left], sets.sizes[right]
        good = self.may_reach(common, x, y)
        return Verified(left[good], right[good], *self.fraction(common[good], x[good], y[good]))


class Jaccard(SetMeasure):
    """The Jaccard similarity |x∩y| / |x∪y|, or resemblance.

    >>> sets = Ragged.from_rows([[1, 2, 3], [2, 3, 4], [9]])
    >>> found = Jaccard(Threshold.parse("0.5")).verified(sets, np.array([0, 0]), np.array([1, 2]))
    >>> [column.tolist() for column in found]
    [[0], [1], [2], [4]]
    """

    @property
    def resemblance(self) -> Threshold:
        return self.threshold

    def largest_partner(self, size: np.ndarray) -> np.ndarray:
        return self.threshold.largest_partner(size)

    def fraction(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> Fractions:
        return common, x + y - common


class Dice(SetMeasure):
    """The Dice coefficient 2J / (1 + J), J = Jaccard; it reaches t where J reaches t / (2 - t)."""

    @property
    def resemblance(self) -> Threshold:
        t = self.threshold
        return Threshold.at_most(Fraction(t.num, 2 * t.den - t.num))

    def largest_partner(self, size: np.ndarray) -> np.ndarray:
        return size * (2 * self.threshold.den - self.threshold.num) // self.threshold.num

    def fraction(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> Fractions:
        return 2 * common, x + y


class Cosine(SetMeasure):
    """The cosine of two sets; pairs at or above t have a resemblance of at least t²."""

    @property
    def resemblance(self) -> Threshold:
        return Threshold.at_most(Fraction(self.threshold.num, self.threshold.den) ** 2)

    def largest_partner(self, size: np.ndarray) -> np.ndarray:
        bound = size / float(self.threshold) ** 2 * (1 + 1e-9) + 1  # rounded up: it only filters
        return np.minimum(bound, ANY_SIZE).astype(np.int64)

    def fraction(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> Fractions:
        return millionths(common, x, y)

    def may_reach(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return cosine_reached(self.threshold, common, x, y)


class Overlap(SetMeasure):
    """The overlap coefficient: the containment of x in y or of y in x, whichever is larger."""

    nested = True

    def fraction(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> Fractions:
        return common, np.minimum(x, y)


class Containment(Overlap):
    """The containment of x in y; (x, y) and (y, x) may both be pairs."""

    directed = True

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        common = shared_sizes(sets, left, right)
        both = np.concatenate((left, right)), np.concatenate((right, left))
        common = np.concatenate((common, common))
        whole = sets.sizes[both[0]]
        good = self.threshold.reached(common, whole)
        return Verified(both[0][good], both[1][good], common[good], whole[good])


MEASURES: dict[str, type[SetMeasure]] = {
    "jaccard": Jaccard,
    "dice": Dice,
    "cosine": Cosine,
    "overlap": Overlap,
    "containment": Containment,
}


def cosine_reached(
    threshold: Threshold, dot: np.ndarray, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Mark where dot / √(x·y) reaches the threshold (bool), for integer arrays; x and y > 0."""
    cosine = dot.astype(np.float64) / np.sqrt(x.astype(np.float64) * y.astype(np.float64))
    reached = cosine >= float(threshold)
    for i in np.flatnonzero(np.abs(cosine - float(threshold)) < 1e-9).tolist():
        square = int(dot[i]) ** 2 * threshold.den**2
        reached[i] = square >= threshold.num**2 * int(x[i]) * int(y[i])
    return reached


def millionths(dot: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return dot / √(x·y) as int64 arrays (part, 10^6), rounded half-even from the exact root.

    >>> [column.tolist() for column in millionths(*np.array([[1, 125], [2, 128], [1, 128]]))]
    [[707107, 976562], [1000000, 1000000]]
    """
    values = zip(dot.tolist(), x.tolist(), y.tolist())
    rounded = [_root_in_millionths(d * d, a * b) for d, a, b in values]
    return np.array(rounded, dtype=np.int64), np.full(len(rounded), 10**6)


def _root_in_millionths(part: int, whole: int) -> int:
    """Return √(part / whole) in millionths, rounded half-even."""
    square = 4 * 10**12 * part  # divided by `whole`: the square of twice the result
    twice = isqrt(square // whole)
    tie = twice % 4 == 1 and twice * twice * whole == square  # only for a rational root
    return (twice + 1) // 2 - tie


def eighteen_decimals(common: np.ndarray, union: np.ndarray) -> list[bytes]:
    """Format common/union with 18 decimals, rounded down.

    >>> eighteen_decimals(np.array([2999, 1]), np.array([3000, 1]))
    [b'0.999666666666666666', b'1.000000000000000000']
    """
    groups, rest = [], common % union
    for _ in range(3):
        groups.append(rest * 10**6 // union)
        rest = rest * 10**6 - groups[-1] * union
    columns = [(common // union).tolist(), *(group.tolist() for group in groups)]
    return [b"%d.%06d%06d%06d" % digits for digits in zip(*columns)]


def six_decimals(common: np.ndarray, union: np.ndarray) -> list[bytes]:
    """Format common/union with six decimals, rounded half-even from the exact fraction.

    >>> six_decimals(np.array([9, 2, 1]), np.array([10, 3, 1]))
    [b'0.900000', b'0.666667', b'1.000000']
    """
    return [b"%d.%06d" % divmod(q, 10**6) for q in rounded_millionths(common, union).tolist()]


def fraction_text(value: Fraction) -> bytes:
    """Format a fraction with six decimals, rounded half-even.

    >>> fraction_text(Fraction(2, 3)), fraction_text(Fraction(1))
    (b'0.666667', b'1.000000')
    """
    return b"%d.%06d" % divmod(round(value * 10**6), 10**6)


def rounded_millionths(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return part/whole in millionths, rounded half-even."""
    quotient = part * 10**6 // whole
    twice = 2 * (part * 10**6 - quotient * whole)  # np.divmod does not accept Python integers
    return quotient + ((twice > whole) | ((twice == whole) & (quotient % 2 == 1)))
