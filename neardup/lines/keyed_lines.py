r"""Formatters and parsers for keyed lines, from mapper to reducer.

    KEY TAB SIZE TAB ID TAB SHINGLES          002:00000000ff 00000003 v1 34o8

KEY is one integer, the number of its band (12 bits) above a hash (40 bits), as `band:hash` in
hexadecimal.  Its width is fixed, so that keys on lines sort as integers do, and it is one field,
since every engine groups by the first field.  SIZE has eight digits: sorted lines of a bucket are
in order of size.

SHINGLES are the differences of the sorted shingles, each in base 32, highest digit first, in the 64
printable characters from `0` to `o`: 32 of them end a number and 32 continue one.  Equal sets have
equal bytes, and a typical set takes a third of its decimal digits.

    {3, 7, 1007}  →  differences 3, 4, 1000  →  "3", "4", "o8"       (1000 = 31·32 + 8)

A weight above 1 precedes its difference, between two `P`: a zero, with which no number begins.  Its
digits are bijective base 31, 1 to 31, so that none of them is a `P`:

    {3, 7: weight 40}  →  "3", "PQYP4"                               (40 = 1·31 + 9)
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from neardup.reading.input_check import flaw_in
from neardup.runtime.program import StageError, WireError, shown
from neardup.sets.ragged import Batch, Ragged, chunks, spans, starts_of_runs

BAND_BITS, HASH_BITS = 12, 40
KEY_BITS = BAND_BITS + HASH_BITS
MAX_BANDS = 1 << BAND_BITS
OUTPUT_BYTES = 8 << 20

KEY_WIDTH, SIZE_WIDTH = 14, 8
_SIZE = KEY_WIDTH + 1  # where the size begins
_ID = _SIZE + SIZE_WIDTH + 1
_COLON = 3
_KEY = rb"[0-9a-f]{3}:[0-9a-f]{10}"
_LINE = rb"%b\t([0-9]{8})\t([^\0\t\r\n]+)\t([0-o]+)" % _KEY
_TENS = 10 ** np.arange(SIZE_WIDTH)[::-1]

CACHE_TOKENS = 1 << 16  # decoded at once
ZERO, CONTINUED = 48, 32  # the character of digit 0; what a digit that is not the last one adds
WEIGHT_BASE, MAX_WEIGHT_DIGITS = 31, 12
MAX_DIGITS, MAX_LEADING = 13, 16  # digits of 5 bits: 64 bits have 13, the first one below 16


def format_keys(keys: np.ndarray) -> np.ndarray:
    """Return keys (uint64 below 2^52) as `band:hash`, an array of 14-byte strings."""
    digits = np.frombuffer(keys.astype(">u8").tobytes().hex().encode(), np.uint8).reshape(-1, 16)
    text = np.insert(digits[:, 3:], _COLON, ord(":"), axis=1)
    return text.view(f"S{KEY_WIDTH}").ravel()


def parse_keys(texts: list[bytes]) -> np.ndarray:
    """Return the keys (uint64 (n,)) that `format_keys` wrote; WireError for any other text."""
    wrong = [text for text in texts if not re.fullmatch(_KEY, text)]
    if wrong:
        raise WireError(f"expected a key such as 00a:0123456789, got {shown(wrong[0])}")
    return np.array([int(text.replace(b":", b""), 16) for text in texts], dtype=np.uint64)


def encode_sets(sets: Ragged) -> list[bytes]:
    """Return each set as text: the base-32 differences of its sorted shingles, and its weights."""
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
    """Return the base-32 digits of numbers (uint64) as characters (uint8), and their widths."""
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
    return digits[needed], widths  # a mask reads row by row, and a row is a number


def _with_weights(
    digits: np.ndarray, widths: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Insert each weight (int64) above 1 before its number; also return where numbers end."""
    heavy = np.flatnonzero(weights > 1)
    columns, left = [], weights[heavy]  # lowest digits first: 1 to 31, and 0 behind the highest
    while left.any():
        digit = np.where(left > 0, (left - 1) % WEIGHT_BASE + 1, 0)
        columns.append(digit.astype(np.uint8))
        left = (left - digit) // WEIGHT_BASE
    before = np.zeros(len(widths), dtype=np.int64)  # characters of its weight
    before[heavy] = 2 + sum(column > 0 for column in columns)
    ends = np.cumsum(widths + before)
    text = np.full(len(digits) + before.sum(), ZERO + CONTINUED, dtype=np.uint8)
    text[spans(ends - widths, widths)] = digits
    for i, column in enumerate(columns):
        live = np.flatnonzero(column)
        text[(ends - widths - 2)[heavy[live]] - i] = column[live] + ZERO + CONTINUED
    return text, ends


