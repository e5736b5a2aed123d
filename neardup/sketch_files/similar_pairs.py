"""All pairs of sketches whose estimate reaches a threshold, without looking at all pairs.

The tokens of one file (`meeting_tokens`) lie in memory in order, each with the number of its
record: the *postings*.  The records of the other file, or of the same, pass by in blocks; who
shares a token with one of them is compared with it, and each pair once, since all its meetings are
in one block.

Held in memory: 32 bytes for each posting while they are sorted, and 12 afterwards; at t = 0.9 a
record has 7 of them with min:64, or 28 where hashes meet two and two, and 13 with signature:128.
For each record also 16 bytes and its id; and some 100 MB of counts and blocks.  The sketches are
read from the disk, in order and then here and there: what memory is free for that makes it fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Callable, NamedTuple

import numpy as np

from neardup.process.counters import Counters
from neardup.sets.ragged import Ragged, chunks
from neardup.sets.runs import first_of_run, spans
from neardup.similarity.threshold import Threshold
from neardup.sketch_files.kinds import JACCARD, Kind
from neardup.sketch_files.meeting_tokens import MeetingTokens, rarity_of
from neardup.sketch_files.sketch_file import NUMBERS_AT_ONCE, SketchFile

MEETINGS_AT_ONCE = 1 << 20
PAIR_NUMBERS = 32  # what a pair costs beside the numbers of its sketches
MANY_STRANGERS = 1000
Tokens = Callable[[Ragged], Ragged]


class Alike(NamedTuple):
    """Pairs: the record of the file that was asked for, and one that passed by, and what they have
    in common; int64, and `known` bool.  `swapped`: whether it is the other one that is contained.
    """

    asked: np.ndarray
    passing: np.ndarray
    part: np.ndarray
    whole: np.ndarray
    known: np.ndarray
    swapped: bool


@dataclass(frozen=True)
class Search:
    """In `file`, or of each record of it in `other`; `of`: with these records of `file` only."""

    file: SketchFile
    other: SketchFile | None
    threshold: Threshold
    measure: str
    of: np.ndarray | None
    counters: Counters

    @property
    def kind(self) -> Kind:
        return self.file.kind

    def cost(self) -> list[str]:
        """What it is going to cost, where that is much: lines in words."""
        tokens = MeetingTokens(self.kind, self.threshold, np.zeros(1, np.uint8))
        strangers = tokens.strangers((self.other or self.file).records)
        if strangers < MANY_STRANGERS:
            return []
        return [
            f"{self.kind.text} at {self.threshold}: each record is compared with about "
            f"{strangers:,.0f} strangers; sketches with more bits, or a higher --threshold, cost "
            "less"
        ]

    def pairs(self) -> Iterator[Alike]:
        """All that reach the threshold, each once; in the order of those that pass by."""
        files = [self.file] if self.other is None else [self.file, self.other]
        total = sum(int(self.kind.numbers(file.items).sum()) for file in files)
        blocks = (sketches for file in files for _, sketches in file.blocks())
        tokens = MeetingTokens(self.kind, self.threshold, rarity_of(self.kind, blocks, total))
        if self.measure == JACCARD:
            _, sample = next(self.file.blocks(), (0, Ragged.from_rows([])))
            largest = max(int(file.items.max(initial=0)) for file in files)
            tokens = tokens.by_pairs(sample, largest)
            yield from self._found(HolderLists.of(self.file, self.of, tokens), tokens.first)
            return
        yield from self._found(HolderLists.of(self.file, self.of, tokens), tokens.all)
        if self.other is None and self.of is not None:
            every = HolderLists.of(self.file, self.of, tokens, every=True)
            yield from self._found(every, tokens.first, swapped=True)

    def _found(
        self, postings: HolderLists, passing: Tokens, swapped: bool = False
    ) -> Iterator[Alike]:
        for first, sketches in (self.other or self.file).blocks():
            for x, y in postings.met_by(passing(sketches)):
                keep = self._wanted(x, y + first, swapped)
                x, y = x[keep], y[keep]
                self.counters.add("candidate pairs", len(x))
                weights = self.kind.numbers(self.file.items[x]) + PAIR_NUMBERS
                for low, high in chunks(weights, NUMBERS_AT_ONCE):
                    some = slice(low, high)
                    yield self._alike(x[some], y[some], first, sketches, swapped)

    def _wanted(self, x: np.ndarray, y: np.ndarray, swapped: bool) -> np.ndarray:
        """Which pairs of rows are looked at here; one that may come twice comes once."""
        if self.other is not None:
            return np.ones(len(x), dtype=bool)
        if self.of is None:
            return x < y if self.measure == JACCARD else x != y
        if self.measure == JACCARD:
            return (x < y) | ((x > y) & ~np.isin(y, self.of))
        return (x != y) & ~(swapped & np.isin(y, self.of))

    def _alike(
        self, x: np.ndarray, y: np.ndarray, first: int, block: Ragged, swapped: bool
    ) -> Alike:
        rows, left = np.unique(x, return_inverse=True)
        sketches = self.file.take(rows).beside(block)
        right = y + len(rows)
        if swapped:
            left, right = right, left
        part, whole, known = self.kind.counted(sketches, left, right, self.measure)
        wholes, place = np.unique(whole, return_inverse=True)
        least = [self.kind.least_part(self.threshold, n) for n in wholes.tolist()]
        good = (part >= np.array(least, dtype=np.int64)[place]) & (whole > 0)
        self.counters.add("pairs", int(np.count_nonzero(good)))
        return Alike(x[good], y[good] + first, part[good], whole[good], known[good], swapped)


class HolderLists(NamedTuple):
    """tokens: uint64, ascending; holders: uint32, who has them."""

    tokens: np.ndarray
    holders: np.ndarray

    @classmethod
    def of(
        cls, file: SketchFile, rows: np.ndarray | None, tokens: MeetingTokens, every: bool = False
    ) -> HolderLists:
        """The first tokens, or `every` one, of all records of a file, or of these."""
        items = file.items if rows is None else file.items[rows]
        room = int((items if every else tokens.counts(items)).sum())
        values, holders = np.empty(room, np.uint64), np.empty(room, np.uint32)
        done = 0
        for first, sketches in file.blocks():
            numbers = np.arange(first, first + len(sketches))
            if rows is not None:
                numbers = numbers[np.isin(numbers, rows)]
                sketches = sketches.take(numbers - first)
            some = tokens.all(sketches) if every else tokens.first(sketches)
            end = done + len(some.values)
            values[done:end] = some.values
            holders[done:end] = np.repeat(numbers, some.sizes)
            done = end
        order = np.argsort(values[:done], kind="stable")
        return cls(values[order], holders[order])

    def met_by(self, asking: Ragged) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(holder, row): who shares a token with which row, each pair once, in order of rows."""
        order = np.argsort(asking.values)
        low, high = (np.empty(len(order), dtype=np.int64) for _ in range(2))
        low[order] = np.searchsorted(self.tokens, asking.values[order])
        high[order] = np.searchsorted(self.tokens, asking.values[order], side="right")
        meetings = high - low
        until = np.concatenate((np.zeros(1, np.int64), np.cumsum(meetings)))[asking.offsets]
        for start, stop in chunks(np.diff(until), MEETINGS_AT_ONCE):
            some = slice(asking.offsets[start], asking.offsets[stop])
            row = np.repeat(np.arange(start, stop), np.diff(until[start : stop + 1]))
            holder = self.holders[spans(low[some], meetings[some])].astype(np.int64)
            words = np.sort(row << 32 | holder)
            words = words[first_of_run(words)]
            yield words & ((1 << 32) - 1), words >> 32


def shown(kind: Kind, part: int, whole: int, known: bool, alpha: Fraction) -> tuple[int, int, int]:
    """(low, high, estimate) in millionths; of what is known all are one.

    >>> from neardup.sketch_files.kinds import kind_of
    >>> shown(kind_of("min:64"), 60, 64, False, Fraction("0.05"))
    (847636, 982710, 937500)
    """
    estimate = round(kind.estimate(part, whole) * 10**6)
    if known:
        return estimate, estimate, estimate
    return (*kind.interval(part, whole, alpha), estimate)
