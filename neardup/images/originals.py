"""Which of several similar pictures or videos is the original, from what can be measured in them.

    detail      significant coefficients of the cosine transform (8 × 8), in the whole picture
    pixels      inside plain borders
    changes     what a picture has and a similar one has not: borders, text, fewer colours, …

**Detail.**  A coefficient is significant above 3 levels and above 3 standard deviations of the
noise, which is that of the plainest tenth of the tiles: so noise hides detail, and adds none.  An
enlarged picture has more blocks with fewer significant coefficients, and its amplitudes grow with
its sides, as the limit does then.  Coefficients that a stronger compression made 0 do not count.

**Enlarged pictures** have a spectrum that falls steeply (10 dB within 35 % of the frequency), where
that of lenses and of sharp edges falls slowly.

Facts are compared within a group of similar pictures, since what is normal depends on the subject.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neardup.images.perceptual_hash import shrunk

Facts = dict[str, Any]
Levels = NDArray[np.uint8]
Floats = NDArray[np.float32]

VERSION = 1  # must change with the facts
TILE, TILES = 32, 500  # pixels a side, and the number of tiles that are looked at
LIMITS = np.array([1.5, 3, 6, 12, 24, 48])  # of significant coefficients, levels
SIGNIFICANT, SIGMAS = (
    3.0,
    3.0,
)  # levels, in the smallest picture of a group; standard deviations of the noise
STEEP, WITHIN = 10.0, 1.35  # decibels, and the ratio of two frequencies
WIDEST, NEAR, FAR = 0.42, 8, 24  # share of a side; levels of a border, and of the edge behind it
GRID = 4  # cells a side
_WINDOW = np.hanning(TILE + 1)[:TILE].astype(np.float32)
_WAVE = np.arange(8)
_COSINES = np.cos(np.pi * _WAVE[:, None] * (2 * _WAVE + 1) / 16) / 2
_COSINES[0] /= np.sqrt(2)


def facts_of(grey: Levels) -> Facts:
    """Measure a grey picture (height, width), at its full size; {} without a tile inside borders.

    inside: the shares of the sides inside borders; shares: of coefficients above LIMITS; noise, in
    levels; cut: share of the frequencies below a steep fall; sharpness: of middle against low
    frequencies, dB; cells: energy in a grid of 4 × 4; levels: mean, and standard deviation.
    """
    top, bottom, left, right = box_of(grey)
    shape, whole = grey.shape, shrunk(grey[np.newaxis]).reshape(8, 8, 8, 8).mean(axis=(1, 3))
    grey = grey[top:bottom, left:right]
    high, wide = (side // TILE for side in grey.shape)
    if not high * wide:
        return {}
    places = np.unique(np.linspace(0, high * wide - 1, min(TILES, high * wide)).astype(int))
    row, column = places // wide, places % wide
    cut = grey[: high * TILE, : wide * TILE].reshape(high, TILE, wide, TILE)
    tiles = cut[row, :, column].astype(np.float32)
    small = shrunk(grey[np.newaxis])
    tiles -= tiles.mean(axis=(1, 2), keepdims=True)
    across, down = (_power(some) for some in (tiles, tiles.transpose(0, 2, 1)))
    peaks = [np.percentile(power, 95, axis=0) for power in (across, down)]
    plain = np.percentile(np.concatenate((across, down)), 10, axis=0)
    size, on_grid = (np.abs(_COSINES @ _blocks(tiles, by) @ _COSINES.T) for by in (4, 0))
    traces = (on_grid < 1).mean() - (size < 1).mean()
    size = np.sort(size, axis=None)
    cell, energy = row * GRID // high * GRID + column * GRID // wide, across + down
    cells = np.bincount(cell, energy[:, 2:7].sum(axis=1), GRID**2)
    both = peaks[0] + peaks[1] + 1e-3
    return {
        "inside": [grey.shape[1] / shape[1], grey.shape[0] / shape[0]],
        "shares": (1 - np.searchsorted(size, LIMITS, "right") / size.size).tolist(),
        "noise": float(np.sqrt(plain[12:].mean())),
        "cut": _cut(peaks[0]) * _cut(peaks[1]),
        "sharpness": float(10 * np.log10(both[4:7].mean() / both[1])),
        "cells": (cells / np.maximum(np.bincount(cell, minlength=GRID**2), 1)).tolist(),
        "levels": [float(small.mean()), float(small.std())],
        "traces": float(traces),
        "small": np.rint(whole).astype(int).ravel().tolist(),
    }


def _blocks(tiles: Floats, by: int) -> Floats:
    """Return the blocks of 8 × 8 pixels of tiles, `by` pixels beside those of JPEG."""
    tiles = tiles[:, by : TILE - by, by : TILE - by]
    many = tiles.shape[1] // 8
    return tiles.reshape(-1, many, 8, many, 8).transpose(0, 1, 3, 2, 4).reshape(-1, 8, 8)


def average(samples: Sequence[Facts]) -> Facts:
    """Return the facts of a video, given those of some of its frames; {} without any.

    Borders count if seven frames in ten show them: dark scenes show none.
    """
    known = [of for of in samples if of]
    if not known:
        return {}
    every = {name: np.array([of[name] for of in known]) for name in known[0]}
    means = {name: values.mean(axis=0) for name, values in every.items()}
    means["inside"] = np.quantile(every["inside"], 0.3, axis=0)
    means["cut"] = np.median(every["cut"])
    return {name: np.round(value, 4).tolist() for name, value in means.items()}


def _power(tiles: Floats) -> Floats:
    """Return the power of the frequencies along the rows of tiles, in levels²: (n, 17)."""
    waves = np.fft.rfft(tiles * _WINDOW, axis=2)
    return np.asarray((np.abs(waves) ** 2).mean(axis=1) / (_WINDOW**2).sum(), np.float32)


def _cut(power: NDArray[Any]) -> float:
    """Return the share of the frequencies below a steep fall of their power; 1 without one."""
    decibels, at = 10 * np.log10(power + 0.3), np.arange(len(power))
    behind = np.interp(WITHIN * at, at, decibels)
    steep = np.flatnonzero((decibels - behind > STEEP)[4:14] & (decibels[4:14] > 3))
    return float(1.12 * (steep[0] + 4) / (len(power) - 1)) if len(steep) else 1.0


def box_of(grey: Levels) -> tuple[int, int, int, int]:
    """Return the rows (from, to) and columns (from, to) inside the plain borders of a picture.

    >>> picture = np.full((90, 80), 40, np.uint8)
    >>> picture[8:82] = np.arange(74 * 80).reshape(74, 80) ** 1.5 % 255
    >>> box_of(picture)
    (8, 82, 0, 80)
    """
    sides = grey, grey[::-1], grey.T, grey.T[::-1]
    top, bottom, left, right = map(_border, sides)
    return top, grey.shape[0] - bottom, left, grey.shape[1] - right


def _border(lines: Levels) -> int:
    """Return how many of the first rows are of one level, if an edge is behind them, or else 0."""
    widest = int(WIDEST * len(lines))
    some = lines[: widest + NEAR + 2, :: max(1, lines.shape[1] // 500)].astype(np.int16)
    apart = np.abs(some - np.median(some[0]))
    plain = (apart <= NEAR).mean(axis=1) >= 0.95
    end = len(plain) if plain.all() else int(plain.argmin())
    edge = (apart[end + 1 : end + NEAR] > FAR).mean(axis=1) >= 0.5
    return end if 0 < end <= widest and edge.any() else 0


def pixels(facts: Facts) -> float:
    """Return the number of pixels inside the borders of a picture or video."""
    wide, high = facts.get("inside", (1, 1))
    return float(facts.get("width", 0)) * float(facts.get("height", 0)) * wide * high


def detail(facts: Facts, smallest: float, contrast: float, calm: float) -> float:
    """Return the number of significant coefficients of a picture in a group.

    smallest, contrast, calm: the least pixels, deviation of levels, and noise, of the group.
    """
    scale = (pixels(facts) / max(smallest, 1)) ** 0.5
    limit = SIGNIFICANT * scale * (facts["levels"][1] + 1) / (contrast + 1)
    noise = facts["noise"] if facts["noise"] > 2 * calm + 1 else calm
    limit = max(limit, SIGMAS * noise)
    logs = np.log(np.array(facts["shares"]) + 1e-6)
    return float(pixels(facts) * np.exp(np.interp(np.log(limit), np.log(LIMITS), logs)))


SAME_DETAIL, SAME_PIXELS, SAME_TRACES = 1.45, 1.05, 0.02  # ratios, and a difference
FRAMED, OF_LENGTH = 0.015, 0.1  # share of a side; of the seconds
MOVED = (0.15, 0.6)  # standard deviations of levels: the least difference between two framings
CUT, LESS, MOST = 0.72, 0.2, 2.0  # shares of frequencies; ratio of details of an enlarged one
TRACES = 0.025  # excess of zeros on the grid of JPEG
POOR = 60.0  # mean step of a JPEG file of quality 45
SHARPER = (2.0, 6.0)  # decibels; by more, the other one is blurred
IN_A_CELL, OTHERS = 0.4, 1.15  # of the mean energy; ratio of half of the cells
GREY, COLOURED = 2.0, 5.0  # mean saturation, 0 … 255
CLIPPED = 0.004  # share of the values that are 0 or 255
BRIGHTER, OF_CONTRAST, OF_COLOUR = 6.0, 1.12, 1.2  # levels; ratios of deviations, of saturations


def _same_size(a: Facts, b: Facts) -> bool:
    """Return whether two pictures, or videos, have the same pixels inside borders, and length."""
    longer = a.get("seconds", 1) / max(b.get("seconds", 1), 1e-3)
    return abs(pixels(a) / max(pixels(b), 1) - 1) < 2 * FRAMED and abs(longer - 1) < OF_LENGTH


def _is_framed(a: Facts, b: Facts) -> bool:
    return _moved(a, b) > MOVED[0] and min(a["inside"]) < min(b["inside"]) - FRAMED


def _moved(a: Facts, b: Facts) -> float:
    of_a, of_b = (np.array(of["small"]) for of in (a, b))
    of_a, of_b = ((of - of.mean()) / (of.std() + 1) for of in (of_a, of_b))
    return float(((of_a - of_b) ** 2).mean() ** 0.5)


def _is_enlarged(a: Facts, b: Facts) -> bool:
    larger = pixels(a) > 1.1 * pixels(b)
    soft = a["cut"] < min(CUT, b["cut"] - LESS)
    return bool(soft and a["edges"] < (MOST if larger else 0.95) * b["edges"])


def _is_compressed(a: Facts, b: Facts) -> bool:
    poor = a.get("step", 0) > max(POOR, 1.5 * b.get("step", 0))
    return bool(poor and (pixels(a) > 1.1 * pixels(b) or a["detail"] < 1.1 * b["detail"]))


def _has_text(a: Facts, b: Facts) -> bool:
    """Return whether few parts of a picture have more in them than in `b`, and most the same."""
    if not _same_size(a, b) or _moved(a, b) > MOVED[1] or other_colours(a, b):
        return False
    of_a, of_b = (np.array(of["cells"]) + 1 for of in (a, b))
    of_a = of_a / np.median(of_a / of_b)
    ratio = np.maximum(of_a / of_b, of_b / of_a)
    more = ((of_a - of_b > IN_A_CELL * of_b.mean()) & (of_a > 1.5 * of_b)).any()
    return bool(more and np.median(ratio) < OTHERS)


def _is_sharper(a: Facts, b: Facts) -> bool:
    sharper = SHARPER[0] < a["sharpness"] - b["sharpness"] < SHARPER[1]
    return _same_size(a, b) and sharper and b["cut"] >= a["cut"] and a["detail"] < 2 * b["detail"]


def _is_grey(of: Facts) -> bool:
    return bool(of.get("colour", COLOURED) < GREY)


CHANGES = {  # what `a` is, beside `b`
    "framed": _is_framed,
    "enlarged": _is_enlarged,
    "compressed": _is_compressed,
    "256 colours": lambda a, b: a.get("palette", False) and not b.get("palette", True),
    "grey": lambda a, b: (
        _is_grey(a) and b.get("colour", 0) > COLOURED and b["noise"] < 2 * a["noise"] + 2
    ),
    "clipped": lambda a, b: (
        a.get("clipped", 0) > b.get("clipped", 1) + CLIPPED
        and other_colours(a, b)
        and not _is_grey(b)
    ),
    "text": _has_text,
    "sharpened": _is_sharper,
}


def compare(group: Sequence[Facts]) -> None:
    """Add "detail", "grain" and "changes" to the facts of the members of a group.

    changes: words for what a member is beside another one, and those that are there already.
    Details that differ by less than SAME_DETAIL from the largest are set to it.
    """
    measured = [of for of in group if of.get("shares")]
    if not measured:
        return
    smallest, contrast = (min(map(f, measured)) for f in (pixels, lambda of: of["levels"][1]))
    fine = [of["noise"] for of in measured if of.get("step", 0) < POOR]
    least = smallest, contrast, min(fine or [of["noise"] for of in measured])
    for of in measured:
        of["detail"] = detail(of, *least)
        of["edges"] = detail({**of, "noise": 0}, *least)
    for of in measured:
        more = [w for w, is_ in CHANGES.items() if any(is_(of, b) for b in measured if b is not of)]
        of["changes"] = [*of.get("changes", []), *more]
        same = (b for b in measured if b.get("generation") == 1 and _same_levels(of, b))
        if of.get("generation") == 0 and (of["traces"] > TRACES or any(same)):
            of["generation"] = 2  # made from a JPEG file
        of["pixels"] = pixels(of)
    for many in {len(of["changes"]) for of in measured}:
        some = [of for of in measured if len(of["changes"]) == many]
        _level(some, "detail", lambda value, best: value * SAME_DETAIL >= best, max)
        _level(some, "pixels", lambda value, best: value * SAME_PIXELS >= best, max)
        _level(some, "traces", lambda value, best: value - SAME_TRACES <= best, min)


def generations(facts: Facts) -> tuple[int, float]:
    """Return how often a file was compressed, as far as it shows; the least is the original's.

    0 is lossless, 1 is JPEG or HEIF, and 2 is made from such a file; then the traces of JPEG.
    """
    if "generation" not in facts:  # a video: each compression leaves fewer small coefficients
        return 0, -facts.get("shares", [0.0])[0]
    return facts["generation"], facts.get("traces", 0.0)


def doubt(kept: Facts, removed: Facts) -> str:
    """Return why a removal is doubtful, words with commas, or "": changes of the picture kept."""
    words = list(kept.get("changes", ()))
    toned = {"grey", "clipped"} & {*words, *removed.get("changes", ())}
    return ",".join(words + ["colours"] * (not toned and other_colours(kept, removed)))


def _level(some: Sequence[Facts], name: str, is_same: Any, of_all: Any) -> None:
    """Set a fact to the best of all, where it is about the same."""
    best = of_all((of[name] for of in some), default=0)
    for of in some:
        of[name] = best if is_same(of[name], best) else of[name]


def _same_levels(a: Facts, b: Facts) -> bool:
    return bool(np.abs(np.subtract(a["shares"], b["shares"])).max() < 0.001) and (
        abs(a["traces"] - b["traces"]) < 0.01
    )


def other_colours(a: Facts, b: Facts) -> bool:
    """Return whether two pictures differ in brightness, contrast or colours."""
    if not (a.get("levels") and b.get("levels")):
        return False
    (mean, deviation), (mean_b, deviation_b) = a["levels"], b["levels"]
    ratios = (
        (deviation + 1) / (deviation_b + 1),
        (a.get("colour", 0) + 3) / (b.get("colour", 0) + 3),
    )
    return abs(mean - mean_b) > BRIGHTER or any(
        max(ratio, 1 / ratio) > most for ratio, most in zip(ratios, (OF_CONTRAST, OF_COLOUR))
    )
