"""Shingle lines, `VIDEO_7 12 5 12`, → batches.

A record is an id and a set of integers from 0 to 2^64-1, in any order, repeats allowed.  Lines end
with LF, CRLF or CR, as in Hadoop, and blank lines are no records.
"""

from __future__ import annotations

import re
from typing import Callable, NamedTuple

import numpy as np

from neardup.reading.bad_lines import (
    NEGATIVE,
    NO_SHINGLES,
    NOT_AN_INTEGER,
    NUL_BYTE,
    TOO_LARGE,
    UNASKED_WEIGHT,
    BadLine,
    Gather,
    flaw_in_id,
)
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged

MAX_SHINGLE = (1 << 64) - 1
CACHE_TOKENS = 1 << 16  # read at once: a line may have millions
WEIGHED = re.compile(rb"[0-9]+:[0-9.eE+-]+")


class ShingleLines(NamedTuple):
    """The lines of a block that are not blank, and the T tokens behind their n ids; int64 arrays.

    starts, ends: (T,), of tokens; sizes: (n,), how many a line has; numbers: (n,), of the lines;
    heads, tails: (n,), where a line's first token starts, and its last one ends.
    """

    block: bytes
    ids: list[bytes]
    starts: np.ndarray
    ends: np.ndarray
    sizes: np.ndarray
    numbers: np.ndarray
    heads: np.ndarray
    tails: np.ndarray

    @property
    def owner(self) -> np.ndarray:
        """int64 (T,): which line each token is of."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def parse_shingle_lines(
    block: bytes, gather: Gather = Ragged.from_unsorted
) -> tuple[Batch, list[BadLine]]:
    r"""Parse whole lines (the block ends with a line end) of `ID SHINGLE…`.

    `gather` makes rows of shingles laid end to end, and of how many there are in each.

    >>> batch, bad = parse_shingle_lines(b"v1 7 3 7\nv2\nv3 1 -2\n")
    >>> batch.ids, batch.sets.row(0).tolist()
    ([b'v1'], [3, 7])
    >>> [(line.number, line.reason) for line in bad]
    [(1, 'no shingles'), (2, 'negative shingle')]
    """
    lines = split(block)
    values, wrong = integers(lines.block, lines.starts, lines.ends)
    flawed = np.zeros(len(lines.ids), dtype=bool)
    flawed[lines.owner[wrong]] = True
    good, bad = sorted_out(lines, flawed, flaw_in_shingles)
    sizes = lines.sizes[good]
    return batch_of(lines, good, gather(values[np.repeat(good, lines.sizes)], sizes)), bad


def split(block: bytes) -> ShingleLines:
    """Where the lines and tokens of a block are, which ends with a line end."""
    bytes_ = np.frombuffer(block, dtype=np.uint8)
    separator = (bytes_ == ord(" ")) | (bytes_ - np.uint8(9) < 5)  # tab … carriage return
    edges = np.flatnonzero(np.diff(separator, prepend=True))
    starts, ends = edges[0::2], edges[1::2]  # of every token: the block ends with a separator
    ends_line = bytes_ == ord("\n")
    if b"\r" in block:
        returns = np.flatnonzero(bytes_ == ord("\r"))
        after = np.minimum(returns + 1, len(bytes_) - 1)
        ends_line[returns[bytes_[after] != ord("\n")]] = True  # CR LF is one end
    line_ends = np.flatnonzero(ends_line)
    last = np.searchsorted(starts, line_ends)  # tokens up to the end of each line
    first = np.concatenate((np.zeros(1, np.int64), last[:-1]))
    numbers = np.flatnonzero(first < last)  # of lines that are not blank
    first, last = first[numbers], last[numbers]
    is_shingle = np.ones(len(starts), dtype=bool)
    is_shingle[first] = False
    return ShingleLines(
        block,
        [block[a:b] for a, b in zip(starts[first].tolist(), ends[first].tolist())],
        starts[is_shingle],
        ends[is_shingle],
        last - first - 1,
        numbers,
        starts[first],
        ends[last - 1],
    )


def sorted_out(
    lines: ShingleLines, flawed: np.ndarray, why: Callable[[list[bytes]], str]
) -> tuple[np.ndarray, list[BadLine]]:
    """Which lines are records (bool (n,)), and the others; `why` tells of the tokens of a line that
    is flawed (bool (n,)) what the first flaw is, from left to right.
    """
    flawed = flawed | (lines.sizes == 0)
    if not lines.block.isascii() or b"\0" in lines.block:
        flawed |= [flaw_in_id(id_) is not None for id_ in lines.ids]
    bad = []
    for i in np.flatnonzero(flawed).tolist():
        head = int(lines.heads[i])
        text = lines.block[head : lines.tails[i]]
        id_, *tokens = text.split()
        reason = flaw_in_id(id_) if tokens else flaw_in_id(id_) or NO_SHINGLES
        bad.append(BadLine(int(lines.numbers[i]), text, reason or why(tokens)))
    return ~flawed, bad


def batch_of(lines: ShingleLines, good: np.ndarray, sets: Ragged) -> Batch:
    """The records on those lines that are good (bool (n,))."""
    ids = lines.ids
    if not good.all():
        ids = [id_ for id_, kept in zip(ids, good.tolist()) if kept]
    return Batch(ids, sets, places=lines.numbers[good].astype(np.uint64))


def integers(block: bytes, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The decimal numbers at [starts, ends) as uint64, and the positions of those that are none.

    Subtle: numbers are read eight digits at a time, from the right.  `windows[e]` is the eight
    bytes before position e as one word, and one shift clears those left of the token:

        … 1 7 ␣ 2 0 4 8 │      "2048" ends here: 0 0 0 0 2 0 4 8, then pairs of digits are added up,
            └─ window ──┘      then pairs of pairs, then the two halves
    """
    bytes_ = np.frombuffer(block, dtype=np.uint8)
    padded = np.concatenate((np.zeros(24, np.uint8), bytes_))
    windows = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))[16:]
    lengths = ends - starts
    values, bad = np.empty(len(ends), np.uint64), np.empty(len(ends), bool)
    for low in range(0, len(ends), CACHE_TOKENS):
        some = slice(low, low + CACHE_TOKENS)
        values[some], bad[some] = _eight_digits(windows[ends[some]], lengths[some])
    for place in (8, 16):
        longer = np.flatnonzero(lengths > place)
        if len(longer):
            higher, bad_too = _eight_digits(windows[ends[longer] - place], lengths[longer] - place)
            bad[longer] |= bad_too
            if place == 16:
                bad[longer] |= higher > 1844
                bad[longer] |= (higher == 1844) & (values[longer] > MAX_SHINGLE % 10**16)
            values[longer] += higher * np.uint64(10**place)
    for i in np.flatnonzero(lengths > 20).tolist():  # nothing but leading zeros can save these
        token = bytes_[starts[i] : ends[i]].tobytes()
        bad[i] = not _is_shingle(token)
        values[i] = 0 if bad[i] else int(token.lstrip(b"0") or b"0")
    return values, np.flatnonzero(bad)


