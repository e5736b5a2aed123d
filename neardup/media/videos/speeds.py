"""Find the speed of a short stretch of two videos, from all frames near a line in time.

The votes of matching frames do not show the speed of a short stretch: after four seconds at 1.05
times the speed, the frames are a fifth of a second apart, and most still match.  But they match
less well.  So all lines near the first one are compared by their *cost*: the mean number of bits in
which pictures of a differ from those that b shows at these times.

    picture of a   a frame at the time at which its span begins, and again every HELD seconds
    picture of b   between two frames, in proportion to the time; at most FAR bits count

Speed 1 is kept unless others have a clearly lower cost (BETTER); then the speed is the mean of the
best ones (NEARLY).  A line of speed 1 is kept unless another has a much lower cost (SHIFTED).  Of
168 clips of 33 real videos, those at the usual speed had at most 1.12 times the lowest cost at 2
seconds, and 1.05 from 4 seconds on.  Those at another speed, taken for the usual one, had at least
1.17 times the lowest cost from 6 seconds on.  Shorter ones may keep speed 1: their ends are right.

Units: seconds.  Letters: n pictures of a, k times beside the line, s shifts of the line.
"""

from __future__ import annotations

from typing import Callable

import numpy as np
from numpy.typing import NDArray

from neardup.media.videos.time_lines import FIT_SECONDS, Floats, Line, overlaps
from neardup.sets.ragged import spans

SPEEDS, PLAIN = np.arange(90, 111) / 100, 10  # the rates that are compared; the number of rate 1
SHIFTS, STEP = np.arange(-16, 17), 1 / 16  # of the middle of the line, in steps; seconds of a step
HELD = 0.25
FAR = 32  # bits: with more, what is cut before or after a short stretch would count too much
BETTER, SHIFTED, NEARLY = 1.15, 1.3, 1.1  # times the lowest cost
SHORT = 0.6  # seconds: a stretch of less than four needs more than BETTER
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
    least, shifts = costs.min(axis=1), SHIFTS[costs.argmin(axis=1)] * STEP
    plain = least[PLAIN] <= max(BETTER, 1 + SHORT / (high - low)) * least.min()
    if plain and line.rate == 1 and costs[PLAIN, len(SHIFTS) // 2] <= SHIFTED * least.min():
        return line
    weights = np.maximum(NEARLY * least.min() - least, 0)
    if plain:
        weights = np.arange(len(SPEEDS)) == PLAIN
    rate, shift = (float(np.average(values, weights=weights)) for values in (SPEEDS, shifts))
    return line._replace(rate=rate, offset=line.offset + shift + (line.rate - rate) * middle)


def _stretch(line: Line, seeds: Floats) -> tuple[float, float]:
    """Return from when to when (of a) frames match near the line, in the longest such stretch."""
    near = seeds[overlaps(seeds, line.rate, line.offset) > SHIFTS[0] * STEP]
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
        steps = np.rint((rate - line.rate) * x / STEP).astype(np.int64) + apart.shape[1] // 2
        cost[:] = apart[row, steps[:, np.newaxis] + SHIFTS].mean(axis=0)
    return np.asarray(costs + 1e-6 * (1 + np.abs(SHIFTS)))


def _bits_beside(line: Line, x: Floats, i: Indices, b: Indices, half: float, bits: Bits) -> Floats:
    """Return in how many bits pictures of a differ from b at times beside the line: (n, k).

    The times are STEP apart, and reach as far as any of SPEEDS and SHIFTS, `half` seconds from the
    middle of the stretch.
    """
    most = SHIFTS[-1] + round(float(np.abs(SPEEDS - line.rate).max()) * half / STEP) + 1
    at = line.rate * x[:, np.newaxis] + line.offset + STEP * np.arange(-most, most + 1)
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
