"""Find the original among similar pictures or videos, from what can be measured in them.

    detail      decibels of the spectrum above noise, over all frequencies of the whole picture
    pixels      inside plain borders
    step        of the quantisation of a JPEG file, and that of one which the picture was before
    changes     what a picture has and a similar one has not: borders, text, fewer colours, …
    look        the picture at 96 × 96 pixels, in which a mark is seen that another one has not
    holds       what else is in the file, which the pictures do not show: a video, sound, layers, …

**Detail** is counted in waves across the picture, so an enlarged picture has not more of it.  The
spectrum is that of the strongest twentieth of the tiles, less what the plainest tenth have: noise
adds nothing.

**JPEG** leaves multiples of its steps.  Those of a strong compression can still be seen after a
weak one, or in a lossless file: such a file was made from another.

**Marks** such as a logo, a date or a caption are a difference in a place: levels that the other
look has nowhere near, although most of it has the same ones.  Which of both has the mark is not
known: one without it may have been painted over.

Facts are compared within a group of similar pictures, since what is normal depends on the subject.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neardup.media.pictures.perceptual_hash import WHOLE, Box, Symmetry, areas_between, shrunk
from neardup.media.pictures.shared_bytes import shared

Facts = dict[str, Any]
Levels = NDArray[np.uint8]
Floats = NDArray[np.float32]

VERSION = 5  # must change with the facts
TILE, TILES = 32, 500  # pixels a side, and the number of tiles that are looked at
WEB = 3  # the coding of formats into which web sites convert pictures
OF_PLAIN = 2.5  # how far the noise of the strongest tiles is above that of the plainest
MAX_BORDER = 0.42  # share of a side
NEAR, FAR = 8, 24  # levels of a border, and of the edge behind it
GRID = 4  # cells a side
_WINDOW = np.hanning(TILE + 1)[:TILE].astype(np.float32)
_WAVE = np.arange(8)
_COSINES = np.cos(np.pi * _WAVE[:, None] * (2 * _WAVE + 1) / 16) / 2
_COSINES[0] /= np.sqrt(2)
WAVES = ((0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (1, 2), (2, 1))  # of a block, for its steps
STEPS, MAX_WAVE = np.arange(3, 81), 240  # levels
_VALUES = np.arange(-MAX_WAVE, MAX_WAVE + 1)
_COUNTS = np.abs(_VALUES) > 0.4 * STEPS[:, None]
_PHASES = np.cos(2 * np.pi * _VALUES / STEPS[:, None]) * _COUNTS
IN_PHASE, MIN_VALUES = 0.4, 60  # mean cosine, and values, of a step
MAX_LINES, LIKE = 500, 0.35  # rows looked at; ratio of differences, over 0.6 in most photos


def facts_of(grey: Levels) -> Facts:
    """Measure a grey picture (height, width), at its full size; {} without a tile inside borders.

    inside: the shares of the sides inside borders; spectrum: power above noise, levels², of 0 … 16
    waves in a tile; noise, in levels; grain: power of the upper frequencies, dB; cells:
    energy in a grid of 4 × 4; levels: mean, and standard deviation; small: 8 × 8 pixels.
    """
    top, bottom, left, right = box_of(grey)
    shape, whole = grey.shape, shrunk(grey[np.newaxis]).reshape(8, 8, 8, 8).mean(axis=(1, 3))
    inside = grey[top:bottom, left:right]
    tiles, row, column = _tiles(inside)
    if not len(tiles):
        return {}
    small = shrunk(inside[np.newaxis])
    tiles -= tiles.mean(axis=(1, 2), keepdims=True)
    across, down = (_power(part) for part in (tiles, tiles.transpose(0, 2, 1)))
    # At each frequency: the plainest tenth of the tiles is noise, the strongest twentieth detail.
    power = np.sort(np.concatenate((across, down)), axis=0)
    plain, strong = power[len(power) // 10], power[-(len(power) // 20 + 1) :].mean(axis=0)
    cell, energy = row * GRID + column, across + down
    cells = np.bincount(cell, energy[:, 2:7].sum(axis=1), GRID**2)
    return {
        "inside": [inside.shape[1] / shape[1], inside.shape[0] / shape[0]],
        "spectrum": np.round(np.maximum(strong - OF_PLAIN * plain, 0), 3).tolist(),
        "noise": float(np.sqrt(plain[12:].mean())),
        "grain": float(10 * np.log10(power[:, 8:].mean() + 1e-3)),
        "cells": (cells / np.maximum(np.bincount(cell, minlength=GRID**2), 1)).tolist(),
        "levels": [float(small.mean()), float(small.std())],
        "small": np.rint(whole).astype(int).ravel().tolist(),
    }


def _tiles(grey: Levels) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """Return at most TILES tiles of a picture, and the row and the column of the cell of each."""
    high, wide = (side // TILE for side in grey.shape)
    places = np.unique(np.linspace(0, high * wide - 1, min(TILES, high * wide)).astype(int))
    row, column = places // max(wide, 1), places % max(wide, 1)
    cut = grey[: high * TILE, : wide * TILE].reshape(high, TILE, wide, TILE)
    cells = row * GRID // max(high, 1), column * GRID // max(wide, 1)
    return cut[row, :, column].astype(np.float32), *cells


def seen_step(grey: Levels) -> float:
    """Return the mean step of the WAVES of JPEG that a picture shows; 0 if most have none."""
    # The cosine transform of all blocks of 8 × 8 pixels, as in JPEG.
    blocks = (
        _tiles(grey)[0].reshape(-1, 4, 8, 4, 8).transpose(0, 1, 3, 2, 4).reshape(-1, 8, 8) - 128
    )
    waves = np.einsum("ij,njk->nik", _COSINES, blocks)  # no BLAS: it may hang in a forked process
    waves = np.einsum("nik,lk->nil", waves, _COSINES)
    waves = np.clip(np.rint(waves), -MAX_WAVE, MAX_WAVE).astype(int)
    # A step is seen in a wave if its values, unless near 0, are mostly near multiples of the step.
    seen = []
    for y, x in WAVES:
        counts = np.bincount(waves[:, y, x] + MAX_WAVE, minlength=len(_VALUES))
        many, phases = ((table * counts).sum(axis=1) for table in (_COUNTS, _PHASES))
        good = (many >= MIN_VALUES) & (phases > IN_PHASE * many)
        seen.append(int(STEPS[good].max(initial=0)))
    return float(np.mean(seen)) if np.median(seen) else 0.0


def repeats(grey: Levels) -> bool:
    """Return whether most rows or columns have one like it beside them, as enlarged pixels have.

    >>> picture = np.random.default_rng(1).integers(0, 255, (60, 60), np.uint8)
    >>> repeats(picture), repeats(picture.repeat(2, axis=0).repeat(2, axis=1))
    (False, True)
    """
    shares = []
    for lines in (grey, grey.T):
        some = lines[:: len(lines) // MAX_LINES + 1].astype(np.int16)
        apart = np.abs(np.diff(some, axis=1)).mean(axis=0)
        four = apart[: len(apart) // 4 * 4].reshape(-1, 4)
        most = four.max(axis=1, initial=0)
        seen = most > apart.mean() / 4  # and not plain
        equal = np.count_nonzero(four[seen].min(axis=1) < LIKE * most[seen])
        shares.append(equal / max(len(four), 1))
    return bool(min(shares) > 0.5)


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
    return {name: np.round(value, 4).tolist() for name, value in means.items()}


def _power(tiles: Floats) -> Floats:
    """Return the power of the frequencies along the rows of tiles, in levels²: (n, 17)."""
    waves = np.fft.rfft(tiles * _WINDOW, axis=2)
    return np.asarray((np.abs(waves) ** 2).mean(axis=1) / (_WINDOW**2).sum(), np.float32)


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
    first = lines[0].astype(np.int16)
    level = np.partition(first, len(first) // 2)[len(first) // 2]
    if np.count_nonzero(np.abs(first - level) <= 2 * NEAR) < 0.95 * len(first):
        return 0  # as below, but faster
    widest = int(MAX_BORDER * len(lines))
    near_edge = lines[: widest + NEAR + 2, :: max(1, lines.shape[1] // 500)].astype(np.float32)
    apart = np.abs(near_edge - _median(near_edge[0]))
    plain = np.count_nonzero(apart <= NEAR, axis=1) >= 0.95 * apart.shape[1]
    end = len(plain) if plain.all() else int(plain.argmin())
    edge = np.count_nonzero(apart[end + 1 : end + NEAR] > FAR, axis=1) >= 0.5 * apart.shape[1]
    return end if 0 < end <= widest and edge.any() else 0


def inside(grey: Levels) -> list[float]:
    """Return the rows (from, to) and columns (from, to) inside plain borders, as shares of sides.

    A row or column that a small picture has at the edge is partly border, partly picture.
    """
    sides = grey, grey[::-1], grey.T, grey.T[::-1]
    top, bottom, left, right = (_exact_border(side) / len(side) for side in sides)
    return [top, 1 - bottom, left, 1 - right]


def _exact_border(lines: Levels) -> float:
    """Return how many rows are border: those of `_border`, and a part of the next one."""
    if not (end := _border(lines)):
        return 0.0
    mixed, row = lines[end : end + 2].astype(np.float32) - np.float32(_median(lines[0]))
    return end + 1 - float(np.clip(mixed @ row / max(float(row @ row), 1.0), 0, 1))


def _median(values: NDArray[Any]) -> Any:
    """Return the median of values (n,), as np.median does, which takes many times as long.

    >>> float(_median(np.array([9, 2, 4, 3], np.uint8)))
    3.5
    """
    middle = [(len(values) - 1) // 2, len(values) // 2]
    return np.partition(values, middle)[middle].mean()


def pixels(facts: Facts) -> float:
    """Return the number of pixels inside the borders of a picture or video."""
    wide, high = facts.get("inside", (1, 1))
    return float(facts.get("width", 0)) * float(facts.get("height", 0)) * wide * high


def detail(facts: Facts, floor: float, smallest: float, contrast: float) -> float:
    """Return the decibels of the spectrum of a picture above a floor, times waves in the picture.

    smallest, contrast: the least pixels, and deviation of levels, of the pictures to compare.
    """
    floor *= (pixels(facts) / max(smallest, 1)) ** 0.5
    floor *= ((facts["levels"][1] + 1) / (contrast + 1)) ** 2
    above = np.log10(np.maximum(np.array(facts["spectrum"]) / floor, 1))
    return float(pixels(facts) * (np.arange(len(above)) * above).sum())


SAME_DETAIL, SAME_PIXELS = 1.3, 1.015  # ratios
QUIET = 0.1  # levels of noise; photos have more
FRAMED, OF_LENGTH = 0.015, 0.1  # share of a side; of the seconds
THIN = 0.005  # share of a side that borders are wider, although a crop seems to be without them
MOVED = (0.15, 0.6)  # standard deviations of levels: least of two framings, most of two copies
ENLARGED, FAINT = (1.5, 1.3), 1 / 30  # ratios of pixels, of details; of power
SHARPENED, MAX_FACTOR = (2.5, 12.5), 2.5  # decibels: just below what `b` shows, and beyond; sides
LESS_SOUND = 0.05  # share of the seconds
SAME_TIMES = 1.02  # ratio of lengths of videos whose mean pictures are compared
SAME_RATE = 0.75  # ratio of frames a second: a film at 24 has as many as one at 30
LESS = 4.0  # ratio of details: half the sides, or less
POOR = 18.0  # step of a JPEG file of quality 35
LOUDER = (2.5, 12.0)  # decibels: least, of the middle frequencies, and most, of any
IN_A_CELL, OTHERS = 0.4, 1.15  # share of the mean energy; maximum ratio of most cells
GREY, COLOURED = 2.0, 5.0  # mean saturation, 0 … 255
ADD_DETAIL = {"enlarged", "compressed", "256 colours", "text", "sharpened", "noise"}
MAX_REFERENCES = 32  # pictures of a group
AGAIN, FINE = 1.3, 2.0  # ratio of steps; a step that does not matter
CLIPPED = 0.004  # share of the values that are the largest
MOSTLY, UNCHANGED = 0.5, 0.9  # shares of the bytes of two files, and of the levels of a look
FEWEST, OF_FEW = 0.995, 3.5  # share of the levels of a look; ratio of copies is less than 2.5
TINT = 40  # levels between two colours less those in the other picture
BRIGHTER, OTHER = 6.0, (1.08, 1.2)  # levels; ratios of contrasts, and of saturations


def _same_size(a: Facts, b: Facts) -> bool:
    """Return whether two files have about as many pixels inside borders, and seconds."""
    return _same_length(a, b) and abs(pixels(a) / max(pixels(b), 1) - 1) < 2 * FRAMED


def _same_length(a: Facts, b: Facts) -> bool:
    return bool(abs(a.get("seconds", 1) / max(b.get("seconds", 1), 1e-3) - 1) < OF_LENGTH)


def _is_framed(a: Facts, b: Facts) -> bool:
    less = min(a["inside"]) < min(b["inside"]) - FRAMED
    return less and _moved(a, b) > MOVED[0] and abs(_shape(a) / _shape(b) - 1) < 0.03


def has_frame(a: Facts, b: Facts) -> bool:
    """Return whether `a` has wider borders than `b`, and so may show no more although it seems to.

    >>> has_frame({"inside": [0.98, 0.97]}, {"inside": [1.0, 1.0]}), has_frame({}, {})
    (True, False)
    """
    return bool(min(a.get("inside", [1])) < min(b.get("inside", [1])) - THIN)


def _shape(of: Facts) -> float:
    (wide, high), x, y = of["inside"], of.get("width", 0), of.get("height", 0)
    return float((x * wide + 1) / (y * high + 1))


def _moved(a: Facts, b: Facts) -> float:
    of_a, of_b = (np.array(of["small"]) for of in (a, b))
    of_a, of_b = ((of - of.mean()) / (of.std() + 1) for of in (of_a, of_b))
    return float(((of_a - of_b) ** 2).mean() ** 0.5)


def _is_enlarged(a: Facts, b: Facts) -> bool:
    """Return whether a larger picture has no more detail: a filter leaves traces, FAINT ones."""
    smaller = pixels(a) <= ENLARGED[0] * pixels(b)
    if smaller or (a.get("dated") and not b.get("dated")):
        return False
    faint = max(1.0, FAINT * b["spectrum"][12])
    of_a, of_b = (detail(of, faint, pixels(b), b["levels"][1]) for of in (a, b))
    return of_a < ENLARGED[1] * of_b


def _seems_enlarged(a: Facts, b: Facts) -> bool:
    """Return whether a larger picture `a` may be `b` with repeated pixels, or sharpened.

    So that has more detail than the plainly enlarged one, but hardly any beyond the waves that `b`
    can show, and more than `b` in the waves just below them.
    """
    factor = (pixels(a) / max(pixels(b), 1)) ** 0.5
    moved = {"cropped", "framed"} & {*a.get("changes", ()), *b.get("changes", ())}
    unlike = "coding" not in a or not (a.get("spectrum") and b.get("spectrum"))
    if moved or unlike or factor**2 <= ENLARGED[0] or (a.get("dated") and not b.get("dated")):
        return False
    if a.get("repeats") or factor > MAX_FACTOR:
        return bool(a.get("repeats"))
    power, power_b = (np.array(of["spectrum"]) + 1 / 3 for of in (a, b))
    waves, limit = np.arange(len(power)), (len(power) - 1) / factor
    below = power[(waves >= 0.55 * limit) & (waves <= 0.85 * limit)].mean()
    beyond = power[(waves >= 1.15 * limit) & (waves <= 1.6 * limit)].mean()
    own = np.arange(2, 13)
    louder = 10 * np.log10(np.interp(own / factor, waves, power) / power_b[own])
    least, most = SHARPENED
    return bool(10 * np.log10(below / beyond) > most and louder[6:].mean() - louder[0] > least)


def _is_reduction(a: Facts, b: Facts) -> bool:
    """Return whether `a` has far less detail, as the thumbnail of a changed picture has."""
    return bool(_same_length(a, b) and LESS * a["detail"] < b["detail"])


def _has_text(a: Facts, b: Facts) -> bool:
    """Return whether few parts of a picture have more in them than in `b`, and most the same."""
    if not _same_size(a, b) or _moved(a, b) > MOVED[1]:  # such as a mirrored one
        return False
    of_a, of_b = (np.array(of["cells"]) + 1 for of in (a, b))
    ratio = np.maximum(of_a / of_b, of_b / of_a)
    more = ((of_a - of_b > IN_A_CELL * of_b.mean()) & (of_a > 1.5 * of_b)).any()
    return bool(more and np.quantile(ratio, 0.6) < OTHERS)


def _is_sharper(a: Facts, b: Facts) -> bool:
    """Return whether the upper frequencies of `a` are louder than those of `b`, all as much."""
    power, power_b = (np.array(of["spectrum"]) + 1 / 3 for of in (a, b))
    louder = 10 * np.log10(power / power_b)[1:15]
    louder -= louder[0]
    least, most = LOUDER
    return bool(_same_size(a, b) and louder[3:6].mean() > least and louder.max() < most)


def _is_reduced(a: Facts, b: Facts) -> bool:
    """Return whether `a` has a palette for what was not drawn with few colours.

    A JPEG file without noise is that of a drawing, and may be made from `a`, unless `a` is dotted.
    """
    if not a.get("palette") or b.get("palette", True) or a["digest"] == b["digest"]:
        return False
    return bool(a["dotted"] or b["noise"] > QUIET or generation(b) == (0, FINE))


def _is_clipped(a: Facts, b: Facts) -> bool:
    more = a.get("clipped", 0) > 1.2 * b.get("clipped", 1) + CLIPPED
    unlike = other_colours(a, b) and b.get("colour", 0) >= GREY and not has_frame(b, a)
    return more and unlike and not _is_noisier(b, a)


def _is_grey(a: Facts, b: Facts) -> bool:
    grey = a.get("colour", GREY) < GREY and b.get("colour", 0) > COLOURED
    return bool(grey and not _is_noisier(b, a))


def _is_noisier(a: Facts, b: Facts) -> bool:
    return bool(a["noise"] > 2 * b["noise"] + 2)


def _has_noise(a: Facts, b: Facts) -> bool:
    """Return whether `a` has more noise than `b`, and less above it."""
    less = sum(a["spectrum"][8:]) < sum(b["spectrum"][8:])
    return _same_size(a, b) and _is_noisier(a, b) and less


def _has_gap(a: Facts, b: Facts) -> bool:
    return "coding" in a and bool(a.get("damaged")) and not b.get("damaged")


CHANGES = {  # word: function that returns whether it describes `a` beside `b`
    "damaged": _has_gap,
    "framed": _is_framed,
    "less detail": _is_reduction,
    "enlarged": _is_enlarged,
    "compressed": lambda a, b: a.get("step", 0) > max(POOR, 1.5 * b.get("step", 0)),
    "256 colours": _is_reduced,
    "grey": _is_grey,
    "clipped": _is_clipped,
    "text": _has_text,
    "sharpened": _is_sharper,
    "noise": _has_noise,
}


def compare(group: Sequence[Facts]) -> None:
    """Add "detail", "strength" and "changes" to the facts of the members of a group.

    changes: words for how a member differs from another one, and those that are there already.
    Each member is compared with the MAX_REFERENCES that have most detail.  Details that differ by
    less than SAME_DETAIL from the largest, or were not measured, are set to the largest.
    """
    measured = [of for of in group if of.get("spectrum")]
    for of in group:
        of["changes"], of["pixels"] = of.get("changes", []), pixels(of)
    if not measured:
        return
    smallest, contrast = (min(map(f, measured)) for f in (pixels, lambda of: of["levels"][1]))
    for of in measured:
        of["detail"] = detail(of, 1.0, smallest, contrast)
        of["generation"], of["strength"] = generation(of)
        if "coding" not in of:  # a video, with no such traces
            of["power"] = of["grain"] - 20 * log10(of["levels"][1] + 1)
    by_detail = sorted(measured, key=lambda of: -of["detail"])
    references = list({_key(of): of for of in by_detail}.values())[:MAX_REFERENCES]
    lossy = {of.get("digest"): of["strength"] for of in measured if of.get("step")}
    for of in measured:
        others = [b for b in references if b is not of]
        new = {word: is_ for word, is_ in CHANGES.items() if word not in of["changes"]}
        of["changes"] += [word for word, is_ in new.items() if any(is_(of, b) for b in others)]
        if not of["generation"] and of.get("digest", 0) in lossy:  # made from this JPEG file
            of["generation"], of["strength"] = 2, lossy[of["digest"]]
    for of in group:
        of.setdefault("detail", by_detail[0]["detail"])
    for many in {len(of["changes"]) for of in group}:
        same = [of for of in group if len(of["changes"]) == many]
        for name, ratio in (("detail", SAME_DETAIL), ("pixels", SAME_PIXELS)):
            best = max(of[name] for of in same)
            for of in same:
                of[name] = best if of[name] * ratio >= best else of[name]


def _key(of: Facts) -> tuple[Any, ...]:
    """Return what equal pictures have in common."""
    return of.get("digest", id(of)), *map(of.get, ("colour", "step", "palette", "dated"))


def generation(facts: Facts) -> tuple[int, float]:
    """Return the coding of a picture (`pictures.CODECS`, or 2 for twice), and its largest step."""
    own, seen, coding = (facts.get(name, 0) for name in ("step", "seen", "coding"))
    if not coding and facts["noise"] <= QUIET:
        seen = 0  # patterns of a drawing
    return 2 if seen > AGAIN * own + 1 else coding, max(own, seen, FINE)


def firsthand(facts: Facts) -> tuple[float, ...]:
    """Return the order of pictures or videos with as much detail; the original's is the least.

    A copy has lost the date at which it was taken, is in a format of the web, has a larger step of
    quantisation or traces of one before, less power of the upper frequencies, or holds less.
    """
    lost, web = not facts.get("dated", True), facts.get("coding") == WEB
    steps = facts.get("strength", 0.0), facts.get("generation", 0)
    more = len(facts.get("holds", ())), facts.get("sound", 0.0), facts.get("created", False)
    return lost, web, *steps, -facts.get("power", 0.0), *(-of for of in more)


def doubt(kept: Facts, removed: Facts) -> str:
    """Return why a removal is doubtful, words with commas, or "": changes of the picture kept.

    Only pictures are compared: the removed file may be the only one with sound, another language,
    layers, or a page that is not among those compared.
    """
    words = list(kept.get("changes", ()))
    toned = {"grey", "clipped"} & {*words, *removed.get("changes", ())}
    words += ["colours"] * (not toned and other_colours(kept, removed))
    words += ["enlarged"] * ("enlarged" not in words and _seems_enlarged(kept, removed))
    words += ["less detail"] * ("less detail" not in words and _loses_detail(kept, removed))
    both = kept, removed
    unknown = len({bool(of.get("spectrum")) for of in both}) > 1
    unknown |= not any(of.get("spectrum") or of.get("look") for of in both)
    if all("holds" in of for of in both):
        words += [f"no {each}" for each in removed["holds"] if each not in kept["holds"]]
    for fact, word in (("languages", "language"), ("written", "language of subtitles")):
        named, other = (set(of.get(fact, ())) for of in both)
        words += [word] * bool(named and other - named)
    words += ["mark"] * ("text" not in words and _has_mark(kept, removed))
    words += ["fewer frames"] * (0 < kept.get("fps", 0) < SAME_RATE * removed.get("fps", 0))
    words += ["less sound"] * (0 < kept.get("sound", 0) < removed.get("sound", 0) - LESS_SOUND)
    pages = all(of.get("frames", 1) > 1 for of in both)
    words += ["frames"] * (pages and kept.get("file") != removed.get("file"))
    return ",".join(words + ["not measured"] * unknown)


def _has_mark(a: Facts, b: Facts) -> bool:
    """Return whether the mean pictures of two videos, both in full, differ in a place.

    One has a logo or subtitles there, or none any more.
    """
    both = a, b
    if not all(of.get("mean") for of in both) or any(map(_is_moved, both)):
        return False
    lengths, (inside, inside_b) = [of["seconds"] for of in both], (of["inside"] for of in both)
    if max(lengths) > SAME_TIMES * min(lengths) or np.ptp([inside, inside_b], axis=0).max() > THIN:
        return False
    looks = (np.frombuffer(b64decode(of["mean"]), np.uint8).reshape(64, 64) for of in both)
    return mark_between(*(of.astype(np.float32) for of in looks)) > CLEAR


def _is_moved(of: Facts) -> bool:
    moved = {"mirrored", "cropped", "framed"} & {*of.get("changes", ())}
    return bool(moved or of.get("cut") or "inside" not in of)


def _loses_detail(kept: Facts, removed: Facts) -> bool:
    """Return whether a picture or video was removed for a change, but has more detail."""
    changes = set(removed.get("changes", ()))
    more = removed.get("detail", 0) > SAME_DETAIL * kept.get("detail", 0)
    comparable = "damaged" in changes or _same_length(kept, removed)
    return bool(changes and not changes & ADD_DETAIL and more and comparable)


def is_altered(a: Facts, b: Facts) -> bool:
    """Return whether two pictures show two moments, or are one that was damaged or changed.

    Of one size, it was changed if they differ in few bytes, or in few levels of their looks, by far
    more than in all others.  Few are a tenth, or the FEWEST, of lossless files.
    """
    if a.get("shown") == b.get("shown"):
        return False
    if _are_two_shots(a.get("shot", ()), b.get("shot", ())):
        return True
    alike = all(a.get(name) == b.get(name) for name in ("width", "height"))
    if not (alike and a.get("sketch") and b.get("sketch")):
        return False
    if not (a["palette"] or b["palette"]) and a["digest"] != b["digest"]:
        lossless = not (a["coding"] or b["coding"])
        apart = np.abs(np.subtract(_levels(a["look"]), _levels(b["look"]), dtype=np.int16)).ravel()
        usual = np.partition(apart, int(FEWEST * apart.size))[int(FEWEST * apart.size)]
        if apart.max() > OF_FEW * (usual + 1) or (lossless and (apart == 0).mean() >= UNCHANGED):
            return True
    return shared(a["sketch"], b["sketch"]) >= MOSTLY


def _are_two_shots(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether files were taken at two times, or with two exposures, as cameras note it.

    >>> _are_two_shots(["2024:05:31 18:00:00", "12"], ["2024:05:31 18:00:00", "64"])
    True
    >>> _are_two_shots(["2024:05:31 18:00:00", ""], ["2024:05:31 18:00:00", "64"])
    False
    """
    dated = bool(one and other and one[0] and other[0])
    return dated and any(x and y and x != y for x, y in zip(one, other))