def encoded_size(text: bytes) -> int:
    """Return the number of elements of an encoded set."""
    return int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) < ZERO + CONTINUED))


def decode_sets(texts: list[bytes]) -> Ragged:
    """Return the sets that `encode_sets` wrote as texts; WireError for any other text.

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
    longest = widths >= MAX_DIGITS
    too_large = longest.any() and (widths[longest] > MAX_DIGITS).any()
    too_large |= (leading[longest] >= CONTINUED + MAX_LEADING).any()
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


def _weights(
    digits: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of the elements that have one, and their widths in characters."""
    zeros = np.append(np.flatnonzero(digits == CONTINUED), len(digits))
    closing = zeros[np.searchsorted(zeros, starts) + 1]
    widths = closing - starts - 1
    if (closing >= ends - 1).any() or not widths.all():
        raise WireError("a weight in a line from the mapper is incomplete; run mapper.py again")
    if widths.max() > MAX_WEIGHT_DIGITS:
        raise WireError("expected weights below 2^59, got a larger one")
    weights = np.zeros(len(starts), dtype=np.int64)
    for i in range(int(widths.max())):
        live = np.flatnonzero(widths > i)
        weights[live] = weights[live] * WEIGHT_BASE + digits[starts[live] + 1 + i] - CONTINUED
    if weights.min() == 1:
        raise WireError("expected weights above 1, got a weight of 1")
    return weights, widths + 2


