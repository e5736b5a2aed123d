"""A part of the filter of shared keys as text, which is looked up as it lies: nothing is decoded.

    shared PARTITION OF DIGESTS WORDS OPTIONS CHECKSUM …    128 bytes, filled up with blanks
    8191 words, @@@@@@ TAB LF
    …
    up to 8191 words, @@@@@@ TAB LF

A word is eight characters, from @ (no bit) to DEL (all six): 48 bits.  As lines end with eight
bytes, too, a part is an array of words of 64 bits, and word i is the one at i + i // 8191.  A tab
stands before each line end because Hadoop puts one into a line that has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from mmap import PAGESIZE
from typing import NamedTuple, TypeVar
from zlib import crc32

import numpy as np

from neardup.process.errors import StageError, shown

WORD_BITS = 48
HEAD_BYTES = 128
LINE_WORDS = 8191  # 64 KiB, with the end
ADVICE = "run the first round again, with the options of this one, --input among them"
_NO_BITS, _LINE_END = (int.from_bytes(word, "little") for word in (b"@" * 8, b"@@@@@@\t\n"))
_HEAD = re.compile(
    rb"(shared ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+) ([0-9a-f]{16}) )([0-9a-f]{8}) *\t\n"
)
_Places = TypeVar("_Places", int, np.ndarray)


class Part(NamedTuple):
    """Where a part of the filter lies: its words from `start` on, counted in eight bytes."""

    number: int
    of: int
    digests: int
    words: int
    start: int


def words_in_text(words: int) -> np.ndarray:
    """uint64: so many words (1 …) without a bit, and line ends."""
    text = np.full(place_in_text(words - 1) + 2, _NO_BITS, "<u8")
    text[LINE_WORDS :: LINE_WORDS + 1] = _LINE_END
    text[-1] = _LINE_END
    return text


def place_in_text(word: _Places) -> _Places:
    """Where this word is, or each of these.

    >>> place_in_text(8190), place_in_text(8191)
    (8190, 8192)
    """
    return word + word // LINE_WORDS


def bit_in_word(bit: np.ndarray) -> np.ndarray:
    """uint64 with that bit of the 48 (int64, 0 … 47).

    >>> [hex(word) for word in bit_in_word(np.array([0, 5, 6, 47])).tolist()]
    ['0x1', '0x20', '0x100', '0x2000000000000000']
    """
    return np.uint64(1) << (bit + bit // 6 * 2).astype(np.uint64)


def format_part(
    number: int, of: int, digests: int, words: int, text: np.ndarray, options: bytes
) -> Iterator[bytes]:
    """The lines of a part; `text` is that of `words_in_text`, with bits."""
    head = b"shared %d %d %d %d %b " % (number, of, digests, words, options)
    head += b"%08x" % crc32(text.data, crc32(head))
    yield head.ljust(HEAD_BYTES - 2) + b"\t\n"
    for start in range(0, len(text), LINE_WORDS + 1):
        yield text[start : start + LINE_WORDS + 1].tobytes()


def parse_parts(text: memoryview, options: bytes) -> Iterator[Part]:
    """All parts in a text (bytes); files lie there from page to page.

    StageError where a part is damaged, or of other `options`.
    """
    start = 0
    while start < len(text):
        head = bytes(text[start : start + HEAD_BYTES])
        found = _HEAD.fullmatch(head)
        if not found:
            raise StageError(f"these are no shared keys: {shown(head)}; {ADVICE}")
        if found[6] != options:
            raise StageError(f"the shared keys are of other options or another version; {ADVICE}")
        number, of, digests, words = map(int, found.groups()[1:5])
        start += HEAD_BYTES
        end = start + 8 * (place_in_text(words - 1) + 2)
        if end > len(text) or crc32(text[start:end], crc32(found[1])) != int(found[7], 16):
            raise StageError(f"the shared keys of partition {number} are damaged; {ADVICE}")
        yield Part(number, of, digests, words, start // 8)
        start = end
        if start < len(text) and not text[start]:  # behind the end of a file
            start = -(-start // PAGESIZE) * PAGESIZE
