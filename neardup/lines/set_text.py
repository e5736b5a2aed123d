"""Sets as text that can travel: parse beside format.

The sorted shingles' differences, each as base-32 digits, highest first, in the 64 printable
characters from `0` to `o`: 32 of them end a number and 32 continue one.  So equal sets have equal
bytes, a typical set takes a third of its decimal digits, and no blank, tab, line end or carriage
return can occur.

    {3, 7, 1007}  →  differences 3, 4, 1000  →  "3", "4", "o8"       (1000 = 31·32 + 8)

A weight above 1 stands before its difference, between two `P`, a zero with which no number begins.
Its digits are bijective base 31, 1 to 31, so that none of them is a `P`:

    {3, 7: weight 40}  →  "3", "PQYP4"                               (40 = 1·31 + 9)
"""

from __future__ import annotations

import numpy as np

from neardup.process.errors import WireError
from neardup.sets.ragged import Ragged
from neardup.sets.runs import spans

CACHE_TOKENS = 1 << 16  # decoded at once
ZERO, CONTINUED = 48, 32  # the character of digit 0; what a digit that is not the last one adds
WEIGHT_BASE, MOST_WEIGHT_DIGITS = 31, 12
MOST_DIGITS, MOST_LEADING = 13, 16  # of 5 bits: 64 bits have 13, the first one below 16


def encode_sets(sets: Ragged) -> list[bytes]:
    """Each row of `sets` as text; see the head of this file."""
    steps = sets.values.copy()
    steps[1:] -= sets.values[:-1]
    firsts = sets.offsets[:-1][sets.sizes > 0]
    steps[firsts] = sets.values[firsts]
    text, widths = _digits_of(steps)
    ends = np.cumsum(widths)
    if sets.weights is not None:
        text, ends = _with_weights(text, widths, sets.weights)
    bounds = np.concatenate((np.zeros(1, np.int64), ends))[sets.offsets].tolist()
    blob = text.tobytes()
    return [blob[a:b] for a, b in zip(bounds, bounds[1:])]


def _digits_of(steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The digits of these numbers (uint64) as characters (uint8), and how many each has (int64)."""
    longest = max(1, -(-int(steps.max(initial=0)).bit_length() // 5))
    digits = np.empty((len(steps), longest), dtype=np.uint8)
    needed = np.ones((len(steps), longest), dtype=bool)
    widths = np.ones(len(steps), dtype=np.int64)
    digits[:, -1] = (steps & np.uint64(31)) + np.uint64(ZERO)
    for place in range(1, longest):
        left = steps >> np.uint64(5 * place)
        more = left > 0
        widths += more
        needed[:, -1 - place] = more
        left &= np.uint64(31)
        left += np.uint64(ZERO + CONTINUED)
        digits[:, -1 - place] = left
    return digits[needed], widths  # row by row, and so number by number


def _with_weights(
    digits: np.ndarray, widths: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same characters with the weights (int64) above 1 before their numbers; and where each
    number ends (int64)."""
    heavy = np.flatnonzero(weights > 1)
    columns = _weight_digits(weights[heavy])
    before = np.zeros(len(widths), dtype=np.int64)  # what a weight takes
    before[heavy] = 2
    for column in columns:
        before[heavy] += column > 0
    ends = np.cumsum(widths + before)
    text = np.full(len(digits) + before.sum(), ZERO + CONTINUED, dtype=np.uint8)
    text[spans(ends - widths, widths)] = digits
    for i, column in enumerate(columns):
        live = np.flatnonzero(column)
        text[(ends - widths - 2)[heavy[live]] - i] = column[live] + ZERO + CONTINUED
    return text, ends


def encoded_size(text: bytes) -> int:
    """How many elements an encoded set has.

    >>> encoded_size(b"34o8")
    3
    """
    return int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) < ZERO + CONTINUED))


