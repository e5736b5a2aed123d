"""Find the runs of two videos: stretches in which frames match along b = rate · a + offset.

    seeds (frames within 40 bits) ─▶ best line ─▶ all frames on it, within 42 … 56 bits ─▶ runs

A line is found from seeds; those that differ in fewer bits count more.  The speed of a short
stretch is found from all frames near it (`speeds`).  Few pairs of frames are
compared on a line, so these may differ in more bits: in 36 (SPREAD) more than the median of the
seeds, within 42 … 56 (WIDE).  Then the seeds on the line are removed, and the next line is searched
for.

A fixed camera or a speaker in a room gives frames that match at every offset.  So a run needs one
of these:

* its frames match better on the line than at each of SHIFTS earlier or later: by CONTRAST bits, and
  by a share SHARPNESS of the bits in which they differ on the line; CLEAR bits are always enough;
  and if bits change in both videos, the same ones change at the same times (ALIKE);
* each of the two videos shows one still picture from start to end, perhaps with grain, or their
  files are equal (`standing`).

Videos that show one picture most of the time, or whose runs are `standing`, are copies only if
their files are equal: other videos may have the same cover.

Units: spans in milliseconds; runs in seconds.  Letters: n frames, m seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, product
from typing import Callable, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.frame_spans import CLOSED, mostly_flat, one_picture, shown_ms, still
from neardup.media.frames.print_sources import SHORT_SECONDS
from neardup.media.frames.video_prints import DIGEST, VideoPrint, compared, end_of, length_of
from neardup.media.videos.runs import Run, VideoPair
from neardup.media.videos.time_lines import Floats, Line, best_line, overlaps, refined, weights_of
from neardup.sets.bit_vectors import bits_apart
from neardup.sets.ragged import chunks, spans

NEAR = 40  # bits in which the frames of a seed may differ
WIDE, SPREAD = (42, 56), 36  # bits: WIDE limits the seeds' median + SPREAD
GAP = 3.0  # seconds without a match, within a run
RUN_SECONDS, RUN_FRAMES = 2.0, 3  # a run has at least these …
SHORT_SHARE = 0.8  # … or, in a short video, this share and SHORT_SECONDS
SEEDS, SEED_SECONDS = 2, 0.4  # a line needs so many frames, and seconds that match
LINES = 16  # runs of two videos, after which the search ends
MISSES = 2  # lines without a run, one after another, after which the search ends
HALF = 16  # bits: a seed that differs in so many more has half as many votes
MAX_SEEDS = 20_000  # per pair, or twice the frames of a video: those with the most votes are kept
SHIFTS = (-3.0, -1.5, -0.75, 0.75, 1.5, 3.0)  # seconds off the line
CONTRAST, SHARPNESS, SHORT_SHARPNESS = 3.0, 0.35, 1.0  # the last one for runs below RUN_SECONDS
CLEAR = 12.0  # bits of contrast that are enough, for example under subtitles, which change 45 bits
# How much the bits of a run vary (sum of variances), and how the changes correlate in both videos:
# by 0.33 or more in runs of edits of 28 videos, by 0.19 to 0.26 in takes of one speaker.
CHANGING, ALIKE = 8.0, 0.3
COMPARED, IN_A_ROW = 1000, 50  # frames of a run that are compared
# Frames of one scene that differ in more than FEW bits, on average, must correlate by the first of
# MORE_ALIKE, and by the second if this number changes fast.  A logo or a crop changes much the same
# bits in frames that follow each other; in takes with the same gestures, other bits differ soon.
FEW, OTHER_SCENE, MORE_ALIKE = 20, 64, (0.5, 0.64)  # bits, on average; bits of a frame
MOMENT, UNSTEADY, JUMP = 0.125, 5.5, 20  # seconds; bits from one moment to the next; at most
STILL_MATCH = 12  # bits that may differ between copies of a still video
AT_ONCE = 1 << 18  # pairs of frames
# How many bits nearer a crop is to the best part of the whole than the whole to one of the crop (12
# or more for a centre of 99 %; without cropping, at most 8), and how far that part may be, in bits
# more than the frames as they are: else both are far.
CROPPED, FARTHEST = 10, 32

Indices = NDArray[np.int64]


class Frames(NamedTuple):
    """The frames of one video that count in a comparison, and the variants to compare."""

    spans: NDArray[np.int64]  # (n, 2), milliseconds, in order
    hashes: NDArray[np.uint64]  # (n, variants, 4)
    compared: list[tuple[int, int]]  # (variant of this video, variant of the other) to compare
    length: float  # seconds of the whole video
    digest: str  # of the file, if one picture, perhaps with grain, or flat ones are shown mostly
    crops: list[bool]  # for each variant: true if it is a part of the frame
    flat: bool  # most of the time

    @classmethod
    def of(
        cls, video: VideoPrint, mirrored: bool, votes: NDArray[np.bool_] | None = None
    ) -> Frames:
        """Return the frames of a video that `votes`, bool (n,), marks; all frames if it is None."""
        kept = slice(None) if votes is None else votes
        pairs = compared(video.variants, mirrored)
        digest = str(video.facts.get(DIGEST, ""))
        crops = [any(map(str.isdigit, name)) for name in video.variants]  # such as "centre95"
        seconds = length_of(video)
        flat = mostly_flat(video.spans, seconds)
        return cls(video.spans[kept], video.hashes[kept], pairs, seconds, digest, crops, flat)

    def take(self, frames: Indices) -> Frames:
        return self._replace(spans=self.spans[frames], hashes=self.hashes[frames])

    def within(self, times: Sequence[tuple[float, float]]) -> Frames:
        """Return the frames that are shown at times (from, to, in seconds), cut to these."""
        parts = [np.clip(self.spans, round(1000 * a), round(1000 * b)) for a, b in times]
        shown = [np.flatnonzero(part[:, 0] < part[:, 1]) for part in parts]
        cut = np.concatenate([part[frames] for part, frames in zip(parts, shown)])
        return self.take(np.concatenate(shown))._replace(spans=cut)

    def missed(self, runs: Iterable[Run]) -> float:
        """Return the seconds of frames in the longest stretch of this video, a, outside runs."""
        inside = sorted((run.a_from, run.a_to) for run in runs)
        ends = accumulate((end for _, end in inside), max, initial=0.0)
        gaps = zip(ends, [*(start for start, _ in inside), self.length])
        return max(self.within([gap]).seconds for gap in gaps)

    @property
    def seconds(self) -> float:
        """The total seconds for which these frames are shown."""
        return float(shown_ms(self.spans).sum()) / 1000


def align(seeds: NDArray[np.int64], a: Frames, b: Frames) -> tuple[Run, ...]:
    """Return the runs in which videos a and b move alike, in order of their start in a.

    seeds: int64 (m, 4), milliseconds a0, a1, b0, b1: spans of frames of a and b that match, in any
    order, repeats allowed.
    """
    left, near = _chosen(seeds, a, b)
    calm = all(one_picture(x.spans, x.hashes[:, 0]) for x in (a, b))
    runs: list[Run] = []
    spare: list[Run] = []  # on lines as they were found, where the best ones near them have no run
    missed = 0
    while len(runs) < LINES and missed < MISSES and _enough(left, left[:, 1] - left[:, 0]):
        line = best_line(left, near * weights_of(left), calm)
        best = line if calm else refined(line, left, a.spans, b.spans, partial(distances, a, b))
        new = [run for run in _runs_on(best, left, a, b, _moves) if not _covered(run, runs)]
        if not (new or runs or best == line):
            spare += _runs_on(line, left, a, b, _moves)
        line = best if new else line
        on = overlaps(left, line.rate, line.offset)
        if not _enough(left[on > 0], on[on > 0]):
            break
        runs += new
        missed = 0 if new else missed + 1
        others = ~((on > 0) | _inside(left, [*new, *spare]))
        left, near = left[others], near[others]
    return tuple(sorted(set(runs or spare), key=lambda run: run[1:]))


def standing(seeds: NDArray[np.int64], a: Frames, b: Frames) -> tuple[Run, ...]:
    """Return the run, if any, of two videos that show one still picture, or whose files are equal.

    seeds: as for `align`.
    """
    if not (_equal_files(a, b) or all(still(x.hashes[:, 0]) for x in (a, b))):
        return ()
    left, near = _chosen(seeds, a, b)
    line = best_line(left, near * weights_of(left), still=True)
    return tuple(_runs_on(line, left, a, b, _stands))


def pair_of(
    a: int, b: int, mirrored: bool, seeds: NDArray[np.int64], of_a: Frames, of_b: Frames
) -> VideoPair | None:
    """Return the pair of videos a and b with the stretches that match, or None if none does."""
    moving = align(seeds, of_a, of_b)
    runs = moving or standing(seeds, of_a, of_b)
    if not runs:
        return None
    seconds = sum(run.seconds for run in runs), sum(run.seconds * run.rate for run in runs)
    lengths = of_a.seconds, of_b.seconds
    shares = [min(1.0, matched / all_) for matched, all_ in zip(seconds, lengths)]
    share = shares[0] if lengths[0] <= lengths[1] else shares[1]
    parts = of_a.within([(run.a_from, run.a_to) for run in runs])
    one = not moving or one_picture(parts.spans, parts.hashes[:, 0])
    one = (one or of_a.flat or of_b.flat) and not _equal_files(of_a, of_b)
    ends = end_of(of_a.length), end_of(of_b.length)
    pair = VideoPair(a, b, mirrored, runs, seconds[0], share, shares[0], shares[1], one, ends)
    missed = of_a.missed(runs), of_b.missed([run.swapped() for run in runs])
    return pair._replace(crop=(-1, a, b)[_crop(max(runs), of_a, of_b)], missed=missed)


def _crop(run: Run, a: Frames, b: Frames) -> int:
    """Return 1 if the frames of a run are crops in `a`, 2 if in `b`, otherwise 0.

    A crop looks like a part of the whole, whereas a part of the crop is farther from the whole.
    """
    line = Line(run.rate, run.b_from - run.rate * run.a_from, 0.0)
    bits = _bits_on(run, line, a, b)[3]
    least = dict.fromkeys(product((False, True), repeat=2), 256.0)
    for (v, w), apart in zip(a.compared, bits):
        side = a.crops[v], b.crops[w]
        least[side] = min(least[side], apart)
    plain, part_of_b, part_of_a, _ = least.values()
    if abs(part_of_a - part_of_b) < CROPPED or min(part_of_a, part_of_b) > plain + FARTHEST:
        return 0
    return 1 if part_of_b < part_of_a else 2


def repeats(pair: VideoPair, plain: VideoPair | None) -> bool:
    """Return whether the plain pair of the same videos covers every stretch of a mirrored pair."""
    if not plain or not pair.mirrored or plain.mirrored or plain[:2] != pair[:2]:
        return False
    return all(_covered(run, plain.runs) for run in pair.runs)


def _covered(run: Run, others: Iterable[Run]) -> bool:
    """Return whether the middle of a run is inside another one, in both videos."""
    return any(
        other.a_from < (run.a_from + run.a_to) / 2 < other.a_to
        and other.b_from < (run.b_from + run.b_to) / 2 < other.b_to
        for other in others
    )


def _equal_files(a: Frames, b: Frames) -> bool:
    return a.digest == b.digest != ""


def least_of_run(shorter: float) -> float:
    """Return the minimum length of a run, given the length of the shorter video, in seconds.

    >>> [round(least_of_run(seconds), 2) for seconds in (1.0, 2.0, 60.0)]
    [1.2, 1.6, 2.0]
    """
    return min(RUN_SECONDS, max(SHORT_SECONDS, SHORT_SHARE * shorter))


def _chosen(seeds: Indices, a: Frames, b: Frames) -> tuple[Floats, Floats]:
    """Return the seeds with the most votes, in seconds, and their weights."""
    seeds = np.unique(seeds, axis=0)
    most = max(MAX_SEEDS, 2 * len(a.spans), 2 * len(b.spans))
    return _strongest(seeds / 1000, _nearness(seeds, a, b), most)


def _nearness(seeds: Indices, a: Frames, b: Frames) -> Floats:
    """Return the weight of each pair of matching frames: 0.5 to the power of differing bits / HALF.

    In a calm scene, all frames match, and only the nearest ones are on the right line.
    """
    i, j = (np.searchsorted(x.spans[:, 0], seeds[:, k]) for x, k in ((a, 0), (b, 2)))
    return np.asarray(0.5 ** (distances(a, b, i, j) / HALF))


def _strongest(seeds: Floats, near: Floats, most: int) -> tuple[Floats, Floats]:
    """Return at most `most` seeds, those with the most votes, and their weights, in input order."""
    if len(seeds) > most:
        chosen = np.sort(np.argsort(-near * weights_of(seeds), kind="stable")[:most])
        seeds, near = seeds[chosen], near[chosen]
    return seeds, near


def _enough(on: Floats, seconds: Floats) -> bool:
    """Return whether matching frames suffice, in number and seconds, to search for a run."""
    frames = min(len(np.unique(on[:, 0])), len(np.unique(on[:, 2])))
    return (
        frames >= 1
        and (frames >= SEEDS or float(seconds.max()) >= RUN_SECONDS)
        and (float(seconds.sum()) >= SEED_SECONDS)
    )


def _inside(seeds: Floats, runs: list[Run]) -> NDArray[np.bool_]:
    """Mark the pairs of matching frames that overlap one of the runs in both videos."""
    inside = np.zeros(len(seeds), bool)
    for run in runs:
        of_a = (seeds[:, 0] < run.a_to) & (seeds[:, 1] > run.a_from)
        inside |= of_a & (seeds[:, 2] < run.b_to) & (seeds[:, 3] > run.b_from)
    return inside


def _runs_on(
    line: Line, seeds: Floats, a: Frames, b: Frames, accepted: Callable[..., bool]
) -> Iterator[Run]:
    """Yield the runs on a line that overlap a seed and are `accepted`: _moves or _stands."""
    on = overlaps(seeds, line.rate, line.offset)
    seeds = seeds[on > 0]
    if not _enough(seeds, on[on > 0]):
        return
    i, j = _meeting(a, b, line.rate, line.offset)
    bits = distances(a, b, i, j)
    near = bits <= _widest(bits)
    i, j = i[near], j[near]
    start, end = _shared_times(a, i, b, j, line)
    order = np.argsort(start, kind="stable")
    i, j, start, end = i[order], j[order], start[order], end[order]
    last = np.maximum.accumulate(end) if len(end) else end
    breaks = np.flatnonzero(start[1:] > last[:-1] + GAP) + 1
    for part in np.split(np.arange(len(start)), breaks):
        if not len(part):
            continue
        run = _run(line, i[part], start[part], end[part])
        overlapping = seeds[(seeds[:, 1] > run.a_from) & (seeds[:, 0] < run.a_to)]
        frames = np.unique(i[part])
        if len(overlapping) and accepted(run, line, frames, a, b):
            yield run


def _widest(bits: Indices) -> float:
    """Return in how many bits matching frames on a line in time may differ, given all distances."""
    seeds = bits[bits <= NEAR]
    if not len(seeds):
        return 0
    return float(np.clip(np.median(seeds) + SPREAD, *WIDE))


def _run(line: Line, i: Indices, start: Floats, end: Floats) -> Run:
    """Return one run made of all the matches; they are in order of start, and may overlap."""
    before = np.maximum.accumulate(np.append(start[0], end[:-1]))
    start = np.where(start - before <= CLOSED / 1000, before, start)
    seconds = float(np.maximum(0.0, end - np.maximum(start, before)).sum())
    first, last = float(start[0]), float(end.max())
    times = (first, last, line.rate * first + line.offset, line.rate * last + line.offset)
    return Run(seconds, *times, line.rate, len(np.unique(i)))


def _meeting(a: Frames, b: Frames, rate: float, offset: float) -> tuple[Indices, Indices]:
    """Return the pairs of frames, i of a and j of b, shown together if b = rate · a + offset."""
    low, high = (rate * a.spans[:, side] / 1000 + offset for side in (0, 1))
    first = np.searchsorted(b.spans[:, 1] / 1000, low, "right")
    last = np.searchsorted(b.spans[:, 0] / 1000, high, "left")
    sizes = np.maximum(last - first, 0)
    return np.repeat(np.arange(len(sizes)), sizes), spans(first, sizes)


def _shared_times(
    a: Frames, i: Indices, b: Frames, j: Indices, line: Line
) -> tuple[Floats, Floats]:
    """Return when frames i of a and j of b start and stop being shown together, in seconds of a."""
    low, high = (((b.spans[j, side] / 1000) - line.offset) / line.rate for side in (0, 1))
    start, end = np.maximum(a.spans[i, 0] / 1000, low), np.minimum(a.spans[i, 1] / 1000, high)
    return start, end


def distances(a: Frames, b: Frames, i: Indices, j: Indices) -> Indices:
    """Return how many bits differ between frames i of a and j of b, in their best variants."""
    least = np.full(len(i), 256, np.int64)
    for first, last in chunks(np.ones(len(i), np.int64), AT_ONCE):
        part = slice(first, last)
        x, y = i[part], j[part]
        for of_a, of_b in a.compared:
            bits = bits_apart(a.hashes[x, of_a], b.hashes[y, of_b])
            least[part] = np.minimum(least[part], bits)
    return least


def _moves(run: Run, line: Line, frames: Indices, a: Frames, b: Frames) -> bool:
    """Return whether a run is long enough, and does not match by chance."""
    return _moves_alike(run, line, frames, a, b) and _changes_alike(run, line, a, b)


def _moves_alike(run: Run, line: Line, frames: Indices, a: Frames, b: Frames) -> bool:
    """Return whether a run is long enough and matches better than at shifts of up to 3 seconds."""
    if run.seconds < least_of_run(min(a.length, b.length)) or run.frames < RUN_FRAMES:
        return False
    part = a.take(frames)
    i, j = _meeting(part, b, line.rate, line.offset)
    here = _least(distances(part, b, i, j), i, len(frames))
    known = np.sort(i * len(b.spans) + j)
    sharp = SHARPNESS if run.seconds >= RUN_SECONDS else SHORT_SHARPNESS
    least = min(max(CONTRAST, sharp * float(here.mean())), CLEAR)
    gains = [_gain(line, shift, part, b, known, here) for shift in SHIFTS]
    known_gains = [gain for gain in gains if not np.isnan(gain)]
    return len(known_gains) >= 2 and min(known_gains) >= least


def _changes_alike(run: Run, line: Line, a: Frames, b: Frames) -> bool:
    """Return whether the same bits change at the same times in both videos, if some bits change.

    A speaker may make one gesture twice; but what moves beside it, and when, is different.  Where
    frames of one scene differ in more than a few bits, they must change more alike.
    """
    i, j, weights, apart = _bits_on(run, line, a, b)
    v, w = a.compared[int(np.argmin(apart))]
    x, y = a.hashes[i, v], b.hashes[j, w]
    if _correlation(x, y, weights) < ALIKE:
        return False
    bits = bits_apart(x, y)
    scene = bits <= max(OTHER_SCENE, bits.min())
    x, y, bits, weights = x[scene], y[scene], bits[scene], weights[scene]
    least = MORE_ALIKE[_unsteady(bits, weights) >= UNSTEADY]
    few = np.average(bits, weights=weights) <= FEW
    return bool(few or _correlation(x, y, weights) >= least)


def _unsteady(bits: Indices, seconds: Floats) -> float:
    """Return by how much `bits` changes from one moment to the next, on average.

    seconds: for which each number is shown.

    >>> _unsteady(np.array([20, 30, 30, 24, 90]), np.array([0.25, 0.125, 0.125, 0.125, 0.125]))
    6.0
    """
    ends = seconds.cumsum()
    at = np.searchsorted(ends[:-1], np.arange(MOMENT / 2, ends[-1], MOMENT))
    return float(np.minimum(np.abs(np.diff(bits[at])), JUMP).sum()) / max(1, len(at))


def _correlation(a: NDArray[np.uint64], b: NDArray[np.uint64], weights: Floats) -> float:
    """Return how the changes of bits correlate in hashes (n, 4) of two videos; 1 if few change."""
    x, y = (_changes(hashes, weights) for hashes in (a, b))
    of_x, of_y, both = (float((weights @ part).sum()) for part in (x * x, y * y, x * y))
    calm = min(of_x, of_y) < CHANGING * float(weights.sum())
    return 1.0 if calm else both / float(np.sqrt(of_x * of_y))


def _bits_on(
    run: Run, line: Line, a: Frames, b: Frames
) -> tuple[Indices, Indices, Floats, list[float]]:
    """Return pairs of frames of a run, their seconds, and the mean bits that differ, by variants.

    The last ones are those of a.compared, for i of a and j of b.
    """
    i, j = _meeting(a, b, line.rate, line.offset)
    start, end = _shared_times(a, i, b, j, line)
    inside = np.flatnonzero((end > start) & (end > run.a_from) & (start < run.a_to))
    inside = inside[np.arange(len(inside)) // IN_A_ROW % (len(inside) // COMPARED + 1) == 0]
    i, j, weights = i[inside], j[inside], (end - start)[inside]
    apart = [bits_apart(a.hashes[i, v], b.hashes[j, w]) for v, w in a.compared]
    return i, j, weights, [float(np.average(bits, weights=weights)) for bits in apart]


def _changes(hashes: NDArray[np.uint64], weights: Floats) -> Floats:
    """Return how far each bit is from its mean, (n, 256); hashes: (n, 4)."""
    bits = np.unpackbits(np.ascontiguousarray(hashes).view(np.uint8), axis=1).astype(np.float64)
    return np.asarray(bits - np.average(bits, axis=0, weights=weights))


def _stands(run: Run, line: Line, frames: Indices, a: Frames, b: Frames) -> bool:
    """Return whether a run is long enough, and its two videos show the same still picture.

    Such videos may have few frames that vote, for example where the picture is nearly flat.
    """
    if run.seconds < least_of_run(min(a.seconds, b.seconds)):
        return False
    if _equal_files(a, b):
        return True
    part = a.take(frames)
    i, j = _meeting(part, b, line.rate, line.offset)
    return float(np.median(_least(distances(part, b, i, j), i, len(frames)))) <= STILL_MATCH


def _gain(line: Line, shift: float, a: Frames, b: Frames, known: Indices, here: Floats) -> float:
    """Return by how many bits, on average, the frames of `a` match worse on a shifted line.

    shift: in seconds; known: pairs of frames on the line itself, which are left out.  NaN if fewer
    than two frames of a have another frame of b there.
    """
    i, j = _meeting(a, b, line.rate, line.offset + shift)
    other = ~np.isin(i * len(b.spans) + j, known)
    least = _least(distances(a, b, i[other], j[other]), i[other], len(here))
    gains = (least - here)[~np.isnan(least)]
    return float(gains.mean()) if len(gains) >= 2 else np.nan


def _least(bits: Indices, of: Indices, count: int) -> Floats:
    """Return the minimum of `bits` for each frame 0 … count-1; NaN for a frame without any."""
    least = np.full(count, np.inf)
    np.minimum.at(least, of, bits.astype(np.float64))
    return np.where(np.isinf(least), np.nan, least)
