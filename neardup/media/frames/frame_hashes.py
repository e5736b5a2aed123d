"""Fingerprints of frames: perceptual hashes of each frame without its borders, and of its variants.

A frame is a grey picture of 64 × 64 bytes; a minute of video has 240 of them, in order of time.
Its variants, with their mirror images:

    whole       the frame without its borders; copies with and without bars have the same one
    tight       without its plain margins, too: for black bars around an object on black
    upper       the upper 65 % of `whole`, for subtitles and logos below it
    lower       the lower 65 %, for logos above it
    uncut       the frame with its borders, for a border that is found in one copy only, or that is
                none, such as the plain edge of a slide, and ends elsewhere in each copy
    centre95    the centre 95 % of each side of `whole`, for copies that are cropped
    centre90    the centre 90 %

and, without mirror images, for copies that are cropped otherwise:

    uncut 95    the centre 95 % of `uncut`, for a crop that leaves too little of a border to see it
    uncut 90    the centre 90 %
    top left 95 …  95 % of each side of `whole`, from each corner
    top left 90 …  90 %, so that most copies with 90 to 98 % are near one of them

**Borders.**  A bar is rows (or columns) of one level, from an edge of the picture to at most 42 %
of it.  The level is that of the edge itself, so a grey bar, or a black one made brighter, is a bar
as well.  A row belongs to the bar if 85 % of it is near that level, and some rows of a bar may not:
a logo or subtitles inside it do not end it.  A bar ends at an edge: half of the row behind it has
another level.  So a plain wall, the sky, or an object on black is not a bar.  Where a bar ends
within a row, its end is estimated from the contrast of that row relative to the next row.  A dark
scene, which has no edge, takes the bars of frames within eight ticks.  Bars within bars are cut as
well.

Margins are like bars but need no edge, and 97 % of a row must be plain; the smallest margins of the
frames within eight ticks are cut.

**Logos.**  Levels are limited to 1.5 standard deviations around the mean of each variant's own
part, so that a white logo or subtitle weighs little.

    n   frames of a batch
    V   variants (24)

Tried and rejected: other limits of levels (percentiles, ranks), which change nothing; bars without
an edge, which cut plain backgrounds at another place in each copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.video_prints import MIRROR as MIRRORED
from neardup.media.frames.video_prints import OWN, REGIONS
from neardup.media.pictures import perceptual_hash
from neardup.media.pictures.perceptual_hash import MIRROR, STEP, WAVES, cosines_between
from neardup.sets.hashing import random_words
from neardup.sets.ragged import grouped

SIDE = perceptual_hash.SIDE
CENTRES = AT_CORNERS = (0.95, 0.9)  # shares of each side of copies that are cropped
CORNERS = {"top left": (0, 0), "top right": (0, 1), "bottom left": (1, 0), "bottom right": (1, 1)}
REGION = 0.65  # share of the height
UPRIGHT = (*OWN, "centre95", "centre90")
VARIANTS: tuple[str, ...] = (
    *UPRIGHT,
    *(f"{name}{MIRRORED}" for name in UPRIGHT),
    *(f"uncut {share * 100:.0f}" for share in CENTRES),
    *(f"{corner} {share * 100:.0f}" for corner in CORNERS for share in AT_CORNERS),
)
WORDS = 4  # of 64 bits
AT_ONCE = 16  # pictures whose waves fit in the processor's L2 cache
VERSION = f"{perceptual_hash.VERSION}.5"  # must change with any change of the hashes

SALT = np.zeros((len(VARIANTS), WORDS), np.uint64)  # so that regions match no other variant
for _number, _region in enumerate(REGIONS):
    for _name in (_region, f"{_region}{MIRRORED}"):
        SALT[VARIANTS.index(_name)] = random_words(_number, WORDS, stream=7)

MAX_BAR = int(0.42 * SIDE)  # rows of a bar
UNIFORM, BLANK = 0.85, 0.97  # share of a row of a bar that is near its level
SOLID = 0.6  # share of the rows of a bar that are uniform
EDGE = 2  # rows from which the level of a bar is taken
FAR = 1.5  # standard deviations from the mean, to which levels are limited
NEAR = 4  # levels, of 255, by which the pixels of a bar may differ from its level
JUMP = 0.5  # share of the row behind a bar that is over twice as far from its level
AROUND = 8  # neighbours in time before and after
NESTED = 2  # bars within bars
REACH = (NESTED + 1) * 2 * AROUND  # neighbours that a hash can depend on, over all cuts

PARTS = 4  # the end of a bar is rounded to a quarter of a pixel
ALL = SIDE * PARTS
MAX_END = (MAX_BAR + 1) * PARTS  # where a bar may end

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


class Box(NamedTuple):
    """A part of a picture, in pixels."""

    top: float
    bottom: float
    left: float
    right: float

    def part(self, share: float, down: float = 0.5, across: float = 0.5) -> Box:
        """Return a part of a box, with sides that are `share` times as long.

        down, across: where it is, from 0 (at the top or left) to 1; the centre by default.

        >>> Box(0, 64, 16, 48).part(0.5), Box(0, 64, 16, 48).part(0.5, 0, 1)[:2]
        (Box(top=16.0, bottom=48.0, left=24.0, right=40.0), (0.0, 32.0))
        """
        high, wide = self.bottom - self.top, self.right - self.left
        top, left = self.top + (1 - share) * down * high, self.left + (1 - share) * across * wide
        return Box(top, top + share * high, left, left + share * wide)

    def pixels(self, pictures: Bytes) -> Bytes:
        """Return the pixels of pictures (n, 64, 64) that are entirely inside the box."""
        return pictures[:, ceil(self.top) : floor(self.bottom), ceil(self.left) : floor(self.right)]


WHOLE_BOX = Box(0, SIDE, 0, SIDE)


def hashes(pictures: Bytes, wanted: slice = slice(None)) -> tuple[Words, Integers]:
    """Return the hashes (n, V, 4) and quality (n,) of n of the m pictures, given in order of time.

    wanted: the n of m pictures to hash; the others are neighbours in time, which help to find
    borders.  Quality is 0 (nothing to see) … 100, measured inside the borders.

    >>> picture = (np.arange(4096.0).reshape(1, 64, 64) ** 1.5 % 255).astype(np.uint8)
    >>> found, quality = hashes(picture)
    >>> found.shape, quality.tolist()
    ((1, 24, 4), [100])
    """
    boxes = np.hstack(borders(pictures))[wanted] if len(pictures) else np.zeros((0, 8), np.int64)
    pictures = pictures[wanted]
    found = np.zeros((len(pictures), len(VARIANTS), WORDS), np.uint64)
    quality = np.zeros(len(pictures), np.int64)
    for edges, group in grouped(boxes):
        inside, tight = (Box(*(edge / PARTS for edge in box)) for box in (edges[:4], edges[4:]))
        for first in range(0, len(group), AT_ONCE):
            here = group[first : first + AT_ONCE]
            found[here] = _variants(pictures[here], inside, tight)
            quality[here] = _quality(pictures[here], inside)
    return found, quality


def clipped(pictures: Bytes, box: Box) -> NDArray[np.float32]:
    """Return pictures (n, 64, 64) with levels limited to a range around the mean of a box.

    The limits move with the levels, so that brightness and contrast still do not change a hash.
    """
    sample = box.pixels(pictures)[:, ::2, ::2].astype(np.float32)
    mean, deviation = (f(axis=(1, 2))[:, None, None] for f in (sample.mean, sample.std))
    return np.clip(pictures, mean - FAR * deviation, mean + FAR * deviation)


def _variants(pictures: Bytes, box: Box, tight: Box) -> Words:
    """Return the fingerprints (n, V, 4) of pictures that have the same boxes."""
    # Each variant has a box for its levels, and the part of it that is hashed.
    upright = [(own, own) for own in (box, tight, *_regions(box), WHOLE_BOX)]
    upright += [(box, box.part(share)) for share in CENTRES]
    plain = [(WHOLE_BOX, WHOLE_BOX.part(share)) for share in CENTRES]
    plain += [(box, box.part(share, *at)) for at in CORNERS.values() for share in AT_CORNERS]
    waves: dict[tuple[Box, Box], NDArray[np.float32]] = {}
    for own in {own for own, _ in upright}:
        each = list(dict.fromkeys(pair for pair in upright + plain if pair[0] == own))
        waves.update(zip(each, _waves(clipped(pictures, own), [part for _, part in each])))
    found = np.stack([waves[pair] for pair in upright + plain])
    many = len(upright)
    mirrored = perceptual_hash.turn(found[:many], MIRROR)
    every = np.concatenate((found[:many], mirrored, found[many:]))
    digits = perceptual_hash.bits(every.reshape(-1, *every.shape[2:]))
    words = digits.view(">u8").reshape(len(VARIANTS), len(pictures), WORDS)
    return words.transpose(1, 0, 2).astype(np.uint64) ^ SALT


def _regions(box: Box) -> list[Box]:
    cut = (1 - REGION) * (box.bottom - box.top)
    return [box._replace(bottom=box.bottom - cut), box._replace(top=box.top + cut)]


def _waves(pictures: NDArray[np.float32], boxes: Sequence[Box]) -> NDArray[np.float32]:
    """Return the rounded cosine coefficients (k, n, 16, 16) of k boxes in n pictures."""
    lines = np.ascontiguousarray(pictures.transpose(1, 0, 2)).reshape(-1, SIDE)  # rows 0, rows 1 …
    across: dict[tuple[float, float], NDArray[np.float32]] = {}  # (64, n · 16), by left and right
    exact = np.empty((len(boxes), WAVES, len(pictures), WAVES), np.float32)
    for box, found in zip(boxes, exact.reshape(len(boxes), WAVES, -1)):
        sides = box.left, box.right
        if sides not in across:
            across[sides] = (lines @ cosines_between(SIDE, *sides).T).reshape(SIDE, -1)
        np.matmul(cosines_between(SIDE, box.top, box.bottom), across[sides], out=found)
    return np.rint(exact.transpose(0, 2, 1, 3) / np.float32(STEP))


# ---- borders


def borders(pictures: Bytes) -> tuple[Integers, Integers]:
    """Return the box of each picture without bars, and without bars and margins: (n, 4) each.

    Unit: a quarter of a pixel.

    >>> picture = np.full((1, 64, 64), 40, np.uint8)
    >>> picture[0, 8:56] = np.arange(48 * 64).reshape(48, 64) ** 1.5 % 255
    >>> borders(picture)[0].tolist()
    [[32, 224, 0, 256]]
    """
    boxes = np.tile(np.array([0, SIDE, 0, SIDE]) * PARTS, (len(pictures), 1))
    for side in (0, 1) * NESTED:
        boxes = _cut(boxes, side, _steady(*_bars(pictures, boxes, side, UNIFORM)))
    tight = boxes
    for side in (0, 1):
        _, most = _bars(pictures, tight, side, BLANK)
        tight = _cut(tight, side, _of_neighbours(most, "edge").min(axis=0))
    return boxes, tight


def _cut(boxes: Integers, side: int, bars: Integers) -> Integers:
    """Return boxes (n, 4) without their bars (n, 2): rows if `side` is 0, columns if it is 1.

    A bar that would end beyond MAX_BAR is left out: it may be a neighbour's, or of any width.
    """
    found = boxes.copy()
    low, high = 2 * side, 2 * side + 1
    starts, ends = boxes[:, low] + bars[:, 0], boxes[:, high] - bars[:, 1]
    found[:, low] = np.where(starts <= MAX_END, starts, boxes[:, low])
    found[:, high] = np.where(ends >= ALL - MAX_END, ends, boxes[:, high])
    return found


def _steady(sure: Integers, most: Integers) -> Integers:
    """Return the widest bars (n, 2): possible in the picture, and certain in it or a neighbour.

    So a dark scene has the bars of the scene before or after it.
    """
    every = _of_neighbours(sure, "constant")
    return np.asarray(np.where(every <= most + PARTS // 2, every, 0).max(axis=0), np.int64)


def _of_neighbours(bars: Integers, mode: Literal["edge", "constant"]) -> Integers:
    """Return the bars of each picture and its neighbours in time, (2 AROUND + 1, n, 2)."""
    padded = np.pad(bars, ((AROUND, AROUND), (0, 0)), mode=mode)
    return np.stack([padded[k : k + len(bars)] for k in range(2 * AROUND + 1)])


def _bars(pictures: Bytes, boxes: Integers, side: int, uniform: float) -> tuple[Integers, Integers]:
    """Return the certain and the possible bars (n, 2), in quarters of pixels; side: 0 for rows."""
    sure, most = np.zeros((2, len(boxes), 2), np.int64)
    for (top, bottom, left, right), here in grouped(boxes):
        rows = slice(-(-top // PARTS), bottom // PARTS)
        inside = pictures[here, rows, -(-left // PARTS) : right // PARTS]
        first, last = (top, bottom) if side == 0 else (left, right)
        lines = inside if side == 0 else inside.transpose(0, 2, 1)
        outside = first, SIDE * PARTS - last
        for k, from_edge in enumerate((lines, lines[:, ::-1])):
            widest = min(MAX_BAR - outside[k] // PARTS, from_edge.shape[1] - 3)
            heights = _bar(from_edge, widest, uniform)
            sure[here, k], most[here, k] = (f + (f > 0) * (-outside[k] % PARTS) for f in heights)
    return sure, most


def _bar(pictures: Bytes, widest: int, uniform: float) -> tuple[Integers, Integers]:
    """Return the certain and the possible height of the first bar, in quarters of a row: (n,) each.

    A bar has `widest` rows or fewer.  A certain one ends at an edge: half of the row behind the
    next one, or more, has another level.
    """
    sure, most = np.zeros((2, len(pictures)), np.int64)
    if widest < 1:
        return sure, most
    outer = pictures[:, :EDGE].reshape(len(pictures), -1)
    level = np.partition(outer, outer.shape[1] // 2, axis=1)[:, outer.shape[1] // 2]
    here = np.flatnonzero(_share_near(pictures[:, :1], level, NEAR)[:, 0] >= uniform)
    pictures, level = pictures[here, : widest + 2], level[here]
    even = _share_near(pictures, level, NEAR) >= uniform
    bar = even & (np.cumsum(even, axis=1) >= SOLID * np.arange(1, even.shape[1] + 1))
    last = even.shape[1] - bar[:, ::-1].argmax(axis=1)
    most[here] = ALL  # a picture that is plain to its middle may be a bar of any width
    ends = last <= widest
    here, last, level, pictures = here[ends], last[ends], level[ends], pictures[ends]
    most[here] = last * PARTS + _part(pictures, last, level)
    behind = pictures[np.arange(len(here)), last + 1][:, np.newaxis]
    edge = _share_near(behind, level, 2 * NEAR)[:, 0] <= 1 - JUMP
    sure[here[edge]] = most[here[edge]]
    return sure, most


def _share_near(rows: Bytes, level: Bytes, near: int) -> NDArray[np.float64]:
    """Return the share of pixels in each row that are within `near` of `level`: (n, rows)."""
    low = np.maximum(level, near) - np.uint8(near)
    wide = np.minimum(level, 255 - near) + np.uint8(near) - low
    inside = rows - low[:, None, None] <= wide[:, None, None]  # subtle: below `low` it wraps round
    return np.asarray(inside.sum(axis=2, dtype=np.int16) / rows.shape[2])


def _part(pictures: Bytes, last: Integers, level: Bytes) -> Integers:
    """Estimate how many quarters of row `last` are bar, from its contrast and the next row's."""
    number = np.arange(len(pictures))
    rows = (pictures[number, last + k].astype(np.int64) for k in (0, 1))
    contrast = [np.abs(row - level[:, None]).mean(axis=1) for row in rows]
    inside = np.clip(contrast[0] / np.maximum(contrast[1], 1), 0, 1)
    return np.rint(PARTS * (1 - inside)).astype(np.int64)


# ---- quality


def _quality(pictures: Bytes, box: Box) -> Integers:
    """Return the quality (n,), 0 … 100, of a box of pictures, as `perceptual_hash.quality` does."""
    inside = box.pixels(pictures)
    total = np.zeros(len(pictures), np.int64)
    for a, b in ((inside[:, 1:], inside[:, :-1]), (inside[:, :, 1:], inside[:, :, :-1])):
        differences = (np.maximum(a, b) - np.minimum(a, b)).astype(np.uint16)
        total += (differences * np.uint16(100) >> np.uint16(8)).sum(axis=(1, 2), dtype=np.int64)
    share = inside[0].size / SIDE**2
    return np.minimum(100, (total / (perceptual_hash.STEEP * share)).astype(np.int64))
