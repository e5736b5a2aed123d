"""Find the line in time on which most frames of two videos match: an offset and a rate.

A frame of a is shown from a0 to a1, and one that matches it from b0 to b1.  On a line b = rate · a
+ offset, they are shown at the same time for some seconds, which depend on the offset like this:

               ______
              /      \\                 the votes of one match: a trapezium
    _________/        \\__________      from b0 - rate·a1 to b1 - rate·a0

The best line has the largest sum.  A match whose frames have many other matches counts less, since
a calm scene matches at every offset.

With few matches, the corners of all trapezia are sorted, which finds the maximum exactly.  With
many, they are summed on a grid first: a trapezium is the second sum of four numbers, +1 -1 -1 +1 at
its corners, so that nothing is sorted.  The maximum is then found exactly among the matches near
it.  Rates from 0.9 to 1.1 are tried in steps of 0.01; a least-squares fit through the matches on
the line then finds the exact rate.

Units: seconds.  Letters: m matches.

`refined` finds the speed of a short stretch, from all frames near a line.  The votes of matching
frames do not show the speed of a short stretch: after four seconds at 1.05 times the speed, the
frames are a fifth of a second apart, and most still match.  But they match less well.  So all lines
near the first one are compared by their *cost*: the mean number of bits in which pictures of a
differ from those that b shows at these times.

    picture of a   a frame at the time at which its span begins, and again every HELD seconds
    picture of b   between two frames, in proportion to the time; at most FAR bits count

Speed 1 is kept unless others have a clearly lower cost (CLEARLY); then the speed is the mean of the
best ones (NEARLY).  A line of speed 1 is kept unless another has a much lower cost (SHIFTED).  Of
168 clips of 33 real videos, those at the usual speed had at most 1.12 times the lowest cost at 2
seconds, and 1.05 from 4 seconds on.  Those at another speed, taken for the usual one, had at least
1.17 times the lowest cost from 6 seconds on.  Shorter ones may keep speed 1: their ends are right.

Units: seconds.  Letters: n pictures of a, k times beside the line, s shifts of the line.
"""

from __future__ import annotations

from typing import Callable, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.sets.ragged import spans

Floats = NDArray[np.float64]

RATES = np.array([1.0, 24 / 25, 25 / 24, *(r / 100 for r in range(90, 111) if r != 100)])
FEW = 400  # matches, up to which all of them are sorted at each rate
STEP = 0.25  # seconds of the grid
BEST_BINS = 3  # points of the grid that are kept for each rate, and then refined over all rates
BETTER, MARGIN = 1.02, 0.5  # another rate than 1 needs so many times the votes, and seconds more
FITS = 8  # rounds of least squares
FIT_MATCHES, FIT_SECONDS = 8, 20.0  # minima for a fit


class Line(NamedTuple):
    """The line b = rate · a + offset; votes: weighted seconds of the matches on it."""

    rate: float
    offset: float
    votes: float


def weights_of(seeds: Floats) -> Floats:
    """Weigh each match (a0, a1, b0, b1), float (m, 4): less if its frames have many other matches.

    >>> weights_of(np.array([[0, 1, 5, 6], [0, 1, 7, 8], [1, 2, 3, 4.0]])).round(2).tolist()
    [0.71, 0.71, 1.0]
    """
    degrees = np.ones(len(seeds))
    for column in (0, 2):
        _, place, counts = np.unique(seeds[:, column], return_inverse=True, return_counts=True)
        degrees *= counts[place.reshape(-1)]
    return np.asarray(1 / np.sqrt(degrees))