def _numbers(digits: np.ndarray, ends: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return the numbers (uint64) whose digits precede `ends`, reading eight digits at a time."""
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
    """Return the last min(width, 8) digits of each word, five bits each, as one number."""
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


def format_keyed_lines(
    batch: Batch, keys: Ragged, partitions: int = 1, mark: int = 0
) -> Iterator[tuple[int, bytes]]:
    r"""Yield (partition, keyed lines) for all keys of a batch, in blocks of a few mebibytes.

    A key's partition depends on its hash alone.  The lines of a partition are in order of keys,
    which saves the engine's sort a third of its work.  mark: 40 bits, see `tagged_ids.mark_of`.

    >>> batch = Batch([b"v1"], Ragged.from_rows([[3, 7, 1007]]))
    >>> list(format_keyed_lines(batch, Ragged.from_rows([[255, (2 << 40) + 1]])))
    [(0, b'000:00000000ff\t00000003\tv1\t34o8\n002:0000000001\t00000003\tv1\t34o8\n')]
    """
    tails = [
        b"\t%08d\t%b\t%b\n" % record
        for record in zip(batch.sets.sizes.tolist(), batch.ids, encode_sets(batch.sets))
    ]
    marked = keys.values ^ np.uint64(mark)
    partition = marked % np.uint64(1 << HASH_BITS) % np.uint64(partitions)
    order = np.lexsort((marked, partition))
    names = format_keys(marked[order])
    owner = np.repeat(np.arange(len(keys)), keys.sizes)[order]
    partition = partition[order]
    weights = np.array([KEY_WIDTH + len(tail) for tail in tails], dtype=np.int64)[owner]
    starts = starts_of_runs(partition).tolist()
    for start, stop in zip(starts, [*starts[1:], len(owner)]):
        for low, high in chunks(weights[start:stop], OUTPUT_BYTES):
            some = slice(start + low, start + high)
            parts = [b""] * (2 * (high - low))
            parts[0::2] = names[some].tolist()
            parts[1::2] = [tails[i] for i in owner[some].tolist()]
            yield int(partition[start]), b"".join(parts)


def parse_keyed_lines(lines: list[bytes]) -> list[list[bytes]]:
    """Return [KEY, SIZE, ID, SHINGLES] of each keyed line; WireError unless it has four fields.

    The lines have no line ends.
    """
    fields = [line.split(b"\t") for line in lines]
    if set(map(len, fields)) - {4}:
        wrong = next(line for line in lines if line.count(b"\t") != 3)
        raise WireError(f"expected KEY SIZE ID SHINGLES, got {shown(wrong)}")
    return fields


class KeyedLines(NamedTuple):
    """The bounds and keys of the n keyed lines in a block, in columns."""

    starts: np.ndarray  # int64
    ends: np.ndarray
    high: np.ndarray  # uint64: the first eight characters of keys, which compare as keys do
    low: np.ndarray  # the other six


def lines_of(block: bytes, number: int) -> KeyedLines:
    r"""Return the bounds and keys of the keyed lines in a block; StageError for any other line.

    `number` is that of the first line, for the message.

    >>> lines = lines_of(b"000:00000000ff\t00000003\tv1\t34o8\n" * 2, 1)
    >>> lines.starts.tolist(), lines.ends.tolist()
    ([0, 32], [31, 63])
    """
    lines = _well_formed(np.frombuffer(block, dtype=np.uint8))
    if lines is not None:
        return lines
    flaws = map(flaw_in_line, block.split(b"\n")[:-1])
    raise next(StageError(f"line {i}: {flaw}") for i, flaw in enumerate(flaws, number) if flaw)


def _well_formed(block: np.ndarray) -> "KeyedLines | None":
    """Return the keyed lines of a block (uint8), or None if it has any other line."""
    # Keys, sizes and shingles consist of characters from 0 to o.  All others are separators, or
    # part of an id, so that `rest` has the last tab of a line just before its end.
    places = np.flatnonzero(block - np.uint8(ZERO) >= 2 * CONTINUED)
    rest = block[places]
    line_ends, tabs = np.flatnonzero(rest == ord("\n")), rest == ord("\t")
    ends, sets = places[line_ends], places[line_ends - 1] + 1
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
    if np.count_nonzero(tabs) != 3 * len(ends) or not tabs[line_ends - 1].all():
        return None
    if (sets < starts + _ID + 2).any() or (sets == ends).any():  # no tab, or nothing between two
        return None
    if (rest == 0).any() or (rest == ord("\r")).any():
        return None
    if rest.max() > 127 and flaw_in(block.tobytes()):
        return None
    heads = np.ndarray((len(block) - _ID + 1, _ID), np.uint8, block, strides=(1, 1))[starts]
    sizes = (heads[:, _SIZE : _SIZE + SIZE_WIDTH] - np.uint8(ord("0"))) @ _TENS
    if not _are_heads(heads) or not _agree(sizes, block, sets, ends):
        return None
    high, low, _ = heads.view(">u8").T
    return KeyedLines(starts, ends, high, low >> np.uint64(16))


def _are_heads(heads: np.ndarray) -> bool:
    """Return whether each line (n, 24) begins with a key, a tab, a size and a tab."""
    digits = heads - np.uint8(ord("0")) < 10
    letters = (heads - np.uint8(ord("a")) < 6)[:, :KEY_WIDTH]
    separators = heads[:, _COLON] == ord(":")
    separators &= (heads[:, _SIZE - 1] == ord("\t")) & (heads[:, _ID - 1] == ord("\t"))
    # None of the separators is a digit, so all others are.
    count = np.count_nonzero(digits) + np.count_nonzero(letters)
    return bool(separators.all() and count == len(heads) * (_ID - 3))


def _agree(sizes: np.ndarray, block: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> bool:
    """Return whether the sizes on the lines (int64) match their sets, at least modulo 256."""
    # Subtle: bytes add up three times as fast as wider integers, and so modulo 256.
    last_digits = (block < ZERO + CONTINUED).view(np.uint8)
    sets_and_heads = np.stack((starts, ends), axis=1).ravel()
    elements = np.add.reduceat(last_digits, sets_and_heads, dtype=np.uint8)[::2]
    return bool(((sizes & 255 == elements) & (sizes <= ends - starts)).all())


def flaw_in_line(line: bytes) -> str:
    r"""Return why a line is not a keyed line, or "" if it is one.

    >>> flaw_in_line(b"000:00000000ff\t00000003\tv1\t34o8"), flaw_in_line(b"v1 3 7 1007")
    ('', "expected KEY SIZE ID SHINGLES, as mapper.py writes them, got 'v1 3 7 1007'")
    """
    found = re.fullmatch(_LINE, line)
    try:
        if found is None or not found[2].decode("utf-8"):
            raise ValueError
    except ValueError:
        return f"expected KEY SIZE ID SHINGLES, as mapper.py writes them, got {shown(line)}"
    size, characters = int(found[1]), len(found[3])
    if size > characters or (size - encoded_size(found[3])) % 256:
        return f"damaged, its size and shingles disagree; run mapper.py again: {shown(line)}"
    return ""
