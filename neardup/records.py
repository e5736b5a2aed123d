"""Record lines → batches.

A record is an id and a set of shingles.  On a line it is an id followed by integers (`VIDEO_7 12
5 12`), or an id followed by text that `neardup.shingling` turns into shingles.  Lines end with LF,
CRLF or CR, as in Hadoop, and blank lines are no records.

The unit of work is a batch of some thousand records: numpy pays only in bulk, and parsing all
tokens of a block of lines at once takes a tenth of the time of `split` and `int`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, NamedTuple

import numpy as np

from neardup.ragged import Ragged
from neardup.shingling import Shingler

NO_ID = "no id"
NO_SHINGLES = "no shingles"
NOT_AN_INTEGER = "not an integer"
NEGATIVE = "negative shingle"
TOO_LARGE = "shingle over 2^64-1"
NOT_UTF8 = "not UTF-8"
NUL_BYTE = "NUL byte"
LINE_TOO_LONG = "line too long"
REASONS = (
    NO_ID,
    NO_SHINGLES,
    NOT_AN_INTEGER,
    NEGATIVE,
    TOO_LARGE,
    NOT_UTF8,
    NUL_BYTE,
    LINE_TOO_LONG,
)

MAX_SHINGLE = (1 << 64) - 1
CACHE_TOKENS = 1 << 16  # read at once: a line may have millions


@dataclass(frozen=True)
class Batch:
    """Records: `ids[i]` has the shingles `sets.row(i)`, ascending and distinct."""

    ids: list[bytes]
    sets: Ragged

    def take(self, index: np.ndarray) -> Batch:
        """The records at `index` (int64 array), in that order."""
        return Batch([self.ids[i] for i in index.tolist()], self.sets.take(index))


class BadLine(NamedTuple):
    """A line that is no record: where it starts in its block, its first bytes, and why."""

    position: int
    text: bytes
    reason: str


Parser = Callable[[bytes], "tuple[Batch, list[BadLine]]"]


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
        ends_line |= bytes_ == ord("\r")
    line_ends = np.flatnonzero(ends_line)
    last = np.searchsorted(starts, line_ends)  # tokens up to the end of each line
    first = np.concatenate((np.zeros(1, np.int64), last[:-1]))
    first, last = first[first < last], last[first < last]

    sizes = last - first - 1
    is_shingle = np.ones(len(starts), dtype=bool)
    is_shingle[first] = False
    values, wrong = _parse_integers(bytes_, starts[is_shingle], ends[is_shingle])

    ids = [block[a:b] for a, b in zip(starts[first].tolist(), ends[first].tolist())]
    flawed = sizes == 0
    flawed[np.repeat(np.arange(len(ids)), sizes)[wrong]] = True
    if not block.isascii() or b"\0" in block:
        flawed |= [_flaw_in_id(id_) is not None for id_ in ids]
    bad = [
        BadLine(int(starts[first[i]]), block[starts[first[i]] : ends[last[i] - 1]], "")
        for i in np.flatnonzero(flawed)
    ]
    bad = [line._replace(reason=_flaw_in_shingle_line(line.text)) for line in bad]
    if bad:
        keep = ~flawed
        values = values[np.repeat(keep, sizes)]
        sizes = sizes[keep]
        ids = [id_ for id_, kept in zip(ids, keep.tolist()) if kept]
    return Batch(ids, Ragged.from_unsorted(values, sizes)), bad


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


def _flaw_in_id(id_: bytes) -> str | None:
    if b"\0" in id_:
        return NUL_BYTE
    try:
        id_.decode("utf-8")
    except UnicodeDecodeError:
        return NOT_UTF8
    return None


def _flaw_in_shingle_line(line: bytes) -> str:
    """Why this line is no record: the first reason, from left to right."""
    id_, *tokens = line.split()
    if not tokens:
        return _flaw_in_id(id_) or NO_SHINGLES
    wrong = next((token for token in tokens if not _is_shingle(token)), b"")
    if _flaw_in_id(id_) or b"\0" in wrong:
        return _flaw_in_id(id_) or NUL_BYTE
    if not wrong[wrong.startswith(b"-") :].isdigit():
        return NOT_AN_INTEGER
    return NEGATIVE if wrong.startswith(b"-") else TOO_LARGE


def _is_shingle(token: bytes) -> bool:
    digits = token.lstrip(b"0")  # int() refuses very long strings
    return token.isdigit() and len(digits) <= 20 and int(digits or b"0") <= MAX_SHINGLE


def text_line_parser(shingler: Shingler) -> Parser:
    r"""A parser of whole lines of `ID TAB TEXT`, or `ID BLANK TEXT` where a line has no tab.

    >>> parse = text_line_parser(Shingler.parse("word:3"))
    >>> batch, bad = parse(b"a\tto be or not to be\nb to be  OR not\n")
    >>> batch.ids, batch.sets.sizes.tolist()
    ([b'a', b'b'], [4, 2])
    """

    def parse(block: bytes) -> tuple[Batch, list[BadLine]]:
        ids: list[bytes] = []
        sets: list[np.ndarray] = []
        bad: list[BadLine] = []
        position = 0
        for line in block.splitlines(keepends=True):
            if line.strip():
                id_, text = _split_text_line(line)
                flaw, shingles = _shingles_of_text(id_, text, shingler)
                if flaw:
                    bad.append(BadLine(position, line.rstrip(b"\r\n"), flaw))
                else:
                    ids.append(id_)
                    sets.append(shingles)
            position += len(line)
        sizes = np.array([len(shingles) for shingles in sets], dtype=np.int64)
        values = np.concatenate(sets) if sets else np.empty(0, np.uint64)
        return Batch(ids, Ragged.from_unsorted(values, sizes)), bad

    return parse


def _split_text_line(line: bytes) -> tuple[bytes, bytes]:
    id_, tab, text = line.partition(b"\t")
    if not tab:
        id_, _, text = line.strip().partition(b" ")
    return id_.strip(), text


def _shingles_of_text(id_: bytes, text: bytes, shingler: Shingler) -> tuple[str, np.ndarray]:
    """(why this is no record, or "", its shingles)."""
    shingles = np.empty(0, np.uint64)
    flaw = "" if id_ else NO_ID
    if not flaw and b"\0" in text:
        flaw = NUL_BYTE
    flaw = flaw or _flaw_in_id(id_) or ""
    if not flaw:
        try:
            shingles = shingler(text.decode("utf-8"))
        except UnicodeDecodeError:
            flaw = NOT_UTF8
        else:
            flaw = "" if len(shingles) else NO_SHINGLES
    return flaw, shingles
