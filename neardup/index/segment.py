"""A segment of an index: the records of one build, looked up by their keys.

Entries, a key and the number of a record that has it, are in order of keys in each partition of the
keys, which their lowest bits tell.  A *fence* is every 8192nd key of a partition: between two of
them lies what one look at the disk brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neardup.index.checked_file import BLOCK, SUM, CheckedFile, damaged, stretches
from neardup.lines.set_text import decode_sets
from neardup.reading.places import first_place
from neardup.sets.batch import Batch
from neardup.sets.ragged import chunks
from neardup.sets.runs import spans

KEY, HOLDER, TRAIT, ROW = "<u8", "<u4", "<u8", "<u8"
FILES = ("keys", "records", "holders", "traits", "rows", "fences")
SUMS = "sums"
COUNTS = "counts"  # of tokens, in the first segment, where its keys depend on them
MOST_RECORDS = 1 << 32
FENCE = 8192  # entries
KEY_BYTES, HOLDER_BYTES = np.dtype(KEY).itemsize, np.dtype(HOLDER).itemsize
TEXT_BYTES = 1 << 20  # of records, decoded at once


def misfit(told: Any, name: str) -> str:
    """Return what does not fit in the entry of the segment of this name; "" if all of it fits."""
    kinds = {"name": str, "files": list, "records": int, "partitions": list, "sizes": dict}
    if not isinstance(told, dict) or not all(
        isinstance(told.get(what), kind) for what, kind in {**kinds, SUMS: list}.items()
    ):
        return f"it does not describe {name}"
    if told["name"] != name:
        return f"it has {told['name']!r} in place of {name}"
    parts, sizes, records = told["partitions"], told["sizes"], told["records"]
    numbers = [*parts, *told[SUMS], records, *map(sizes.get, FILES)]
    if not all(type(number) is int and 0 <= number < 1 << 60 for number in numbers):
        return f"a number of {name} is none"
    entries, fences = sum(parts), sum(-(-part // FENCE) for part in parts)
    fit = {"keys": KEY_BYTES * entries, "holders": HOLDER_BYTES * entries}
    fit.update(traits=16 * records, rows=16 * records, fences=KEY_BYTES * fences)
    halves = len(parts) & (len(parts) - 1)  # none where it is a power of two
    if {**sizes, **fit} != sizes or not parts or halves or max(told[SUMS], default=0) >> 32:
        return f"the numbers of {name} do not fit together"
    return (
        ""
        if all(isinstance(file, str) for file in told["files"])
        else f"a file of {name} has no name"
    )


@dataclass(frozen=True)
class Segment:
    """`told`: what the manifest says of it; its files are numbered from `first_file` on."""

    folder: Path
    told: dict[str, Any]
    first_file: int = 0

    def __len__(self) -> int:
        return int(self.told["records"])

    @cached_property
    def files(self) -> dict[str, CheckedFile]:
        sizes: dict[str, int] = self.told["sizes"]
        counts = [-(-sizes[name] // BLOCK) for name in FILES]
        own = CheckedFile(
            self.folder / SUMS, SUM.itemsize * sum(counts), np.array(self.told[SUMS], SUM)
        )
        sums = np.split(own.array(SUM.str), np.cumsum(counts)[:-1])
        return {
            name: CheckedFile(self.folder / name, sizes[name], some)
            for name, some in zip(FILES, sums)
        }

    def find(self, keys: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Entries with one of these keys (uint64, ascending, each once), some at a time.

        Keys (uint64), and the numbers of records (int64).
        """
        parts = (keys & np.uint64(len(self.partitions) - 1)).astype(np.int64)
        for part in np.unique(parts).tolist():
            yield from self._find(part, keys[parts == part])

    @property
    def partitions(self) -> list[int]:
        """How many entries each has."""
        counts: list[int] = self.told["partitions"]
        return counts

    def _find(self, part: int, keys: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        start = sum(self.partitions[:part])
        end = start + self.partitions[part]
        fences = self.fences[part]
        low = np.maximum(np.searchsorted(fences, keys, side="left") - 1, 0)
        high = np.searchsorted(fences, keys, side="right")  # 0: before all of them
        near = np.zeros(len(fences) + 1, dtype=np.int64)
        np.add.at(near, low, 1)
        np.add.at(near, np.maximum(high, low), -1)
        wanted = np.flatnonzero(np.cumsum(near)[:-1])
        starts = start + FENCE * wanted
        stops = np.minimum(starts + FENCE, end)
        for first, last in stretches(starts * KEY_BYTES, stops * KEY_BYTES):
            yield from self._find_in(int(starts[first]), int(stops[last - 1]), keys)

    def _find_in(
        self, start: int, stop: int, keys: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Of the entries from number `start` to `stop`, which are in order of keys."""
        held = self.files["keys"].read(start * KEY_BYTES, stop * KEY_BYTES).view(KEY)
        keys = keys[np.searchsorted(keys, held[0]) : np.searchsorted(keys, held[-1], "right")]
        low, high = (np.searchsorted(held, keys, side) for side in ("left", "right"))
        if (high > low).any():
            places = spans(low, high - low)
            holders = self.files["holders"].rows(start + places, HOLDER)[:, 0]
            yield held[places], holders.astype(np.int64)

    @cached_property
    def fences(self) -> list[np.ndarray]:
        """Of each partition."""
        counts = [-(-entries // FENCE) for entries in self.partitions]
        return np.split(self.files["fences"].array(KEY), np.cumsum(counts)[:-1])

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """uint64 (n, 2): the traits of these records, as `engines.local.sieve` writes them."""
        return self.files["traits"].mapped(rows.astype(np.int64), TRAIT, 2)

    def batches(self, numbers: np.ndarray) -> Iterator[tuple[int, Batch]]:
        """Records by their numbers (int64, ascending), some at a time; behind how many others."""
        before = np.maximum(numbers - 1, 0)
        starts = self.files["rows"].rows(before, ROW, 2)[:, 1].astype(np.int64)
        starts[numbers == 0] = 0
        place, stops = self.files["rows"].rows(numbers, ROW, 2).T
        place = place + np.uint64(first_place(self.first_file, new=False))
        stops = stops.astype(np.int64)
        for low, high in chunks(stops - starts, TEXT_BYTES):
            lines = self.files["records"].ranges(starts[low:high], stops[low:high])
            fields = [line[:-1].split(b"\t") for line in lines]
            if any(len(some) != 2 for some in fields):
                raise damaged(self.folder / "records", "a line of it is no record")
            ids, texts = zip(*fields)
            yield low, Batch(list(ids), decode_sets(list(texts)), places=place[low:high])
