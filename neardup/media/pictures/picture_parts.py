"""Find pictures that are alike but for a cut, or a mark: a logo, text, or what was painted over.

A picture has five parts, each with a hash:

    0 | 1
    --4--      the quadrants, and the centre
    2 | 3

Two pictures are alike if at least three of these parts are, in the same places, and the whole is
not: a mark changes all of the hash of the whole, but seldom more than two parts.  A part with
little to see, or with plain areas, as drawings and windows have, is no evidence: drawings differ in
a detail, as the icons of a folder do.

**Strips** above or below, plain with text on them, are left off for a second set of five hashes,
which is compared with both sets of another picture.

**Cuts** at one or two sides have a hash each, which is compared with that of a whole picture, as
those of variants are.  One that is 1 % of a side off changes 14 bits.  Pictures without parts have
none.

Such a pair may also be two moments of one scene, so nothing is removed for it.

    candidates   pairs of which one of three parts is alike: one of these is among any three of five

Memory: 2 KB for each picture with parts, and those of the run for the candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from neardup.media.pictures import perceptual_hash
from neardup.media.pictures.perceptual_hash import (
    BITS,
    SIDE,
    STEP,
    WAVES,
    Bytes,
    Floats,
    cosines_between,
)
from neardup.sets.bit_vectors import popcount

SIDES = ((0.0, 0.5), (0.5, 1.0), (0.25, 0.75))  # shares of a side: from, to
PARTS = ((0, 0), (0, 1), (1, 0), (1, 1), (2, 2))  # places in SIDES: rows, columns
CUT = (0.04, 0.07, 0.1, 0.13)  # shares of a side; the first two off two sides, too
RANGES = [
    (0.0, 1.0),
    *((x, 1.0) for x in CUT),
    *((0.0, 1 - x) for x in CUT),
    (0.075, 0.925),
    (0.1, 0.9),
]
# Places in RANGES, as in PARTS: of a side, of two sides, of all.
CUTS = [(0, k) for k in range(1, 9)] + [(k, 0) for k in range(1, 9)]
CUTS += [(k + i, k + j) for k in (1, 2) for i in (0, 4) for j in (0, 4)] + [(9, 9), (10, 10)]
MAX_ADDED = 256 - 32 - len(CUTS)  # hashes of other pictures in a line
SEARCHED = (0, 3, 4)  # parts of which candidates have one in common
ALIKE, DISTANCE = 3, 20  # parts; bits in which they may differ
VERSION = 4  # must change with the hashes of parts
PLAIN = 0.5  # share of neighbours that are equal, in parts of drawings
MAX_STRIP = 0.35  # share of the height
NEAR, FAR = 16, 24  # levels of a strip, and of the edge behind it
LEVEL, MOSTLY = 0.9, 0.6  # shares of a strip's level: in its first and last row, and in all of it
FAINT = 1e7  # power of the waves of a part with little to see
Pair = tuple[int, int]


def part_hashes(grey: Bytes) -> str:
    """Return the hashes of the parts of a picture (height, width) in hex, 0 for no evidence.

    Those of what is between strips, if any, are added; "" stands for too little evidence.

    >>> part_hashes(np.full((128, 128), 200, np.uint8))
    ''
    """
    top, bottom = (_strip(lines) / len(grey) for lines in (grey, grey[::-1]))
    ranges = [(0.0, 1.0), (top, 1 - bottom)][: 1 + (top + bottom > 0)]
    sets = [_hashes(grey, *of) for of in ranges]
    return np.concatenate(sets).tobytes().hex() * any(map(np.any, sets))


def cut_hashes(grey: Bytes) -> Bytes:
    """Return the hashes of a picture (height, width) after each of CUTS: (26, 32).

    >>> len(cut_hashes(np.zeros((128, 96), np.uint8))) == len(CUTS)
    True
    """
    small = perceptual_hash.shrunk(grey[np.newaxis])[0]
    every = np.concatenate([cosines_between(SIDE, SIDE * low, SIDE * high) for low, high in RANGES])
    waves = (every @ small @ every.T).reshape(len(RANGES), WAVES, len(RANGES), WAVES)
    cut = np.stack([waves[row, :, column] for row, column in CUTS])
    return perceptual_hash.bits(np.rint(cut / np.float32(STEP)))


def _hashes(grey: Bytes, top: float, bottom: float) -> Bytes:
    """Return the hashes of the parts between two shares of the height: (5, 32)."""
    height, width = grey.shape
    waves = _cosines(height, top, bottom) @ (grey.astype(np.float32) @ _cosines(width).T)
    waves = np.rint(waves / np.float32(STEP)).reshape(len(SIDES), WAVES, len(SIDES), WAVES)
    of_parts = np.stack([waves[row, :, column] for row, column in PARTS])
    found = perceptual_hash.bits(of_parts)
    strength = (of_parts**2).sum(axis=(1, 2))
    columns = [slice(round(width * low), round(width * high)) for low, high in SIDES]
    rows = [[height * (top + share * (bottom - top)) for share in side] for side in SIDES]
    for place, (row, column) in enumerate(PARTS):
        part = grey[slice(*map(round, rows[row])), columns[column]]
        down, across = part[1:] == part[:-1], part[:, 1:] == part[:, :-1]
        plain = np.count_nonzero(down) + np.count_nonzero(across) > 2 * PLAIN * part.size
        if plain or strength[place] < FAINT:
            found[place] = 0
    return found * np.uint8(found.any(axis=1).sum() >= ALIKE)


def _strip(lines: Bytes) -> float:
    """Return how many of the first rows are a strip: mostly of one level, with an edge behind.

    >>> strip = np.vstack([np.full((20, 80), 255, np.uint8), np.zeros((80, 80), np.uint8)])
    >>> strip[8:12, 20:60] = 0
    >>> _strip(strip)
    20.0
    """
    first = lines[0].astype(np.int16)
    level = np.partition(first, len(first) // 2)[len(first) // 2]
    if np.count_nonzero(np.abs(first - level) <= NEAR) < LEVEL * len(first):
        return 0.0
    widest = int(MAX_STRIP * len(lines))
    apart = np.abs(lines[: widest + 2].astype(np.int16) - level)
    near, far = (apart <= NEAR).mean(axis=1), (apart > FAR).mean(axis=1) >= 0.5
    mostly = np.cumsum(near) >= MOSTLY * np.arange(1, len(near) + 1)
    edges = (near >= LEVEL)[:widest] & mostly[:widest] & (far[1:-1] | far[2:])
    if not edges.any():
        return 0.0
    end = int(np.flatnonzero(edges)[-1]) + 1
    mixed, row = lines[end : end + 2].astype(np.float32) - level  # `mixed` may be partly strip
    return end + 1 - float(np.clip(mixed @ row / max(float(row @ row), 1.0), 0, 1))


@lru_cache(maxsize=1024)
def _cosines(length: int, low: float = 0.0, high: float = 1.0) -> Floats:
    """Return the matrix from a side's pixels to waves in each of SIDES of a range: (48, length)."""
    edges = [[length * (low + share * (high - low)) for share in side] for side in SIDES]
    return np.concatenate([cosines_between(length, *of) for of in edges])


