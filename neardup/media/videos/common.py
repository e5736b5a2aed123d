"""Common stretches, such as openings, credits and test cards: many different videos show them.

A frame is frequent if more than 5 different videos show it, and common if more than 1 % do, too; so
is each frame that matches it.  Frequent frames make no part, since in a large library a series is
less than 1 %: in 500 synthetic videos, the openings of 50 series of ten episodes would make 2,250
parts (up to five episodes still do: 1,000 parts of 100 series of five).  Common ones do not vote:
they make no pairs, and their seconds do not count.  Copies of one video count as one here: videos
are copies if most of the longer one is in the other, on lines in time or as frames in any order.

Frequent frames that follow each other are a *place*: a video, from, to.  Places with frames that
match each other are one common stretch.  --common writes a line for each place, with the number of
its stretch, or a JSON object for each stretch.

Letters: n frames, m seeds; a *cluster* is a video with its copies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.frame_store import FrameStore
from neardup.media.frames.video_prints import end_of
from neardup.media.pictures.keep_rules import number
from neardup.reading.table_rows import json_row
from neardup.runtime.program import WireError, shown
from neardup.sets.ragged import Forest, distinct, starts_of_runs

HOLE = 2000  # milliseconds: common frames with a shorter hole between them are one place
MIN_SECONDS = 1.0  # seconds of a stretch that is reported
MAX_TIME = 1e7  # seconds
_COMMON = re.compile(
    rb"([0-9]{1,9})\t([0-9]+\.[0-9])\t([^\0\t\r\n]+)\t([0-9]+\.[0-9])-([0-9]+\.[0-9])\t?\n?"
)

Indices = NDArray[np.int64]


class Place(NamedTuple):
    """A place of a common stretch: a video, and the start and end in it, in seconds."""

    id: str
    start: float
    end: float


class Stretch(NamedTuple):
    """A stretch that is in many videos of different content, such as an opening."""

    seconds: float  # the median length of its places, in whole tenths
    places: list[Place]


def shown_by(frames: Indices, clusters: Indices) -> tuple[Indices, Indices]:
    """Return the distinct pairs (frame, cluster with a video that shows the frame), in order.

    >>> [side.tolist() for side in shown_by(np.array([7, 7, 2]), np.array([1, 1, 0]))]
    [[2, 7], [0, 1]]
    """
    both = frames.astype(np.uint64) << np.uint64(32) | clusters.astype(np.uint64)
    found, _ = distinct(both)
    return (found >> np.uint64(32)).astype(np.int64), (found & np.uint64(2**32 - 1)).astype(
        np.int64
    )


def limits(clusters: int, share: float, least: int) -> tuple[float, float]:
    """Return how many clusters of copies may show a frame that is not frequent, or not common."""
    return least, max(least, share * clusters)


def in_many(frames: Indices, clusters: Indices, most: Sequence[float]) -> list[Indices]:
    """Return, for each limit, the frames that more clusters show, their own included.

    frames[k] is shown by a video of another cluster, clusters[k].
    """
    frames, _ = shown_by(frames, clusters)
    starts = starts_of_runs(frames)
    counts = np.diff(starts, append=len(frames)) + 1
    return [frames[starts[counts > limit]] for limit in most]


def with_holes(
    owner: NDArray[np.int32], spans: Indices, common: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Mark common frames, and the frames in a short gap between two common frames of one video.

    owner: int32 (n,), the video of each frame; spans: (n, 2), milliseconds.
    """
    marks = common.copy()
    at = np.flatnonzero(common)
    if not len(at):
        return marks
    holes = owner[at[1:]] == owner[at[:-1]]
    holes &= spans[at[1:], 0] - spans[at[:-1], 1] <= HOLE
    for first, last in zip(at[:-1][holes].tolist(), at[1:][holes].tolist()):
        marks[first:last] = True
    return marks


def _places(store: FrameStore, common: NDArray[np.bool_]) -> tuple[Indices, Indices, Indices]:
    """Return the place of each frame, -1 if it is not common; the first and last frame of each."""
    at = np.flatnonzero(common)
    # A place is a run of common frames; it ends at another video, or at a hole.
    new = np.ones(len(at), bool)
    new[1:] = store.owner[at[1:]] != store.owner[at[:-1]]
    new[1:] |= store.spans[at[1:], 0] - store.spans[at[:-1], 1] > HOLE
    place = np.full(len(common), -1, np.int64)
    place[at] = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(at))[: len(starts)] - 1
    return place, at[starts], at[ends]


def stretches(
    store: FrameStore, common: NDArray[np.bool_], matches: Iterable[tuple[Indices, Indices]]
) -> list[Stretch]:
    """Return the stretches of MIN_SECONDS or more that several videos have, the longest first.

    matches: pairs of matching common frames.
    """
    place, first, last = _places(store, common)
    forest = Forest(len(first))
    for i, j in matches:
        x, y = place[i], place[j]
        linked = (x >= 0) & (y >= 0)
        forest.join_all(x[linked], y[linked])
    long = [group for group in _grouped(store, first, last, forest) if group[0] >= MIN_SECONDS]
    return [
        Stretch(
            round(seconds, 1),
            [Place(store.ids[k], round(start, 1), round(end, 1)) for k, start, end in rows],
        )
        for seconds, rows in sorted(long, key=lambda group: (-group[0], group[1]))
    ]


def _grouped(
    store: FrameStore, firsts: Indices, lasts: Indices, forest: Forest
) -> Iterator[tuple[float, list[tuple[int, float, float]]]]:
    """Yield the median seconds, and the sorted places (video, from, to), of matching places."""
    roots = forest.roots(np.arange(len(firsts)))
    order = np.argsort(roots, kind="stable")
    starts = starts_of_runs(roots[order])
    for part in np.split(order, starts[1:]):
        first, last = firsts[part], lasts[part]
        videos = store.owner[first].tolist()
        begins, ends = store.spans[first, 0] / 1000, store.spans[last, 1] / 1000
        lengths = [number(store.facts[video], "seconds") or inf for video in videos]
        ends = np.minimum(ends, [end_of(length) for length in lengths])
        rows = sorted(zip(videos, begins.tolist(), ends.tolist()))
        if len(set(videos)) > 1:
            yield float(np.median(ends - begins)), rows


# ---- lines


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
    if max(seconds, start, end) > MAX_TIME:
        raise ValueError
    return int(found[1]), seconds, Place(found[3].decode(), start, end)


def stretches_of(lines: Iterable[tuple[int, Stretch]]) -> list[Stretch]:
    """Join consecutive lines of the same stretch; sort stretches by number of places, descending.

    >>> a, b = (Stretch(6.0, [Place(id_, 0.0, 6.0)]) for id_ in "ab")
    >>> [len(stretch.places) for stretch in stretches_of([(1, a), (1, b), (2, b)])]
    [2, 1]
    """
    joined = []
    for line_number, group in groupby(lines, itemgetter(0)):
        parts = [stretch for _, stretch in group]
        for same in [parts] if line_number else [[part] for part in parts]:
            places = [place for part in same for place in part.places]
            joined.append(Stretch(same[0].seconds, places))
    return sorted(joined, key=lambda stretch: -len(stretch.places))
