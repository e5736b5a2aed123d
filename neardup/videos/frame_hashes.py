"""The fingerprints of frames: a perceptual hash without the borders, and of variants of the frame.

A frame is a picture of 64 × 64 bytes, grey, in the order of time; a minute of video is 240 of them.
Its variants, each with its mirror image:

    whole       the frame without its borders; copies with and without bars have the same one
    uncut       the frame with its borders, for a border that is found in one copy only
    centre95    the centre 95 % of each side of `whole`, for copies that are cropped
    centre90    the centre 90 %

**Borders.**  A bar is rows (or columns) of one level, from an edge of the picture to at most 42 %
of it.  The level is that of the edge itself, so a grey bar, or a black one made brighter, is a bar
as well.  A row belongs to the bar if 85 % of it is near that level, and a bar may have some rows
that do not: a logo or subtitles inside it do not end it.  How near depends on the contrast of the
picture.  Where a bar ends within a row, the contrast of that row beside that of the next one says
where.  The median of five ticks is taken, so that a dark scene does not flicker.

    n   frames of a batch
    V   variants (8)

Regions (the left, right, upper or lower 70 %) are not among the variants.  A frame matches by its
own hash on one side, so they would find copies cropped to 70 % at one side, and no logo.

Cost: 0.05 ms a frame for all variants, in a batch of 240.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.images import perceptual_hash
from neardup.images.perceptual_hash import MIRROR, STEP, WAVES, cosines_between

SIDE = perceptual_hash.SIDE
CENTRES = (0.95, 0.9)  # shares of each side
UPRIGHT = ("whole", "uncut", "centre95", "centre90")
VARIANTS: tuple[str, ...] = (*UPRIGHT, *(f"{name} mirror" for name in UPRIGHT))
WORDS = 4  # of 64 bits
VERSION = f"{perceptual_hash.VERSION}.1"  # another one for any change of the hashes

WIDEST = int(0.42 * SIDE)  # rows of a bar
UNIFORM = 0.85  # share of a row of a bar that is near its level
SOLID = 0.7  # share of the rows of a bar that are uniform
EDGE = 2  # rows that have the level
LEAST, CONTRAST = 2.0, 0.1  # near a level: this, and this times the standard deviation
AROUND = 2  # neighbours in time before and after
REACH = 2 * AROUND  # of neighbours that a hash can depend on: those of rows, then of columns

PARTS = 4  # of a pixel, to which the end of a bar is rounded

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


class Box(NamedTuple):
    """A part of a picture, in pixels."""

    top: float
    bottom: float
    left: float
    right: float

    def centre(self, share: float) -> Box:
        """Return the centre of a box; `share` is that of each side.

        >>> Box(0, 64, 16, 48).centre(0.5)
        Box(top=16.0, bottom=48.0, left=24.0, right=40.0)
        """
        down, across = (
            (1 - share) / 2 * (self.bottom - self.top),
            (1 - share) / 2 * (self.right - self.left),
        )
        return Box(self.top + down, self.bottom - down, self.left + across, self.right - across)


WHOLE_BOX = Box(0, SIDE, 0, SIDE)


def hashes(pictures: Bytes) -> tuple[Words, Integers]:
    """Return the hashes (n, V, 4) and the quality (n,) of pictures (n, 64, 64), in order of time.

    Quality is 0 (nothing to see) … 100, of what the borders leave.

    >>> picture = (np.arange(4096.0).reshape(1, 64, 64) ** 1.5 % 255).astype(np.uint8)
    >>> found, quality = hashes(picture)
    >>> found.shape, quality.tolist()
    ((1, 8, 4), [100])
    """
    found = np.zeros((len(pictures), len(VARIANTS), WORDS), np.uint64)
    quality = np.zeros(len(pictures), np.int64)
    for box, here in _groups(borders(pictures)):
        found[here] = _variants(pictures[here], Box(*(edge / PARTS for edge in box)))
        quality[here] = _quality(pictures[here], Box(*(edge / PARTS for edge in box)))
    return found, quality


def _variants(pictures: Bytes, box: Box) -> Words:
    upright = _waves(pictures, [box, WHOLE_BOX, *(box.centre(share) for share in CENTRES)])
    every = np.concatenate((upright, perceptual_hash.turn(upright, MIRROR)))
    digits = perceptual_hash.bits(every.reshape(-1, *every.shape[2:]))
    words = digits.view(">u8").reshape(len(VARIANTS), len(pictures), WORDS)
    return words.transpose(1, 0, 2).astype(np.uint64)


def _waves(pictures: Bytes, boxes: Sequence[Box]) -> NDArray[np.float32]:
    """Return the waves (k, n, 16, 16), rounded, of k boxes in n pictures, by k + 1 products."""
    many, k = len(pictures), len(boxes)
    across = np.concatenate([cosines_between(SIDE, box.left, box.right) for box in boxes])
    rows = pictures.reshape(-1, SIDE).astype(np.float32) @ across.T
    by_box = np.ascontiguousarray(rows.reshape(many, SIDE, k, WAVES).transpose(2, 1, 0, 3))
    down = np.stack([cosines_between(SIDE, box.top, box.bottom) for box in boxes])
    exact = (down @ by_box.reshape(k, SIDE, -1)).reshape(k, WAVES, many, WAVES)
    return np.rint(exact.transpose(0, 2, 1, 3) / np.float32(STEP))


# ---- borders


def borders(pictures: Bytes) -> Integers:
    """Return boxes (n, 4) that borders leave of pictures (n, 64, 64), in quarters of pixels.

    >>> picture = np.full((1, 64, 64), 40, np.uint8)
    >>> picture[0, 8:56] = np.arange(48 * 64).reshape(48, 64) ** 1.5 % 255
    >>> borders(picture).tolist()
    [[32, 224, 0, 256]]
    """
    sample = pictures[:, ::2, ::2].astype(np.float32)  # enough for a deviation
    near = LEAST + CONTRAST * sample.std(axis=(1, 2))
    rows = steady(_bars(pictures, near))
    columns = np.zeros_like(rows)
    for (top, bottom), here in _groups(rows):
        inside = pictures[here, -(-top // PARTS) : bottom // PARTS]
        columns[here] = _bars(inside.transpose(0, 2, 1), near[here])
    return np.hstack((rows, steady(columns)))


def steady(edges: Integers) -> Integers:
    """Return the median of each five neighbours in time of edges (n, 2)."""
    padded = np.pad(edges, ((AROUND, AROUND), (0, 0)), mode="edge")
    every = [padded[k : k + len(edges)] for k in range(2 * AROUND + 1)]
    return np.sort(np.stack(every), axis=0)[AROUND]


def _bars(pictures: Bytes, near: NDArray[np.float32]) -> Integers:
    """Return where bars of rows end and begin, (n, 2), in quarters: 0 and 256 without any."""
    ends = [_bar(pictures, near), SIDE * PARTS - _bar(pictures[:, ::-1], near)]
    return np.stack(ends, axis=1)


def _bar(pictures: Bytes, near: NDArray[np.float32]) -> Integers:
    """Return how many quarters of first rows are a bar (n,); 0 if they might exceed WIDEST.

    Subtle: a dark scene with something small in the middle is not a picture with bars.
    """
    outer = pictures[:, :EDGE].reshape(len(pictures), -1)
    middle = outer.shape[1] // 2
    level = np.partition(outer, middle, axis=1)[:, middle].astype(np.float32)
    low, high = (np.clip(np.rint(level + d), 0, 255).astype(np.uint8) for d in (-near, near))
    rows = pictures[:, : WIDEST + 1]
    inside = (rows >= low[:, None, None]) & (rows <= high[:, None, None])
    uniform = inside.sum(axis=2, dtype=np.int16) >= UNIFORM * rows.shape[2]
    solid = np.cumsum(uniform, axis=1) >= SOLID * np.arange(1, WIDEST + 2)
    bar = uniform & solid
    last = np.where(bar.any(axis=1), WIDEST + 1 - bar[:, ::-1].argmax(axis=1), 0)
    last[last > WIDEST] = 0
    return last * PARTS + np.where(last > 0, _part(pictures, last, level), 0)


def _part(pictures: Bytes, last: Integers, level: NDArray[np.float32]) -> Integers:
    """Return how many quarters of row `last` belong to the bar: its contrast beside the next's."""
    each = np.arange(len(pictures))
    contrast = [np.abs(pictures[each, last + k] - level[:, None]).mean(axis=1) for k in (0, 1)]
    inside = np.clip(contrast[0] / np.maximum(contrast[1], 1), 0, 1)
    return np.rint(PARTS * (1 - inside)).astype(np.int64)


# ---- quality


def _quality(pictures: Bytes, box: Box) -> Integers:
    """Return the quality of a box, as if it were a whole picture.

    Differences below a hundredth are not counted, as in `perceptual_hash.quality`.
    """
    inside = pictures[:, ceil(box.top) : floor(box.bottom), ceil(box.left) : floor(box.right)]
    total = np.zeros(len(pictures), np.int64)
    for a, b in ((inside[:, 1:], inside[:, :-1]), (inside[:, :, 1:], inside[:, :, :-1])):
        hundredths = _HUNDREDTHS[np.maximum(a, b) - np.minimum(a, b)]
        total += hundredths.sum(axis=(1, 2), dtype=np.int64)
    share = inside[0].size / SIDE**2
    return np.minimum(100, (total / (perceptual_hash.STEEP * share)).astype(np.int64))


_HUNDREDTHS = (np.arange(256) * 100 // 255).astype(np.uint8)


def _groups(rows: Integers) -> Iterator[tuple[list[int], Integers]]:
    """Yield each distinct row (n, w) and the numbers of those that are equal to it."""
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    for k, row in enumerate(distinct.tolist()):
        yield row, np.flatnonzero(which.ravel() == k)
