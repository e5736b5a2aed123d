"""Sets as text that can travel: parse beside format.

The sorted shingles' differences, each as base-32 digits, highest first, in the 64 printable
characters from `0` to `o`: 32 of them end a number and 32 continue one.  So equal sets have equal
bytes, a typical set takes a third of its decimal digits, and no blank, tab, line end or carriage
return can occur.

    {3, 7, 1007}  →  differences 3, 4, 1000  →  "3", "4", "o8"       (1000 = 31·32 + 8)
"""

from __future__ import annotations

import numpy as np

from neardup.process.errors import WireError
from neardup.sets.ragged import Ragged

CACHE_TOKENS = 1 << 16  # decoded at once
ZERO, CONTINUED = 48, 32  # the character of digit 0; what a digit that is not the last one adds
MOST_DIGITS = 13  # of 5 bits: a shingle of 64 bits has 13 with at most 15 as the first


def encode_sets(sets: Ragged) -> list[bytes]:
    """Each row of `sets` as text; see the head of this file."""
    steps = sets.values.copy()
    steps[1:] -= sets.values[:-1]
    firsts = sets.offsets[:-1][sets.sizes > 0]
    steps[firsts] = sets.values[firsts]
    widths = np.ones(len(steps), dtype=np.int64)
    longest = max(1, -(-int(steps.max(initial=0)).bit_length() // 5))
    for digit in range(1, longest):
        widths += steps >= np.uint64(1 << 5 * digit)
    ends = np.cumsum(widths)
    text = np.empty(int(widths.sum()), dtype=np.uint8)
    for digit in range(longest):
        live = np.flatnonzero(widths > digit)
        value = (steps[live] >> np.uint64(5 * digit)) & np.uint64(31)
        text[ends[live] - 1 - digit] = value + np.uint64(ZERO + (CONTINUED if digit else 0))
    bounds = np.concatenate((np.zeros(1, np.int64), ends))[sets.offsets].tolist()
    blob = text.tobytes()
    return [blob[a:b] for a, b in zip(bounds, bounds[1:])]


def encoded_size(text: bytes) -> int:
    """How many elements an encoded set has.

    >>> encoded_size(b"34o8")
    3
    """
    return int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) < ZERO + CONTINUED))


def decode_sets(texts: list[bytes]) -> Ragged:
    """The inverse of `encode_sets`; WireError where a text is no set."""
    digits = np.frombuffer(b"".join(texts), dtype=np.uint8) - np.uint8(ZERO)
    last = digits < CONTINUED
    ends = np.flatnonzero(last) + 1
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    stops = np.cumsum(lengths)
    if len(digits) and (digits.max() >= 2 * CONTINUED or not last[stops[lengths > 0] - 1].all()):
        raise WireError("expected shingles as characters from 0 to o, got something else")
    widths = np.diff(ends, prepend=0)
    leading = digits[ends - widths]
    too_large = (widths > MOST_DIGITS) | ((widths == MOST_DIGITS) & (leading >= CONTINUED + 16))
    if too_large.any() or (leading == CONTINUED).any():
        raise WireError("expected shingles below 2^64 without leading zeros, got something else")
    steps = _numbers(digits, ends, widths)
    offsets = np.concatenate((np.zeros(1, np.int64), np.searchsorted(ends, stops, side="right")))
    sums = np.cumsum(steps)  # modulo 2^64, which the difference below undoes
    before = np.concatenate((np.zeros(1, np.uint64), sums))[offsets[:-1]]
    sets = Ragged(sums - np.repeat(before, np.diff(offsets)), offsets)
    falls = np.flatnonzero(sets.values[1:] <= sets.values[:-1]) + 1
    if not np.isin(falls, offsets).all():
        raise WireError("expected shingles in ascending order, got something else")
    return sets


def _numbers(digits: np.ndarray, ends: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """The numbers (uint64) of `widths` digits that end before `ends`.

    Eight digits at a time, from the right, as `reading.shingle_lines` reads decimal numbers.
    """
    padded = np.concatenate((np.zeros(16, np.uint8), digits))
    windows = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))[8:]  # the 8 before each
    numbers = np.empty(len(ends), dtype=np.uint64)
    for low in range(0, len(ends), CACHE_TOKENS):
        some, width = ends[low : low + CACHE_TOKENS], widths[low : low + CACHE_TOKENS]
        part = _eight_digits(windows[some], width)
        long = np.flatnonzero(width > 8)
        if len(long):
            part[long] |= _eight_digits(windows[some[long] - 8], width[long] - 8) << np.uint64(40)
        numbers[low : low + CACHE_TOKENS] = part
    return numbers


def _eight_digits(words: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """The last min(width, 8) digits of each word, five bits each, as one number."""
    outside = (8 - np.minimum(widths, 8)).astype(np.uint64) * np.uint64(8)
    digits = (words & np.uint64(0x1F1F1F1F1F1F1F1F)) >> outside << outside
    for bits, mask in (8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0xFFFFFFFF):
        left, right = digits & np.uint64(mask), digits >> np.uint64(bits) & np.uint64(mask)
        digits = left << np.uint64(bits * 5 // 8) | right
    return digits
