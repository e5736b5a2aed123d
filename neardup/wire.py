r"""The lines between the stages: parse beside format.

    keyed line   KEY TAB SIZE TAB ID TAB SHINGLES      mapper → shuffle → reducer
    pair line    A TAB B TAB SIMILARITY                reducer → shuffle → second reduce

KEY is `band:hash` in hexadecimal, fixed in width and one field, since every engine groups on the
first field.  SIZE (eight digits) lets a sort bring a bucket's records in order of size.

SHINGLES are the sorted shingles' differences, each as base-32 digits, highest first, in the 64
printable characters from `0` to `o`: 32 of them end a number and 32 continue one.  So equal sets
have equal bytes, a typical set takes a third of its decimal digits, and no blank, tab, line end or
carriage return can occur.

    {3, 7, 1007}  →  differences 3, 4, 1000  →  "3", "4", "o8"       (1000 = 31·32 + 8)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from neardup.errors import StageError
from neardup.keys import HASH_BITS
from neardup.ragged import Ragged, chunks
from neardup.records import Batch

KEY_WIDTH = 14
OUTPUT_BYTES = 8 << 20
CACHE_TOKENS = 1 << 16  # decoded at once
ZERO, CONTINUED = 48, 32  # the character of digit 0; what a digit that is not the last one adds
MOST_DIGITS = 13  # of 5 bits: a shingle of 64 bits has 13 with at most 15 as the first
_KEY = re.compile(rb"[0-9a-f]{3}:[0-9a-f]{10}")
_SIMILARITY = re.compile(rb"[01]\.[0-9]{6}")
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_KEY_SHIFTS = (48, 44, 40, None, 36, 32, 28, 24, 20, 16, 12, 8, 4, 0)  # None: the colon


class WireError(StageError):
    """A line between two stages that no stage of this program wrote."""


def format_keyed_lines(
    batch: Batch, keys: Ragged, partitions: int = 1
) -> Iterator[tuple[int, bytes]]:
    r"""(partition, keyed lines) for all keys of a batch, some mebibytes at a time.

    A key's partition follows from its hash alone, so every mapper sends a key the same way.  The
    lines of a partition come in order of keys, which saves the engine's sort a third of its work.

    >>> batch = Batch([b"v1"], Ragged.from_rows([[3, 7, 1007]]))
    >>> list(format_keyed_lines(batch, Ragged.from_rows([[255, (2 << 40) + 1]])))
    [(0, b'000:00000000ff\t00000003\tv1\t34o8\n002:0000000001\t00000003\tv1\t34o8\n')]
    """
    tails = [
        b"\t%08d\t%b\t%b\n" % record
        for record in zip(batch.sets.sizes.tolist(), batch.ids, encode_sets(batch.sets))
    ]
    names = format_keys(keys.values)
    owner = np.repeat(np.arange(len(keys)), keys.sizes)
    partition = keys.values % np.uint64(1 << HASH_BITS) % np.uint64(partitions)
    weights = np.array([KEY_WIDTH + len(tail) for tail in tails], dtype=np.int64)
    for number in range(partitions):
        mine = np.flatnonzero(partition == number)
        mine = mine[np.argsort(keys.values[mine], kind="stable")]
        for low, high in chunks(weights[owner[mine]], OUTPUT_BYTES):
            some = mine[low:high]
            parts = [b""] * (2 * len(some))
            parts[0::2] = names[some].tolist()
            parts[1::2] = [tails[i] for i in owner[some].tolist()]
            yield number, b"".join(parts)


def parse_keyed_lines(lines: list[bytes]) -> list[list[bytes]]:
    """[KEY, SIZE, ID, SHINGLES] of each line (without its line end)."""
    fields = [line.split(b"\t") for line in lines]
    if any(len(parts) != 4 for parts in fields):
        wrong = next(line for line in lines if line.count(b"\t") != 3)
        raise WireError(f"expected KEY SIZE ID SHINGLES, got {shown(wrong)}")
    return fields


def format_keys(keys: np.ndarray) -> np.ndarray:
    """Keys (uint64 below 2^52) as `band:hash`, an array of 14-byte strings."""
    text = np.full((len(keys), KEY_WIDTH), ord(":"), dtype=np.uint8)
    for column, shift in enumerate(_KEY_SHIFTS):
        if shift is not None:
            text[:, column] = _HEX[(keys >> np.uint64(shift)) & np.uint64(15)]
    return text.view(f"S{KEY_WIDTH}").ravel()


def parse_key(text: bytes) -> int:
    """The inverse of `format_keys`, for one key.

    >>> parse_key(b"002:0000000001") == (2 << 40) + 1
    True
    """
    if not _KEY.fullmatch(text):
        raise WireError(f"expected a key such as 00a:0123456789, got {shown(text)}")
    return int(text[:3], 16) << HASH_BITS | int(text[4:], 16)


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

    Eight digits at a time, from the right, as `neardup.records` reads decimal numbers.
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


def format_pair(a: bytes, b: bytes, similarity: bytes, directed: bool = False) -> bytes:
    """`a TAB b TAB similarity` and a line end; in byte order, unless the pair is directed."""
    if b < a and not directed:
        a, b = b, a
    return b"%b\t%b\t%b\n" % (a, b, similarity)


def parse_pair(line: bytes) -> tuple[bytes, bytes, bytes]:
    """(a, b, similarity) of a pair line; the tab that Hadoop may add behind it is cut off."""
    fields = line.rstrip(b"\n").split(b"\t")
    if len(fields) == 4 and not fields[3]:
        fields.pop()
    if len(fields) != 3 or not all(fields) or not _SIMILARITY.fullmatch(fields[2]):
        raise WireError(f"expected A B SIMILARITY, got {shown(line)}")
    return fields[0], fields[1], fields[2]


def shown(line: bytes, limit: int = 60) -> str:
    """A line as a message may show it: cut, and free of control characters."""
    text = line[:limit].decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return f"'{text}'" + ("…" if len(line) > limit else "")
