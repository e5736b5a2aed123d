"""Definitions of the similarity measures, as exact fractions; only the cosine of sets is a float.

The fast code is tested against them.  x and y are collections, read as sets.

    resemblance (Jaccard)   |x∩y| / |x∪y|             1 - resemblance is a metric
    containment             |x∩y| / |x|               of x in y
    Dice                    2·|x∩y| / (|x| + |y|)
    overlap coefficient     |x∩y| / min(|x|, |y|)
    Tversky index           |x∩y| / (|x∩y| + α·|x\\y| + β·|y\\x|)
    cosine                  |x∩y| / √(|x|·|y|)        the angle is a metric

Subtle: hash functions h with Pr[h(x) = h(y)] = sim(x, y) exist only where 1 - sim keeps the
triangle inequality (Charikar 2002).  Of these only the resemblance does: for Dice, A={a}, B={b} and
C={a,b} have d(A,C) + d(C,B) = 1/3 + 1/3 < 1 = d(A,B).
Sources: Broder 1997 for resemblance and containment, Dice 1945, Szymkiewicz 1934 and Simpson 1943,
Tversky 1977.
"""

from collections.abc import Hashable, Iterable
from fractions import Fraction
from math import sqrt


def resemblance(x: Iterable[Hashable], y: Iterable[Hashable]) -> Fraction:
    """Return the Jaccard similarity of two sets that are not both empty.

    >>> resemblance([1, 2, 3], [2, 3, 4])
    Fraction(1, 2)
    """
    x, y = frozenset(x), frozenset(y)
    return Fraction(len(x & y), len(x | y))


def containment(x: Iterable[Hashable], y: Iterable[Hashable]) -> Fraction:
    """Return the share of x's elements that are in y; x must not be empty.

    >>> containment("ab", "abcd"), containment("abcd", "ab")
    (Fraction(1, 1), Fraction(1, 2))
    """
    x, y = frozenset(x), frozenset(y)
    return Fraction(len(x & y), len(x))


def dice(x: Iterable[Hashable], y: Iterable[Hashable]) -> Fraction:
    """Return the Dice coefficient, common elements / mean size, of sets that are not both empty.

    >>> dice("a", "ab")
    Fraction(2, 3)
    """
    x, y = frozenset(x), frozenset(y)
    return Fraction(2 * len(x & y), len(x) + len(y))


def overlap_coefficient(x: Iterable[Hashable], y: Iterable[Hashable]) -> Fraction:
    """Return the share of the smaller set that is in the larger one; neither may be empty.

    >>> overlap_coefficient("abx", "abcd")
    Fraction(2, 3)
    """
    x, y = frozenset(x), frozenset(y)
    return Fraction(len(x & y), min(len(x), len(y)))


def tversky(x: Iterable[Hashable], y: Iterable[Hashable], a: Fraction, b: Fraction) -> Fraction:
    """Return the Tversky index of x to y; ZeroDivisionError if nothing is counted.

    >>> tversky("abx", "abcd", Fraction(1), Fraction(1, 2))
    Fraction(1, 2)
    """
    x, y = frozenset(x), frozenset(y)
    return len(x & y) / (len(x & y) + a * len(x - y) + b * len(y - x))


def cosine(x: Iterable[Hashable], y: Iterable[Hashable]) -> float:
    """Return the cosine of the angle between two sets as vectors of 0 and 1; neither is empty.

    >>> cosine("abcd", "a")
    0.5
    """
    x, y = frozenset(x), frozenset(y)
    return len(x & y) / sqrt(len(x) * len(y))
