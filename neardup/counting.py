r"""Token counts by map and reduce: three stages, whose lines `neardup.counts` shows.

    records → partial counts ~ shuffle ~ sums ~ shuffle ~ counts
              map_counts                 sum_counts       order_counts

A mapper counts some million tokens at a time, so that a token which many records have travels once
for all of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np

from neardup import counts, sample
from neardup.counters import Counters
from neardup.errors import StageError
from neardup.options import Settings
from neardup.ragged import Ragged
from neardup.sample import Sample
from neardup.stages import SHUFFLED, parsed
from neardup.streaming import Block
from neardup.wire import WireError, encode_sets, encoded_size, shown

Column = tuple[np.ndarray, np.ndarray]  # values (uint64), ascending, and how often each is there

TOKEN_WIDTH = 20  # digits of 2^64 - 1
ROWS_AT_ONCE = 1 << 16
# Hadoop may add a tab behind a line.
_PARTIAL = re.compile(rb"(?:([st][0-9]{20})\t([0-9]{1,12})|(r[0-9]{20})\t([0-o]+))\t?\n?")
_SUMMED = re.compile(rb"([0-9]{12}:([rst][0-9]{20}))\t([0-o]+)\t?\n?")


def map_counts(blocks: Iterable[Block], settings: Settings, counters: Counters) -> Iterator[bytes]:
    """Record lines → how many of some records have each size, and each token; and a sample."""
    counters.add(SHUFFLED, 0)
    drawn = Sample()
    batches = drawn.watch(batch.sets for batch in parsed(blocks, settings, counters))
    for sizes, tokens in partial_counts(batches):
        for kind, column in ((b"s", sizes), (b"t", tokens)):
            for lines in _format(kind, *column):
                counters.add(SHUFFLED, len(lines))
                yield lines
    for hash_, text in zip(drawn.hashes.tolist(), encode_sets(drawn.sets)):
        counters.add(SHUFFLED, TOKEN_WIDTH + 3 + len(text))
        yield b"r%020d\t%b\n" % (hash_, text)


def sum_counts(lines: Iterable[bytes]) -> Iterator[bytes]:
    r"""Equal tokens and sizes together → their sums, without the tokens that one record has.

    >>> lines = [b"s%020d\t1\n" % 3, b"s%020d\t1\n" % 3, b"t%020d\t2\n" % 7, b"t%020d\t1\n" % 9]
    >>> list(sum_counts(lines))
    [b'000000000000:s00000000000000000003\t2\n', b'999999999997:t00000000000000000007\t2\n']
    """
    before = b""
    for key, group in groupby(map(_parse_partial, lines), key=lambda fields: fields[0]):
        if key < before:
            raise StageError(f"not in order: {shown(key)}; sort the lines first")
        before = key
        if key.startswith(b"r"):
            yield b"%012d:%b\t%b\n" % (0, *next(group))
            continue
        count = sum(int(n) for _, n in group)
        if key.startswith(b"s"):
            yield b"%012d:%b\t%d\n" % (0, key, count)
        elif count > 1:
            yield b"%012d:%b\t%d\n" % (counts.MOST - count, key, count)


def order_counts(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Sums in order → all sizes, and of sample and tokens the first; all lines are read."""
    taken, elements, before = {b"r": 0, b"s": 0, b"t": 0}, 0, b""
    most = {b"r": sample.MOST_SETS, b"s": sys.maxsize, b"t": counts.MOST_TOKENS}
    for line in lines:
        found = _SUMMED.fullmatch(line)
        if not found:
            raise WireError(f"expected ORDER:TOKEN COUNT, got {shown(line)}")
        place, key, value = found.groups()
        if place < before:
            raise StageError(f"not in order: {shown(line)}; sort the lines first")
        before = place
        kind = key[:1]
        taken[kind] += 1
        elements += encoded_size(value) if kind == b"r" else 0
        if taken[kind] <= most[kind] and (kind != b"r" or elements <= sample.MOST_TOKENS):
            yield b"%b\t%b\n" % (key, value)


def partial_counts(batches: Iterable[Ragged]) -> Iterator[tuple[Column, Column]]:
    """(sizes, tokens) of a few million tokens at a time, and in how many records each is."""
    held: list[Ragged] = []
    size = 0
    for sets in batches:
        held.append(sets)
        size += len(sets.values)
        if size >= counts.TOKENS_AT_ONCE:
            yield _counted(held)
            held, size = [], 0
    if held:
        yield _counted(held)


def _counted(held: list[Ragged]) -> tuple[Column, Column]:
    sizes = np.concatenate([sets.sizes for sets in held]).astype(np.uint64)
    return counts.distinct(sizes), counts.distinct(np.concatenate([sets.values for sets in held]))


def _parse_partial(line: bytes) -> tuple[bytes, bytes]:
    found = _PARTIAL.fullmatch(line)
    if not found:
        raise WireError(f"expected TOKEN COUNT, got {shown(line)}")
    key, value = filter(None, found.groups())
    return key, value


def _format(kind: bytes, numbers: np.ndarray, count: np.ndarray) -> Iterator[bytes]:
    """The lines of a column, some at a time."""
    for low in range(0, len(numbers), ROWS_AT_ONCE):
        yield _lines(kind, numbers[low : low + ROWS_AT_ONCE], count[low : low + ROWS_AT_ONCE])


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
