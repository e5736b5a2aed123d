"""Parametrized cases, of which `make test` runs some; the others are marked slow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import product
from typing import Any, Union

import pytest

Values = Union[Mapping[str, Any], Collection[Any]]


def crossed(*fixtures: str, **values: Values) -> pytest.MarkDecorator:
    """Parametrize with all combinations of the values, which may have names.

    The first value of each is in one case, the second one of each, and so on; a shorter list
    begins again.  Only these run without `slow`.  The names in `fixtures` are those of fixtures.
    """
    lists = [list(named(some)) for some in values.values()]
    often = max(map(len, lists))
    fast = {tuple(i % len(some) for some in lists) for i in range(often)}
    return pytest.mark.parametrize(
        list(values),
        [
            pytest.param(
                *(some[i][1] for some, i in zip(lists, at)),
                marks=() if at in fast else pytest.mark.slow,
                id="-".join(some[i][0] for some, i in zip(lists, at)),
            )
            for at in product(*(range(len(some)) for some in lists))
        ],
        indirect=list(fixtures),
    )


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
