"""Groups of videos for the page of a video run: counts of all pairs, and the first pairs.

A group consists of copies and clips.  Videos that only share a part are shown in pairs.

Memory: all pairs, about 500 bytes for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from neardup.media.videos.runs import PART, SAME_SPEED, PairRun, Run
from neardup.sets.ragged import Forest

FIRST = 50  # pairs that are shown
GROUPS = 10  # groups, and common stretches, that are shown
PARTS = 10  # pairs with a shared part that are shown


class Paired(NamedTuple):
    """Two videos, by their ids, and what they have in common."""

    a: str
    b: str
    share: float  # share of the shorter video
    mirrored: bool
    kind: str  # see `runs`
    one_picture: bool
    runs: list[Run]
    removed: bool = False  # b can be removed, as a copy of a
    doubt: str = ""  # see `originals.doubt`

    @property
    def seconds(self) -> float:
        return sum(run.seconds for run in self.runs)

    def swapped(self) -> Paired:
        return self._replace(a=self.b, b=self.a, runs=[run.swapped() for run in self.runs])


class Group(NamedTuple):
    """Videos connected by copies and clips: the one that is kept, and the first of its pairs.

    Doubtful pairs come before others.  Without a decision, the video in most pairs is kept; a video
    that forms no pair with it is shown beside the one that it is most similar to.
    """

    size: int
    kept: str
    pairs: list[Paired]  # a: kept


class VideoAnswer(NamedTuple):
    pairs: int
    videos: int
    groups: int
    seconds: float  # total of the seconds in common of all pairs
    mirrored: int  # pairs
    retimed: int  # pairs with a run at another speed
    removed: int  # videos
    doubtful: int  # removed videos that are doubtful
    largest: list[Group]
    parts: int  # pairs, which are in none of the counts above
    longest: list[Paired]  # the parts with the most seconds

    @property
    def first(self) -> list[Paired]:
        return [pair for group in self.largest for pair in group.pairs] + self.longest


def answer_of(
    runs: Iterable[PairRun], gone: Mapping[str, tuple[str, str]] = MappingProxyType({})
) -> VideoAnswer:
    """Count all pairs; keep some pairs of the largest groups, with all their matched stretches.

    gone: for each video that can be removed, the one it duplicates, and why that is doubtful.

    >>> numbers = (8.0, 0.0, 8.0, 2.0, 10.0, 1.0, 1.0)
    >>> answer = answer_of([PairRun("b", "c", *numbers, False), PairRun("a", "c", *numbers, True)])
    >>> answer.pairs, answer.videos, answer.seconds, answer.mirrored
    (2, 3, 16.0, 1)
    >>> [(group.size, group.kept, [c.b for c in group.pairs]) for group in answer.largest]
    [(3, 'c', ['b', 'a'])]
    """
    numbers: dict[str, int] = {}
    every: dict[tuple[str, str, bool], Paired] = {}
    for run in runs:
        new = Paired(run.a, run.b, run.share, run.mirrored, run.kind, run.one_picture, [])
        every.setdefault((run.a, run.b, run.mirrored), new).runs.append(run.run)
    parts = [pair for pair in every.values() if pair.kind == PART]
    pairs = {ids: pair for ids, pair in every.items() if pair.kind != PART}
    for id_ in (id_ for a, b, _ in pairs for id_ in (a, b)):
        numbers.setdefault(id_, len(numbers))
    ends = np.array([(numbers[each.a], numbers[each.b]) for each in pairs.values()], np.int64)
    forest = Forest(len(numbers))
    forest.join_all(*ends.reshape(-1, 2).T)
    roots = forest.roots(np.arange(len(numbers)))
    first, sizes = np.unique(roots, return_counts=True)
    largest = np.argsort(-sizes, kind="stable")[:GROUPS].tolist()
    grouped: dict[int, list[Paired]] = {int(first[k]): [] for k in largest}
    for (a, _, _), pair in pairs.items():
        grouped.get(int(roots[numbers[a]]), []).append(pair)
    room = FIRST // max(len(largest), 1)
    return VideoAnswer(
        len(pairs),
        len(numbers),
        len(first),
        sum(pair.seconds for pair in pairs.values()),
        sum(pair.mirrored for pair in pairs.values()),
        sum(any(speed(run.rate) for run in pair.runs) for pair in pairs.values()),
        len(gone),
        sum(bool(doubt) for _, doubt in gone.values()),
        [_group(int(sizes[k]), grouped[int(first[k])], gone, room) for k in largest],
        len(parts),
        sorted(parts, key=lambda pair: -pair.seconds)[:PARTS],
    )


def _group(size: int, pairs: list[Paired], gone: Mapping[str, tuple[str, str]], room: int) -> Group:
    """Return a group with the best pair of each video and the one kept, at most `room`."""
    degree = Counter(id_ for pair in pairs for id_ in (pair.a, pair.b))
    kept = {id_: gone[id_][0] for id_ in degree if id_ in gone}
    named = Counter(id_ for id_ in kept.values() if id_ in degree)
    head = (named or degree).most_common(1)[0][0]
    both = [each for pair in pairs for each in (pair, pair.swapped())]
    beside: dict[str, Paired] = {}
    for each in sorted(both, key=lambda each: (each.a != kept.get(each.b, head), -each.share)):
        if each.b != head:
            removed = kept.get(each.b) == each.a
            doubt = gone[each.b][1] if removed else ""
            beside.setdefault(each.b, each._replace(removed=removed, doubt=doubt))
    chosen = sorted(beside.values(), key=lambda each: (not each.doubt, each.a != head))
    return Group(size, head, chosen[:room])


def speed(rate: float) -> str:
    """Describe how much faster or slower the second video of a run plays; "" within 0.5 %.

    >>> speed(0.952), speed(1.05), speed(1.001)
    ('5.0 % faster', '4.8 % slower', '')
    """
    if abs(rate - 1) <= SAME_SPEED:
        return ""
    return f"{100 * abs(1 / max(rate, 0.001) - 1):.1f} % {'faster' if rate < 1 else 'slower'}"
