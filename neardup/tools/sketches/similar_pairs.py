"""Find all pairs of sketches at or above a threshold without comparing every pair.

The tokens of one file are in memory in order, each with the number of its record: the *postings*.
The records of the other file, or of the same, pass by in blocks, and are compared with the records
that share a token with them.  A pair at the threshold shares at least one token:

*Hashes* (min, mod).  A pair at t shares at least ⌈t·n⌉ hashes, n being the size of the larger
sketch.  If all sketches have their hashes in one order, the first n - ⌈t·n⌉ + 1 of both have one in
common: the prefix filter (Chaudhuri, Ganti, Kaushik 2006).  The rarest come first, so that few
dissimilar records collide.  If none is rare, as in a million sets of 10,000 different elements, a
token is a pair of hashes: the first n - ⌈t·n⌉ + 2 have two in common.  Sketches that need only one
in common have single ones, too.

*Signatures*.  A pair at t differs in at most d places: any d + 1 places of x have one in common,
and the rarest are taken.

*Containment* of x in y: x has ⌈t·|x|⌉ in common with y, so one of its prefix; y has all its tokens.

The rarity of a hash is counted by its last bits, in at most 2^24 counts: any order misses nothing.

Letters: t the threshold (0.9), n the size of a sketch (64), d places (12).

Held in memory: 32 bytes for each posting while they are sorted, 12 afterwards (at t = 0.9 a record
has 7 of them with min:64, 28 as pairs of hashes, and 13 with signature:128); 16 bytes and the id of
each record; and some 100 MB of counts and blocks.  Free memory for the file makes it faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Callable, NamedTuple

import numpy as np

from neardup.joins.inverted_index import InvertedIndex
from neardup.runtime.counters import Counters
from neardup.sets import ragged
from neardup.sets.hashing import combine, mix
from neardup.sets.ragged import Ragged
from neardup.similarity.intervals import exact_interval
from neardup.similarity.measures import Threshold
from neardup.similarity.sketches import SAMPLE_BITS
from neardup.tools.sketches.sketch_file import NUMBERS_AT_ONCE, SketchFile
from neardup.tools.sketches.sketch_kinds import JACCARD, Kind, Signatures

MAX_COUNTS = 24  # as a power of two
RARITY_BITS = 8
MANY_COLLISIONS = 100  # of a record with dissimilar ones
MAX_PAIRED = 24  # first hashes, which make 276 pairs
ROWS_AT_ONCE = (1 << 64 - SAMPLE_BITS) - 1
PAIR_NUMBERS = 32  # the fixed cost of a pair, in numbers of its sketches
CANDIDATES = "candidate pairs"
Tokens = Callable[[Ragged], Ragged]


@dataclass(frozen=True)
class SharedTokens:
    """A choice of tokens (uint64 below 2^48) such that similar sketches share at least one.

    rarity: uint8, how often hashes occur, by their last bits; paired: tokens are pairs.
    """

    kind: Kind
    threshold: Threshold
    rarity: np.ndarray
    paired: bool = False

    def counts(self, sizes: np.ndarray) -> np.ndarray:
        """Return the maximum number of first tokens of a sketch of each size (int64)."""
        singles, prefix = self._prefixes(sizes)
        return singles + prefix * (prefix - 1) // 2

    def _prefixes(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each size, how many first hashes are tokens alone, and how many in pairs."""
        if isinstance(self.kind, Signatures):
            apart = self.kind.length - self.kind.least_part(self.threshold, self.kind.length)
            return np.full(len(sizes), apart + 1), np.zeros_like(sizes)
        needed = self.threshold.smallest_partner(sizes)
        singles = np.where(sizes > 0, sizes - needed + 1, 0)
        if not self.paired:
            return singles, np.zeros_like(singles)
        return np.where(needed < 2, singles, 0), np.minimum(sizes, sizes - needed + 2)

    def by_pairs(self, sketches: Ragged, largest: int) -> SharedTokens:
        """Return self, or a copy that pairs hashes if too many dissimilar records share a hash."""
        if isinstance(self.kind, Signatures) or not len(sketches.values):
            return self
        _, prefix = replace(self, paired=True)._prefixes(np.array([largest]))
        if int(prefix[0]) > MAX_PAIRED:
            return self
        counts = self.counts(sketches.sizes)
        first = self._ordered(sketches)[ragged.spans(sketches.offsets[:-1], counts)]
        tokens = Ragged.from_unsorted(first, counts)
        rarity = tokens.values >> np.uint64(SAMPLE_BITS - RARITY_BITS)
        often = np.exp2(rarity.astype(np.float64) / 8 - 1).sum() / len(sketches)
        share = len(tokens.values) / len(sketches.values)
        return replace(self, paired=bool(often * share > MANY_COLLISIONS))

    def first(self, sketches: Ragged) -> Ragged:
        """Return the first tokens of each sketch; similar sketches share at least one of them."""
        ordered, sizes = self._ordered(sketches), sketches.sizes
        singles, prefix = self._prefixes(sizes)
        tokens = ordered[ragged.spans(sketches.offsets[:-1], singles)]
        if not self.paired:
            return Ragged.from_unsorted(tokens, singles)
        rows = np.repeat(np.arange(len(sizes)), singles)
        later = ragged.later_in_run(prefix)
        left, right = ragged.pairs_in_runs(later)
        firsts = ordered[ragged.spans(sketches.offsets[:-1], prefix)]
        pairs = combine(mix(np.stack((firsts[left], firsts[right]))), seed=0)
        tokens = np.concatenate((tokens, pairs >> np.uint64(64 - SAMPLE_BITS)))
        rows = np.concatenate((rows, np.repeat(np.arange(len(sizes)), prefix)[left]))
        order = np.argsort(rows, kind="stable")
        return Ragged.from_unsorted(tokens[order], np.bincount(rows, minlength=len(sizes)))

    def all(self, sketches: Ragged) -> Ragged:
        return Ragged.from_unsorted(self._ordered(sketches), sketches.sizes)

    def _ordered(self, sketches: Ragged) -> np.ndarray:
        """Return the tokens of each sketch, in order of rarity, the rarest first."""
        hashes = self.kind.hashes(sketches)
        rare = self.rarity[(hashes & np.uint64(len(self.rarity) - 1)).astype(np.int64)]
        # Subtle: the rarity displaces the lowest bits: two hashes may become one token, and equal
        # hashes always do.
        tokens = hashes >> np.uint64(RARITY_BITS)
        tokens |= rare.astype(np.uint64) << np.uint64(SAMPLE_BITS - RARITY_BITS)
        for low, high in ragged.chunks(
            sketches.sizes + ragged.PAIR_STEP // ROWS_AT_ONCE, ragged.PAIR_STEP
        ):
            some = slice(sketches.offsets[low], sketches.offsets[high])
            row = np.arange(high - low, dtype=np.uint64) << np.uint64(SAMPLE_BITS)
            words = tokens[some] | np.repeat(row, sketches.sizes[low:high])
            words.sort()
            tokens[some] = words & np.uint64((1 << SAMPLE_BITS) - 1)
        return tokens


