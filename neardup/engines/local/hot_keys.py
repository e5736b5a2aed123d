"""A partition of entries too large for memory: in parts, and its hot keys by themselves.

    entries, counted by slot ─┬─ hot keys ─ written as they come
                              └─ part 0, part 1 …, each to be sorted in memory

A slot is some bits of a key's hash, and parts are ranges of slots.  That cuts everything small,
but for the entries of one key that a million records share.  These need no sorting: all that the
sieve wants of such a *hot key* is how many records it has and their sum, which a look at each of
its entries tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neardup.engines.local.entries import chosen_of, pieces_of
from neardup.sets.hashing import mix
from neardup.sets.runs import starts_of_runs

SLOT_BITS = 16
CROWDED = 8  # a slot with an eighth of what memory may hold has its keys looked at


class HotKeys(NamedTuple):
    """keys: uint64 (n,), ascending; members: int64 (n,), their entries; groups: uint64 (n,)."""

    keys: np.ndarray
    members: np.ndarray
    groups: np.ndarray

    @classmethod
    def of(cls, sources: list[Path], crowded: np.ndarray, members: int) -> HotKeys:
        """The keys in crowded slots (bool (slots,)) that have more than so many members."""
        found = cls(*(np.empty(0, kind) for kind in (np.uint64, np.int64, np.uint64)))
        for entries in _pieces(sources) if crowded.any() else ():
            mine = entries[crowded[slots(entries[:, 0])]]
            one_each = np.ones(len(mine), np.int64)
            found = found._and(cls(mine[:, 0], one_each, group_hashes(mine[:, 1])))
        return found._where(found.members > members)

    def hold(self, keys: np.ndarray) -> np.ndarray:
        """Which of these keys (uint64) are hot."""
        return self._places(keys)[1]

    def write(self, source: Path, target: Path) -> None:
        """All entries of hot keys, as (key, record, group)."""
        with open(target, "wb") as file:
            for entries in pieces_of(source):
                places, hot = self._places(entries[:, 0])
                rows = np.column_stack((entries[hot], self.groups[places[hot]]))
                file.write(rows.tobytes())

    def _places(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where each key is in `keys`, and whether it is."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return places, self.keys[places] == keys

    def _and(self, more: HotKeys) -> HotKeys:
        """Both, each key once."""
        keys = np.concatenate((self.keys, more.keys))
        order = np.argsort(keys)
        starts = starts_of_runs(keys[order])
        if not len(starts):
            return self
        members, groups = (
            np.add.reduceat(np.concatenate(both)[order], starts)
            for both in ((self.members, more.members), (self.groups, more.groups))
        )
        return HotKeys(keys[order[starts]], members, groups)

    def _where(self, chosen: np.ndarray) -> HotKeys:
        return HotKeys(self.keys[chosen], self.members[chosen], self.groups[chosen])


class KeyParts(NamedTuple):
    """Which entries are in memory together; those of hot keys never are."""

    parts: int
    turns: np.ndarray  # uint16 (slots,): the part of each
    hot: HotKeys

    @classmethod
    def of(cls, sources: list[Path], at_once: int, most: int, members: int) -> KeyParts:
        """KeyParts of about `at_once` entries, or more where that makes more than `most` parts."""
        sizes = np.zeros(1 << SLOT_BITS, dtype=np.int64)
        for entries in _pieces(sources):
            sizes += np.bincount(slots(entries[:, 0]), minlength=len(sizes))
        hot = HotKeys.of(sources, sizes > at_once // CROWDED, members)
        np.subtract.at(sizes, slots(hot.keys), hot.members)
        count = int(min(1 + sizes.sum() // at_once, most))
        turns = (np.cumsum(sizes) - sizes) * count // max(1, sizes.sum())
        return cls(count, np.minimum(turns, count - 1).astype(np.uint16), hot)

    def entries(self, source: Path, part: int) -> np.ndarray:
        """uint64 (n, 2): what a file has of a part."""
        return chosen_of(
            source, lambda keys: (self.turns[slots(keys)] == part) & ~self.hot.hold(keys)
        )


def group_hashes(records: np.ndarray) -> np.ndarray:
    """uint64: what each of these records (uint64) adds to the sum by which a group is known."""
    return mix(records + np.uint64(1))


def slots(keys: np.ndarray) -> np.ndarray:
    """uint64 (n,): the slot of each key."""
    return mix(keys) >> np.uint64(64 - SLOT_BITS)


def _pieces(sources: Iterable[Path]) -> Iterator[np.ndarray]:
    for source in sources:
        yield from pieces_of(source)
