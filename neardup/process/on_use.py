"""What is imported when it is used: of a table's entries a run takes one or two.

A file costs half a millisecond, and twice that in a task of a cluster, which has none compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


def imported(room: str, place: str) -> Any:
    """
    >>> imported("neardup.process", "errors.StageError").__name__
    'StageError'
    """
    file, name = place.split(".")
    return getattr(import_module(f"{room}.{file}"), name)


class OnUse(Mapping[str, T]):
    """name → what a file of a room has; `places` tell it as FILE.NAME.

    >>> errors = OnUse("neardup.process", {"a stage": "errors.StageError"})
    >>> list(errors), "a stage" in errors, errors["a stage"].__name__
    (['a stage'], True, 'StageError')
    """

    def __init__(self, room: str, places: Mapping[str, str]):
        self._room, self._places = room, places

    def __getitem__(self, name: str) -> T:
        entry: T = imported(self._room, self._places[name])
        return entry

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
