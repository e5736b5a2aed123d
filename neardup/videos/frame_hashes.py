"""The fingerprints of frames: a perceptual hash without the borders, and of variants of the frame.

A frame is a picture of 64 × 64 bytes, grey, in the order of time; a minute of video is 240 of them.
Its variants, each with its mirror image:

    whole       the frame without its borders; copies with and without bars have the same one
    uncut       the frame with its borders, for a border that is found in one copy only
    centre95    the centre 95 % of each side of `whole`, for copies that are cropped
    centre90    the centre 90 %

**Borders.**  A bar is rows (or columns) of one level, from an edge of the picture to at most 42 % of
it.  The level is that of the edge itself, so that a grey bar, or a black one made brighter, is a bar
as well.  A row belongs to the bar if 85 % of it are near that level, and a bar may have some rows
that do not: so a logo or subtitles inside it do not end it.  How near depends on the contrast of the
picture.  The median of five ticks is taken, so that a dark scene does not flicker.

    n   frames of a batch
    B   a box, (top, bottom, left, right): what the borders leave, in pixels of the 64
    V   variants (8)

Regions (the left, right, upper or lower 70 %) are not among the variants.  A frame matches by its
own hash on one side, so they would find copies cropped to 70 % at one side, and no logo.

Cost: 0.05 ms a frame for all variants, in a batch of 240.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from neardup.images import perceptual_hash
from neardup.images.perceptual_hash import MIRROR, SIDE, STEP

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

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


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
    slopes = _slopes(pictures)
    for box, here in _groups(borders(pictures)):
        found[here] = _variants(pictures[here].astype(np.float32), box)
        quality[here] = _quality([slope[here] for slope in slopes], box)
    return found, quality


def _variants(pictures: NDArray[np.float32], box: tuple[int, int, int, int]) -> Words:
    whole = _waves(pictures, box, 1.0)
    uncut = whole if box == (0, SIDE, 0, SIDE) else _waves(pictures, (0, SIDE, 0, SIDE), 1.0)
    upright = [whole, uncut, *(_waves(pictures, box, cut) for cut in CENTRES)]
    every = np.stack([*upright, *(perceptual_hash.turn(each, MIRROR) for each in upright)], axis=1)
    digits = perceptual_hash.bits(every.reshape(-1, *every.shape[2:]))
    return digits.view(">u8").astype(np.uint64).reshape(len(pictures), len(VARIANTS), WORDS)


def _waves(
    pictures: NDArray[np.float32], box: tuple[int, int, int, int], cut: float
) -> NDArray[np.float32]:
    """Return the waves (n, 16, 16), rounded, of the centre of a box; `cut` is its share."""
    down, across = _cosines(box[0], box[1], cut), _cosines(box[2], box[3], cut)
    return np.rint(down @ (pictures @ across.T) / np.float32(STEP))


@lru_cache(maxsize=4096)
def _cosines(low: int, high: int, cut: float) -> NDArray[np.float32]:
    """Return the cosines of the centre of [low, high) as weights of 64 pixels: (16, 64)."""
    weights = np.zeros((perceptual_hash.WAVES, SIDE), np.float32)
    weights[:, low:high] = perceptual_hash.cosines_of(high - low, cut)
    return weights


# ---- borders


def borders(pictures: Bytes) -> Integers:
    """Return boxes (n, 4), (top, bottom, left, right): what borders leave of pictures (n, 64, 64).

    >>> picture = np.full((1, 64, 64), 40, np.uint8)
    >>> picture[0, 8:56] = np.arange(48 * 64).reshape(48, 64) ** 1.5 % 255
    >>> borders(picture).tolist()
    [[8, 56, 0, 64]]
    """
    sample = pictures[:, ::2, ::2].astype(np.float32)  # enough for a deviation
    near = LEAST + CONTRAST * sample.std(axis=(1, 2))
    rows = steady(_bars(pictures, near))
    columns = np.zeros_like(rows)
    for (top, bottom), here in _groups(rows):
        columns[here] = _bars(pictures[here, top:bottom].transpose(0, 2, 1), near[here])
    return np.hstack((rows, steady(columns)))


def steady(edges: Integers) -> Integers:
    """Return the median of each five neighbours in time of edges (n, 2)."""
    padded = np.pad(edges, ((AROUND, AROUND), (0, 0)), mode="edge")
    every = [padded[k : k + len(edges)] for k in range(2 * AROUND + 1)]
    return np.sort(np.stack(every), axis=0)[AROUND]


def _bars(pictures: Bytes, near: NDArray[np.float32]) -> Integers:
    """Return where bars of rows end and begin, (n, 2): 0 and 64 without any."""
    return np.stack((_bar(pictures, near), SIDE - _bar(pictures[:, ::-1], near)), axis=1)


def _bar(pictures: Bytes, near: NDArray[np.float32]) -> Integers:
    """Return how many of the first rows are a bar (n,); 0 if they might be more than WIDEST.

    Subtle: a dark scene with something small in the middle is not a picture with bars.
    """
    outer = pictures[:, :EDGE].reshape(len(pictures), -1)
    middle = outer.shape[1] // 2
    level = np.partition(outer, middle, axis=1)[:, middle].astype(np.float32)
    low, high = (np.clip(np.rint(level + d), 0, 255).astype(np.uint8) for d in (-near, near))
    rows = pictures[:, : WIDEST + 1]
    inside = (rows >= low[:, None, None]) & (rows <= high[:, None, None])
    uniform = inside.sum(axis=2, dtype=np.int16) >= UNIFORM * rows.shape[2]
    many = np.cumsum(uniform, axis=1)
    bar = uniform & (many >= SOLID * np.arange(1, WIDEST + 2))
    last = np.where(bar.any(axis=1), WIDEST + 1 - bar[:, ::-1].argmax(axis=1), 0)
    return np.where(last > WIDEST, 0, last)


# ---- quality


def _slopes(pictures: Bytes) -> tuple[Integers, Integers]:
    """Return what each row, and each column, adds to the quality, downwards and across.

    Differences below a hundredth of the range are not counted, as in `perceptual_hash.quality`.
    """
    return tuple(
        _HUNDREDTHS[np.maximum(a, b) - np.minimum(a, b)]
        for a, b in (
            (pictures[:, 1:], pictures[:, :-1]),
            (pictures[:, :, 1:], pictures[:, :, :-1]),
        )
    )


_HUNDREDTHS = (np.arange(256) * 100 // 255).astype(np.uint8)


def _quality(slopes: list[Bytes], box: tuple[int, int, int, int]) -> Integers:
    """Return the quality of a box: the sum of its slopes, as if it were a whole picture."""
    top, bottom, left, right = box
    down = slopes[0][:, top : bottom - 1, left:right].sum(axis=(1, 2), dtype=np.int64)
    across = slopes[1][:, top:bottom, left : right - 1].sum(axis=(1, 2), dtype=np.int64)
    share = (bottom - top) * (right - left) / SIDE**2
    return np.minimum(100, ((down + across) / (perceptual_hash.STEEP * share)).astype(np.int64))


def _groups(rows: Integers) -> list[tuple[tuple[int, ...], Integers]]:
    """Return each distinct row (n, w) and the numbers of those that are equal to it."""
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    which = which.reshape(-1)
    return [(tuple(row), np.flatnonzero(which == k)) for k, row in enumerate(distinct.tolist())]