def best_line(seeds: Floats, weights: Floats, still: bool = False) -> Line:
    """Return the best line in time for matches (a0, a1, b0, b1), float (m, 4), m > 0.

    It has the most votes, but its rate is 1 unless another has clearly more (BETTER, MARGIN), and
    always if the videos are `still`.  Of equal lines of rate 1, the one with offset 0 is returned.

    >>> best_line(np.array([[0, 1, 5, 6], [3, 4, 8, 9], [3, 4, 2, 3.0]]), np.ones(3))
    Line(rate=1.0, offset=5.0, votes=2.0)
    """
    lines = _exact_lines(seeds, weights, RATES) if len(seeds) <= FEW else _of_many(seeds, weights)
    plain = next(line for line in lines if line.rate == 1.0)
    best = max(lines, key=lambda line: line.votes)
    if still or best.votes <= BETTER * plain.votes + MARGIN * float(np.median(weights)):
        best = plain
    best = best if still else _fitted(best, seeds, weights)
    votes = float((weights * np.maximum(overlaps(seeds, 1.0, 0.0), 0)).sum())
    equal = best.rate == 1 and votes >= best.votes * (1 - 1e-9)
    return Line(1.0, 0.0, votes) if equal else best


def overlaps(seeds: Floats, rate: float, offset: float) -> Floats:
    """Return the seconds of b for which each match is on the line, or minus its distance to it."""
    a0, a1, b0, b1 = seeds.T
    return np.asarray(
        np.minimum(rate * a1 + offset, b1) - np.maximum(rate * a0 + offset, b0), np.float64
    )


def _fitted(line: Line, seeds: Floats, weights: Floats) -> Line:
    """Refit a line to the middles of the matches on it by least squares, while this adds votes."""
    x, y = (seeds[:, 0] + seeds[:, 1]) / 2, (seeds[:, 2] + seeds[:, 3]) / 2
    for _ in range(FITS):
        shared = overlaps(seeds, line.rate, line.offset)
        on = shared > 0
        if on.sum() < FIT_MATCHES or np.ptp(x[on]) < FIT_SECONDS:
            break
        length = np.maximum(seeds[on, 1] - seeds[on, 0], seeds[on, 3] - seeds[on, 2])
        heavy = weights[on] * shared[on] / length**2  # long spans say little about the moment
        middle = np.average(x[on], weights=heavy)
        centred = x[on] - middle
        rate = float((heavy * centred * y[on]).sum() / (heavy * centred**2).sum())
        if not RATES.min() - 0.01 < rate < RATES.max() + 0.01:
            break
        near = np.abs(y - line.rate * x - line.offset) < 2 + np.abs(rate - line.rate) * np.abs(
            x - middle
        ) + (seeds[:, 3] - seeds[:, 2])
        new = _exact_lines(seeds[near], weights[near], np.array([rate]))[0]
        if new.votes <= line.votes * 1.001:
            break
        line = new
    return line


def _exact_lines(seeds: Floats, weights: Floats, rates: Floats) -> list[Line]:
    """Return the exact best line for each rate, from the offsets where the votes' slope changes."""
    at, slopes = _corners(seeds, weights, rates)
    order = np.argsort(at, axis=1, kind="stable")
    at = np.take_along_axis(at, order, 1)
    slope = slopes[order].cumsum(axis=1)
    height = np.zeros_like(at)
    np.cumsum(slope[:, :-1] * np.diff(at, axis=1), axis=1, out=height[:, 1:])
    lines = []
    for rate, corners, votes in zip(rates.tolist(), at, height):
        top = int(votes.argmax())
        level = votes[top:] < votes[top] - 1e-9
        last = top + max(int(level.argmax()) - 1, 0) if level.any() else len(votes) - 1
        lines.append(Line(rate, float(corners[top] + corners[last]) / 2, float(votes[top])))
    return lines


def _corners(seeds: Floats, weights: Floats, rates: Floats) -> tuple[Floats, Floats]:
    """Return the offsets (rates, 4 m) at which the slope of the votes changes, and by how much."""
    a0, a1 = rates[:, np.newaxis] * seeds[:, 0], rates[:, np.newaxis] * seeds[:, 1]
    b0, b1 = seeds[:, 2], seeds[:, 3]
    flat = np.minimum(a1 - a0, b1 - b0)
    at = np.concatenate((b0 - a1, b0 - a1 + flat, b1 - a0 - flat, b1 - a0), axis=1)
    return at, np.concatenate((weights, -weights, -weights, weights))


