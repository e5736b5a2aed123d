"""The oracle of decisions, in a few lines: a loop over records and the nested loop's pairs."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations
from typing import Any, Callable, NamedTuple, Union

from neardup.similarity.definitions import tversky


class Line(NamedTuple):
    """A record of the input; its index is its place."""

    id: bytes
    set: frozenset[int]
    old: bool = False


class Gone(NamedTuple):
    place: int
    kept: int
    similarity: str  # as it is printed


def jaccard(a: Line, b: Line) -> Fraction:
    return Fraction(len(a.set & b.set), len(a.set | b.set))


CONTAINMENT = Fraction(1), Fraction(0)


def contained(a: Line, b: Line, weights: tuple[Fraction, Fraction] = CONTAINMENT) -> Fraction:
    """Return the containment of a in b, or the Tversky index of a to b with other weights."""
    return tversky(a.set, b.set, *weights)


def printed(similarity: Fraction) -> str:
    return f"{round(similarity * 10**6) / 10**6:.6f}"


def similarities(lines: list[Line], threshold: Fraction) -> dict[tuple[int, int], str]:
    """Return each pair's printed similarity, in both directions; two old records are not a pair."""
    found = {
        (i, j): printed(similarity)
        for (i, a), (j, b) in combinations(enumerate(lines), 2)
        if not ((a.old and b.old) or a.set.isdisjoint(b.set))
        if (similarity := jaccard(a, b)) >= threshold
    }
    return {**found, **{(j, i): similarity for (i, j), similarity in found.items()}}


Keep = Union[str, Callable[[int], Any]]  # or the rank of a place, of which the smallest is kept


def order(lines: list[Line], keep: Keep) -> list[int]:
    """Return the places in order of priority, old records first."""

    def rank(i: int) -> tuple:
        if callable(keep):
            return not lines[i].old, keep(i), i
        first = {"first": i, "longest": -len(lines[i].set), "smallest": lines[i].id}[keep]
        return not lines[i].old, first, i

    return sorted(range(len(lines)), key=rank)


def direct(
    lines: list[Line], pairs: dict[tuple[int, int], str], keep: Keep, merges: bool = False
) -> list[Gone]:
    """Return the removals of the greedy algorithm: the first maximal independent set is kept.

    merges: a new record is a better reason than an old one, as with --merge
    """
    kept: list[int] = []
    gone = []
    for i in order(lines, keep):
        reasons = [k for k in kept if (i, k) in pairs]
        if lines[i].old or not reasons:
            kept.append(i)
        else:  # the first of the best, as `kept` is in order of priority
            best = max(reasons, key=lambda k: (lines[k].old != merges, pairs[i, k]))
            gone.append(Gone(i, best, pairs[i, best]))
    return gone


def reasons_to_remove(
    lines: list[Line], threshold: Fraction, weights: tuple[Fraction, Fraction] = CONTAINMENT
) -> dict[tuple[int, int], str]:
    """Return {(i, k): printed containment} where k, which is not shorter, contains i."""
    return {
        (i, k): printed(similarity)
        for (i, a), (k, b) in permutations(enumerate(lines), 2)
        if len(b.set) >= len(a.set) and not ((a.old and b.old) or a.set.isdisjoint(b.set))
        if (similarity := contained(a, b, weights)) >= threshold
    }


def longest_before(lines: list[Line], keep: str) -> Callable[[int], Any]:
    """Return the rank of a place: longer records first, and of equally long ones by `keep`."""
    ranks = {i: rank for rank, i in enumerate(order([x._replace(old=False) for x in lines], keep))}
    return lambda i: (-len(lines[i].set), ranks[i])


def components(count: int, pairs: dict[tuple[int, int], str]) -> list[set[int]]:
    """Return the connected components of two or more records."""
    found: list[set[int]] = []
    for start in range(count):
        if not any(start in component for component in found):
            component, ahead = {start}, [start]
            while ahead:
                i = ahead.pop()
                more = {j for j in range(count) if (i, j) in pairs} - component
                component |= more
                ahead += more
            found.append(component)
    return [component for component in found if len(component) > 1]


def cluster(lines: list[Line], pairs: dict[tuple[int, int], str], keep: Keep) -> list[Gone]:
    """Return the removals that keep one record of each component, and all old records."""
    ranks = {i: rank for rank, i in enumerate(order(lines, keep))}
    gone = []
    for component in components(len(lines), pairs):
        first = min(component, key=ranks.__getitem__)
        others = (i for i in component - {first} if not lines[i].old)
        gone += [Gone(i, first, pairs.get((i, first), "-")) for i in others]
    return gone
