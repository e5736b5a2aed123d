"""Repeated runs and passages of small records, by nested loops over all runs of K words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

Run = tuple[str, ...]
Records = Sequence[Sequence[str]]


class Passage(NamedTuple):
    words: int
    places: tuple[tuple[int, int], ...]  # (record, first word)


def places_of(records: Records, width: int, least: int = 1) -> dict[Run, list[tuple[int, int]]]:
    """Return {run: its places} of the repeated runs that at least some records have."""
    found: dict[Run, list[tuple[int, int]]] = defaultdict(list)
    for record, words in enumerate(records):
        for word in range(len(words) - width + 1):
            found[tuple(words[word : word + width])].append((record, word))
    return {
        run: places
        for run, places in found.items()
        if len(places) > 1 and len({record for record, _ in places}) >= least
    }


def covered(records: Records, width: int, least: int = 1) -> set[tuple[int, int]]:
    """Return (record, word) of all words in repeated runs."""
    every = (place for places in places_of(records, width, least).values() for place in places)
    return {(record, word + i) for record, word in every for i in range(width)}


def passages(records: Records, width: int, least: int = 1) -> set[Passage]:
    runs = places_of(records, width, least)

    def beside(run: Run, step: int) -> Run | None:
        """Return the repeated run that is `step` words behind at all places, if there is one."""
        others = set()
        for record, word in runs[run]:
            inside = 0 <= word + step <= len(records[record]) - width
            others.add(tuple(records[record][word + step :][:width]) if inside else None)
        other = others.pop() if len(others) == 1 else None
        return other if other in runs else None

    def following(run: Run) -> Run | None:
        other = beside(run, 1)
        return other if other is not None and beside(other, -1) == run else None

    chained = {other for other in map(following, runs) if other is not None}
    found = set()
    for run, places in runs.items():
        if run not in chained:
            words, at = width, following(run)
            while at is not None:
                words, at = words + 1, following(at)
            found.add(Passage(words, tuple(places)))
    return found