def rarity_of(kind: Kind, blocks: Iterable[Ragged], total: int) -> np.ndarray:
    """Count hashes by their last bits; return about 8 · (1 + log2 of count), 0 if none (uint8)."""
    bits = min(max(10, total.bit_length()), MAX_COUNTS)
    counts = np.zeros(1 << bits, dtype=np.uint32)
    for sketches in blocks:
        slots, times = ragged.distinct(kind.hashes(sketches) & np.uint64(len(counts) - 1))
        counts[slots.astype(np.int64)] += times.astype(np.uint32)
    rarity = np.empty(len(counts), dtype=np.uint8)
    for low in range(0, len(counts), ragged.PAIR_STEP):
        some = slice(low, low + ragged.PAIR_STEP)
        mantissa, exponent = np.frexp(counts[some])
        steps = 8 * exponent + ((mantissa - 0.5) * 16).astype(np.int64)
        rarity[some] = np.clip(steps, 0, (1 << RARITY_BITS) - 1)
    return rarity


class Alike(NamedTuple):
    """Pairs of records by number (int64), in which `part` of `whole` items agree."""

    asked: np.ndarray
    passing: np.ndarray
    part: np.ndarray
    whole: np.ndarray
    known: np.ndarray
    swapped: bool


@dataclass(frozen=True)
class Search:
    """A search for similar pairs within a file of sketches, or between it and `other`."""

    file: SketchFile
    other: SketchFile | None
    threshold: Threshold
    measure: str
    of: np.ndarray | None
    counters: Counters

    def pairs(self) -> Iterator[Alike]:
        """Yield batches of the pairs whose estimate reaches the threshold, each pair once.

        If `of` is given, only pairs with one of these records are compared.
        """
        files = [self.file] if self.other is None else [self.file, self.other]
        total = sum(int(self.file.kind.numbers(file.items).sum()) for file in files)
        blocks = (sketches for file in files for _, sketches in file.blocks())
        tokens = SharedTokens(
            self.file.kind, self.threshold, rarity_of(self.file.kind, blocks, total)
        )
        if self.measure == JACCARD:
            _, sample = next(self.file.blocks(), (0, Ragged.from_rows([])))
            largest = max(int(file.items.max(initial=0)) for file in files)
            tokens = tokens.by_pairs(sample, largest)
            yield from self._found(postings_of(self.file, self.of, tokens), tokens.first)
            return
        yield from self._found(postings_of(self.file, self.of, tokens), tokens.all)
        if self.other is None and self.of is not None:
            every = postings_of(self.file, self.of, tokens, every=True)
            yield from self._found(every, tokens.first, swapped=True)

    def _found(
        self, postings: InvertedIndex, passing: Tokens, swapped: bool = False
    ) -> Iterator[Alike]:
        for first, sketches in (self.other or self.file).blocks():
            for y, x, _ in postings.overlaps(passing(sketches)):
                keep = self._wanted(x, y + first, swapped)
                x, y = x[keep], y[keep]
                self.counters.add(CANDIDATES, len(x))
                weights = self.file.kind.numbers(self.file.items[x]) + PAIR_NUMBERS
                for low, high in ragged.chunks(weights, NUMBERS_AT_ONCE):
                    some = slice(low, high)
                    yield self._alike(x[some], y[some], first, sketches, swapped)

    def _wanted(self, x: np.ndarray, y: np.ndarray, swapped: bool) -> np.ndarray:
        """Return which pairs (x, y) to compare (bool), so that no pair is compared twice."""
        if self.other is not None:
            return np.ones(len(x), dtype=bool)
        again = np.ones(len(y), dtype=bool) if self.of is None else np.isin(y, self.of)
        if self.measure == JACCARD:
            return (x < y) | ((x > y) & ~again)
        return (x != y) & ~(swapped & again)

    def _alike(
        self, x: np.ndarray, y: np.ndarray, first: int, block: Ragged, swapped: bool
    ) -> Alike:
        rows, left = np.unique(x, return_inverse=True)
        sketches = self.file.take(rows).beside(block)
        right = y + len(rows)
        if swapped:
            left, right = right, left
        part, whole, known = self.file.kind.counted(sketches, left, right, self.measure)
        wholes, place = np.unique(whole, return_inverse=True)
        least = [self.file.kind.least_part(self.threshold, n) for n in wholes.tolist()]
        good = (part >= np.array(least, dtype=np.int64)[place]) & (whole > 0)
        self.counters.add("pairs", int(np.count_nonzero(good)))
        return Alike(x[good], y[good] + first, part[good], whole[good], known[good], swapped)


def postings_of(
    file: SketchFile, rows: np.ndarray | None, tokens: SharedTokens, every: bool = False
) -> InvertedIndex:
    """Index a file's sketches, or those in `rows`, by first tokens, or by all tokens if `every`."""
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
    return InvertedIndex(file.records, values[order], holders[order])


def shown(part: int, whole: int, known: bool, alpha: Fraction) -> tuple[int, int, int]:
    """Return (low, high, estimate) of a similarity in millionths; all equal if it is `known`."""
    estimate = round(Fraction(part, whole) * 10**6)
    if known:
        return estimate, estimate, estimate
    return (*exact_interval(part, whole, alpha), estimate)
