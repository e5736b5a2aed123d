"""Shingle lines, `VIDEO_7 12 5 12`, → batches.

A record is an id and a set of integers from 0 to 2^64-1, in any order, repeats allowed.  Lines end
with LF, CRLF or CR, as in Hadoop, and blank lines are no records.
"""

from __future__ import annotations

import numpy as np

from neardup.reading.bad_lines import (
    NEGATIVE,
    NO_SHINGLES,
    NOT_AN_INTEGER,
    NUL_BYTE,
    TOO_LARGE,
    BadLine,
    flaw_in_id,
)
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged

MAX_SHINGLE = (1 << 64) - 1
CACHE_TOKENS = 1 << 16  # read at once: a line may have millions


def parse_shingle_lines(block: bytes) -> tuple[Batch, list[BadLine]]:
    r"""Parse whole lines (the block ends with a line end) of `ID SHINGLE…`.

    >>> batch, bad = parse_shingle_lines(b"v1 7 3 7\nv2\nv3 1 -2\n")
    >>> batch.ids, batch.sets.row(0).tolist()
    ([b'v1'], [3, 7])
    >>> [(line.position, line.reason) for line in bad]
    [(9, 'no shingles'), (12, 'negative shingle')]
    """
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
    lines = np.flatnonzero(first < last)  # that are not blank
    first, last = first[lines], last[lines]

    sizes = last - first - 1
    is_shingle = np.ones(len(starts), dtype=bool)
    is_shingle[first] = False
    values, wrong = _parse_integers(bytes_, starts[is_shingle], ends[is_shingle])

    ids = [block[a:b] for a, b in zip(starts[first].tolist(), ends[first].tolist())]
    flawed = sizes == 0
    flawed[np.repeat(np.arange(len(ids)), sizes)[wrong]] = True
    if not block.isascii() or b"\0" in block:
        flawed |= [flaw_in_id(id_) is not None for id_ in ids]
    bad = [
        BadLine(int(starts[first[i]]), block[starts[first[i]] : ends[last[i] - 1]], "")
        for i in np.flatnonzero(flawed)
    ]
    bad = [line._replace(reason=_flaw_in_shingle_line(line.text)) for line in bad]
    if bad:
        keep = ~flawed
        values = values[np.repeat(keep, sizes)]
        sizes, lines = sizes[keep], lines[keep]
        ids = [id_ for id_, kept in zip(ids, keep.tolist()) if kept]
    places = lines.astype(np.uint64)
    return Batch(ids, Ragged.from_unsorted(values, sizes), places=places), bad


def _parse_integers(
    bytes_: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The decimal numbers at [starts, ends) as uint64, and the positions of those that are none.

    Subtle: numbers are read eight digits at a time, from the right.  `windows[e]` is the eight
    bytes before position e as one word, and one shift clears those left of the token:

        … 1 7 ␣ 2 0 4 8 │      "2048" ends here: 0 0 0 0 2 0 4 8, then pairs of digits are added up,
            └─ window ──┘      then pairs of pairs, then the two halves
    """
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


def _flaw_in_shingle_line(line: bytes) -> str:
    """Why this line is no record: the first reason, from left to right."""
    id_, *tokens = line.split()
    if not tokens:
        return flaw_in_id(id_) or NO_SHINGLES
    wrong = next((token for token in tokens if not _is_shingle(token)), b"")
    if flaw_in_id(id_) or b"\0" in wrong:
        return flaw_in_id(id_) or NUL_BYTE
    if not wrong[wrong.startswith(b"-") :].isdigit():
        return NOT_AN_INTEGER
    return NEGATIVE if wrong.startswith(b"-") else TOO_LARGE


def _is_shingle(token: bytes) -> bool:
    digits = token.lstrip(b"0")  # int() refuses very long strings
    return token.isdigit() and len(digits) <= 20 and int(digits or b"0") <= MAX_SHINGLE
