"""Decimal numbers in a block of text, all at once."""

from __future__ import annotations

import numpy as np

MOST = (1 << 64) - 1
LONGEST = 20  # digits, but for leading zeros
BEFORE = 8  # bytes that are looked at before the end of a number
CACHE_NUMBERS = 1 << 16  # looked at together: a line may have millions
ZEROS = np.uint64(0x3030303030303030)
# Pairs of digits, pairs of pairs, and the halves: factor, shift, mask.  Of the bytes a, b of a pair
# (times 10·2^8 + 1) b + 10·a is in the second one, and the shift brings it to the first.
STEPS = (
    (10 << 8 | 1, 8, 0x00FF00FF00FF00FF),
    (100 << 16 | 1, 16, 0x0000FFFF0000FFFF),
    (10000 << 32 | 1, 32, 0x00000000FFFFFFFF),
)


def decimals(
    text: np.ndarray, ends: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The runs of so many digits that end before `ends` as uint64, and which of them (int64) are
    above 2^64-1.

    text: uint8; ends, lengths: int64; eight bytes at least are before each end.  The value of a run
    that is above, or of no digits, is anything.

    Subtle: numbers are read eight digits at a time, from the right.  `windows[e]` is the eight
    bytes before place e as one word, and one shift clears those left of the number:

        … 1 7 ␣ 2 0 4 8 │      "2048" ends here: 0 0 0 0 2 0 4 8, then pairs of digits are added up,
            └─ window ──┘      then pairs of pairs, then the two halves

    >>> text = np.frombuffer(b"........7 2048", np.uint8)
    >>> decimals(text, np.array([9, 14]), np.array([1, 4]))[0].tolist()
    [7, 2048]
    """
    windows = np.ndarray((len(text) - BEFORE + 1,), "<u8", text, strides=(1,))
    values = np.empty(len(ends), np.uint64)
    for low in range(0, len(ends), CACHE_NUMBERS):
        some = slice(low, low + CACHE_NUMBERS)
        values[some] = _eight_digits(windows[ends[some] - BEFORE], lengths[some])
    large: list[int] = []
    longest = int(lengths.max(initial=0))
    for place in range(8, min(longest, LONGEST), 8):
        longer = np.flatnonzero(lengths > place)
        higher = _eight_digits(windows[ends[longer] - place - BEFORE], lengths[longer] - place)
        if place == 16:
            bound, below = divmod(MOST, 10**place)
            over = (higher > bound) | (higher == bound) & (values[longer] > below)
            large += longer[over & (lengths[longer] <= LONGEST)].tolist()
        values[longer] += higher * np.uint64(10**place)
    for i in np.flatnonzero(lengths > LONGEST).tolist():  # nothing but leading zeros may be there
        digits = text[ends[i] - lengths[i] : ends[i]].tobytes().lstrip(b"0")
        if len(digits) <= LONGEST and int(digits or b"0") <= MOST:
            values[i] = int(digits or b"0")
        else:
            large.append(i)
    return values, np.array(large, np.int64)


def _eight_digits(words: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The last min(length, 8) characters of each word, all of them digits, as one number."""
    outside = np.maximum(8 - lengths, 0).view(np.uint64)
    outside <<= np.uint64(3)  # bits
    words = words ^ ZEROS
    words >>= outside
    words <<= outside
    for factor, shift, mask in STEPS:
        words *= np.uint64(factor)
        words >>= np.uint64(shift)
        words &= np.uint64(mask)
    return words
