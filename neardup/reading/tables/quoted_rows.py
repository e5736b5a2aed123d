r"""The rows of a CSV file, some at a time, where a quoted field may hold line ends.

    1,"to be,⏎or not"⏎2,plain⏎     two rows: a quote counts where a field begins, and up to the
                                    next one that is not doubled

A quote that is never closed would make one row of all that follows.  So a row longer than the limit
ends at its first line end, and is none; what follows is read as rows again.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import IO

import numpy as np

from neardup.process.errors import StageError
from neardup.reading.bad_lines import LINE_TOO_LONG, NOT_CLOSED
from neardup.reading.blocks import BLOCK_BYTES, LINE_END

QUOTE = b'"'
MOST_BYTES = 4 * BLOCK_BYTES  # of which all quotes are looked at at once
END_OF_FIELD = re.compile(rb",|\r\n|\n|\r")
BESIDE_QUOTES = np.frombuffer(b',\r\n"', np.uint8)  # outside of a quoted field, or doubled


def whole_rows(stream: IO[bytes], name: str, max_row: int) -> Iterator[tuple[int, bytes, str]]:
    """(number of the first row, whole rows, ""), some at a time; or one row alone that is none, and
    why.  Blank rows count.  A last row without a line end is given one.

    StageError for one line longer than the limit, which is no CSV.
    """
    number, held = 1, stream.read(BLOCK_BYTES).removeprefix(codecs.BOM_UTF8)
    ended = False
    while held or not ended:
        if not ended:
            more = stream.read(max(BLOCK_BYTES, len(held)))  # a long row is scanned few times
            ended = not more
            held += more
            if ended and held and not held.endswith((b"\n", b"\r")):
                held += b"\n"
        ends = row_ends(held, ended)
        if too_long := np.flatnonzero(np.diff(ends, prepend=0) > max_row).tolist():
            ends = ends[: too_long[0]]
        for count, data in _portions(held, ends):
            yield number, data, ""
            number += count
        if len(ends):
            held = held[int(ends[-1]) :]
        elif held and (ended or len(held) > max_row):
            line = LINE_END.search(held)
            if not line:
                raise StageError(f"{name}: row {number}: {LINE_TOO_LONG}; is this CSV?")
            flaw = LINE_TOO_LONG if len(held) > max_row else NOT_CLOSED
            yield number, held[: line.end()], flaw
            number, held = number + 1, held[line.end() :]


def _portions(data: bytes, ends: np.ndarray) -> Iterator[tuple[int, bytes]]:
    """Rows that end there, in blocks: (how many, they)."""
    first = begin = 0
    while first < len(ends):
        last = max(int(np.searchsorted(ends, begin + BLOCK_BYTES, "right")), first + 1)
        end = int(ends[last - 1])
        yield last - first, data[begin:end]
        first, begin = last, end


def row_ends(data: bytes, ended: bool = True) -> np.ndarray:
    r"""int64: where each whole row ends; unless `ended`, more may follow.

    >>> row_ends(b'1,"a\nb"\r\n2,"c\n').tolist()
    [9]
    """
    stop = len(data) - (not ended and data.endswith(b"\r"))  # an LF may follow
    if stop > MOST_BYTES:
        return np.fromiter(_by_fields(data, stop), np.int64)
    bytes_ = np.frombuffer(data, np.uint8)[:stop]
    quotes = np.flatnonzero(bytes_ == ord(QUOTE))
    if not _plainly_quoted(bytes_, quotes):
        return np.fromiter(_by_fields(data, stop), np.int64)
    ends = np.flatnonzero(bytes_ == ord("\n"))
    if b"\r" in data:
        returns = np.flatnonzero(bytes_ == ord("\r"))
        alone = returns[bytes_[np.minimum(returns + 1, stop - 1)] != ord("\n")]
        ends = np.sort(np.concatenate((ends, alone)))
    outside = np.searchsorted(quotes, ends) % 2 == 0
    return ends[outside] + 1


def _plainly_quoted(data: np.ndarray, quotes: np.ndarray) -> bool:
    """Whether quotes are only around fields, or doubled in them: then every other one opens."""
    opening, closing = quotes[0::2], quotes[1::2]
    before = data[opening[opening > 0] - 1]
    after = data[closing[closing < len(data) - 1] + 1]
    return bool(np.isin(before, BESIDE_QUOTES).all() and np.isin(after, BESIDE_QUOTES).all())


def _by_fields(data: bytes, stop: int) -> Iterator[int]:
    """The same for any data, field by field."""
    at = 0
    while (end := _end_of_field(data, at, stop)) is not None:
        at = end.end()
        if end[0] != b",":
            yield at


def _end_of_field(data: bytes, at: int, stop: int) -> re.Match[bytes] | None:
    if data[at : at + 1] == QUOTE:
        at = data.find(QUOTE, at + 1, stop) + 1
        while at and data[at : at + 1] == QUOTE:  # doubled
            at = data.find(QUOTE, at + 1, stop) + 1
        if not at:
            return None
    return END_OF_FIELD.search(data, at, stop)
