"""Lines of token counts: parse beside format.  `neardup.sets.token_counts` shows where they go.

partial count   t0…042 TAB 1                        of a token, and s0…035 of a size
                r5…077 TAB 34o8                     a set of the sample, behind its hash
sum             999999999982:t0…042 TAB 17          first what is left to 10^12 - 1: the most
                000000000000:s0…035 TAB 1200        frequent tokens come first
count           t0…042 TAB 17                       what a file of counts consists of
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from neardup.lines.keyed_lines import decode_sets, encode_sets
from neardup.reading.blocks import blocks_of
from neardup.runtime.errors import StageError, WireError, shown
from neardup.sets.ragged import Ragged
from neardup.sets.token_counts import MOST, TokenCounts

TOKEN_WIDTH = 20  # digits of 2^64 - 1
ROWS_AT_ONCE = 1 << 16
_FIELDS = rb"(?:([st][0-9]{20})\t([1-9][0-9]{0,11})|(r[0-9]{20})\t([0-o]+))\t?\n?"
_SUMMED = rb"[0-9]{12}:" + _FIELDS
_LARGEST = b"%020d" % ((1 << 64) - 1)


def read_counts(path: str, own: bool = False) -> TokenCounts:
    """From a file that the last counting step wrote; StageError for any other.

    `own` says that the counts are of the very records that are to meet.
    """
    try:
        with open(path, "rb") as file:
            data = b"".join(blocks_of(file))
    except StageError:  # no line end, as in /dev/zero
        raise _no_counts(path) from None
    # Subtle: the digits of a set go from "0" to "o", so these letters begin lines only.
    to_sizes = data.find(b"s") if b"s" in data else len(data)
    to_tokens = data.find(b"t") if b"t" in data else len(data)
    sample = _sets(path, data[:to_sizes])
    sizes, holders = _columns(path, data[to_sizes:to_tokens], b"s")
    tokens, frequencies = _columns(path, data[to_tokens:], b"t")
    order = np.argsort(tokens)
    return TokenCounts(
        sizes.astype(np.int64),
        holders.astype(np.int64),
        tokens[order],
        frequencies[order].astype(np.int64),
        sample,
        own,
    )


def _sets(path: str, data: bytes) -> Ragged:
    """The sets of lines that all begin with "r"."""
    lines = data.splitlines()
    try:
        if not all(line.startswith(b"r") and line.count(b"\t") == 1 for line in lines):
            raise WireError("no sets")
        return decode_sets([line.split(b"\t")[1] for line in lines])
    except WireError:
        raise _no_counts(path) from None


def _columns(path: str, data: bytes, kind: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The two columns (uint64) of lines that all begin with `kind`."""
    lines = data.count(b"\n")
    numbers = data.replace(kind, b"").split()
    ours = data.count(kind) == lines and len(numbers) == 2 * lines
    try:
        if not (ours and all(map(bytes.isdigit, numbers))):
            raise ValueError
        table = np.array(numbers, dtype=np.uint64).reshape(-1, 2)
    except (ValueError, OverflowError):
        raise _no_counts(path) from None
    return table[:, 0], table[:, 1]


def _no_counts(path: str) -> StageError:
    return StageError(f"{path}: is no file of token counts; step.py count order writes them")


def parse_partial(line: bytes) -> tuple[bytes, bytes]:
    """(key, value) of a partial count."""
    found = re.fullmatch(_FIELDS, line)
    if found:
        key, value = filter(None, found.groups())
        if _possible(key, value):
            return key, value
    raise WireError(f"expected TOKEN COUNT, as step.py count map writes them, got {shown(line)}")


def parse_sum(line: bytes) -> tuple[bytes, bytes, bytes]:
    """(the key with its place in front, the key, the value) of a sum."""
    found = re.fullmatch(_SUMMED, line)
    if found:
        key, value = filter(None, found.groups())
        place = place_of_sum(key, value)
        if line.startswith(place) and _possible(key, value):
            return place, key, value
    raise WireError(
        f"expected ORDER:TOKEN COUNT, as step.py count sum writes them, got {shown(line)}"
    )


def place_of_sum(key: bytes, value: bytes) -> bytes:
    """The key of a sum with its place in front.

    >>> place_of_sum(b"t00000000000000000042", b"17")
    b'999999999982:t00000000000000000042'
    """
    return b"%012d:%b" % (MOST - int(value) if key.startswith(b"t") else 0, key)


def _possible(key: bytes, value: bytes) -> bool:
    """Whether the number is one of 64 bits, and a set can be read."""
    if key[1:] > _LARGEST:
        return False
    if key.startswith(b"r"):
        try:
            decode_sets([value])
        except WireError:
            return False
    return True


def format_counts(kind: bytes, numbers: np.ndarray, count: np.ndarray) -> Iterator[bytes]:
    """The lines of a column, some at a time."""
    for low in range(0, len(numbers), ROWS_AT_ONCE):
        yield _lines(kind, numbers[low : low + ROWS_AT_ONCE], count[low : low + ROWS_AT_ONCE])


def format_all(counts: TokenCounts) -> Iterator[bytes]:
    """What `read_counts` reads; sets of the sample are numbered, since their hashes are known."""
    for number, text in enumerate(encode_sets(counts.sample)):
        yield b"r%020d\t%b\n" % (number, text)
    for kind, numbers, count in (
        (b"s", counts.sizes.astype(np.uint64), counts.holders),
        (b"t", counts.tokens, counts.frequencies),
    ):
        yield from format_counts(kind, numbers, count)


def _lines(kind: bytes, numbers: np.ndarray, count: np.ndarray) -> bytes:
    r"""A table of characters, from which the leading zeros of the counts (1 and more) are left out.

    >>> _lines(b"t", np.array([42, 2**64 - 1], np.uint64), np.array([7, 12]))
    b't00000000000000000042\t7\nt18446744073709551615\t12\n'
    """
    first = 1 + TOKEN_WIDTH + 1  # where the count begins
    width = len(str(count.max()))
    text = np.empty((len(numbers), first + width + 1), dtype=np.uint8)
    text[:, 0] = ord(kind)
    text[:, 1 : first - 1] = _decimal(numbers, TOKEN_WIDTH)
    text[:, first - 1] = ord("\t")
    text[:, first:-1] = _decimal(count.astype(np.uint64), width)
    text[:, -1] = ord("\n")
    wanted = np.ones(text.shape, dtype=bool)
    np.logical_or.accumulate(text[:, first:-1] > ord("0"), axis=1, out=wanted[:, first:-1])
    return text[wanted].tobytes()


def _decimal(numbers: np.ndarray, width: int) -> np.ndarray:
    """The last `width` digits of each number (uint64), as characters."""
    text = np.empty((len(numbers), width), dtype=np.uint8)
    for place in reversed(range(width)):
        tenth = numbers // np.uint64(10)
        text[:, place] = numbers - tenth * np.uint64(10) + np.uint64(ord("0"))
        numbers = tenth
    return text