def lines(places: Iterable[int], parts: Sequence[str]) -> Iterator[bytes]:
    """Yield a fingerprint line for each part that is searched; its id is `PICTURE.PART`.

    Those between strips have the numbers 5 to 9.

    >>> [line[:8] for line in lines([0], ["ab" * 32 + "00" * 32 * 4])]
    [b'0.0 abab']
    """
    digits = BITS // 4
    for k in places:
        for part in range(len(parts[k]) // digits):
            hash_ = parts[k][part * digits : (part + 1) * digits]
            if part % len(PARTS) in SEARCHED and hash_.strip("0"):
                yield b"%d.%d %b\n" % (k, part, hash_.encode())


def alike(candidates: Iterable[bytes], parts: Sequence[str], distance: int) -> Iterator[Pair]:
    """Yield pairs of pictures of which at least three parts are alike, given pairs of `lines`."""
    seen, found = set(), set[Pair]()
    for candidate in candidates:
        ids = (id_.split(b".") for id_ in candidate.split(b"\t")[:2])
        (i, part), (j, other) = sorted((int(k), int(part)) for k, part in ids)
        both = (i, part // len(PARTS)), (j, other // len(PARTS))
        if i == j or (part - other) % len(PARTS) or both in seen or (i, j) in found:
            continue
        seen.add(both)
        one, two = (np.frombuffer(bytes.fromhex(parts[k]), np.uint64) for k in (i, j))
        one, two = (
            of.reshape(-1, len(PARTS), BITS // 64)[place]
            for of, (_, place) in zip((one, two), both)
        )
        near = popcount(one ^ two).sum(axis=1) <= distance
        if (near & one.any(axis=1) & two.any(axis=1)).sum() >= ALIKE:
            found.add((i, j))
            yield i, j


def inverted(hashes: bytes, distance: int) -> bytes:
    """Return the first hash of a picture with so many bits inverted, those of long waves.

    >>> inverted(bytes(32), 12).hex()[-4:]
    '0fff'
    """
    size = BITS // 8
    return (int.from_bytes(hashes[:size], "big") ^ ((1 << distance) - 1)).to_bytes(size, "big")