def decode_sets(texts: list[bytes]) -> Ragged:
    """The inverse of `encode_sets`; WireError where a text is no set.

    >>> text = encode_sets(Ragged(np.array([3, 7], np.uint64), np.array([0, 2]), np.array([1, 40])))
    >>> text, decode_sets(text).weights.tolist()
    ([b'3PQYP4'], [1, 40])
    """
    digits = np.frombuffer(b"".join(texts), dtype=np.uint8) - np.uint8(ZERO)
    last = digits < CONTINUED
    ends = np.flatnonzero(last) + 1
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    stops = np.cumsum(lengths)
    if len(digits) and (digits.max() >= 2 * CONTINUED or not last[stops[lengths > 0] - 1].all()):
        raise WireError("expected shingles as characters from 0 to o, got something else")
    widths = np.diff(ends, prepend=0)
    leading = digits[ends - widths]
    weights = None
    if (heavy := np.flatnonzero(leading == CONTINUED)).size:
        weights = np.ones(len(ends), dtype=np.int64)
        weights[heavy], taken = _weights(digits, (ends - widths)[heavy], ends[heavy])
        widths[heavy] -= taken
        leading[heavy] = digits[(ends - widths)[heavy]]
    longest = widths >= MOST_DIGITS
    too_large = longest.any() and (widths[longest] > MOST_DIGITS).any()
    too_large |= (leading[longest] >= CONTINUED + MOST_LEADING).any()
    if too_large or (leading[heavy] == CONTINUED).any():
        raise WireError("expected shingles below 2^64 without leading zeros, got something else")
    steps = _numbers(digits, ends, widths)
    offsets = np.concatenate((np.zeros(1, np.int64), np.searchsorted(ends, stops, side="right")))
    sums = np.cumsum(steps)  # modulo 2^64, which the difference below undoes
    before = np.concatenate((np.zeros(1, np.uint64), sums))[offsets[:-1]]
    sets = Ragged(sums - np.repeat(before, np.diff(offsets)), offsets, weights)
    falls = np.flatnonzero(sets.values[1:] <= sets.values[:-1]) + 1
    if not np.isin(falls, offsets).all():
        raise WireError("expected shingles in ascending order, got something else")
    return sets


def _weight_digits(weights: np.ndarray) -> list[np.ndarray]:
    """Bijective base 31, lowest first: 1 to 31 each (uint8), and 0 behind the highest."""
    columns, left = [], weights.copy()
    while left.any():
        digit = np.where(left > 0, (left - 1) % WEIGHT_BASE + 1, 0)
        columns.append(digit.astype(np.uint8))
        left = (left - digit) // WEIGHT_BASE
    return columns


def _weights(
    digits: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The weights of elements at [starts, ends) that begin with a zero, and what they take."""
    zeros = np.append(np.flatnonzero(digits == CONTINUED), len(digits))
    closing = zeros[np.searchsorted(zeros, starts) + 1]
    widths = closing - starts - 1
    if (closing >= ends - 1).any() or not widths.all():
        raise WireError("expected a weight between two zeros, got something else")
    if widths.max() > MOST_WEIGHT_DIGITS:
        raise WireError("expected weights below 2^59, got a larger one")
    weights = np.zeros(len(starts), dtype=np.int64)
    for i in range(int(widths.max())):
        live = np.flatnonzero(widths > i)
        weights[live] = weights[live] * WEIGHT_BASE + digits[starts[live] + 1 + i] - CONTINUED
    if weights.min() == 1:
        raise WireError("expected no weight of 1, which goes without saying, got one")
    return weights, widths + 2


def _numbers(digits: np.ndarray, ends: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """The numbers (uint64) of `widths` digits that end before `ends`.

    Eight digits at a time, from the right, as `reading.decimals` reads decimal numbers.
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
    outside = np.maximum(8 - widths, 0).view(np.uint64)
    outside <<= np.uint64(3)  # bits
    digits = words & np.uint64(0x1F1F1F1F1F1F1F1F)
    digits >>= outside
    digits <<= outside
    for bits, mask in (8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0xFFFFFFFF):
        left = digits & np.uint64(mask)
        left <<= np.uint64(bits * 5 // 8)
        digits >>= np.uint64(bits)
        digits &= np.uint64(mask)
        digits |= left
    return digits
