"""Blocks of keys and of lines, of which a shuffle moves thousands instead of millions.

What a key is known by where only a filter asks: 40 bits of it, mixed.

A wrong yes costs a line and no pair, so these do for its 52.

Blocks as lines of text, for engines whose shuffle takes nothing else: parse beside format.

    PARTITION TAB BLOCK

A block may hold anything; what would end its line is escaped.  PARTITION is the number and, behind
it, how many there are, and letters that make Hadoop's default partitioner bring it to the reducer
of this number, where there are so many reducers.

Lines on their way to a partition, gathered to blocks of a mebibyte.

Keys as they travel by themselves: with a hash of their record, sorted, many in a block.

    block: entries, uint64 (n, 2) of key and record hash, ascending by key

A record is known by all its keys: two with the same keys are together at each of them.  So its
hash is theirs, and 48 bits do: of two groups of records that differ, it tells so but for once in
2^48.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, reduce
from zlib import crc32

import numpy as np

from neardup.lines.keyed_lines import KEY_BITS
from neardup.runtime.errors import StageError, shown
from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged, first_of_run, starts_of_runs

DIGEST_BITS = 40


def digests_of(keys: np.ndarray) -> np.ndarray:
    """uint64 (n,), below 2^40, of keys (uint64)."""
    return mix(keys) >> np.uint64(64 - DIGEST_BITS)


def partition_of(digests: np.ndarray, partitions: int) -> np.ndarray:
    """Where each key is compared with its equals: uint64 below `partitions`."""
    return digests % np.uint64(partitions)


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


BLOCK_BYTES = 1 << 20
HELD_BYTES = 32 << 20  # of all partitions


def gathered(pieces: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    r"""(partition, lines) as fewer and larger ones.

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
        ready = list(held) if total > HELD_BYTES else [part] * (sizes[part] > BLOCK_BYTES)
        for some in ready:
            total -= sizes.pop(some)
            yield some, b"".join(held.pop(some))
    for part, rest in held.items():
        yield part, b"".join(rest)


HASH_BITS = 48
ENTRIES_AT_ONCE = 1 << 21  # in memory, at some 60 bytes each
BLOCK_ENTRIES = 1 << 16
MANY = 256  # entries of one key, of those at once
SHARED = np.uint64((1 << HASH_BITS) - 1)  # instead of a record's hash
# The bytes of an entry that are not always 0.
_COLUMNS = np.r_[8 - -(-KEY_BITS // 8) : 8, 16 - HASH_BITS // 8 : 16]
_CHECKSUM = 4


def entries_of(keys: Ragged) -> np.ndarray:
    """The entries of some records, a row of keys each.

    >>> entries = entries_of(Ragged.from_rows([[1, 2], [], [3]]))
    >>> entries[:, 0].tolist(), len(set(entries[:, 1].tolist()))
    ([1, 2, 3], 2)
    """
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mix(keys.values + np.uint64(1)))))
    hashes = mix(sums[keys.offsets[1:]] - sums[keys.offsets[:-1]]) >> np.uint64(64 - HASH_BITS)
    return np.column_stack((keys.values, np.repeat(hashes, keys.sizes)))


def pack(entries: np.ndarray, options: bytes = b"") -> bytes:
    """Entries as a block: all first bytes of keys, all second bytes …, which pack well; and a
    checksum, of them and of the options that keys depend on.

    >>> pack(np.array([[1, 7], [258, 7]], np.uint64))[10:-4]
    b'\\x00\\x01\\x01\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07\\x07'
    """
    columns = entries.astype(">u8").view(np.uint8)
    data = columns[:, _COLUMNS].T.tobytes()
    return data + crc32(data, crc32(options)).to_bytes(_CHECKSUM, "big")


def unpack(block: bytes, options: bytes = b"") -> np.ndarray:
    """The inverse of `pack`; ValueError where it is no block of entries, or of other options."""
    data, checksum = block[:-_CHECKSUM], block[-_CHECKSUM:]
    if crc32(data, crc32(options)) != int.from_bytes(checksum, "big"):
        raise ValueError("damaged")
    columns = np.frombuffer(data, np.uint8).reshape(len(_COLUMNS), -1)
    words = np.zeros((columns.shape[1], 16), np.uint8)
    words[:, _COLUMNS] = columns.T
    return words.view(">u8").astype(np.uint64)


class KeyBlocks:
    """Gathers the entries of a mapper, to blocks of each partition."""

    def __init__(self, partitions: int, options: bytes = b""):
        self.partitions = partitions
        self.options = options
        self.held: list[np.ndarray] = []
        self.count = 0

    def add(self, entries: np.ndarray) -> Iterator[tuple[int, bytes]]:
        """(partition, block) of what has become too much to hold; all entries of a record are
        added at once."""
        self.held.append(entries)
        self.count += len(entries)
        if self.count > ENTRIES_AT_ONCE:
            yield from self.rest()

    def rest(self) -> Iterator[tuple[int, bytes]]:
        """All, with a block for each partition, if only an empty one: none gets lost unnoticed."""
        entries = np.concatenate([np.empty((0, 2), np.uint64), *self.held])
        self.held, self.count = [], 0
        entries = at_most_twice(entries[np.argsort(entries[:, 0])])
        part = partition_of(digests_of(entries[:, 0]), self.partitions)
        part = part.astype(np.min_scalar_type(self.partitions))  # short numbers are sorted faster
        order = np.argsort(part, kind="stable")
        entries, part = entries[order], part[order]
        bounds = np.searchsorted(part, np.arange(self.partitions + 1)).tolist()
        for number, (low, high) in enumerate(zip(bounds, bounds[1:])):
            for start in range(low, max(high, low + 1), BLOCK_ENTRIES):
                yield number, pack(entries[start : min(high, start + BLOCK_ENTRIES)], self.options)


def at_most_twice(entries: np.ndarray) -> np.ndarray:
    """Of entries by key, each once or twice: a second one tells all that a thousand would.

    Subtle: groups of records stay those that they were, since records with one hash are together
    at all their keys, and so go together.  Where more than MANY are left of a key, two that are
    `SHARED` say that it has lines, whatever its group.

    >>> at_most_twice(np.array([[3, 1], [5, 2], [5, 4], [5, 2], [5, 2]], np.uint64)).tolist()
    [[3, 1], [5, 2], [5, 2], [5, 4]]
    """
    members = _members(entries)
    crowded = np.flatnonzero(members > 2)
    if not len(crowded):
        return entries
    some = entries[crowded]
    entries[crowded] = some[np.lexsort((some[:, 1], some[:, 0]))]
    kept = first_of_run(entries[:, 0]) | first_of_run(entries[:, 1])
    kept[1:] |= kept[:-1].copy()
    entries = entries[kept]
    many = _members(entries) > MANY
    if many.any():
        keys = np.repeat(np.unique(entries[many, 0]), 2)
        shared = np.column_stack((keys, np.full(len(keys), SHARED)))
        entries = np.concatenate((entries[~many], shared))
        entries = entries[np.argsort(entries[:, 0])]
    return entries


def _members(entries: np.ndarray) -> np.ndarray:
    """Of each entry, by key, how many its key has."""
    starts = starts_of_runs(entries[:, 0])
    members = np.diff(starts, append=len(entries))
    return np.repeat(members, members)
