"""Summarise the answer of `neardup videos` for a page: counts of all pairs, and the first pairs.

In memory: all pairs, about 500 bytes for each.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from neardup.media.videos.runs import SAME_SPEED, CommonStretch, PairRun, Run, parse_run
from neardup.reading.row_files import fields_table, json_row
from neardup.runtime.program import WireError, shown
from neardup.sets.ragged import Forest

FIRST = 50  # pairs that are shown
GROUPS = 10  # groups, and common stretches, that are shown
REMOVED_VIDEOS = fields_table(id=str, kept=str, share=float, doubt=str)
LATEST = 1e7  # seconds
_COMMON = re.compile(
    rb"([0-9]{1,9})\t([0-9]+\.[0-9])\t([^\0\t\r\n]+)\t([0-9]+\.[0-9])-([0-9]+\.[0-9])\t?\n?"
)


class Paired(NamedTuple):
    """Two videos, by their ids, and what they have in common."""

    a: str
    b: str
    share: float  # of the shorter one
    mirrored: bool
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
    """Videos that are connected by pairs; the first ones, doubtful ones before others, beside the
    one that is kept.

    Without a decision, that is the one in most pairs; a video that is no pair with it is beside
    the one that it is most similar to.
    """

    size: int
    kept: str
    pairs: list[Paired]  # a: kept


class VideoAnswer(NamedTuple):
    pairs: int
    videos: int
    groups: int
    seconds: float  # in common, of all pairs
    mirrored: int  # pairs
    retimed: int  # pairs with a run at another speed
    removed: int  # videos
    doubtful: int  # of these
    largest: list[Group]

    @property
    def first(self) -> list[Paired]:
        return [pair for group in self.largest for pair in group.pairs]


class Place(NamedTuple):
    """A place of a common stretch: a video, and the start and end in it, in seconds."""

    id: str
    start: float
    end: float


class Stretch(NamedTuple):
    """A stretch that many videos have in common, and its places in them."""

    seconds: float
    places: list[Place]


def found_run(line: bytes) -> PairRun:
    """Parse a line of `neardup videos`; WireError for anything else."""
    run = parse_run(line)
    if max(run[2:7]) > LATEST:
        expected = "times in seconds, as `neardup videos` writes them"
        raise WireError(f"expected {expected}, got {shown(line)}")
    return run


def parse_removed_video(line: bytes) -> tuple[str, tuple[str, str]]:
    r"""Return (id, (kept, doubt)) of a line that `neardup videos --removed` wrote; else WireError.

    >>> parse_removed_video(b"b.mp4\ta.mp4\t0.912345\tmirrored\n")
    ('b.mp4', ('a.mp4', 'mirrored'))
    """
    fields = line.decode("utf-8", "replace").rstrip("\t\n").split("\t")
    if len(fields) not in (3, len(REMOVED_VIDEOS.columns)):  # there may be no doubt
        raise WireError(f"expected a line that `neardup videos --removed` wrote, got {shown(line)}")
    return fields[0], (fields[1], "".join(fields[3:]))


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
    pairs: dict[tuple[str, str, bool], Paired] = {}
    for run in runs:
        for id_ in (run.a, run.b):
            numbers.setdefault(id_, len(numbers))
        new = Paired(run.a, run.b, run.share, run.mirrored, run.one_picture, [])
        pairs.setdefault((run.a, run.b, run.mirrored), new).runs.append(run.run)
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


def named_stretches(stretches: Iterable[CommonStretch], ids: Sequence[str]) -> list[Stretch]:
    """Return common stretches as they are written: with the ids of videos, and rounded times."""
    return [
        Stretch(
            round(stretch.seconds, 1),
            [Place(ids[k], round(start, 1), round(end, 1)) for k, start, end in stretch.places],
        )
        for stretch in stretches
    ]


def common_lines(stretches: Iterable[Stretch]) -> Iterator[bytes]:
    r"""Yield a line for each place of each common stretch: its number, seconds, ID, from-to.

    >>> places = [Place("a", 0.0, 6.0), Place("c", 61.0, 67.0)]
    >>> list(common_lines([Stretch(6.0, places)]))
    [b'1\t6.0\ta\t0.0-6.0\n', b'1\t6.0\tc\t61.0-67.0\n']
    """
    for k, (seconds, places) in enumerate(stretches, 1):
        for id_, start, end in places:
            yield f"{k}\t{seconds:.1f}\t{id_}\t{start:.1f}-{end:.1f}\n".encode()


def common_objects(stretches: Iterable[Stretch]) -> Iterator[bytes]:
    r"""Yield a JSON object for each common stretch.

    >>> next(common_objects([Stretch(6.0, [Place("a", 0.0, 6.0)])]))
    b'{"seconds":6.0,"places":[{"id":"a","from":0.0,"to":6.0}]}\n'
    """
    for seconds, places in stretches:
        times = [{"id": id_, "from": start, "to": end} for id_, start, end in places]
        yield json_row({"seconds": seconds, "places": times})


def parse_common(line: bytes) -> tuple[int, Stretch]:
    r"""Parse a line that --common has written: a stretch's number, and one or all of its places.

    As a JSON object, which has all places, the number is 0.  WireError for anything else.

    >>> parse_common(b"1\t6.0\ta.mp4\t3.0-9.1\n")
    (1, Stretch(seconds=6.0, places=[Place(id='a.mp4', start=3.0, end=9.1)]))
    """
    try:
        if not line.startswith(b"{"):
            number, seconds, place = _place(line)
            return number, Stretch(seconds, [place])
        fields = json.loads(line)
        places = fields["places"] if isinstance(fields["places"], list) else []
        parsed = [_place(_line(fields["seconds"], place)) for place in places]
        return 0, Stretch(parsed[0][1], [place for _, _, place in parsed])
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

    >>> a, b = (Stretch(6.0, [Place(id_, 0.0, 6.0)]) for id_ in "ab")
    >>> [len(stretch.places) for stretch in stretches_of([(1, a), (1, b), (2, b)])]
    [2, 1]
    """
    joined = []
    for number, group in groupby(lines, lambda each: each[0]):
        some = [stretch for _, stretch in group]
        for part in [some] if number else [[each] for each in some]:
            places = [place for each in part for place in each.places]
            joined.append(Stretch(part[0].seconds, places))
    return sorted(joined, key=lambda stretch: -len(stretch.places))
