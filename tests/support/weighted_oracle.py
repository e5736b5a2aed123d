"""Weighted pairs by the definition: every two records are compared, in Python and fractions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from itertools import combinations
from math import isqrt

Vector = Mapping[Hashable, Fraction]  # token → weight above 0


def jaccard(x: Vector, y: Vector) -> Fraction:
    """Return Σ min / Σ max over all tokens: the Jaccard similarity of weighted sets."""
    tokens = {*x, *y}
    low = sum(min(x.get(token, 0), y.get(token, 0)) for token in tokens)
    return Fraction(low, sum(max(x.get(token, 0), y.get(token, 0)) for token in tokens))


def dice(x: Vector, y: Vector) -> Fraction:
    """Return 2·Σ min / (Σ x + Σ y): the Dice similarity of weighted sets."""
    low = sum(min(weight, y.get(token, 0)) for token, weight in x.items())
    return Fraction(2 * low, sum(x.values()) + sum(y.values()))


def squared_cosine(x: Vector, y: Vector) -> Fraction:
    """Return (Σ x·y)² / (Σ x² · Σ y²): the square of the cosine."""
    dot = sum(weight * y.get(token, 0) for token, weight in x.items())
    squares = [sum(weight**2 for weight in z.values()) for z in (x, y)]
    return Fraction(dot**2, squares[0] * squares[1])


def millionths_of_root(square: Fraction) -> int:
    """Return the root of a fraction in millionths, exactly rounded half to even."""
    floor = isqrt(square.numerator * 10**12 // square.denominator)
    middle = Fraction(2 * floor + 1, 2 * 10**6) ** 2
    return floor + (square > middle or (square == middle and floor % 2))


def idf(records: int, holders: int) -> int:
    """Return 8·log2(N / df), rounded, from 1 to 255, in exact fractions."""
    power = Fraction(records, holders) ** 16
    return max([w for w in range(1, 256) if power >= 2 ** (2 * w - 1)], default=1)


def rare_first(vectors: Iterable[Vector]) -> list[Vector]:
    """Return the vectors with each weight multiplied by its token's idf weight."""
    vectors = list(vectors)
    holders = Counter(token for vector in vectors for token in vector)
    weights = {token: idf(len(vectors), n) for token, n in holders.items()}
    return [{token: w * weights[token] for token, w in vector.items()} for vector in vectors]


def weighted_lines(
    records: Iterable[tuple[bytes, Vector]], measure: str, threshold: str
) -> list[bytes]:
    """Return the sorted pair lines of records with unique ids."""
    t, lines = Fraction(threshold), []
    for (a, x), (b, y) in combinations(sorted(records, key=lambda record: record[0]), 2):
        if measure == "cosine":
            square = squared_cosine(x, y)
            reached, millionths = square >= t**2, millionths_of_root(square)
        else:
            similarity = {"jaccard": jaccard, "dice": dice}[measure](x, y)
            reached, millionths = similarity >= t, round(similarity * 10**6)
        if reached:
            lines.append(b"%b\t%b\t%d.%06d\n" % (a, b, *divmod(millionths, 10**6)))
    return lines
