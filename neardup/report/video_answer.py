"""Summarise the answer of `neardup videos` for a page: counts of all pairs, and the first pairs.

In memory: the ids of the videos that are in pairs, and a number for each pair.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

import numpy as np

from neardup.runtime.program import WireError, shown
from neardup.sets.ragged import Forest
from neardup.videos.pair_lines import PairRun, parse_run
from neardup.videos.runs import Run

FIRST = 50  # pairs that are shown
GROUPS = 10  # groups, and common stretches, that are shown
MEMBERS = 6  # of such a group
LATEST = 1e7  # seconds
SAME_SPEED = 0.005  # how far the rate of a run may be from 1
_COMMON = re.compile(
    rb"([0-9]{1,9})\t([0-9]+\.[0-9])\t([^\0\t\r\n]+)\t([0-9]+\.[0-9])-([0-9]+\.[0-9])\t?\n?"
)


class Couple(NamedTuple):
    """Two videos, by their ids, and what they have in common."""

    a: str
    b: str
    share: float  # of the shorter one
    mirrored: bool
    one_picture: bool
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


class Place(NamedTuple):
    """A place of a common stretch: a video, and the start and end in it, in seconds."""

    id: str
    start: float
    end: float


class Stretch(NamedTuple):
    """A stretch that many videos have in common, and its places in them."""

    seconds: float
    total: int  # of places
    places: list[Place]


def found_run(line: bytes) -> PairRun:
    """Parse a line of `neardup videos`; WireError for anything else."""
    run = parse_run(line)
    if max(run[2:7]) > LATEST:
        expected = "times in seconds, as `neardup videos` writes them"
        raise WireError(f"expected {expected}, got {shown(line)}")
    return run


def answer_of(runs: Iterable[PairRun]) -> VideoAnswer:
    """Count all pairs; keep the first pairs, in order, with all their matched stretches.

    >>> numbers = (8.0, 0.0, 8.0, 2.0, 10.0, 1.0, 1.0)
    >>> answer = answer_of([PairRun("a", "b", *numbers, False), PairRun("a", "c", *numbers, True)])
    >>> answer.pairs, answer.videos, answer.seconds, answer.mirrored, answer.largest
    (2, 3, 16.0, 1, [Group(size=3, members=['a', 'b', 'c'])])
    """
    numbers: dict[str, int] = {}
    pairs: dict[tuple[int, int, bool], int] = {}
    first: list[Couple] = []
    seconds, retimed = 0.0, set[int]()
    for run in runs:
        a, b = (numbers.setdefault(id_, len(numbers)) for id_ in (run.a, run.b))
        number = pairs.setdefault((a, b, run.mirrored), len(pairs))
        seconds += run.seconds
        if speed(run.rate):
            retimed.add(number)
        if number == len(first) < FIRST:
            first.append(Couple(run.a, run.b, run.share, run.mirrored, run.one_picture, []))
        if number < len(first):
            first[number].runs.append(run.run)
    couples = np.array([pair[:2] for pair in pairs], np.int64).reshape(-1, 2)
    groups, largest = _groups(list(numbers), couples)
    mirrored = sum(pair[2] for pair in pairs)
    counts = (len(pairs), len(numbers), groups)
    return VideoAnswer(*counts, seconds, mirrored, len(retimed), largest, first)


def _groups(ids: list[str], couples: np.ndarray) -> tuple[int, list[Group]]:
    """Return the number of groups of connected videos, and the largest groups."""
    forest = Forest(len(ids))
    forest.join_all(couples[:, 0], couples[:, 1])
    roots = forest.roots(np.arange(len(ids)))
    first, sizes = np.unique(roots, return_counts=True)
    largest = [
        Group(int(sizes[k]), [ids[n] for n in np.flatnonzero(roots == first[k])[:MEMBERS]])
        for k in np.argsort(-sizes, kind="stable")[:GROUPS]
    ]
    return len(first), largest


def speed(rate: float) -> str:
    """Describe how much faster or slower the second video of a run plays; "" within 0.5 %.

    >>> speed(0.952), speed(1.05), speed(1.001)
    ('5.0 % faster', '4.8 % slower', '')
    """
    if abs(rate - 1) <= SAME_SPEED:
        return ""
    return f"{100 * abs(1 / max(rate, 0.001) - 1):.1f} % {'faster' if rate < 1 else 'slower'}"


def parse_common(line: bytes) -> tuple[int, Stretch]:
    r"""Parse a line that --common has written: a stretch's number, and one or all of its places.

    As a JSON object, which has all places, the number is 0.  WireError for anything else.

    >>> parse_common(b"1\t6.0\ta.mp4\t3.0-9.1\n")
    (1, Stretch(seconds=6.0, total=1, places=[Place(id='a.mp4', start=3.0, end=9.1)]))
    """
    try:
        if not line.startswith(b"{"):
            number, seconds, place = _place(line)
            return number, Stretch(seconds, 1, [place])
        fields = json.loads(line)
        places = fields["places"] if isinstance(fields["places"], list) else []
        parsed = [_place(_line(fields["seconds"], place)) for place in places]
        return 0, Stretch(parsed[0][1], len(parsed), [place for _, _, place in parsed])
    except (ValueError, KeyError, IndexError, OverflowError, RecursionError):
        raise WireError(
            f"expected a line that `neardup videos --common` wrote, got {shown(line)}"
        ) from None


def _line(seconds: object, place: object) -> bytes:
    if not isinstance(place, dict):
        raise ValueError
    all_, start, end = (float(str(time)) for time in (seconds, place["from"], place["to"]))
    return f"0\t{all_:.1f}\t{place['id']}\t{start:.1f}-{end:.1f}\n".encode()


def _place(line: bytes) -> tuple[int, float, Place]:
    """Parse a line into the number, seconds and place of a stretch; ValueError if malformed."""
    found = _COMMON.fullmatch(line)
    if not found:
        raise ValueError
    seconds, start, end = (float(found[k]) for k in (2, 4, 5))
    if max(seconds, start, end) > LATEST:
        raise ValueError
    return int(found[1]), seconds, Place(found[3].decode(), start, end)


def stretches_of(lines: Iterable[tuple[int, Stretch]]) -> list[Stretch]:
    """Join consecutive lines of the same stretch; sort stretches by number of places, descending.

    >>> a, b = (Stretch(6.0, 1, [Place(id_, 0.0, 6.0)]) for id_ in "ab")
    >>> [stretch.total for stretch in stretches_of([(1, a), (1, b), (2, b)])]
    [2, 1]
    """
    joined = []
    for number, group in groupby(lines, lambda each: each[0]):
        some = [stretch for _, stretch in group]
        for part in [some] if number else [[each] for each in some]:
            places = [place for each in part for place in each.places]
            joined.append(Stretch(part[0].seconds, len(places), places))
    return sorted(joined, key=lambda stretch: -stretch.total)
