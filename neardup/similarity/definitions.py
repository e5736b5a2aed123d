"""Similarities and distances of two collections: the definitions, exact where they are rational.

They say what the fast code computes, and are what it is tested against.  x and y are sets (any
collections; repeats do not count), vectors (a mapping element → weight, or two sequences of equal
length) or fingerprints (integers).

    resemblance (Jaccard)   |x∩y| / |x∪y|                   1 - it is a metric
    containment             |x∩y| / |x|                     of x in y: directional
    Dice                    2·|x∩y| / (|x| + |y|)           1 - it is none
    overlap coefficient     |x∩y| / min(|x|, |y|)           1 - it is none
    cosine                  |x∩y| / √(|x|·|y|)              1 - it is none, but the angle is one

Subtle: hash functions h with Pr[h(x) = h(y)] = sim(x, y) exist only where 1 - sim keeps the
triangle inequality (Charikar 2002).  With A={a}, B={b}, C={a,b}, Dice has d(A,C) + d(C,B) =
1/3 + 1/3 < 1 = d(A,B), so it has no such family; nor have the overlap coefficient and the cosine.
Sources: Broder 1997 for resemblance and containment, Dice 1945, Szymkiewicz 1934 and Simpson 1943.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import atan2, hypot, inf, pi, sqrt

Vector = Mapping[Hashable, float]  # an element that is missing has weight 0
Weights = Mapping[Hashable, int]  # the same, in whole numbers from 0 on


def resemblance(x: Iterable[Hashable], y: Iterable[Hashable]) -> Fraction:
    """The Jaccard similarity of two sets that are not both empty.

    >>> resemblance([1, 2, 3], [2, 3, 4])
    Fraction(1, 2)
    """
    x, y = frozenset(x), frozenset(y)
    return Fraction(len(x & y), len(x | y))


def containment(x: Iterable[Hashable], y: Iterable[Hashable]) -> Fraction:
    """How much of x, which is not empty, lies in y.

    >>> containment("ab", "abcd"), containment("abcd", "ab")
    (Fraction(1, 1), Fraction(1, 2))
    """
    x, y = frozenset(x), frozenset(y)
    return Fraction(len(x & y), len(x))


def dice(x: Iterable[Hashable], y: Iterable[Hashable]) -> Fraction:
    """What two sets, not both empty, share of their mean size.

    >>> dice("a", "ab")
    Fraction(2, 3)
    """
    x, y = frozenset(x), frozenset(y)
    return Fraction(2 * len(x & y), len(x) + len(y))


def overlap_coefficient(x: Iterable[Hashable], y: Iterable[Hashable]) -> Fraction:
    """How much of the smaller set lies in the other; neither is empty.

    >>> overlap_coefficient("abx", "abcd")
    Fraction(2, 3)
    """
    x, y = frozenset(x), frozenset(y)
    return Fraction(len(x & y), min(len(x), len(y)))


def cosine(x: Iterable[Hashable], y: Iterable[Hashable]) -> float:
    """The cosine of the angle between two sets as vectors of 0 and 1; neither is empty.

    >>> cosine("abcd", "a")
    0.5
    """
    x, y = frozenset(x), frozenset(y)
    return len(x & y) / sqrt(len(x) * len(y))


def weighted_resemblance(x: Weights, y: Weights) -> Fraction:
    """Σ min / Σ max of the weights of two weighted sets that are not both empty.

    >>> weighted_resemblance({"a": 1, "b": 4}, {"b": 6, "c": 3})
    Fraction(2, 5)
    """
    least = sum(min(weight, y.get(element, 0)) for element, weight in x.items())
    return Fraction(least, sum(x.values()) + sum(y.values()) - least)


def weighted_dice(x: Weights, y: Weights) -> Fraction:
    """What two weighted sets, not both empty, share of their mean total.

    >>> weighted_dice({"a": 1, "b": 4}, {"b": 6, "c": 3})
    Fraction(4, 7)
    """
    least = sum(min(weight, y.get(element, 0)) for element, weight in x.items())
    return Fraction(2 * least, sum(x.values()) + sum(y.values()))


def squared_weighted_cosine(x: Weights, y: Weights) -> Fraction:
    """The square of `weighted_cosine`, without roots.

    >>> squared_weighted_cosine({"a": 3, "b": 4}, {"b": 8})
    Fraction(16, 25)
    """
    common = sum(weight * y.get(element, 0) for element, weight in x.items())
    return Fraction(common**2, sum(w * w for w in x.values()) * sum(w * w for w in y.values()))


def weighted_cosine(x: Vector, y: Vector) -> float:
    """The cosine of the angle between two vectors, from -1 to 1; neither is zero.

    >>> weighted_cosine({"a": 3, "b": 4}, {"a": 1, "c": 5, "d": 0})
    0.11766968108291043
    """
    common = sum(weight * y.get(element, 0) for element, weight in x.items())
    return max(-1.0, min(1.0, common / hypot(*x.values()) / hypot(*y.values())))


def angular_distance(x: Vector, y: Vector) -> float:
    """The angle θ between two vectors, neither of which is zero, as θ/π: from 0 to 1.

    >>> [angular_distance({"a": 1}, y) for y in ({"a": 2}, {"b": 2}, {"a": -2})]
    [0.0, 0.5, 1.0]
    """
    # Subtle: near 0 the cosine forgets half the digits of the angle; the two diagonals of the
    # rhombus that the unit vectors span do not.
    long_x, long_y = hypot(*x.values()), hypot(*y.values())
    units = [(x.get(e, 0) / long_x, y.get(e, 0) / long_y) for e in {**x, **y}]
    return 2 * atan2(hypot(*(a - b for a, b in units)), hypot(*(a + b for a, b in units))) / pi


def hamming(x: int, y: int) -> int:
    """The number of bits in which two fingerprints (integers from 0 on) differ.

    >>> hamming(0b1011, 0b0010)
    2
    """
    return bin(x ^ y).count("1")


def norm_distance(x: Sequence[float], y: Sequence[float], r: float) -> float:
    """The L_r norm of x - y for 1 ≤ r ≤ ∞: (Σ |x_i - y_i|^r)^(1/r), at r = ∞ the largest.

    >>> [norm_distance([0, 0], [3, -4], r) for r in (1, 2, inf)]
    [7, 5.0, 4]
    """
    if len(x) != len(y):
        raise ValueError(f"vectors of {len(x)} and of {len(y)} numbers have no distance")
    if not r >= 1:
        raise ValueError(f"r = {r} is below 1, where the triangle inequality fails")
    gaps = [abs(a - b) for a, b in zip(x, y)]
    largest = max(gaps, default=0)
    if r == inf or not largest:
        return largest
    if r == 1:
        return sum(gaps)
    return largest * sum((gap / largest) ** r for gap in gaps) ** (1 / r)  # no power overflows
