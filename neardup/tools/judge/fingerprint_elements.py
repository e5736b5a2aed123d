"""Compare two records with fingerprints: the nearest two fingerprints, and how they differ.

    differ      2 of 64 bits: A's own fingerprint, and variant 1 of B
    of A        ffd8a0b2c4e6f801
    of B        ffd8a0b2c4e6f80b
    xor         ...............a

A record has its own fingerprint, number 0, and may have fingerprints of variants.  A variant is
compared only with the own fingerprint of the other record.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from neardup.sets.bit_vectors import BLOCK_BITS, DIGITS_OF_BLOCK, BlockPlaces
from neardup.tools.judge.pair_elements import ONLY_A, ONLY_B, SAME, Lines


class Nearest(NamedTuple):
    bits: int  # the number of bits that differ
    i: int  # number of the fingerprint of A
    j: int
    a: str  # in hexadecimal
    b: str


def nearest(a: Sequence[str], b: Sequence[str]) -> Nearest:
    """Return the nearest fingerprints of two records; at least one is the first of its record.

    >>> nearest(["00ff"], ["ff00", "01ff", "00ff"])
    Nearest(bits=0, i=0, j=2, a='00ff', b='00ff')
    """
    pairs = [(0, j) for j in range(len(b))] + [(i, 0) for i in range(1, len(a))]
    apart = [(f"{int(a[i], 16) ^ int(b[j], 16):b}".count("1"), i, j) for i, j in pairs]
    bits, i, j = min(apart)
    return Nearest(bits, i, j, a[i], b[j])


def hexadecimal(tokens: np.ndarray, bits: int) -> list[str]:
    """Return a record's fingerprints in hexadecimal, given tokens (uint64) of `sets.bit_vectors`.

    >>> hexadecimal(np.array([0xAB12, 1 << 16 | 0x3, 2 << 16 | 0xF], np.uint64), 36)
    ['ab120003f']
    """
    form = BlockPlaces(bits)
    rows = (tokens & np.uint64((1 << BLOCK_BITS) - 1)).reshape(-1, form.blocks).tolist()
    last = form.digits - DIGITS_OF_BLOCK * (form.blocks - 1)
    return ["".join(f"{x:04x}" for x in row[:-1]) + f"{row[-1]:0{last}x}" for row in rows]


def elements(a: Sequence[str], b: Sequence[str], bits: int) -> Lines:
    """Return lines that compare two records by their nearest fingerprints."""
    found = nearest(a, b)
    numbers = zip("AB", found[1:3])
    which = [f"variant {n} of {x}" if n else f"{x}'s own fingerprint" for x, n in numbers]
    about = f": {which[0]}, and {which[1]}" if len(a) + len(b) > 2 else ""
    digits = [f"{int(x, 16) ^ int(y, 16):x}" for x, y in zip(found.a, found.b)]
    return [
        ("differ", f"{found.bits} of {bits} bits{about}"),
        ("of A", found.a),
        ("of B", found.b),
        ("xor", "".join(digits).replace("0", ".")),
    ]


def block_difference(a: str, b: str) -> list[tuple[str, str]]:
    """Compare the nearest fingerprints of two texts "HEX HEX…", block by block of 16 bits.

    >>> block_difference("0000ffff", "00ffffff 0001ffff")
    [('only_a', '0000'), ('only_b', '0001'), ('same', 'ffff')]
    """
    found = nearest(a.lower().split(), b.lower().split())
    starts = range(0, len(found.a), DIGITS_OF_BLOCK)
    blocks = [(found.a[k : k + 4], found.b[k : k + 4]) for k in starts]
    parts: list[tuple[str, str]] = []
    for same, run in groupby(blocks, key=lambda pair: pair[0] == pair[1]):
        ours, theirs = map(" ".join, zip(*run))
        parts += [(SAME, ours)] if same else [(ONLY_A, ours), (ONLY_B, theirs)]
    return parts
