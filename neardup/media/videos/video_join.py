"""Find the pairs of videos that have stretches in common, and stretches common to many videos.

    seeds ─▶ pairs that may be copies ─▶ clusters of copies ─▶ frames of many clusters: common
      └──────────────────────────────────────────────────▶ without common frames ─▶ pairs

A pair is a copy, a clip or a part (`JoinOptions`); only copies and clips count for decisions.

Everything that depends on all videos is here; `alignment.align` compares two of them.  `Join` makes
the decisions about pairs, in the processes of `find` and in the steps of `video_steps`.

Memory: 12 bytes for each frame, the pairs, and the seeds of one part in each process.

Measured with synthetic prints (videos of 6 minutes, 12,000 frames an hour, 8 variants, a tenth of
them copies; two processes, of which the larger one is listed, with the pages of mapped files):

    hours of video     10     40    100
    CPU seconds         6     24     87
    MB                112    356    580
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Callable, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.frame_spans import shown_ms
from neardup.media.frames.frame_store import FrameStore
from neardup.media.videos import common
from neardup.media.videos.alignment import Frames, pair_of, repeats
from neardup.media.videos.common import Stretch
from neardup.media.videos.frame_matches import Indices
from neardup.media.videos.runs import CLIP, COPY, PART, Run, VideoPair, with_runs
from neardup.media.videos.seed_files import (
    PARTS,
    Seeds,
    SeedSearch,
    by_videos,
    find_seeds,
    frames_in,
    seeds_in,
)
from neardup.reading.decoders import in_order
from neardup.sets.ragged import Forest

MEASURES = ("common", "copy", "containment")
COPIES = 0.5  # share of the longer video: such copies count as one video for common stretches
WHOLE = 0.9  # share of both videos in one run: they are a pair even if all frames are common
SEEDS_OF_COPIES = 0.1  # share of the longer video that has seeds, at least, in copies
SEARCHED = 0.8  # approximate share of the work that is searching
PASSES = 4  # over the parts


Outcome = TypeVar("Outcome")


class JoinOptions(NamedTuple):
    """The options that decide which two videos are a pair.

    Two videos are a clip if the runs have at least `threshold` of the shorter one, and a copy if
    they also have so much of the longer one; by the measure `containment`, one run spans so much,
    from its first frame to its last.  By the measure `common`, others are a part if a run has
    `at_least` seconds of frames that few videos show.
    """

    measure: str = "common"
    threshold: float = 0.5
    at_least: float = 5.0
    distance: int = 40  # bits in which frames that match differ at most
    exact: bool = False
    common_least: int = 5  # a frame in more videos than this is frequent …
    common_share: float = 0.01  # … and common if it is in more than this share of them, too


def find(
    store: FrameStore,
    options: JoinOptions,
    jobs: int,
    old: int = 0,
    done: Callable[[float], object] = lambda share: None,
) -> tuple[list[VideoPair], list[Stretch]]:
    """Return pairs in byte order of their ids, and common stretches, the longest first.

    The first `old` videos are those of --against; pairs of two of them are left out.  The answer
    does not depend on `jobs` or on the order of the videos.  `done` is called now and then with the
    share of the work that is done, 0 to 1.
    """
    with tempfile.TemporaryDirectory(prefix="join.", dir=store.folder) as folder:
        search = _search(store, options, jobs, old, Path(folder), done)
        pairs, stretches = _answer(Join(store, options), _Parts(search.folder, jobs, done))
    return [pair for pair in pairs if max(pair.a, pair.b) >= old], stretches


def kind_of(pair: VideoPair, whole: Sequence[float], options: JoinOptions) -> str:
    """Return whether two videos with runs are a COPY, a CLIP or at most a PART.

    whole: the seconds of both from the first frame to the last.
    """
    of_shorter, of_longer = pair.share, pair.share_of_longer
    if options.measure == "containment":
        of_longer, of_shorter = sorted(through(pair, whole))
    if of_shorter < options.threshold:
        return PART
    return COPY if of_longer >= options.threshold else CLIP


def through(pair: VideoPair, whole: Sequence[float]) -> list[float]:
    """Return the largest share of a, and of b, that one run spans, gaps included: 0 to 1."""
    spans = zip(*((run.a_to - run.a_from, run.b_to - run.b_from) for run in pair.runs))
    return [min(1.0, max(span) / max(all_, 1e-9)) for span, all_ in zip(spans, whole)]


def is_whole(pair: VideoPair, whole: Sequence[float]) -> bool:
    """Return whether one run spans nearly all of both videos; whole: the seconds of each."""
    least = [WHOLE * seconds for seconds in whole]
    return pair.share_of_longer >= WHOLE and any(
        run.a_to - run.a_from >= least[0] and run.b_to - run.b_from >= least[1] for run in pair.runs
    )


def whole_seconds(spans: Indices) -> float:
    """Return the seconds of a video from its first frame to its last; spans: (n, 2)."""
    return float(spans[-1, 1] - spans[0, 0]) / 1000 if len(spans) else 0.0


def matching_seconds(spans: Indices) -> float:
    """Return the total length, in seconds, of spans (n, 2); equal ones count once."""
    _, at = np.unique(spans[:, 0], return_index=True)
    return float(shown_ms(spans[at]).sum()) / 1000


class Join:
    """The decisions about pairs of videos, from their seeds (matching frames).

    First come `copies_in`, then `copies` and the marks of common frames, and then `pairs_in`.
    """

    def __init__(self, store: FrameStore, options: JoinOptions):
        self.store, self.options = store, options
        self.frequent, self.common = np.zeros((2, store.frames), bool)
        self.shows_common = np.zeros(len(store), bool)  # for each video
        self.copies: dict[tuple[int, int, bool], VideoPair] = {}  # compared by all frames

    def copies_in(self, seeds: Seeds) -> tuple[list[VideoPair], list[tuple[int, int]]]:
        """Return possible copies, by all frames, and which two videos are copies.

        Copies count as one video for common stretches.  Frames may match in any order, so that
        takes of one fixed camera count as one video.
        """
        found: list[VideoPair] = []
        alike: list[tuple[int, int]] = []
        for a, b, mirrored, i, j in by_videos(self.store, seeds):
            longer = max(self.store.seconds[a], self.store.seconds[b])
            spans = self._spans(i, j)
            of_a, of_b = matching_seconds(spans[:, :2]), matching_seconds(spans[:, 2:])
            if of_a >= SEEDS_OF_COPIES * longer:
                pair = self._aligned(a, b, mirrored, spans)
                found += [pair] if pair else []
                share = pair.share_of_longer if pair else 0.0
                if share >= COPIES or min(of_a, of_b) >= COPIES * longer:
                    alike.append((a, b))
        return found, alike

    def keep(self, copies: Iterable[VideoPair]) -> None:
        """Keep possible copies for `pairs_in`."""
        self.copies.update({(pair.a, pair.b, pair.mirrored): pair for pair in copies})

    def mark(self, *frames: Indices) -> None:
        """Mark frequent frames and common ones, and those in short gaps between them."""
        for marks, marked in zip((self.frequent, self.common), frames):
            marks[marked] = True
            marks |= common.with_holes(self.store.owner, self.store.spans, marks)
        self.shows_common[self.store.owner[self.common]] = True

    def pairs_in(self, seeds: Seeds) -> list[VideoPair]:
        """Return the pairs, without mirrored ones that repeat a plain one."""
        found: list[VideoPair] = []
        tried: list[VideoPair | None]
        for a, b, mirrored, i, j in by_videos(self.store, seeds):
            copy = self.copies.get((a, b, mirrored))
            lengths = [whole_seconds(self.store.spans[self.store.frames_of(x)]) for x in (a, b)]
            if copy and not self.shows_common[[a, b]].any():
                tried = [copy]
            else:
                votes = ~(self.common[i] | self.common[j])
                tried = [self._aligned(a, b, mirrored, self._spans(i[votes], j[votes]))]
                tried += [copy] if copy and is_whole(copy, lengths) else []
            good = [pair for pair in map(partial(self._judged, lengths), tried) if pair]
            good.sort(key=lambda pair: pair.kind == PART)
            found += [pair for pair in good[:1] if not repeats(pair, found[-1] if found else None)]
        return found

    def _judged(self, whole: Sequence[float], pair: VideoPair | None) -> VideoPair | None:
        """Return the pair with its kind, a part with long runs only; None if it is not a pair."""
        if not pair:
            return None
        kind, options = kind_of(pair, whole, self.options), self.options
        if kind != PART:
            return pair._replace(kind=kind)
        if options.measure != "common":
            return None
        runs = [run for run in pair.runs if self._rare(pair.a, run) >= options.at_least]
        return with_runs(pair, runs)._replace(kind=PART) if runs else None

    def _rare(self, video: int, run: Run) -> float:
        """Return the seconds of a run of a video, its `a`, without frequent frames."""
        part = self.store.frames_of(video)
        spans = np.array(self.store.spans[part])
        spans[:, 1] = spans[:, 0] + shown_ms(spans)
        shown = (spans[self.frequent[part]] / 1000).clip(run.a_from, run.a_to)
        return run.seconds - float(np.ptp(shown, axis=1).sum())

    def _spans(self, i: Indices, j: Indices) -> Indices:
        return np.hstack((self.store.spans[i], self.store.spans[j]))

    def _aligned(self, a: int, b: int, mirrored: bool, seeds: Indices) -> VideoPair | None:
        """Return the pair of two videos, by their frames that vote, or None if it has no run."""
        if not len(seeds):
            return None
        return pair_of(a, b, mirrored, seeds, *(self._voting(x, mirrored) for x in (a, b)))

    def _voting(self, video: int, mirrored: bool) -> Frames:
        part = self.store.frames_of(video)
        return Frames.of(self.store.print_of(video), mirrored, ~self.common[part])


def _search(
    store: FrameStore,
    options: JoinOptions,
    jobs: int,
    old: int,
    folder: Path,
    done: Callable[[float], object],
) -> SeedSearch:
    """Find matching frames; an old video takes part only if it matches a new one."""
    search = SeedSearch.of(store, folder / "seeds", options.distance, old)
    find_seeds(search, options.exact, jobs, lambda share: done(SEARCHED * share))
    if not old:
        return search
    chosen = np.arange(len(store)) >= old
    for part in range(PARTS):
        for frames in frames_in(seeds_in(search.folder, part)):
            chosen[store.owner[frames]] = True
    # These seeds also show which old videos are copies of each other.
    again = SeedSearch.of(store, folder / "again", options.distance, 0, chosen)
    find_seeds(again, options.exact, jobs)
    return again


class _Parts(NamedTuple):
    """The seeds of a search, in parts, for which processes work."""

    folder: Path
    jobs: int
    done: Callable[[float], object]

    def each(self, number: int, task: Callable[[Seeds], Outcome]) -> Iterator[Outcome]:
        """Yield the outcome of a task for the seeds of each part; number: which pass it is."""

        def work(part: int) -> Outcome:
            return task(seeds_in(self.folder, part))

        for part, outcome in enumerate(in_order(work, range(PARTS), self.jobs), 1):
            self.done(SEARCHED + (1 - SEARCHED) * (number + part / PARTS) / PASSES)
            yield outcome


def _answer(join: Join, parts: _Parts) -> tuple[list[VideoPair], list[Stretch]]:
    store, forest = join.store, Forest(len(join.store))
    for copies, alike in parts.each(0, join.copies_in):
        join.keep(copies)
        for a, b in alike:
            forest.join(a, b)
    frames = _of_many_clusters(join, parts, forest.roots(np.arange(len(store))).astype(np.int64))
    join.frequent[frames[0]] = join.common[frames[1]] = True
    near = zip(*parts.each(2, partial(_beside, (join.frequent, join.common))))
    join.mark(*map(np.concatenate, near))
    pairs = [pair for of_part in parts.each(3, join.pairs_in) for pair in of_part]
    pairs.sort(key=lambda pair: (store.rank[pair.a], store.rank[pair.b], pair.mirrored))
    return pairs, common.stretches(store, join.frequent, _matches_of(join.frequent, parts))


def _of_many_clusters(join: Join, parts: _Parts, clusters: Indices) -> list[Indices]:
    """Return frames that many clusters of copies show: frequent and common; clusters: (videos,)."""

    def shown(seeds: Seeds) -> tuple[Indices, Indices]:
        """Return frames, and clusters of other videos that show them."""
        i, j = frames_in(seeds)
        of_i, of_j = clusters[join.store.owner[i]], clusters[join.store.owner[j]]
        apart = of_i != of_j
        frames = np.concatenate((i[apart], j[apart]))
        return common.shown_by(frames, np.concatenate((of_j[apart], of_i[apart])))

    frames, others = (np.concatenate(side) for side in zip(*parts.each(1, shown)))
    number, options = len(np.unique(clusters)), join.options
    most = common.limits(number, options.common_share, options.common_least)
    return common.in_many(frames, others, most)


def _beside(levels: Sequence[NDArray[np.bool_]], seeds: Seeds) -> list[Indices]:
    """Return the frames that match a marked frame, for marks of each level."""
    i, j = frames_in(seeds)
    return [np.unique(np.concatenate((i[marks[j]], j[marks[i]]))) for marks in levels]


def _matches_of(marks: NDArray[np.bool_], parts: _Parts) -> Iterator[tuple[Indices, Indices]]:
    """Yield pairs of matching frames that are both marked."""
    for part in range(PARTS) if marks.any() else ():
        i, j = frames_in(seeds_in(parts.folder, part))
        both = marks[i] & marks[j]
        yield i[both], j[both]
