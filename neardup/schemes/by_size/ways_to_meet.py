"""Ways to meet inside a size group: what the schemes that go by size are put together from.

    parts    equal in one of d+1 parts of the universe: exact, and d+1 keys
    tokens   one of the first tokens in common: exact, and (1-t)·n keys, see `prefix_filter`
    minima   MinHash banding: the recall that was asked for, and as many keys as bands
    all      everybody meets everybody: exact, and one key

A way gives (row, key) for some rows and the groups in which they are looked for.  The keys of
`tokens` and `all` are of band 0, those of part k of band 1 + 2·k, or one more in every second
group: the two groups of a set have different bands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from neardup.lines.keys import HASH_BITS, MAX_BANDS
from neardup.schemes.by_size.groups import Groups
from neardup.schemes.minhash import MinHash
from neardup.schemes.prefix_filter import first_tokens, prefix_sizes, token_keys
from neardup.sets.hashing import combine, mix, random_words
from neardup.sets.ragged import Ragged, chunks
from neardup.sets.runs import spans
from neardup.similarity.threshold import Threshold
from neardup.token_counts.counts import TokenCounts

MOST_BANDS = (MAX_BANDS - 1) // 2
SLOTS_AT_ONCE = 1 << 20
Entries = tuple[np.ndarray, np.ndarray]


class Way(Protocol):
    """One of the above."""

    name: str
    grouped: bool  # whether the keys of two groups differ

    def entries(self, sets: Ragged, group: np.ndarray, low: int, high: int) -> Entries:
        """(row, key), int64 and uint64, of the bands low … high-1; row i meets in group[i]."""
        ...

    def key_counts(self, sizes: np.ndarray, group: np.ndarray) -> np.ndarray:
        """How many keys sets of these sizes have in these groups, at most."""
        ...


@dataclass(frozen=True, eq=False)
class Parts:
    """PartEnum's first level (Arasu, Ganti, Kaushik, VLDB 2006; Deng, Li, Wen, Feng, VLDB 2015).

    A hash cuts the universe into d+1 parts.  The elements in which two sets differ, d at most, lie
    in d of them at most, so in one part the two sets are equal; both may have nothing there.  A
    key stands for what a set has in one part: the sum of its elements' hashes.
    """

    groups: Groups
    seed: int
    name = "parts"
    grouped = True

    def key_counts(self, sizes: np.ndarray, group: np.ndarray) -> np.ndarray:
        return self.groups.differ[group] + 1

    def entries(self, sets: Ragged, group: np.ndarray, low: int, high: int) -> Entries:
        odd = group % 2
        parts = self.groups.differ[group] + 1
        first = np.maximum((low - odd) // 2, 0)  # … last: those of the bands low … high-1
        last = np.maximum(np.minimum((high - odd) // 2, parts), first)
        found = [(np.empty(0, np.int64), np.empty(0, np.uint64))]
        for a, b in chunks(sets.sizes + last - first, SLOTS_AT_ONCE):
            some = sets.take(np.arange(a, b))
            row, key = self._slots(some, group[a:b], parts[a:b], first[a:b], last[a:b])
            found.append((row + a, key))
        rows, keys = zip(*found)
        return np.concatenate(rows), np.concatenate(keys)

    def _slots(
        self,
        sets: Ragged,
        group: np.ndarray,
        parts: np.ndarray,
        first: np.ndarray,
        last: np.ndarray,
    ) -> Entries:
        """The keys of parts first[i] … last[i]-1 of each row i."""
        row = np.repeat(np.arange(len(sets)), sets.sizes)
        hashes = mix(sets.values ^ random_words(self.seed, 1, stream=4))
        part = (hashes >> np.uint64(32)) * parts[row].astype(np.uint64) >> np.uint64(32)
        part = part.astype(np.int64)
        inside = np.flatnonzero((part >= first[row]) & (part < last[row]))
        row = row[inside]
        slots = last - first
        starts = np.cumsum(slots) - slots
        # A sum of 32-bit hashes is exact as a float; and equal sets add up in the same order.
        content = np.bincount(
            starts[row] + part[inside] - first[row],
            weights=(hashes[inside] & np.uint64(0xFFFFFFFF)).astype(np.float64),
            minlength=int(slots.sum()),
        ).astype(np.uint64)
        row, part = np.repeat(np.arange(len(sets)), slots), spans(first, slots)
        return row, in_group(part, group[row], mix(content))


@dataclass(frozen=True, eq=False)
class Tokens:
    """The prefix filter; its keys are the same in all groups."""

    resemblance: Threshold
    counts: TokenCounts | None
    seed: int
    name = "tokens"
    grouped = False

    def key_counts(self, sizes: np.ndarray, group: np.ndarray) -> np.ndarray:
        return prefix_sizes(sizes, self.resemblance)

    def entries(self, sets: Ragged, group: np.ndarray, low: int, high: int) -> Entries:
        if not low <= 0 < high:
            return np.empty(0, np.int64), np.empty(0, np.uint64)
        tokens = first_tokens(sets, self.resemblance, self.counts)
        row = np.repeat(np.arange(len(sets)), tokens.sizes)
        return row, token_keys(tokens.values, self.seed)


@dataclass(frozen=True, eq=False)
class Minima:
    """MinHash banding; its keys are the same in all groups."""

    minhash: MinHash
    name = "minhash"
    grouped = False

    def key_counts(self, sizes: np.ndarray, group: np.ndarray) -> np.ndarray:
        return self.minhash.key_counts(sizes)

    def entries(self, sets: Ragged, group: np.ndarray, low: int, high: int) -> Entries:
        keys = self.minhash.keys(sets, low, high)
        return np.repeat(np.arange(len(sets)), keys.sizes), keys.values


@dataclass(frozen=True, eq=False)
class All:
    """The reducer's windows and filters do all the work."""

    seed: int
    name = "all"
    grouped = True

    def key_counts(self, sizes: np.ndarray, group: np.ndarray) -> np.ndarray:
        return np.ones(len(sizes), dtype=np.int64)

    def entries(self, sets: Ragged, group: np.ndarray, low: int, high: int) -> Entries:
        row = np.arange(len(sets) if low <= 0 < high else 0)
        key = combine(group[np.newaxis, row].astype(np.uint64), seed=self.seed)
        return row, key >> np.uint64(64 - HASH_BITS)


def in_group(number: np.ndarray, group: np.ndarray, content: np.ndarray) -> np.ndarray:
    """Keys (uint64) with the band of part or band `number` (int64) in these groups (int64)."""
    words = np.stack((group.astype(np.uint64), number.astype(np.uint64), content))
    digest = combine(words, seed=0) >> np.uint64(64 - HASH_BITS)
    return digest | (1 + 2 * number + group % 2).astype(np.uint64) << np.uint64(HASH_BITS)
