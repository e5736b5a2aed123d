"""Common stretches, such as openings, credits and test cards: many different videos show them.

A frame is common if more than max(5, 1 %) different videos show it, or if it matches such a frame.
It does not vote: it makes no pairs, and its seconds do not count.  Copies of one video count as one
here: videos are copies if most of the longer one is in the other, on lines in time or as frames in
any order.

Common frames that follow each other are a *place*: a video, from, to.  Places with frames that
match each other are one common stretch.

Letters: n frames, m seeds; a *cluster* is a video with its copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.frame_store import FrameStore
from neardup.media.frames.video_prints import end_of
from neardup.media.pictures.keep_rules import number
from neardup.media.videos.runs import CommonStretch
from neardup.sets.ragged import Forest, distinct, starts_of_runs

HOLE = 2000  # milliseconds: common frames with a shorter hole between them are one place
LEAST = 1.0  # seconds of a stretch that is reported

Indices = NDArray[np.int64]


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


def limit(clusters: int, share: float, least: int) -> float:
    """Return the maximum number of clusters of copies that show a frame which is not common."""
    return max(least, share * clusters)


def in_many(frames: Indices, clusters: Indices, most: float) -> Indices:
    """Return the frames that more than `most` clusters show, their own included.

    frames[k] is shown by a video of another cluster, clusters[k].
    """
    frames, _ = shown_by(frames, clusters)
    starts = starts_of_runs(frames)
    return frames[starts[np.diff(starts, append=len(frames)) + 1 > most]]


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


class SharedPlaces(NamedTuple):
    """The places of common stretches: each is a run of consecutive common frames of one video."""

    number: Indices  # (n,), of the place of each frame; -1 if it is not common
    first: Indices  # (places,), its first frame
    last: Indices

    @classmethod
    def of(cls, store: FrameStore, common: NDArray[np.bool_]) -> SharedPlaces:
        at = np.flatnonzero(common)
        number = np.full(len(common), -1, np.int64)
        new = np.ones(len(at), bool)
        new[1:] = store.owner[at[1:]] != store.owner[at[:-1]]
        new[1:] |= store.spans[at[1:], 0] - store.spans[at[:-1], 1] > HOLE
        number[at] = np.cumsum(new) - 1
        starts = np.flatnonzero(new)
        ends = np.append(starts[1:], len(at))[: len(starts)] - 1
        return cls(number, at[starts], at[ends])


def stretches(
    store: FrameStore, common: NDArray[np.bool_], matches: Iterable[tuple[Indices, Indices]]
) -> list[CommonStretch]:
    """Return the common stretches of LEAST seconds or more that several videos have, longest first.

    matches: pairs of matching common frames.
    """
    places = SharedPlaces.of(store, common)
    forest = Forest(len(places.first))
    for i, j in matches:
        x, y = places.number[i], places.number[j]
        linked = (x >= 0) & (y >= 0)
        forest.join_all(x[linked], y[linked])
    found = [stretch for stretch in _grouped(store, places, forest) if stretch.seconds >= LEAST]
    return sorted(found, key=lambda stretch: (-stretch.seconds, stretch.places))


def _grouped(store: FrameStore, places: SharedPlaces, forest: Forest) -> Iterator[CommonStretch]:
    roots = forest.roots(np.arange(len(places.first)))
    order = np.argsort(roots, kind="stable")
    starts = starts_of_runs(roots[order])
    for part in np.split(order, starts[1:]):
        first, last = places.first[part], places.last[part]
        videos = store.owner[first].tolist()
        begins, ends = store.spans[first, 0] / 1000, store.spans[last, 1] / 1000
        lengths = [number(store.facts[video], "seconds") or inf for video in videos]
        ends = np.minimum(ends, [end_of(length) for length in lengths])
        rows = sorted(zip(videos, begins.tolist(), ends.tolist()))
        if len(set(videos)) > 1:
            yield CommonStretch(float(np.median(ends - begins)), tuple(rows))
