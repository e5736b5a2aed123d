"""The report page of a video run: in groups, frames of each video and the kept one.

    lines ─▶ counts, groups ─▶ times, by video ─▶ pictures ─▶ page

A group consists of copies and clips.  Videos that only share a part are shown in pairs.

A page has at most 60 pairs and 1,000 pictures; it takes about 5 MB then, and 20 at most.  Pictures
are read in child processes that may crash.  Only files below given folders are opened: the lines of
an answer may come from elsewhere.  A file may take 30 seconds on the clock and 2 GiB.
In memory: all pairs, about 500 bytes for each.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Callable, NamedTuple

import numpy as np

from neardup.media.frames.moments import Sight, sight_of
from neardup.media.videos.common import Place, Stretch
from neardup.media.videos.runs import PART, SAME_SPEED, PairRun, Run
from neardup.reading.decoders import Failure, bound_memory, outcomes
from neardup.reading.folder_walk import path_of
from neardup.sets.ragged import Forest
from neardup.tools.report.page import data_uri, filled

FIRST = 50  # pairs that are shown
GROUPS = 10  # groups, and common stretches, that are shown
PARTS = 10  # pairs with a shared part that are shown
RUNS = 3  # of a pair, with pictures
LISTED = 20  # intervals of a pair, and videos that are not shown
MOMENTS = (4, 2)  # moments shown of the first run, and of each further run
PLACES = 4  # of a common stretch, with pictures
WIDE = 1000.0  # units of the longer timeline
Moment = tuple[float, float, str, str]  # of two videos: times, and pictures as data URIs or ""
MIN_INTERVAL = 4.0  # units: the shortest interval
TIME_LIMIT = 30  # seconds, for a file
OUTSIDE = "is not below a folder that may be opened; name its folder with --folder"


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
        pairs=len(pairs),
        videos=len(numbers),
        groups=len(first),
        seconds=sum(pair.seconds for pair in pairs.values()),
        mirrored=sum(pair.mirrored for pair in pairs.values()),
        retimed=sum(any(speed(run.rate) for run in pair.runs) for pair in pairs.values()),
        removed=len(gone),
        doubtful=sum(bool(doubt) for _, doubt in gone.values()),
        largest=[_group(int(sizes[k]), grouped[int(first[k])], gone, room) for k in largest],
        parts=len(parts),
        longest=sorted(parts, key=lambda pair: -pair.seconds)[:PARTS],
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


# ---- the page


class Lines(NamedTuple):
    """Two timelines and the intervals on them, in units; the longer line has WIDE units."""

    seconds: float  # of the longer line
    a: float  # length
    b: float
    runs: list[tuple[float, float, float, float]]  # from and to on a, from and to on b


class Seen(NamedTuple):
    """The facts about videos by id, and their pictures (data URIs) by id and time."""

    videos: dict[str, Sight | Failure]
    pictures: dict[tuple[str, float], str]

    def seconds(self, id_: str) -> float:
        """Return the length of a video, or 0 if it is unknown."""
        found = self.videos[id_]
        return found.seconds if isinstance(found, Sight) else 0.0

    def picture(self, id_: str, at: float) -> str:
        """Return the picture of a video at a time as a data URI, or "" if there is none."""
        return self.pictures.get((id_, at), "")


def video_page(answer: VideoAnswer, common: Sequence[Stretch], source: str, seen: Seen) -> str:
    """Return the page of an answer; `source`: the answer's file; `seen`: the videos' pictures."""
    groups = [(each, [_shown(pair, seen) for pair in each.pairs]) for each in answer.largest]
    parts = [_shown(pair, seen) for pair in answer.longest]
    closed = [(id_, found) for id_, found in seen.videos.items() if isinstance(found, Failure)]
    return filled(
        "videos.html.j2",
        *CALLS,
        answer=answer,
        common=common,
        source=source,
        seen=seen,
        groups=groups,
        parts=parts,
        seconds=answer.seconds,
        closed=closed,
        listed=LISTED,
        most_groups=GROUPS,
        most_places=PLACES,
    )


def moments(run: Run, many: int) -> list[tuple[float, float]]:
    """Return `many` pairs of times, in a and b, evenly spaced within a run.

    >>> moments(Run(8.0, 0.0, 8.0, 2.0, 10.0, 1.0, 30), 4)
    [(1.0, 3.0), (3.0, 5.0), (5.0, 7.0), (7.0, 9.0)]
    """
    a, b, parts = run.a_to - run.a_from, run.b_to - run.b_from, np.arange(many) + 0.5
    return [(run.a_from + part * a, run.b_from + part * b) for part in (parts / many).tolist()]


def middle(place: Place) -> float:
    return (place.start + place.end) / 2


def _strips(pair: Paired) -> list[list[tuple[float, float]]]:
    """Return the times (in a, in b) at which each of the first runs of a pair is shown."""
    return [moments(run, MOMENTS[min(k, 1)]) for k, run in enumerate(pair.runs[:RUNS])]


def times_of(pairs: Sequence[Paired], common: Sequence[Stretch]) -> dict[str, list[float]]:
    """Return the times at which the page shows each video, by id."""
    times: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        for a, b in chain.from_iterable(_strips(pair)):
            times[pair.a].append(a)
            times[pair.b].append(b)
    for stretch in common[:GROUPS]:
        for place in stretch.places[:PLACES]:
            times[place.id].append(middle(place))
    return times


def look(
    times: Mapping[str, Sequence[float]],
    folders: Sequence[str],
    jobs: int,
    done: Callable[[int], object] = lambda _: None,
) -> Seen:
    """Return the facts about videos, and pictures at `times` (id: seconds), from `jobs` processes.

    Files are opened only below `folders`; symbolic links are resolved first.  `done` is called with
    the number of files that are done.
    """
    seen = Seen({}, {})
    below = [os.path.realpath(os.fsencode(folder)) for folder in folders]
    inside = {id_: _is_below(path_of(id_), below) for id_ in times}
    seen.videos.update({id_: Failure(OUTSIDE, "") for id_ in times})
    tasks = [(id_, list(some)) for id_, some in times.items() if inside[id_]]
    sights = outcomes(tasks, _look, jobs, lambda _: TIME_LIMIT, bound_memory, fresh=True)
    for number, ((id_, asked), found) in enumerate(sights, 1):
        done(number)
        seen.videos[id_] = found
        if isinstance(found, Sight):
            pictures = zip(asked, found.pictures)
            seen.pictures.update({(id_, at): data_uri(jpeg) for at, jpeg in pictures if jpeg})
    return seen


def _look(task: tuple[str, list[float]]) -> Sight | Failure:
    return sight_of(path_of(task[0]), task[1])


def _is_below(path: bytes, folders: Sequence[bytes]) -> bool:
    """Return whether a path is below one of the folders after resolving symbolic links."""
    if b"\0" in path:
        return False
    real = os.path.realpath(path)
    return any(os.path.commonpath([real, folder]) == folder for folder in folders)


def _shown(pair: Paired, seen: Seen) -> tuple[Paired, Lines, list[list[Moment]]]:
    """Return a pair, its timelines, and the moments of its first runs that have pictures."""
    a, b = pair.a, pair.b
    strips = []
    for times in _strips(pair):
        strip = [(at, on, seen.picture(a, at), seen.picture(b, on)) for at, on in times]
        strips += [strip] * any(any(moment[2:]) for moment in strip)
    lines = time_lines(pair.runs[:LISTED], seen.seconds(a), seen.seconds(b))
    return pair, lines, strips


def time_lines(runs: Sequence[Run], a: float, b: float) -> Lines:
    """Return the timelines of two videos, which last `a` and `b` seconds (0 if unknown).

    >>> time_lines([Run(5.0, 0.0, 5.0, 20.0, 25.0, 1.0, 20)], 5.0, 50.0)
    Lines(seconds=50.0, a=100.0, b=1000.0, runs=[(0.0, 100.0, 400.0, 500.0)])
    """
    a = max(a, *(run.a_to for run in runs))
    b = max(b, *(run.b_to for run in runs))
    unit = max(a, b) / WIDE or 1.0
    wide_a, wide_b = max(a / unit, MIN_INTERVAL), max(b / unit, MIN_INTERVAL)
    of_a = (_interval(run.a_from / unit, run.a_to / unit, wide_a) for run in runs)
    of_b = (_interval(run.b_from / unit, run.b_to / unit, wide_b) for run in runs)
    intervals = [(*on_a, *on_b) for on_a, on_b in zip(of_a, of_b)]
    return Lines(max(a, b), wide_a, wide_b, intervals)


def _interval(start: float, end: float, width: float) -> tuple[float, float]:
    """Widen an interval to at least MIN_INTERVAL units, within a timeline of `width` units."""
    start = max(0.0, min(start, width - MIN_INTERVAL))
    return start, max(end, start + MIN_INTERVAL)


def clock(seconds: float) -> str:
    """Format a time, given in seconds, as hours, minutes and seconds.

    >>> clock(7.25), clock(3671.0)
    ('0:07.2', '1:01:11.0')
    """
    tenths = int(seconds * 10 + 1e-6)
    hours, minutes, rest = tenths // 36000, tenths // 600 % 60, tenths % 600
    start = f"{hours}:{minutes:02}" if hours else f"{minutes}"
    return f"{start}:{rest // 10:02}.{rest % 10}"


def size(count: int) -> str:
    """Format a number of bytes.

    >>> size(999), size(48668), size(1234567890)
    ('999 bytes', '49 kB', '1.2 GB')
    """
    for unit, digits, name in ((10**9, 1, "GB"), (10**6, 1, "MB"), (10**3, 0, "kB")):
        if count >= unit:
            return f"{count / unit:.{digits}f} {name}"
    return f"{count} bytes"


def facts(found: Sight | Failure) -> str:
    """Describe a video, or why it has no pictures.

    >>> facts(Sight(60.0, 1920, 1080, 25.0, 1000, "h264", ()))
    '1:00.0, 1920 × 1080, 25 fps, h264, 1 kB'
    """
    if isinstance(found, Failure):
        return f"not shown: {found.reason}" + (f" ({found.detail})" if found.detail else "")
    words = [clock(found.seconds)] if found.seconds else []
    words += [f"{found.width} × {found.height}", f"{found.fps:.4g} fps" if found.fps else ""]
    return ", ".join(filter(None, [*words, found.codec, size(found.size)]))


CALLS = (clock, facts, middle, speed)
