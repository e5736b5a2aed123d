"""The threshold and the measures of similarity, in exact integer arithmetic.

The threshold is a fraction: with floats, ceil(t·n) is wrong for some t and n, and pairs exactly at
the threshold are lost.

    jaccard      |x∩y| / |x∪y|, the resemblance (Broder 1997)
    dice         2·|x∩y| / (|x| + |y|)
    cosine       |x∩y| / √(|x|·|y|)
    overlap      |x∩y| / min(|x|, |y|)
    containment  |x∩y| / |x|, of x in y: a pair has one for each direction
    tversky:α,β  |x∩y| / (|x∩y| + α·|x\\y| + β·|y\\x|), of x to y (Tversky 1977): 1,1 is jaccard,
                 0.5,0.5 dice, 1,0 containment

A measure also has the minimum resemblance of its pairs: the threshold of a scheme that finds pairs
by their Jaccard similarity.  A small set inside a large one has a resemblance close to 0.  If t is
the threshold, a pair by tversky has at least m·t / (m·t + 1 - t), m = min(α, β).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, lcm
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from neardup.sets.ragged import Ragged, shared_sizes

Size = TypeVar("Size", int, np.ndarray)
Fractions = tuple[np.ndarray, np.ndarray]  # part and whole
MAX_DENOMINATOR = 10**9  # times the size of a set (up to 10^9) fits in int64
MAX_PARAMETER = 4000  # times two sizes and 10^6 (six decimals) fits in int64
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
            raise ValueError(
                f"{text} has more than 9 decimals, or a denominator above 10^9; type fewer "
                "decimals, or a fraction such as 2/3"
            )
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
        return exact_text(Fraction(self.num, self.den))

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
            f"{text!r} is not a number such as 0.25 or 1/4, of at most 20 characters"
        ) from None


def exact_text(value: Fraction) -> str:
    """Format a fraction exactly: with up to 9 decimals, or else such as 1/3."""
    text = f"{float(value):.9f}".rstrip("0").rstrip(".")
    return text if Fraction(text) == value else str(value)


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
    so that a decision must keep the larger set; larger_first: of a pair (x, y) of a measure with a
    direction, y may be such a small set, instead of x.
    """

    directed: bool
    nested: bool
    larger_first: bool

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

    directed: bool = False
    nested: bool = False
    larger_first: bool = False

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

    @property
    def smaller_share(self) -> Threshold:
        """The minimum share of its smaller set that is in the larger one of a pair."""
        return self.threshold

    @staticmethod
    def parameters(text: str) -> tuple[Fraction, ...]:
        """Parse what is typed after the measure's name and a colon; ValueError if invalid."""
        return ()

    def undirected(self) -> "SetMeasure":
        """Return the measure that is the larger similarity of both directions."""
        return self

    def largest_partner(self, size: np.ndarray) -> np.ndarray:
        least = self.resemblance
        return super().largest_partner(size) if least is None else least.largest_partner(size)

    def fraction(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> Fractions:
        """Return the similarity (part, whole) of sets of sizes x and y with overlap `common`."""
        raise NotImplementedError

    def reached(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Mark the pairs (x, y), in this direction, that reach the threshold (bool)."""
        return self.threshold.reached(*self.fraction(common, x, y))

    def may_reach(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        found = self.reached(common, x, y)
        return found | self.reached(common, y, x) if self.directed else found

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        common = shared_sizes(sets, left, right)
        if self.directed:
            left, right = np.concatenate((left, right)), np.concatenate((right, left))
            common = np.concatenate((common, common))
        x, y = sets.sizes[left], sets.sizes[right]
        good = self.reached(common, x, y)
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

    def fraction(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> Fractions:
        return common, x + y - common


class Dice(SetMeasure):
    """The Dice coefficient 2J / (1 + J), J = Jaccard; it reaches t where J reaches t / (2 - t)."""

    @property
    def resemblance(self) -> Threshold:
        t = self.threshold
        return Threshold.at_most(Fraction(t.num, 2 * t.den - t.num))

    def fraction(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> Fractions:
        return 2 * common, x + y


class Cosine(SetMeasure):
    """The cosine of two sets; pairs at or above t have a resemblance of at least t²."""

    @property
    def resemblance(self) -> Threshold:
        return Threshold.at_most(Fraction(self.threshold.num, self.threshold.den) ** 2)

    def fraction(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> Fractions:
        return millionths(common, x, y)

    def reached(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return cosine_reached(self.threshold, common, x, y)


class Overlap(SetMeasure):
    """The overlap coefficient: the containment of x in y or of y in x, whichever is larger."""

    nested = True

    def fraction(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> Fractions:
        return common, np.minimum(x, y)


class Containment(SetMeasure):
    """The containment of x in y; (x, y) and (y, x) may both be pairs."""

    directed = nested = True

    def undirected(self) -> Overlap:
        return Overlap(self.threshold)

    def fraction(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> Fractions:
        return common, x


@dataclass
class Tversky(SetMeasure):
    """The similarity of x to y: α weighs the tokens that only x has, β those that only y has.

    Undirected, it is the larger similarity of both directions; then α ≥ β.

    >>> x, y = np.array([10]), np.array([16])
    >>> Tversky(NINE_TENTHS, Fraction(1), Fraction("0.2")).fraction(np.array([9]), x, y)
    (array([45]), array([57]))
    """

    alpha: Fraction = Fraction(1)
    beta: Fraction = Fraction(1)
    directed: bool = True

    def __post_init__(self) -> None:
        self.nested, self.larger_first = self.alpha != self.beta, self.alpha < self.beta
        self.directed = self.directed and self.nested

    @staticmethod
    def parameters(text: str) -> tuple[Fraction, Fraction]:
        """Parse "α,β"; ValueError if invalid, or if similarities might not fit in int64."""
        if text.count(",") != 1:
            raise ValueError(f"tversky:{text} is not tversky:A,B, such as tversky:1,0.2")
        alpha, beta = map(parse_fraction, text.split(","))
        if min(alpha, beta) < 0 or not alpha + beta:  # by 0,0, one common token is enough
            raise ValueError(f"tversky:{text} needs numbers of 0 or more, not both 0")
        if lcm(alpha.denominator, beta.denominator) * max(alpha, beta, Fraction(1)) > MAX_PARAMETER:
            most = f"a, b and d of a/d,b/d must be at most {MAX_PARAMETER}; use up to 3 decimals"
            raise ValueError(f"tversky:{text}: {most}")
        return alpha, beta

    def undirected(self) -> "Tversky":
        alpha, beta = max(self.alpha, self.beta), min(self.alpha, self.beta)
        return Tversky(self.threshold, alpha, beta, directed=False)

    @property
    def resemblance(self) -> "Threshold | None":
        least = min(self.alpha, self.beta)
        return Threshold.at_most(self._share(least)) if least else None

    @property
    def smaller_share(self) -> Threshold:
        share = self._share(max(self.alpha, self.beta))
        return Threshold.at_most(max(share, Fraction(1, MAX_DENOMINATOR)))  # one token, at least

    def _share(self, weight: Fraction) -> Fraction:
        """Return the minimum |x∩y| / (|x∩y| + r) of pairs with r other tokens of this weight."""
        t = Fraction(self.threshold.num, self.threshold.den)
        return weight * t / (weight * t + 1 - t)

    def fraction(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> Fractions:
        if not self.directed:
            x, y = np.minimum(x, y), np.maximum(x, y)
        d = lcm(self.alpha.denominator, self.beta.denominator)
        only_x, only_y = int(self.alpha * d) * (x - common), int(self.beta * d) * (y - common)
        return d * common, d * common + only_x + only_y

    def reached(self, common: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        part, whole = self.fraction(common, x, y)
        if int(whole.max(initial=0)) * self.threshold.den >> 63:  # for Python's integers
            part, whole = part.astype(object), whole.astype(object)
        return self.threshold.reached(part, whole)


MEASURES: dict[str, type[SetMeasure]] = {
    "jaccard": Jaccard,
    "dice": Dice,
    "cosine": Cosine,
    "overlap": Overlap,
    "containment": Containment,
    "tversky:A,B": Tversky,
}


_USAGES = {usage.partition(":")[0]: usage for usage in MEASURES if ":" in usage}


def usage_of(name: str) -> str:
    """Return the key in `MEASURES` of a measure with parameters; other names are returned as is."""
    return _USAGES.get(name.partition(":")[0], name)


def _parameters(name: str) -> tuple[Fraction, ...]:
    usage, (measure, _, given) = usage_of(name), name.partition(":")
    if measure in _USAGES and not given:
        raise ValueError(f"{measure} needs parameters: {usage}")
    return MEASURES[usage].parameters(given) if usage in MEASURES else ()


def canonical(name: str) -> str:
    """Return the name with its parameters in one form: tversky:1,0.2; ValueError if invalid."""
    values = ",".join(map(exact_text, _parameters(name)))
    return f"{name.partition(':')[0]}:{values}" if values else name


def measure_of(name: str, threshold: Threshold) -> SetMeasure:
    """Return the measure of sets with a name such as "tversky:1,0.2"; ValueError if invalid."""
    return MEASURES[usage_of(name)](threshold, *_parameters(name))


def promised_as(name: str, threshold: Threshold = NINE_TENTHS) -> str:
    """Return the measure without parameters whose schemes find the pairs by the measure `name`.

    >>> promised_as("tversky:1,0.2"), promised_as("tversky:1,0"), promised_as("cosine")
    ('dice', 'containment', 'cosine')
    """
    if not _parameters(name):
        return name
    return "dice" if measure_of(name, threshold).resemblance else "containment"


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
    cosine = dot.astype(np.float64) / np.sqrt(x.astype(np.float64) * y.astype(np.float64)) * 1e6
    rounded = np.rint(cosine).astype(np.int64)
    for i in np.flatnonzero(np.abs(cosine - rounded) > 0.5 - 1e-6).tolist():  # errors are 1e-9
        rounded[i] = _root_in_millionths(int(dot[i]) ** 2, int(x[i]) * int(y[i]))
    return rounded, np.full(len(rounded), 10**6)


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
