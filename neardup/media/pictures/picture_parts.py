"""Find pictures that are alike but for a mark: a logo, a date, text, or what was painted over.

A picture has five parts, each with a hash:

    0 | 1
    --4--      the quadrants, and the centre
    2 | 3

Two pictures are alike if at least three of these parts are, in the same places, and the whole is
not: a mark changes all of the hash of the whole, but seldom more than two parts.  A part with
little to see, or with plain areas, as drawings and windows have, is no evidence: drawings differ in
a detail, as the icons of a folder do.

Such a pair may also be two moments of one scene, so nothing is removed for it.

    candidates   pairs of which one of three parts is alike: one of these is among any three of five

Memory: 160 bytes for each picture with parts, and those of the run that finds the candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from neardup.media.pictures import perceptual_hash
from neardup.media.pictures.perceptual_hash import BITS, STEP, WAVES, Bytes, Floats, cosines_between
from neardup.sets.bit_vectors import popcount

SIDES = ((0.0, 0.5), (0.5, 1.0), (0.25, 0.75))  # shares of a side: from, to
PARTS = ((0, 0), (0, 1), (1, 0), (1, 1), (2, 2))  # places in SIDES: rows, columns
SEARCHED = (0, 3, 4)  # parts of which candidates have one in common
ALIKE, DISTANCE = 3, 20  # parts; bits in which they may differ
VERSION = 1  # must change with the hashes of parts
PLAIN = 0.5  # share of neighbours that are equal, in parts of drawings
FAINT = 1e7  # power of the waves of a part with little to see
Pair = tuple[int, int]


def part_hashes(grey: Bytes) -> str:
    """Return the hashes of the parts of a picture (height, width) in hex, 0 for no evidence.

    "" stands for too few parts that are evidence.

    >>> part_hashes(np.full((128, 128), 200, np.uint8))
    ''
    """
    down, across = map(_cosines, grey.shape)
    waves = np.rint(down @ (grey.astype(np.float32) @ across.T) / np.float32(STEP))
    blocks = waves.reshape(len(SIDES), WAVES, len(SIDES), WAVES)
    of_parts = np.stack([blocks[row, :, column] for row, column in PARTS])
    found = perceptual_hash.bits(of_parts)
    strength = (of_parts**2).sum(axis=(1, 2))
    rows, columns = ([slice(round(n * a), round(n * b)) for a, b in SIDES] for n in grey.shape)
    for place, (row, column) in enumerate(PARTS):
        part = grey[rows[row], columns[column]]
        same = np.count_nonzero(part[1:] == part[:-1]) + np.count_nonzero(
            part[:, 1:] == part[:, :-1]
        )
        if same > 2 * PLAIN * part.size or strength[place] < FAINT:
            found[place] = 0
    return found.tobytes().hex() if found.any(axis=1).sum() >= ALIKE else ""


@lru_cache(maxsize=256)
def _cosines(length: int) -> Floats:
    """Return the matrix from a side's pixels to the waves in each of SIDES: (48, length)."""
    parts = [cosines_between(length, length * low, length * high) for low, high in SIDES]
    return np.concatenate(parts)


def lines(places: Iterable[int], parts: Sequence[str]) -> Iterator[bytes]:
    """Yield a fingerprint line for each part that is searched; its id is `PICTURE.PART`.

    >>> [line[:8] for line in lines([7], ["ab" * 32 + "00" * 32 * 4])]
    [b'7.0 abab']
    """
    digits = BITS // 4
    for k in places:
        for part in SEARCHED if parts[k] else ():
            hash_ = parts[k][part * digits : (part + 1) * digits]
            if hash_.strip("0"):
                yield b"%d.%d %b\n" % (k, part, hash_.encode())


def alike(candidates: Iterable[bytes], parts: Sequence[str], distance: int) -> Iterator[Pair]:
    """Yield pairs of pictures of which at least three parts are alike, given pairs of `lines`."""
    seen: set[Pair] = set()
    for candidate in candidates:
        (i, part), (j, other) = (id_.split(b".") for id_ in candidate.split(b"\t")[:2])
        pair = min(int(i), int(j)), max(int(i), int(j))
        if part == other and pair not in seen:
            seen.add(pair)
            one, two = (np.frombuffer(bytes.fromhex(parts[k]), np.uint64) for k in pair)
            one, two = one.reshape(len(PARTS), -1), two.reshape(len(PARTS), -1)
            near = popcount(one ^ two).sum(axis=1) <= distance
            if (near & one.any(axis=1) & two.any(axis=1)).sum() >= ALIKE:
                yield pair


def inverted(hashes: bytes, distance: int) -> bytes:
    """Return the first hash of a picture with so many bits inverted, those of long waves.

    >>> inverted(bytes(32), 12).hex()[-4:]
    '0fff'
    """
    size = BITS // 8
    return (int.from_bytes(hashes[:size], "big") ^ ((1 << distance) - 1)).to_bytes(size, "big")
