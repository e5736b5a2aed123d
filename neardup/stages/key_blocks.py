"""Blocks of keys and of lines, so that a shuffle moves thousands of items instead of millions.

A block of keys has rows as in `candidate_keys`, uint64 (n, 2), ascending by key.  A block of lines
is a mebibyte of lines for one partition.

Engines whose shuffle takes only text carry each block as a line: parse beside format.

    PARTITION TAB BLOCK

In a block, bytes that would end the line are escaped.  PARTITION is p, its number, how many there
are, and letters that make Hadoop's default partitioner send it to the reducer of this number.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, reduce
from zlib import crc32

import numpy as np

from neardup.lines.keyed_lines import KEY_BITS
from neardup.runtime.program import StageError, shown
from neardup.stages.candidate_keys import HASH_BITS, at_most_twice, digests_of, partition_of
from neardup.stages.external_group import NO_ROWS, by_key

LETTERS = 3
BLOCK_BYTES = 1 << 20  # of lines
HELD_BYTES = 32 << 20  # of lines, of all partitions
BLOCK_ROWS = 1 << 16
HELD_ROWS = 1 << 21  # of all partitions, at some 60 bytes each
_ESCAPES = ((b"\x1b", b"\x1b0"), (b"\n", b"\x1b1"), (b"\r", b"\x1b2"))
_NAME = re.compile(rb"p([0-9]+)/([0-9]+)[a-z]{3}")
# The bytes of a row that are not always 0.
_COLUMNS = np.r_[8 - -(-KEY_BITS // 8) : 8, 16 - HASH_BITS // 8 : 16]
_CHECKSUM = 4


def format_blocks(blocks: Iterable[tuple[int, bytes]], partitions: int) -> Iterator[bytes]:
    r"""Yield a line for each (partition, block).

    >>> list(format_blocks([(0, b"x\ny\n")], 1))
    [b'p0/1aaa\tx\x1b1y\x1b1\n']
    """
    for part, block in blocks:
        for byte, escape in _ESCAPES:
            block = block.replace(byte, escape)
        yield b"%b\t%b\n" % (_name(part, partitions), block)


def parse_blocks(lines: Iterable[bytes]) -> Iterator[tuple[int, int, bytes]]:
    r"""Yield (partition, number of partitions, block) of each line; StageError for other lines.

    >>> list(parse_blocks([b"p0/1aaa\tx\x1b1y\x1b1\n"]))
    [(0, 1, b'x\ny\n')]
    """
    for line in lines:
        name, _, block = line.rstrip(b"\n").partition(b"\t")
        found = _NAME.fullmatch(name)
        if not found:
            raise StageError(f"expected a block, as mapper.py --blocks writes it: {shown(line)}")
        for byte, escape in reversed(_ESCAPES):
            block = block.replace(escape, byte)
        yield int(found[1]), int(found[2]), block


def is_block(start: bytes) -> bool:
    """Return True if a line is a block; keyed lines begin with a hexadecimal digit."""
    return start[:1] == b"p"


@cache
def _name(part: int, partitions: int) -> bytes:
    """Return a name that Hadoop sends to reducer `part`."""
    start = b"p%d/%d" % (part, partitions)
    letters = np.indices((26,) * LETTERS).reshape(LETTERS, -1).T + ord("a")
    hashes = java_hash(start) * 31**LETTERS + letters @ 31 ** np.arange(LETTERS)[::-1]
    fit = np.flatnonzero((hashes & 0x7FFFFFFF) % partitions == part)
    return start + bytes(letters[fit[0] if len(fit) else 0].tolist())


def java_hash(text: bytes) -> int:
    """Return the hash of an ASCII key by which Hadoop partitions.

    >>> java_hash(b"p0/1aaa") % 4
    2
    """
    return reduce(lambda hash_, byte: (31 * hash_ + byte) & 0xFFFFFFFF, text, 1)


def gathered(pieces: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    r"""Yield (partition, lines) in larger pieces.

    >>> list(gathered([(0, b"a\n"), (1, b"b\n"), (0, b"c\n")]))
    [(0, b'a\nc\n'), (1, b'b\n')]
    """
    held: dict[int, list[bytes]] = defaultdict(list)
    sizes: dict[int, int] = defaultdict(int)
    total = 0
    for part, lines in pieces:
        held[part].append(lines)
        sizes[part] += len(lines)
        total += len(lines)
        full = list(held) if total > HELD_BYTES else [part] * (sizes[part] > BLOCK_BYTES)
        for some in full:
            total -= sizes.pop(some)
            yield some, b"".join(held.pop(some))
    for part, rest in held.items():
        yield part, b"".join(rest)


def pack(rows: np.ndarray, options: bytes = b"") -> bytes:
    r"""Return rows as bytes: all first bytes of keys, then all second bytes …, which compress well.

    A checksum of them, and of the options that keys depend on, follows.

    >>> pack(np.array([[1, 7], [258, 7]], np.uint64))[10:-4]
    b'\x00\x01\x01\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x07'
    """
    columns = rows.astype(">u8").view(np.uint8)
    data = columns[:, _COLUMNS].T.tobytes()
    return data + crc32(data, crc32(options)).to_bytes(_CHECKSUM, "big")


def unpack(block: bytes, options: bytes = b"") -> np.ndarray:
    """Return the rows of a block; ValueError if it is damaged or of other options."""
    data, checksum = block[:-_CHECKSUM], block[-_CHECKSUM:]
    if crc32(data, crc32(options)) != int.from_bytes(checksum, "big"):
        raise ValueError("damaged")
    columns = np.frombuffer(data, np.uint8).reshape(len(_COLUMNS), -1)
    words = np.zeros((columns.shape[1], 16), np.uint8)
    words[:, _COLUMNS] = columns.T
    return words.view(">u8").astype(np.uint64)


def blocks_of_keys(
    pieces: Iterable[np.ndarray], partitions: int, options: bytes = b""
) -> Iterator[tuple[int, bytes]]:
    """Yield (partition, block) of rows; the rows of a record stay in one piece.

    There is at least an empty block for each partition, so that none gets lost unnoticed.
    """
    held, count = [NO_ROWS], 0
    for rows in pieces:
        held.append(rows)
        count += len(rows)
        if count > HELD_ROWS:
            yield from _in_blocks(np.concatenate(held), partitions, options)
            held, count = [NO_ROWS], 0
    yield from _in_blocks(np.concatenate(held), partitions, options)


def _in_blocks(rows: np.ndarray, partitions: int, options: bytes) -> Iterator[tuple[int, bytes]]:
    rows = at_most_twice(by_key(rows))
    part = partition_of(digests_of(rows[:, 0]), partitions)
    part = part.astype(np.min_scalar_type(partitions))  # short numbers are sorted faster
    order = np.argsort(part, kind="stable")
    rows, part = rows[order], part[order]
    bounds = np.searchsorted(part, np.arange(partitions + 1)).tolist()
    for number, (low, high) in enumerate(zip(bounds, bounds[1:])):
        for start in range(low, max(high, low + 1), BLOCK_ROWS):
            yield number, pack(rows[start : min(high, start + BLOCK_ROWS)], options)