def _of_many(seeds: Floats, weights: Floats) -> list[Line]:
    """Return the best lines for many matches: search a grid first, then near its best points."""
    tops = [top for rate in RATES.tolist() for top in _grid_tops(seeds, weights, rate)]
    plain = [top for top in tops if top.rate == 1.0]
    best = sorted(tops, key=lambda line: -line.votes)[:BEST_BINS]
    lines = []
    for rate, offset, _ in {*plain, *best}:
        near = np.flatnonzero(overlaps(seeds, rate, offset) > -2 * STEP)
        lines += _exact_lines(seeds[near], weights[near], np.array([rate])) if len(near) else []
    return sorted(lines)


def _grid_tops(seeds: Floats, weights: Floats, rate: float) -> list[Line]:
    """Return the lines of one rate at the best offsets of a grid, with their exact votes."""
    (at,), slopes = _corners(seeds, weights, np.array([rate]))
    first = np.floor(at.min() / STEP)
    place = at / STEP - first
    low = np.floor(place).astype(np.int64)
    part = place - low  # Subtle: a corner between two points is shared; the ramp is exact at both
    turns = np.bincount(low, slopes * (1 - part), minlength=int(low.max()) + 2)
    turns += np.bincount(low + 1, slopes * part, minlength=len(turns))
    votes = turns.cumsum().cumsum() * STEP
    # The slope changes at k, so the double sum up to k is the height at k + 1.
    heights = np.append(0.0, votes[:-1])
    best = np.argpartition(heights, -BEST_BINS)[-BEST_BINS:] if len(heights) > BEST_BINS else [0]
    return [Line(rate, float((first + k) * STEP), float(heights[k])) for k in best]


SPEEDS, PLAIN = np.arange(87, 115) / 100, 13  # the rates that are compared; the number of rate 1
FASTEST = 0.9  # the least rate of a line, and the inverse of the greatest: means need neighbours
FINE_STEP = 1 / 16  # seconds
SHIFTS = np.arange(-16, 17)  # of the middle of the line, in FINE_STEPs
HELD = 0.25
FAR = 32  # bits: with more, what is cut before or after a short stretch would count too much
CLEARLY, SHIFTED, NEARLY = 1.15, 1.3, 1.1  # times the lowest cost
SHORT = 0.6  # seconds: a stretch of less than four needs more than CLEARLY
APART = 3.0  # seconds without a match, after which a stretch ends

Indices = NDArray[np.int64]
Bits = Callable[[Indices, Indices], Indices]


def refined(line: Line, seeds: Floats, a: Indices, b: Indices, bits: Bits) -> Line:
    """Return the best line near `line`, if a stretch of less than FIT_SECONDS matches there.

    seeds: frames that match, (m, 4); a, b: spans of frames, in milliseconds, (n, 2); bits: returns
    in how many bits the frames i of a and j of b differ.  Other lines are returned as they are.
    """
    if np.ptp(a) <= np.ptp(b):  # the pictures of a clip count, not those around it
        return _refined(line, seeds, a, b, bits)
    turned = Line(1 / line.rate, -line.offset / line.rate, line.votes)
    found = _refined(turned, seeds[:, [2, 3, 0, 1]], b, a, lambda j, i: bits(i, j))
    return line if found == turned else Line(1 / found.rate, -found.offset / found.rate, line.votes)


