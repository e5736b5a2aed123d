"""The answer of `neardup videos` as a page needs it: counts of all pairs, and the first ones whole.

In memory: the names of the videos that are in pairs, and a number for each pair.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from neardup.sets.ragged import Forest
from neardup.videos.pair_lines import PairLine
from neardup.videos.runs import Run

FIRST = 50  # pairs that are shown
GROUPS = 10  # groups that are shown
MEMBERS = 6  # of such a group
SAME_SPEED = 0.005  # the rate of a pair is 1, give or take


class Couple(NamedTuple):
    """Two videos, by their ids, and what they have in common."""

    a: str
    b: str
    share: float  # of the shorter one
    mirrored: bool
    runs: list[Run]

    @property
    def seconds(self) -> float:
        return sum(run.seconds for run in self.runs)


class Group(NamedTuple):
    """Videos that are connected by pairs."""

    size: int
    members: list[str]  # the first ones


class VideoAnswer(NamedTuple):
    pairs: int
    videos: int
    groups: int
    seconds: float  # in common, of all pairs
    mirrored: int  # pairs
    retimed: int  # pairs with a run at another speed
    largest: list[Group]
    first: list[Couple]


def answer_of(lines: Iterable[PairLine]) -> VideoAnswer:
    """Count all pairs, and return the first ones, in the order of the lines.

    >>> run = Run(8.0, 0.0, 8.0, 2.0, 10.0, 1.0, 30)
    >>> lines = [PairLine("a", "b", run, 0.5, False), PairLine("a", "c", run, 1.0, True)]
    >>> answer = answer_of(lines)
    >>> answer.pairs, answer.videos, answer.seconds, answer.mirrored, answer.largest
    (2, 3, 16.0, 1, [Group(size=3, members=['a', 'b', 'c'])])
    """
    numbers: dict[str, int] = {}
    pairs: dict[tuple[int, int], int] = {}
    first: list[Couple] = []
    seconds, mirrored, retimed = 0.0, set[int](), set[int]()
    for line in lines:
        couple = tuple(numbers.setdefault(id_, len(numbers)) for id_ in (line.a, line.b))
        number = pairs.setdefault((couple[0], couple[1]), len(pairs))
        seconds += line.run.seconds
        if line.mirrored:
            mirrored.add(number)
        if speed(line.run.rate):
            retimed.add(number)
        if number == len(first) < FIRST:
            first.append(Couple(line.a, line.b, line.share, line.mirrored, []))
        if number < len(first):
            first[number].runs.append(line.run)
    largest, groups = _groups(list(numbers), np.array(list(pairs), np.int64).reshape(-1, 2))
    counts = len(pairs), len(numbers), groups
    return VideoAnswer(*counts, seconds, len(mirrored), len(retimed), largest, first)


def _groups(ids: list[str], couples: np.ndarray) -> tuple[list[Group], int]:
    """Return the largest groups, and the number of all of them."""
    forest = Forest(len(ids))
    forest.join_all(couples[:, 0], couples[:, 1])
    roots = forest.roots(np.arange(len(ids)))
    first, sizes = np.unique(roots, return_counts=True)
    largest = np.argsort(-sizes, kind="stable")[:GROUPS]
    return [
        Group(int(sizes[k]), [ids[n] for n in np.flatnonzero(roots == first[k])[:MEMBERS]])
        for k in largest
    ], len(first)


def speed(rate: float) -> str:
    """Describe how the second video of a run plays; "" if as the first one does.

    >>> speed(0.952), speed(1.05), speed(1.001)
    ('5.0 % faster', '4.8 % slower', '')
    """
    if abs(rate - 1) <= SAME_SPEED:
        return ""
    return f"{100 * abs(1 / rate - 1):.1f} % {'faster' if rate < 1 else 'slower'}"
