"""Blocks as lines of text, for engines whose shuffle takes nothing else: parse beside format.

    PARTITION TAB BLOCK

A block may hold anything; what would end its line is escaped.  PARTITION is the number and, behind
it, how many there are, and letters that make Hadoop's default partitioner bring it to the reducer
of this number, where there are so many reducers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, reduce

import numpy as np

from neardup.process.errors import StageError, shown

_ESCAPES = ((b"\x1b", b"\x1b0"), (b"\n", b"\x1b1"), (b"\r", b"\x1b2"))
_NAME = re.compile(rb"p([0-9]+)/([0-9]+)[a-z]{3}")
LETTERS = 3


def format_blocks(blocks: Iterable[tuple[int, bytes]], partitions: int) -> Iterator[bytes]:
    r"""A line for each (partition, block).

    >>> list(format_blocks([(0, b"x\ny\n")], 1))
    [b'p0/1aaa\tx\x1b1y\x1b1\n']
    """
    names: dict[int, bytes] = {}
    for part, block in blocks:
        if part not in names:
            names[part] = _name(part, partitions)
        for byte, escape in _ESCAPES:
            block = block.replace(byte, escape)
        yield b"%b\t%b\n" % (names[part], block)


def parse_blocks(lines: Iterable[bytes]) -> Iterator[tuple[int, int, bytes]]:
    r"""(partition, of so many, block) of each line; StageError where it is none.

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
    """Whether what starts so is a block; a keyed line starts with a hexadecimal digit."""
    return start[:1] == b"p"


def _name(part: int, partitions: int) -> bytes:
    """That which Hadoop brings to reducer `part` of so many."""
    start = b"p%d/%d" % (part, partitions)
    hashes = _hash(start) * 31**LETTERS + _hashes_of_letters()
    fit = np.flatnonzero(_reducer(hashes, partitions) == part)
    return start + _letters(int(fit[0]) if len(fit) else 0)


def _letters(number: int) -> bytes:
    """
    >>> _letters(0), _letters(27)
    (b'aaa', b'abb')
    """
    return bytes(97 + number // 26**place % 26 for place in reversed(range(LETTERS)))


@cache
def _hashes_of_letters() -> np.ndarray:
    """What each three letters add to a hash: int64 (26^3,)."""
    one = np.arange(97, 97 + 26)
    return np.add.outer(np.add.outer(one * 31**2, one * 31), one).ravel()


def _hash(text: bytes) -> int:
    """That of a key of ASCII, as Java has it."""
    return reduce(lambda hash_, byte: (31 * hash_ + byte) & 0xFFFFFFFF, text, 1)


def _reducer(hashes: np.ndarray, reducers: int) -> np.ndarray:
    """Where Hadoop's HashPartitioner sends keys."""
    return (hashes & 0x7FFFFFFF) % reducers


def reducer_of(key: bytes, reducers: int) -> int:
    """Where Hadoop's HashPartitioner sends a key of ASCII.

    >>> reducer_of(b"p0/1aaa", 4)
    2
    """
    return int(_reducer(np.array([_hash(key)]), reducers)[0])