def recoloured(kept: Facts, removed: Facts) -> bool:
    """Return whether two measured pictures have other colours in a place, of as much brightness.

    Both are as they are, neither mirrored nor cropped.  One that is grey has lost its colours.

    >>> red, green = ({"tints": colour * 64} for colour in ([200, 60, 60], [60, 130, 60]))
    >>> recoloured(red, green), recoloured(red, red)
    (True, False)
    """
    both = kept, removed
    if any("grey" in of.get("changes", ()) or not of.get("tints") for of in both):
        return False
    one, other = (np.reshape(of["tints"], (-1, 3)) for of in both)
    apart = np.diff(one, axis=1) - np.diff(other, axis=1)
    return bool(np.abs(apart).max() > TINT)


LOOK = 96  # pixels a side of a look
CLASSES = 16  # of levels, each with as many pixels, for which tones are fitted
MARK, OF_USUAL, OF_EDGE = 2.5, 6.0, 0.3  # levels; ratios to the usual difference, and to edges
CLEAR = 16.0  # levels of a clear mark: few tones or edges that were changed look like one


def look(
    of: Facts, part: Box | None = WHOLE, turned: Symmetry | None = None, side: int = LOOK
) -> Floats:
    """Return the look of a measured picture, or of a part of it, after a symmetry: (side, side).

    part: None for what is inside plain borders.
    """
    whole = _levels(of["look"])
    edges = LOOK * np.array(inside(whole) if part is None else part)
    seen = whole.astype(np.float32)
    if part != WHOLE or side != LOOK:
        rows, columns = (areas_between(LOOK, *of, side) for of in edges.reshape(2, 2).tolist())
        seen = rows @ seen @ columns.T
    if not turned:
        return seen
    seen = seen.T if turned.transposed else seen
    return seen[:: 1 - 2 * turned.rows, :: 1 - 2 * turned.columns]


