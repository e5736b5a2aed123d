"""The answer by the definition: every two records are compared, in plain Python and fractions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import combinations

from neardup.similarity.definitions import resemblance
from neardup.similarity.measures import Threshold

Pair = tuple[bytes, bytes]  # of ids, the smaller one first


def similarities(records: Iterable[tuple[bytes, Iterable[Hashable]]]) -> dict[Pair, Fraction]:
    """Of every two ids; the highest, where an id comes with several sets."""
    best: dict[Pair, Fraction] = {}
    sets = [(id_, frozenset(x)) for id_, x in records]
    for (a, x), (b, y) in combinations([record for record in sets if record[1]], 2):
        if a != b:
            pair = min(a, b), max(a, b)
            best[pair] = max(resemblance(x, y), best.get(pair, Fraction(0)))
    return best


def nested_loop(records: Mapping[bytes, Iterable[Hashable]], threshold: Threshold) -> list[Pair]:
    """Every pair of ids (a < b) whose sets reach the threshold, sorted."""
    t = Fraction(threshold.num, threshold.den)
    return sorted(pair for pair, s in similarities(records.items()).items() if s >= t)


def pair_lines(records: Iterable[tuple[bytes, Iterable[Hashable]]], threshold: str) -> bytes:
    """The job's output; there must be pairs, and others that are none."""
    every = similarities(records)
    found = {pair: s for pair, s in every.items() if s >= Fraction(threshold)}
    assert 0 < len(found) < len(every)
    lines = [b"%b\t%b\t%.6f\n" % (a, b, round(s * 10**6) / 10**6) for (a, b), s in found.items()]
    return b"".join(sorted(lines))


def components(pairs: Iterable[Pair]) -> Iterator[frozenset[bytes]]:
    """What pairs connect, the naive way."""
    groups: list[frozenset[bytes]] = []
    for pair in pairs:
        touched = [group for group in groups if not group.isdisjoint(pair)]
        groups = [group for group in groups if group.isdisjoint(pair)]
        groups.append(frozenset(pair).union(*touched))
    return iter(groups)