def _eight_digits(words: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The last min(length, 8) characters of each word as a number; True where one is no digit."""
    outside = (8 - np.minimum(lengths, 8)).astype(np.uint64) * np.uint64(8)
    digits = (words ^ np.uint64(0x3030303030303030)) >> outside << outside
    high_bits = digits | (digits + np.uint64(0x7676767676767676))  # set where a byte is above 9
    bad = (high_bits & np.uint64(0x8080808080808080)) != 0
    for bits, mask in (8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0xFFFFFFFF):
        base = np.uint64(10 ** (bits // 8))
        digits = (digits * base + (digits >> np.uint64(bits))) & np.uint64(mask)
    return digits, bad


def flaw_in_shingles(tokens: list[bytes]) -> str:
    """Why the first of these that is no shingle is none; "" where all are."""
    wrong = next((token for token in tokens if not _is_shingle(token)), None)
    if wrong is None:
        return ""
    if b"\0" in wrong:
        return NUL_BYTE
    if WEIGHED.fullmatch(wrong):
        return UNASKED_WEIGHT
    if not wrong[wrong.startswith(b"-") :].isdigit():
        return NOT_AN_INTEGER
    return NEGATIVE if wrong.startswith(b"-") else TOO_LARGE


def _is_shingle(token: bytes) -> bool:
    digits = token.lstrip(b"0")  # int() refuses very long strings
    return token.isdigit() and len(digits) <= 20 and int(digits or b"0") <= MAX_SHINGLE