def _levels(look: str) -> NDArray[np.uint8]:
    return np.frombuffer(b64decode(look), np.uint8).reshape(LOOK, LOOK)


def mark_between(a: Floats, b: Floats) -> float:
    """Return how strong (levels) a mark is that one of two looks has, and the other has not; or 0.

    Tones are fitted first.  A level counts if it is outside those of the 3 × 3 pixels around its
    place in the other look, by more than edges and the usual difference explain.

    >>> picture = np.arange(9216, dtype=np.float32).reshape(96, 96) ** 1.5 % 255
    >>> marked = picture.copy()
    >>> marked[80:84, 70:90] = 0
    >>> mark_between(picture, 0.8 * picture + 9), mark_between(picture, marked) > CLEAR
    (0.0, True)
    """
    order = np.argsort((256 * a).astype(np.uint16), axis=None, kind="stable")  # in linear time
    order = order.reshape(CLASSES, -1)
    tones = np.median((b - a).ravel()[order], axis=1)
    a = a + np.interp(a, a.ravel()[order].mean(axis=1) + 1e-3 * np.arange(CLASSES), tones)
    (low, high), (low_b, high_b) = _around(a), _around(b)
    inner, inner_b = a[1:-1, 1:-1], b[1:-1, 1:-1]  # at the edge, borders are not cut off exactly
    above = np.maximum(inner - high_b, inner_b - high)
    below = np.maximum(low_b - inner, low - inner_b)
    outside = np.maximum(above, below) - OF_EDGE * np.minimum(high - low, high_b - low_b)
    strength = float(outside.max())
    return strength if strength > max(MARK, OF_USUAL * np.median(np.abs(a - b))) else 0.0


def _around(levels: Floats) -> list[Floats]:
    """Return the least and the greatest of 3 × 3 levels, for each that has all of these."""
    found = []
    for extreme in (np.minimum, np.maximum):
        rows = extreme(extreme(levels[:-2], levels[1:-1]), levels[2:])
        found.append(extreme(extreme(rows[:, :-2], rows[:, 1:-1]), rows[:, 2:]))
    return found


def other_colours(a: Facts, b: Facts) -> bool:
    """Return whether two pictures differ in brightness, contrast or colours.

    Nothing is known of a clip and its film, of which other frames were measured.
    """
    if not (a.get("levels") and b.get("levels") and _same_length(a, b)):
        return False
    (mean, deviation), (mean_b, deviation_b) = a["levels"], b["levels"]
    colour, colour_b = (of.get("colour", 0) + 3 for of in (a, b))
    ratios = np.log([(deviation + 1) / (deviation_b + 1), colour / colour_b])
    return abs(mean - mean_b) > BRIGHTER or bool((np.abs(ratios) > np.log(OTHER)).any())