def _refined(line: Line, seeds: Floats, a: Indices, b: Indices, bits: Bits) -> Line:
    low, high = _stretch(line, seeds)
    x, i = _pictures(a, low, high)
    if high - low >= FIT_SECONDS or not len(x):
        return line
    middle = (low + high) / 2
    costs = _costs(line, x - middle, _bits_beside(line, x, i, b, (high - low) / 2, bits))
    least, shifts = costs.min(axis=1), SHIFTS[costs.argmin(axis=1)] * FINE_STEP
    plain = least[PLAIN] <= max(CLEARLY, 1 + SHORT / (high - low)) * least.min()
    if plain and line.rate == 1 and costs[PLAIN, len(SHIFTS) // 2] <= SHIFTED * least.min():
        return line
    weights = np.maximum(NEARLY * least.min() - least, 0)
    if plain:
        weights = np.arange(len(SPEEDS)) == PLAIN
    rate, shift = (float(np.average(values, weights=weights)) for values in (SPEEDS, shifts))
    rate = min(max(rate, FASTEST), 1 / FASTEST)
    return line._replace(rate=rate, offset=line.offset + shift + (line.rate - rate) * middle)


def _stretch(line: Line, seeds: Floats) -> tuple[float, float]:
    """Return from when to when (of a) frames match near the line, in the longest such stretch."""
    near = seeds[overlaps(seeds, line.rate, line.offset) > SHIFTS[0] * FINE_STEP]
    near = near[np.argsort(near[:, 0], kind="stable")]
    ends = np.maximum.accumulate(near[:, 1])
    first = np.flatnonzero(np.append(True, near[1:, 0] > ends[:-1] + APART))
    last = np.append(first[1:], len(near)) - 1
    longest = int((ends[last] - near[first, 0]).argmax())
    return float(near[first[longest], 0]), float(ends[last[longest]])


def _pictures(frames: Indices, low: float, high: float) -> tuple[Floats, Indices]:
    """Return the times of pictures from `low` to `high`, and the frame of each."""
    held = np.maximum(1, np.rint((frames[:, 1] - frames[:, 0]) / (1000 * HELD))).astype(np.int64)
    frame = np.repeat(np.arange(len(frames)), held)
    times = frames[frame, 0] / 1000 + HELD * spans(np.zeros(len(held), np.int64), held)
    inside = (times >= low) & (times < high)
    return times[inside], frame[inside]


def _costs(line: Line, x: Floats, apart: Floats) -> Floats:
    """Return the cost of each speed and shift, (speeds, s); of equal ones the nearest is least.

    x: times of pictures, from the middle of the stretch; apart: as `_bits_beside` returns it.
    """
    costs = np.empty((len(SPEEDS), len(SHIFTS)))
    row = np.arange(len(x))[:, np.newaxis]
    for rate, cost in zip(SPEEDS, costs):
        steps = np.rint((rate - line.rate) * x / FINE_STEP).astype(np.int64) + apart.shape[1] // 2
        cost[:] = apart[row, steps[:, np.newaxis] + SHIFTS].mean(axis=0)
    return np.asarray(costs + 1e-6 * (1 + np.abs(SHIFTS)))


def _bits_beside(line: Line, x: Floats, i: Indices, b: Indices, half: float, bits: Bits) -> Floats:
    """Return in how many bits pictures of a differ from b at times beside the line: (n, k).

    The times are FINE_STEP apart, and reach as far as any of SPEEDS and SHIFTS, `half` seconds from
    the middle of the stretch.
    """
    most = SHIFTS[-1] + round(float(np.abs(SPEEDS - line.rate).max()) * half / FINE_STEP) + 1
    at = line.rate * x[:, np.newaxis] + line.offset + FINE_STEP * np.arange(-most, most + 1)
    y, j = _pictures(b, float(at.min()) - 1, float(at.max()) + 1)
    if not len(y):
        return np.full(at.shape, float(FAR))
    after = np.searchsorted(y, at, "right")
    before, after = np.maximum(after - 1, 0), np.minimum(after, len(y) - 1)
    first = before.min(axis=1)
    sizes = after.max(axis=1) - first + 1
    table = np.full((len(x), int(sizes.max())), FAR)
    rows, columns = np.repeat(np.arange(len(x)), sizes), spans(first, sizes)
    table[rows, columns - first[rows]] = np.minimum(bits(i[rows], j[columns]), FAR)
    row, first = np.arange(len(x))[:, np.newaxis], first[:, np.newaxis]
    gap = y[after] - y[before]
    part = np.clip(np.divide(at - y[before], gap, out=np.zeros_like(at), where=gap > 0), 0, 1)
    shown = (at >= y[before] - HELD) & (at <= y[after] + HELD) & (gap <= 2 * HELD)
    between = (1 - part) * table[row, before - first] + part * table[row, after - first]
    return np.where(shown, between, float(FAR))
