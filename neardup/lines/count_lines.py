"""Formatters and parsers of token count lines; see `neardup.sets.token_counts` for their use.

partial count   t0…042 TAB 1                        of a token, and s0…035 of a size
                r5…077 TAB 34o8                     a set of the sample, behind its hash
sum             999999999982:t0…042 TAB 17          begins with 10^12 - 1 less the count: the most
                000000000000:s0…035 TAB 1200        frequent tokens come first
count           t0…042 TAB 17                       what a file of counts consists of
"""

import re
from collections.abc import Iterator
from itertools import chain

import numpy as np

from neardup.lines.keyed_lines import decode_sets, encode_sets
from neardup.reading.blocks import blocks_of
from neardup.runtime.program import StageError, WireError, shown
from neardup.sets.token_counts import MOST, TokenCounts

TOKEN_WIDTH = 20  # digits of 2^64 - 1
ROWS_AT_ONCE = 1 << 16
_FIELDS = rb"(?:([st][0-9]{20})\t([1-9][0-9]{0,11})|(r[0-9]{20})\t([0-o]+))\t?\n?"
_LARGEST = b"%020d" % ((1 << 64) - 1)


def read_counts(path: str, own: bool = False) -> TokenCounts:
    """Read token counts from the output of step.py count order; StageError for any other file.

    `own`: the counts are of the same records that are joined.
    """
    try:
        with open(path, "rb") as file:
            data = b"".join(blocks_of(file))
        # Subtle: the digits of a set go from "0" to "o", so these letters begin lines only.
        to_sizes = data.find(b"s") if b"s" in data else len(data)
        to_tokens = data.find(b"t") if b"t" in data else len(data)
        sets = [line.split(b"\t") for line in data[:to_sizes].splitlines()]
        if not all(len(fields) == 2 and fields[0].startswith(b"r") for fields in sets):
            raise ValueError
        sample = decode_sets([fields[1] for fields in sets])
        sizes, holders = _columns(data[to_sizes:to_tokens], b"s").astype(np.int64)
        tokens, frequencies = _columns(data[to_tokens:], b"t")
    except (ValueError, OverflowError, StageError):  # StageError: no line end, as in /dev/zero
        raise StageError(f"{path}: is not a file of token counts; see step.py count -h") from None
    if not data and not own:
        raise StageError(f"{path}: is empty; leave --counts out, or count the tokens again")
    order = np.argsort(tokens)
    frequencies = frequencies[order].astype(np.int64)
    return TokenCounts(sizes, holders, tokens[order], frequencies, sample, own)


def _columns(data: bytes, kind: bytes) -> np.ndarray:
    """Return both columns (uint64) of lines that begin with `kind`; ValueError for other lines."""
    lines = data.count(b"\n")
    numbers = data.replace(kind, b"").split()
    if data.count(kind) != lines or len(numbers) != 2 * lines:
        raise ValueError
    if not all(map(bytes.isdigit, numbers)):
        raise ValueError
    columns = np.array(numbers, dtype=np.uint64).reshape(-1, 2).T
    if not columns[1].all():  # a count of 0
        raise ValueError
    return columns


def parse_partial(line: bytes) -> tuple[bytes, bytes]:
    """Return (key, value) of a line of a partial count; WireError for any other line."""
    fields = _fields(line)
    if not fields:
        raise WireError(
            f"expected TOKEN COUNT, as step.py count map writes them, got {shown(line)}"
        )
    return fields


def parse_sum(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Return (sort key, key, value) of a sum line; WireError for any other line."""
    fields = _fields(line.partition(b":")[2])
    place = place_of_sum(*fields) if fields else b""
    if not fields or not line.startswith(place):
        raise WireError(
            f"expected ORDER:TOKEN COUNT, as step.py count sum writes them, got {shown(line)}"
        )
    return place, *fields


def place_of_sum(key: bytes, value: bytes) -> bytes:
    """Return the sort key of a sum, which puts frequent tokens before rare ones.

    >>> place_of_sum(b"t00000000000000000042", b"17")
    b'999999999982:t00000000000000000042'
    """
    return b"%012d:%b" % (MOST - int(value) if key.startswith(b"t") else 0, key)


def _fields(line: bytes) -> "tuple[bytes, bytes] | None":
    """Return (key, value) of a line, or None if it is malformed or its number exceeds 64 bits."""
    found = re.fullmatch(_FIELDS, line)
    if not found:
        return None
    key, value = filter(None, found.groups())
    try:
        if key.startswith(b"r"):
            decode_sets([value])
    except WireError:
        return None
    return (key, value) if key[1:] <= _LARGEST else None


def format_all(counts: TokenCounts) -> Iterator[bytes]:
    """Yield the lines of a counts file, as `read_counts` reads them; sampled sets are numbered."""
    for number, text in enumerate(encode_sets(counts.sample)):
        yield b"r%020d\t%b\n" % (number, text)
    yield from format_counts(b"s", counts.sizes.astype(np.uint64), counts.holders)
    yield from format_counts(b"t", counts.tokens, counts.frequencies)


def format_counts(kind: bytes, numbers: np.ndarray, count: np.ndarray) -> Iterator[bytes]:
    r"""Yield blocks of count lines for `numbers`, which are tokens (kind "t") or sizes (kind "s").

    Each count is at least 1.

    >>> list(format_counts(b"t", np.array([42, 2**64 - 1], np.uint64), np.array([7, 12])))
    [b't00000000000000000042\t7\nt18446744073709551615\t12\n']
    """
    for low in range(0, len(numbers), ROWS_AT_ONCE):
        some = numbers[low : low + ROWS_AT_ONCE].tolist()
        rows = zip(some, count[low : low + ROWS_AT_ONCE].tolist())
        yield (kind + b"%020d\t%d\n") * len(some) % tuple(chain.from_iterable(rows))
