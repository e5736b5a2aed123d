"""The answer by the definition: every two records are compared, in plain Python and fractions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import combinations
from math import atan2, hypot, pi

from neardup.similarity.definitions import resemblance
from neardup.similarity.measures import Threshold

Pair = tuple[bytes, bytes]  # of ids, the smaller one first
Vector = Mapping[Hashable, float]  # a missing element has weight 0


def similarities(records: Iterable[tuple[bytes, Iterable[Hashable]]]) -> dict[Pair, Fraction]:
    """Return the similarity of every two ids; if an id has several sets, the highest one."""
    best: dict[Pair, Fraction] = {}
    sets = [(id_, frozenset(x)) for id_, x in records]
    for (a, x), (b, y) in combinations([record for record in sets if record[1]], 2):
        if a != b:
            pair = min(a, b), max(a, b)
            best[pair] = max(resemblance(x, y), best.get(pair, Fraction(0)))
    return best


def nested_loop(records: Mapping[bytes, Iterable[Hashable]], threshold: Threshold) -> list[Pair]:
    """Return the sorted pairs of ids (a < b) whose sets reach the threshold."""
    t = Fraction(threshold.num, threshold.den)
    return sorted(pair for pair, s in similarities(records.items()).items() if s >= t)


def pair_lines(records: Iterable[tuple[bytes, Iterable[Hashable]]], threshold: str) -> bytes:
    """Return the job's expected output; there must be pairs, and pairs below the threshold."""
    every = similarities(records)
    found = {pair: s for pair, s in every.items() if s >= Fraction(threshold)}
    assert 0 < len(found) < len(every)
    lines = [b"%b\t%b\t%.6f\n" % (a, b, round(s * 10**6) / 10**6) for (a, b), s in found.items()]
    return b"".join(sorted(lines))


def components(pairs: Iterable[Pair]) -> Iterator[frozenset[bytes]]:
    """Return the connected components of the pairs, found naively."""
    groups: list[frozenset[bytes]] = []
    for pair in pairs:
        touched = [group for group in groups if not group.isdisjoint(pair)]
        groups = [group for group in groups if group.isdisjoint(pair)]
        groups.append(frozenset(pair).union(*touched))
    return iter(groups)


def weighted_cosine(x: Vector, y: Vector) -> float:
    """Return the cosine of the angle between two vectors, from -1 to 1; neither is zero.

    >>> weighted_cosine({"a": 3, "b": 4}, {"a": 1, "c": 5, "d": 0})
    0.11766968108291043
    """
    common = sum(weight * y.get(element, 0) for element, weight in x.items())
    return max(-1.0, min(1.0, common / hypot(*x.values()) / hypot(*y.values())))


def angular_distance(x: Vector, y: Vector) -> float:
    """Return the angle θ between two vectors, neither of which is zero, as θ/π: from 0 to 1.

    >>> [angular_distance({"a": 1}, y) for y in ({"a": 2}, {"b": 2}, {"a": -2})]
    [0.0, 0.5, 1.0]
    """
    # Subtle: near 0 the cosine has half the digits of the angle; the diagonals of the rhombus of
    # the unit vectors have all of them.
    long_x, long_y = hypot(*x.values()), hypot(*y.values())
    units = [(x.get(e, 0) / long_x, y.get(e, 0) / long_y) for e in {**x, **y}]
    return 2 * atan2(hypot(*(a - b for a, b in units)), hypot(*(a + b for a, b in units))) / pi


def hamming(x: int, y: int) -> int:
    """Return the number of bits in which two fingerprints (0 or more) differ.

    >>> hamming(0b1011, 0b0010)
    2
    """
    return bin(x ^ y).count("1")
