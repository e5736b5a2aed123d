"""The keys that two records share, found in bounded memory.

    key     records
    000:a   1  7         lines
    001:b   9            no lines: no other record has this key
    002:c   1  7         no lines: the same group of records as at 000:a
    003:d   1  7  9      lines

Near-copies share a dozen keys, and one is enough.  No pair is lost by that: it is printed at the
smallest key it shares, and a key is left out only if a smaller one has the same records.  A group
is known by the sum of its records' hashes; a key of very many records is a group of its own.  The
keys of other partitions are not known here, so with many partitions fewer keys are left out.

External grouping.  `ExternalGroup` brings rows of two words together by the first one.  Rows that
are too many to be sorted at once go to files by a few bits of a hash, and come back a file at a
time: of n rows, n/64 are in memory.

Postings are (key, number) entries on disk.  `in_order` sorts the entries of a partition.  What is
too large to be sorted at once is cut into ranges of keys, as even as a look at 65,536 parts of the
range allows.

Hot keys.  A partition too large for memory is cut by slots, which are some bits of a key's hash:

    entries, counted by slot ─┬─ hot keys ─ written as they come
                              └─ part 0, part 1 …, each to be sorted in memory

That cuts everything small, but for the entries of one key that a million records share.  These need
no sorting: pruning only asks how many records such a hot key has and what their sum is, which one
look at each of its entries answers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Callable, NamedTuple

import numpy as np

from neardup.lines.keyed_lines import KEY_BITS
from neardup.reading.blocks import blocks_of
from neardup.runtime.counters import Counters
from neardup.runtime.errors import StageError
from neardup.runtime.program import system_sort
from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged, chunks, starts_of_runs
from neardup.stages.key_blocks import SHARED, digests_of, partition_of, unpack

SORT_MEMORY = "128M"


def sorted_lines(blocks: Iterable[bytes], counters: Counters) -> Iterator[bytes]:
    """Blocks of whole lines → blocks of the same lines, in order."""
    with tempfile.TemporaryFile() as result:
        flags = ["-S", SORT_MEMORY]
        with system_sort(None, result, flags, counters.alive) as sink:
            assert sink
            for block in blocks:
                counters.alive()
                sink.write(block)
        result.seek(0)
        yield from blocks_of(result)


ROWS_AT_ONCE = 1 << 21  # at some 60 bytes each
FILE_BITS = 6


class ExternalGroup:
    """A context; what it has written is gone with it."""

    def __init__(self) -> None:
        self.held: list[np.ndarray] = []
        self.count = 0
        self.files: list[IO[bytes]] = []
        self.stack = ExitStack()

    def __enter__(self) -> ExternalGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def add(self, rows: np.ndarray) -> None:
        """rows: uint64 (n, 2)"""
        self.held.append(rows)
        self.count += len(rows)
        if self.count > ROWS_AT_ONCE:
            self._to_files()

    def together(self) -> Iterator[np.ndarray]:
        """All rows, some at a time: those with equal first words at the same time, in order of
        these."""
        if not self.files:
            yield _by_first(self._taken())
            return
        self._to_files()
        for file in self.files:
            file.seek(0)
            yield _by_first(np.frombuffer(file.read(), np.uint64).reshape(-1, 2))

    def _taken(self) -> np.ndarray:
        rows = np.concatenate([np.empty((0, 2), np.uint64), *self.held])
        self.held, self.count = [], 0
        return rows

    def _to_files(self) -> None:
        self.files = self.files or [
            self.stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            for _ in range(1 << FILE_BITS)
        ]
        rows = self._taken()
        number = (mix(rows[:, 0]) >> np.uint64(64 - FILE_BITS)).astype(np.uint8)
        order = np.argsort(number, kind="stable")
        bounds = np.searchsorted(number[order], np.arange(len(self.files) + 1)).tolist()
        for file, low, high in zip(self.files, bounds, bounds[1:]):
            file.write(rows[order[low:high]].data)


def _by_first(rows: np.ndarray) -> np.ndarray:
    return rows[np.argsort(rows[:, 0])]


def meeting_keys(
    blocks: Iterable[bytes], partition: int, partitions: int, options: bytes = b""
) -> Iterator[np.ndarray]:
    """uint64, each key once: where records that are in these blocks meet.

    StageError where a block is none of this partition, or damaged, or of other options.
    """
    with ExternalGroup() as entries, ExternalGroup() as groups:
        for block in blocks:
            entries.add(_checked(block, partition, partitions, options))
        for some in entries.together():
            groups.add(groups_of(some))
        for some in groups.together():
            starts = starts_of_runs(some[:, 0])
            yield np.minimum.reduceat(some[:, 1], starts) if len(starts) else some[:, 1]


def groups_of(entries: np.ndarray) -> np.ndarray:
    """Of entries (uint64 (n, 2), by key) the keys of several records, as (group, key)."""
    starts = starts_of_runs(entries[:, 0])
    if not len(starts):
        return entries
    keys, hashes = entries[starts, 0], entries[:, 1]
    several = np.diff(starts, append=len(entries)) > 1
    sums = np.add.reduceat(mix(hashes + np.uint64(1)), starts)
    of_its_own = np.logical_or.reduceat(hashes == SHARED, starts)
    sums[of_its_own] = mix(keys[of_its_own] + np.uint64(1))
    return np.column_stack((sums[several], keys[several]))


def _checked(block: bytes, partition: int, partitions: int, options: bytes) -> np.ndarray:
    try:
        entries = unpack(block, options)
        if (partition_of(digests_of(entries[:, 0]), partitions) == partition).all():
            return entries
    except ValueError:
        pass
    raise StageError(
        "expected blocks of keys, as step.py share map writes them: this one is damaged, or no "
        "such, or map had other options: give reduce the same"
    )


PARTITION_BYTES = 32 << 20  # of the input; its entries usually take a third of that
MOST_PARTITIONS = 256
ENTRIES_AT_ONCE = 1 << 20  # sorted in memory, at some 70 bytes each
ENTRY_BYTES = 16
READ_BYTES = ENTRY_BYTES << 18


def partitions_for(input_bytes: int) -> int:
    """How many files of entries each mapper writes; a power of two.

    >>> partitions_for(0), partitions_for(100 << 20), partitions_for(1 << 50)
    (1, 4, 256)
    """
    return min(1 << (input_bytes // PARTITION_BYTES).bit_length(), MOST_PARTITIONS)


class EntryWriter:
    """The entries of one mapper's records, as uint64 (key, record), a file for each partition."""

    def __init__(self, files: list[IO[bytes]]):
        self.files = files

    def add(self, keys: Ragged, records: np.ndarray) -> None:
        """Row i of `keys` belongs to number records[i] (uint64, ascending from call to call)."""
        entries = np.stack((keys.values, np.repeat(records, keys.sizes)), axis=1)
        parts = (keys.values & np.uint64(len(self.files) - 1)).astype(np.uint8)
        order = np.argsort(parts, kind="stable")
        bounds = np.searchsorted(parts[order], np.arange(len(self.files) + 1)).tolist()
        entries = entries[order]  # at once: of many files each gets few
        for file, low, high in zip(self.files, bounds, bounds[1:]):
            file.write(entries[low:high].data)


