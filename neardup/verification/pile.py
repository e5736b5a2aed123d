"""Piles: the buckets that are joined together, as arrays.

In a bucket, records with equal sets become one set with several ids: equal sets have equal bytes
on the line, so nothing is decoded twice, and a thousand copies cost one comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neardup.lines.keyed_lines import parse_keyed_lines
from neardup.lines.keys import parse_keys
from neardup.lines.set_text import decode_sets
from neardup.lines.tagged_ids import is_old
from neardup.process.errors import WireError
from neardup.sets.ragged import Ragged, chunks
from neardup.sets.runs import spans
from neardup.similarity.bitmaps import wide_bitmaps
from neardup.similarity.measures import Measure

TOKENS_AT_ONCE = 1 << 23  # less than a second's work
PAIR_TOKENS = 32  # what a pair costs beside the comparison of its tokens


@dataclass(frozen=True)
class Pile:
    """n distinct sets, bucket after bucket; inside a bucket by size, then by smallest id.

    keys: uint64 (n,), the bucket's key; buckets: int64 (n,), the bucket's number from 0; nodes:
    int64 (n,), the set's number in the join as a whole; ids: n lists, each ascending and distinct;
    repeats: n lists, those of these ids that came again, each time; sets: n rows.
    """

    keys: np.ndarray
    buckets: np.ndarray
    nodes: np.ndarray
    ids: list[list[bytes]]
    repeats: list[list[bytes]]
    sets: Ragged

    @classmethod
    def of_lines(cls, lines: list[bytes], first_node: int = 0) -> Pile:
        """From the keyed lines of whole buckets, in any order.

        Byte order is the order of a pile, so the result does not depend on the engine's.
        """
        holders: dict[tuple[bytes, bytes, bytes], list[bytes]] = {}
        repeats: dict[tuple[bytes, bytes, bytes], list[bytes]] = {}
        for key, size, id_, shingles in parse_keyed_lines(sorted(lines)):
            set_ = key, size, shingles
            ids = holders.setdefault(set_, [])
            if ids and ids[-1] == id_:
                repeats.setdefault(set_, []).append(id_)
            else:
                ids.append(id_)
        sets = decode_sets([shingles for _, _, shingles in holders])
        if not sets.sizes.all():
            raise WireError("expected shingles, got a set without any")
        written = b"".join([size + b" " for _, size, _ in holders])
        if written != b"%08d " * len(sets) % tuple(sets.sizes.tolist()):
            raise WireError("a line from the mapper was damaged: its size and shingles disagree")
        numbers: dict[bytes, int] = {}
        buckets = [numbers.setdefault(key, len(numbers)) for key, _, _ in holders]
        return cls(
            keys=parse_keys(list(numbers))[buckets],
            buckets=np.array(buckets, dtype=np.int64),
            nodes=np.arange(first_node, first_node + len(holders)),
            ids=list(holders.values()),
            repeats=[repeats.get(set_, []) for set_ in holders],
            sets=sets,
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def sizes(self) -> np.ndarray:
        return self.sets.sizes

    @cached_property
    def bitmaps(self) -> np.ndarray:
        return wide_bitmaps(self.sets)

    @cached_property
    def has_old(self) -> np.ndarray:
        """bool: which sets an old record has; ids are tagged, and old ones come first."""
        return np.array([is_old(ids[0]) for ids in self.ids], dtype=bool)

    @cached_property
    def has_new(self) -> np.ndarray:
        return np.array([not is_old(ids[-1]) for ids in self.ids], dtype=bool)

    def beside(self, later: Pile) -> Pile:
        """Two pieces of one bucket as one pile, to compare the first with the second."""
        return Pile(
            np.concatenate((self.keys, later.keys)),
            np.concatenate((self.buckets, later.buckets)),
            np.concatenate((self.nodes, later.nodes)),
            self.ids + later.ids,
            self.repeats + later.repeats,
            self.sets.beside(later.sets),
        )

    def windows(self, measure: Measure) -> tuple[np.ndarray, np.ndarray]:
        """The length filter: set i may pair with sets first[i] ≤ j < stop[i], all after i."""
        place = self.buckets << 32 | self.sizes  # ascending
        largest = np.minimum(measure.largest_partner(self.sizes), (1 << 32) - 1)
        widest = self.buckets << 32 | largest
        return np.arange(1, len(self) + 1), np.searchsorted(place, widest, side="right")

    def pairs(
        self, left: np.ndarray, low: np.ndarray, high: np.ndarray, pool: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Each left[i] with pool[low[i]:high[i]], in order, a step's work at a time."""
        counts = np.maximum(high - low, 0)
        for start, stop in chunks(counts * (self.sizes[left] + PAIR_TOKENS), TOKENS_AT_ONCE):
            some = counts[start:stop]
            yield np.repeat(left[start:stop], some), pool[spans(low[start:stop], some)]
