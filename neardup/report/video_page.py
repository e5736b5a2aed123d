"""The page of a run on videos: frames of both at the matched times, and where these are.

    pair lines ─▶ counts, first pairs ─▶ times to look at, by file ─▶ pictures ─▶ page

Each file is opened in a process of its own, which may take 30 seconds and 2 GiB.  Only files below
given folders are opened: the lines may come from elsewhere.  A page has at most 800 pictures, about
10 MB.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from neardup.images.decoders import Lost, outcomes
from neardup.images.folder_walk import path_of
from neardup.images.pictures import bound_memory
from neardup.images.results import Failure
from neardup.report.html_page import LONGEST_ID, data_uri, filled
from neardup.report.video_answer import Couple, VideoAnswer, speed
from neardup.videos.moments import Sight, sight_of
from neardup.videos.runs import Run

RUNS = 3  # of a pair, with pictures; all are listed, up to LISTED
LISTED = 20
MOMENTS = (4, 2)  # of the first run, and of each other
TIME_LIMIT = 30  # seconds, for a file
OUTSIDE = "not below these folders"
WIDE = 1000.0  # units of the longer time line
LEAST = 4.0  # units: the shortest interval


class Moment(NamedTuple):
    """The same moment in both videos: times in seconds, and pictures as data URIs or ""."""

    a: float
    b: float
    a_picture: str
    b_picture: str


class Lines(NamedTuple):
    """Two time lines and the intervals on them, in units of which the longer line has WIDE."""

    seconds: float  # of the longer line
    a: float  # length
    b: float
    runs: list[tuple[float, float, float, float]]  # from and to on a, from and to on b


class Shown(NamedTuple):
    """A pair as it is shown; `strips` are the moments of each run that has pictures."""

    couple: Couple
    a: Sight | Failure
    b: Sight | Failure
    lines: Lines
    strips: list[tuple[Run, list[Moment]]]


class Seen(NamedTuple):
    """What was seen of the videos: by id; and pictures, as data URIs, by id and time."""

    videos: dict[str, Sight | Failure]
    pictures: dict[tuple[str, float], str]


def video_page(answer: VideoAnswer, source: str, folders: Sequence[str], jobs: int) -> str:
    """Return the page of an answer from the file `source`; open only videos below `folders`."""
    seen = _seen(_times(answer.first), [os.path.realpath(os.fsencode(f)) for f in folders], jobs)
    return filled(
        "videos.html.j2",
        answer=answer,
        source=source,
        pairs=[_shown(couple, seen) for couple in answer.first],
        closed=[(id_, each) for id_, each in seen.videos.items() if isinstance(each, Failure)],
        listed=LISTED,
        **{call.__name__: call for call in CALLS},
    )


def moments(couple: Couple) -> Iterator[tuple[Run, list[tuple[float, float]]]]:
    """Yield the first runs of a pair, and the times in both videos at which to look.

    >>> run = Run(8.0, 0.0, 8.0, 2.0, 10.0, 1.0, 30)
    >>> list(moments(Couple("a", "b", 0.5, False, [run])))[0][1]
    [(1.0, 3.0), (3.0, 5.0), (5.0, 7.0), (7.0, 9.0)]
    """
    for number, run in enumerate(couple.runs[:RUNS]):
        many = MOMENTS[min(number, 1)]
        parts = [(k + 0.5) / many for k in range(many)]
        yield (
            run,
            [
                (
                    run.a_from + part * (run.a_to - run.a_from),
                    run.b_from + part * (run.b_to - run.b_from),
                )
                for part in parts
            ],
        )


def _times(couples: Sequence[Couple]) -> dict[str, list[float]]:
    """Return the times at which to look, by video."""
    times: dict[str, list[float]] = defaultdict(list)
    for couple in couples:
        for _, both in moments(couple):
            times[couple.a] += [a for a, _ in both]
            times[couple.b] += [b for _, b in both]
    return times


def _seen(times: dict[str, list[float]], folders: list[bytes], jobs: int) -> Seen:
    """Look at the videos at the given times, each in a process that may fail."""
    seen = Seen({}, {})
    inside = {id_: _is_below(path_of(id_), folders) for id_ in times}
    seen.videos.update((id_, Failure(OUTSIDE, "")) for id_ in times if not inside[id_])
    tasks = [(id_, moments) for id_, moments in times.items() if inside[id_]]
    for (id_, asked), found in outcomes(tasks, _look, jobs, TIME_LIMIT, bound_memory):
        seen.videos[id_] = Failure(*found) if isinstance(found, Lost) else found
        if isinstance(found, Sight):
            pictures = (
                (at, data_uri(jpeg) if jpeg else "") for at, jpeg in zip(asked, found.pictures)
            )
            seen.pictures.update(((id_, at), uri) for at, uri in pictures)
    return seen


def _look(task: tuple[str, list[float]]) -> Sight | Failure:
    return sight_of(path_of(task[0]), task[1])


def _is_below(path: bytes, folders: Sequence[bytes]) -> bool:
    """Return True if a path, with links followed, is below one of the folders."""
    if b"\0" in path:
        return False
    real = os.path.realpath(path)
    return any(os.path.commonpath([real, folder]) == folder for folder in folders)


def _shown(couple: Couple, seen: Seen) -> Shown:
    a, b = seen.videos[couple.a], seen.videos[couple.b]
    strips = [
        (
            run,
            [
                Moment(
                    *(at_a, at_b),
                    seen.pictures.get((couple.a, at_a), ""),
                    seen.pictures.get((couple.b, at_b), ""),
                )
                for at_a, at_b in both
            ],
        )
        for run, both in moments(couple)
    ]
    return Shown(couple, a, b, time_lines(couple.runs[:LISTED], _length(a), _length(b)), strips)


def _length(found: Sight | Failure) -> float:
    return found.seconds if isinstance(found, Sight) else 0.0


def time_lines(runs: Sequence[Run], a: float, b: float) -> Lines:
    """Return the time lines of videos of `a` and `b` seconds; 0 for unknown.

    >>> time_lines([Run(5.0, 0.0, 5.0, 20.0, 25.0, 1.0, 20)], 5.0, 50.0)
    Lines(seconds=50.0, a=100.0, b=1000.0, runs=[(0.0, 100.0, 400.0, 500.0)])
    """
    a = max(a, *(run.a_to for run in runs))
    b = max(b, *(run.b_to for run in runs))
    unit = max(a, b) / WIDE or 1.0
    intervals = [
        (
            *_interval(run.a_from / unit, run.a_to / unit),
            *_interval(run.b_from / unit, run.b_to / unit),
        )
        for run in runs
    ]
    return Lines(max(a, b), max(a / unit, LEAST), max(b / unit, LEAST), intervals)


def _interval(start: float, end: float) -> tuple[float, float]:
    """Widen an interval to LEAST units, within the line."""
    start = max(0.0, min(start, WIDE - LEAST))
    return start, max(end, start + LEAST)


def clock(seconds: float) -> str:
    """Format a time.

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
    if count < 1000:
        return f"{count} bytes"
    for unit, name in ((10**9, "GB"), (10**6, "MB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count / 1000:.0f} kB"


def facts(found: Sight | Failure) -> str:
    """Describe a video, or why it is not seen.

    >>> facts(Sight(60.0, 1920, 1080, 25.0, 1000, "h264", ()))
    '1:00.0, 1920 × 1080, 25 fps, h264, 1 kB'
    """
    if isinstance(found, Failure):
        return f"not shown: {found.reason}" + (f" ({found.detail})" if found.detail else "")
    length = [clock(found.seconds)] if found.seconds else []
    fps = [f"{found.fps:.4g} fps"] if found.fps else []
    return ", ".join(
        [*length, f"{found.width} × {found.height}", *fps, found.codec, size(found.bytes)]
    )


def path_text(id_: str) -> str:
    """Return the path of a video to be read: at most LONGEST_ID letters, the last ones."""
    text = path_of(id_).decode("utf-8", "backslashreplace")
    return text if len(text) <= LONGEST_ID else "…" + text[1 - LONGEST_ID :]


CALLS = (clock, facts, path_text, speed)
