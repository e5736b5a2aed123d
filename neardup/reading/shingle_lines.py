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
    flaw_in,
)
from neardup.reading.blocks import BLOCK_BYTES
from neardup.reading.decimals import BEFORE, LONGEST, MOST, decimals
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged

BLANKS = re.compile(rb"([ \t\v\f])[ \t\v\f]+")
FRONT = b"0" * BEFORE + b"\n"  # a line end, and before it nothing that would be looked at
WEIGHED = re.compile(rb"[0-9]+:[0-9.eE+-]+")


class ShingleLines(NamedTuple):
    """The lines of a block that are not blank, and the T tokens behind their n ids; int64 arrays.

    text: the block behind `FRONT`, in which all places are; digits: (T,), how many a token begins
    with; stops, ends: (T,), where these digits end, and the token, one array where all tokens are
    numbers; sizes: (n,), how many tokens a line has; numbers: (n,), of the lines; heads, tails:
    (n,), where a line's first token starts, and its last one ends.
    """

    text: bytes
    ids: list[bytes]
    digits: np.ndarray
    stops: np.ndarray
    ends: np.ndarray
    sizes: np.ndarray
    numbers: np.ndarray
    heads: np.ndarray
    tails: np.ndarray

    @property
    def owner(self) -> np.ndarray:
        """int64 (T,): which line each token is of."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def shingles(self) -> tuple[np.ndarray, np.ndarray]:
        """The number that each token begins with (uint64), and whether that is none (bool)."""
        values, large = decimals(np.frombuffer(self.text, np.uint8), self.stops, self.digits)
        wrong = self.digits == 0
        wrong[large] = True
        return values, wrong

    def with_any(self, wrong: np.ndarray) -> np.ndarray:
        """bool (n,): which lines have a token that is wrong (bool (T,))."""
        flawed = np.zeros(len(self.sizes), dtype=bool)
        if wrong.any():
            flawed[self.owner[wrong]] = True
        return flawed


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
    values, wrong = lines.shingles()
    if lines.ends is not lines.stops:
        wrong |= lines.ends != lines.stops
    flawed = lines.with_any(wrong)
    good, bad = sorted_out(lines, flawed, flaw_in_shingles)
    sizes = lines.sizes
    if bad:
        values, sizes = values[np.repeat(good, sizes)], sizes[good]
    return batch_of(lines, good, gather(values, sizes)), bad


def split(block: bytes) -> ShingleLines:
    """Where the lines and tokens of a block are, which ends with a line end.

    Nearly all that is no digit parts two numbers: so only such *marks* are looked at, the first of
    which is a line end before the block.  A token opens at the mark before it, and closes at the
    one behind it; those of a number are neighbours.

        ⏎  V  _  7  ␣  1  2  ␣  5  ⏎      text
        0  1  2     3        4     5      marks; of a long word only those at both ends
        o           o        o            opens
                    c        c     c      closes
    """
    if len(block) > 2 * BLOCK_BYTES:  # a long line, which may be all blanks
        block = BLANKS.sub(rb"\1", block)
    text = FRONT + block
    bytes_ = np.frombuffer(text, dtype=np.uint8)
    is_mark = bytes_ - np.uint8(ord("0")) > 9
    letter = bytes_ > ord("9")
    is_mark[1:-1] ^= letter[:-2] & letter[1:-1] & letter[2:]
    marks = np.flatnonzero(is_mark)
    kinds = bytes_[marks]
    blank = (kinds == ord(" ")) | (kinds - np.uint8(9) < 5)  # tab … carriage return
    gaps = np.diff(marks)
    apart = gaps > 1  # digits between this mark and the next
    opens = blank[:-1] & (apart | ~blank[1:])  # a token, between this mark and the next
    closes = blank[1:] & (apart | ~blank[:-1])
    opening, closing = np.flatnonzero(opens), np.flatnonzero(closes)
    last = np.searchsorted(closing, _line_ends(marks, kinds))  # tokens up to the end of each line
    first = np.append(0, last[:-1])
    numbers = np.flatnonzero(first < last)  # of lines that are not blank
    first, last = first[numbers], last[numbers]
    opens[opening[first]] = closes[closing[first]] = False  # those of ids
    behind = marks[1:]
    stops = behind[opens]
    heads, tails = marks[opening[first]] + 1, behind[closing[last - 1]]
    return ShingleLines(
        text,
        [text[a:b] for a, b in zip(heads.tolist(), behind[closing[first]].tolist())],
        gaps[opens] - 1,
        stops,
        stops if np.array_equal(opens, closes) else behind[closes],
        last - first - 1,
        numbers,
        heads,
        tails,
    )


def _line_ends(marks: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Which marks end a line, but the one before the block: LF, CR LF or CR."""
    ends = kinds == ord("\n")
    if (returns := np.flatnonzero(kinds == ord("\r"))).size:
        after = np.minimum(returns + 1, len(kinds) - 1)
        paired = (kinds[after] == ord("\n")) & (marks[after] == marks[returns] + 1)
        ends[returns[~paired]] = True
    return np.flatnonzero(ends)[1:]


def sorted_out(
    lines: ShingleLines, flawed: np.ndarray, why: Callable[[list[bytes]], str]
) -> tuple[np.ndarray, list[BadLine]]:
    """Which lines are records (bool (n,)), and the others; `why` tells of the tokens of a line that
    is flawed (bool (n,)) what the first flaw is, from left to right.
    """
    flawed = flawed | (lines.sizes == 0)
    if not lines.text.isascii() or b"\0" in lines.text:
        flawed |= [flaw_in(id_) is not None for id_ in lines.ids]
    bad = []
    for i in np.flatnonzero(flawed).tolist():
        head = int(lines.heads[i])
        text = lines.text[head : lines.tails[i]]
        id_, *tokens = text.split()
        reason = flaw_in(id_) if tokens else flaw_in(id_) or NO_SHINGLES
        bad.append(BadLine(int(lines.numbers[i]), text, reason or why(tokens)))
    return ~flawed, bad


def batch_of(lines: ShingleLines, good: np.ndarray, sets: Ragged) -> Batch:
    """The records on those lines that are good (bool (n,))."""
    ids = lines.ids
    if not good.all():
        ids = [id_ for id_, kept in zip(ids, good.tolist()) if kept]
    return Batch(ids, sets, places=lines.numbers[good].astype(np.uint64))


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
    return token.isdigit() and len(digits) <= LONGEST and int(digits or b"0") <= MOST
