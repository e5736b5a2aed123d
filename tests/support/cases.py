"""Parametrized cases, of which `make test` runs some; the others are marked slow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from itertools import combinations, product
from typing import Any, Union

import pytest

Values = Union[Mapping[str, Any], Collection[Any]]


def crossed(*fixtures: str, **values: Values) -> pytest.MarkDecorator:
    """Parametrize so that each two values of different lists, which may have names, meet in a case.

    The first value of each is in one case, the second one of each, and so on; a shorter list
    begins again.  Only these run without `slow`.  The names in `fixtures` are those of fixtures.
    """
    lists = [list(named(some)) for some in values.values()]
    fast = _turn(lists, 0)
    return _cases(values, lists, pairwise([len(some) for some in lists], fast), fast, fixtures)


def in_turn(rounds: int, **values: Values) -> pytest.MarkDecorator:
    """Parametrize with each value of the longest list so often, each time beside others.

    For values that do not depend on each other, as ways to read and ways to write.  The first
    round is that of `crossed`; the others are slow.
    """
    lists = [list(named(some)) for some in values.values()]
    every = dict.fromkeys(at for turn in range(rounds) for at in _turn(lists, turn))
    return _cases(values, lists, sorted(every), _turn(lists, 0), ())


def _turn(lists: Sequence[Sized], turn: int) -> list[tuple[int, ...]]:
    """Return as many tuples of places as the longest list has; in the others they move by turns."""
    sizes = [len(some) for some in lists]
    longest = sizes.index(max(sizes))
    others = [place for place in range(len(sizes)) if place != longest]
    moved = {place: turn * steps for steps, place in enumerate(others, 1)}
    return [
        tuple((i + moved.get(place, 0)) % size for place, size in enumerate(sizes))
        for i in range(sizes[longest])
    ]


def _cases(
    values: Mapping[str, Values],
    lists: Sequence[Sequence[tuple[str, Any]]],
    every: Sequence[tuple[int, ...]],
    fast: Collection[tuple[int, ...]],
    fixtures: Sequence[str],
) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        list(values),
        [
            pytest.param(
                *(some[i][1] for some, i in zip(lists, at)),
                marks=() if at in fast else pytest.mark.slow,
                id="-".join(some[i][0] for some, i in zip(lists, at)),
            )
            for at in every
        ],
        indirect=list(fixtures),
    )


def pairwise(sizes: Sequence[int], first: Collection[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return few tuples of places, `first` among them, in which any two places come together.

    >>> pairwise([2, 2, 2], [(0, 0, 0), (1, 1, 1)])
    [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1)]
    """
    if len(sizes) < 3:
        return list(product(*map(range, sizes)))

    def pairs(at: tuple[int, ...]) -> set[tuple[tuple[int, int], ...]]:
        return set(combinations(enumerate(at), 2))

    left = {at: pairs(at) for at in product(*map(range, sizes))}
    found = set(first)
    met = set().union(*map(pairs, found))
    while left:
        left = {at: rest for at, new in left.items() if (rest := new - met)}
        best = max(left, key=lambda at: len(left[at]), default=None)
        if best is not None:
            found.add(best)
            met |= left.pop(best)
    return sorted(found)


def some(name: str, values: Values, *fast: Any) -> pytest.MarkDecorator:
    """Parametrize with all values, which may have names; all but the `fast` ones are slow."""
    cases = list(named(values))
    keys = list(values)
    assert all(one in keys for one in fast), fast
    return pytest.mark.parametrize(
        name,
        [
            pytest.param(value, marks=() if key in fast else pytest.mark.slow, id=label)
            for key, (label, value) in zip(keys, cases)
        ],
    )


def named(values: Values) -> Iterable[tuple[str, Any]]:
    """Return (name, value) of each value."""
    if isinstance(values, Mapping):
        return values.items()
    return [(str(each), each) for each in values]
