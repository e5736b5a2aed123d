"""Keys as they travel by themselves: with a hash of their record, sorted, many in a block.

    block: entries, uint64 (n, 2) of key and record hash, ascending by key

A record is known by all its keys: two with the same keys are together at each of them.  So its
hash is theirs, and 48 bits do: of two groups of records that differ, it tells so but for once in
2^48.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

import numpy as np

from neardup.lines.keys import KEY_BITS
from neardup.rounds.digests import digests_of, partition_of
from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged
from neardup.sets.runs import first_of_run, starts_of_runs

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