def pieces_of(source: Path) -> Iterator[np.ndarray]:
    """uint64 (n, 2): the entries of a file, some at a time."""
    with open(source, "rb") as file:
        while data := file.read(READ_BYTES):
            yield np.frombuffer(data, dtype=np.uint64).reshape(-1, 2)


def all_of(source: Path) -> np.ndarray:
    """uint64 (n, 2): the entries of a file."""
    return np.frombuffer(source.read_bytes(), dtype=np.uint64).reshape(-1, 2)


def chosen_of(source: Path, choice: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """uint64 (n, 2): those entries of a file whose keys are chosen (keys → bool)."""
    mine = [entries[choice(entries[:, 0])] for entries in pieces_of(source)]
    return np.concatenate([np.empty((0, 2), np.uint64), *mine])


DIGIT_BITS = 16


def in_order(sources: list[Path], count: int) -> Iterator[np.ndarray]:
    """uint64 (n, 2): all `count` entries of these files, some at a time; of a key in any order."""
    if count <= ENTRIES_AT_ONCE:
        yield _sorted([all_of(source) for source in sources])
    else:
        yield from _cut(sources, 0, KEY_BITS)


def _cut(sources: list[Path], low: int, bits: int) -> Iterator[np.ndarray]:
    """Those with keys from `low` on, of which this many bits differ."""
    shift = max(0, bits - DIGIT_BITS)
    sizes = np.zeros(1 << bits - shift, dtype=np.int64)
    for source in sources:
        for piece in pieces_of(source):
            digits = piece[:, 0] - np.uint64(low) >> np.uint64(shift)
            mine = digits[(piece[:, 0] >= low) & (digits < len(sizes))]
            sizes += np.bincount(mine.astype(np.int64), minlength=len(sizes))
    for first, last in chunks(sizes, ENTRIES_AT_ONCE):
        start, stop = (np.uint64(low + (digit << shift)) for digit in (first, last))

        def mine_of(
            keys: np.ndarray, start: np.uint64 = start, stop: np.uint64 = stop
        ) -> np.ndarray:
            return (keys >= start) & (keys < stop)

        if sizes[first:last].sum() <= ENTRIES_AT_ONCE:
            yield _sorted([chosen_of(source, mine_of) for source in sources])
        elif shift:
            yield from _cut(sources, int(start), shift)
        else:  # of one key
            for source in sources:
                yield from (piece[mine_of(piece[:, 0])] for piece in pieces_of(source))


def _sorted(some: list[np.ndarray]) -> np.ndarray:
    found = np.concatenate(some)
    return found[np.argsort(found[:, 0])]


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
