"""What a sample says of a file: how similar its records are, and how many pairs meet.

How alike the records of a file are, and how many pairs of them meet, from a sample.

All pairs of the sample are compared, exactly, and kept as histograms of their resemblance.  Each
stands for many pairs of the file (`line_sample`), so for banding the candidates in the
whole file are the sum of P(s) = 1 - (1 - s^r)^b over a histogram, without bias, and as a mean of
all seeds.  `candidate_counts` are of the pairs of the sample that share a key, for any scheme and
with the hash functions that the run will have; where many are seen, they are the better estimate.

Letters: n records in the sample (3,000), s resemblance, b bands, r rows.
Cost: n²/2 pairs, and one addition for each token that two records share.

A survey: what a sample of lines tells of all records of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import process_time

import numpy as np

from neardup.evaluation.line_sample import LineSample, as_block
from neardup.reading.blocks import BLOCK_BYTES
from neardup.reading.input_check import LOOKED_AT, Parser, looks_of
from neardup.runtime.errors import StageError
from neardup.runtime.summary import BAD, MAX_BAD, judged
from neardup.sets.ragged import (
    Batch,
    Ragged,
    chunks,
    distinct,
    later_in_run,
    pairs_in_runs,
    spans,
    starts_of_runs,
)
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import Measure, SetMeasure
from neardup.similarity.sketches import may_reach, wide_bitmaps

BINS = 256
COMPARED_AT_ONCE = 1 << 20  # pairs of records
SHARED_AT_ONCE = 1 << 21  # tokens of two records
MOST_SHARED = 1 << 28  # some seconds; a sample with more of them is thinned
MOST_MET = 1 << 24  # pairs that share a key, counted with repeats


@dataclass(frozen=True)
class Weights:
    """How many pairs of the files a pair of sampled records stands for.

    cells: int64 (n,), where each record is from; within, between: the weight of a pair from one
    place and from two; records: how many records of the files one of the sample stands for.
    """

    cells: np.ndarray
    within: float
    between: float
    records: float

    @classmethod
    def of_sample(cls, sample: LineSample, good: np.ndarray) -> Weights:
        """For those of its lines that are records (bool)."""
        lines = max(len(sample.lines), 1)
        return cls(sample.cells[good], sample.within, sample.between, sample.total / lines)

    def of(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        same = self.cells[left] == self.cells[right]
        return np.where(same, self.within, self.between)

    def take(self, some: np.ndarray) -> Weights:
        """Of a random part of the sample (int64), which is to stand for all that it stands for."""
        n, m = len(self.cells), len(some)
        scale = n * (n - 1) / max(m * (m - 1), 1)
        within, between = self.within * scale, self.between * scale
        return Weights(self.cells[some], within, between, self.records * n / max(m, 1))


@dataclass(frozen=True)
class Likeness:
    """How many pairs of the files have which resemblance: float64 (BINS,) each.

    window: the pairs that the length filter leaves; possible: those that bitmaps leave too;
    matches: those that reach the threshold; resemblance: the mean of a bin.  seen: how many pairs
    of the sample reach the threshold.
    """

    window: np.ndarray
    possible: np.ndarray
    matches: np.ndarray
    resemblance: np.ndarray
    seen: int

    def meet(self, pairs: np.ndarray, bands: int, rows: int) -> float:
        """How many of the pairs in a histogram share a key, as a mean of all seeds."""
        return float(pairs @ (1 - (1 - self.resemblance**rows) ** bands))


@dataclass(frozen=True)
class CandidateCounts:
    """Pairs of the files that share a key: those that the length filter leaves, and of them those
    that bitmaps leave, to be verified; seen: how many of them are in the sample."""

    candidates: float
    verified: float
    seen: int


def likeness(sets: Ragged, measure: Measure, weights: Weights) -> Likeness:
    """Compare every pair of these records."""
    sizes, maps = sets.sizes, wide_bitmaps(sets)
    window, possible, matches, sums, counts = np.zeros((5, BINS))
    seen = 0
    for low, common in common_tokens(sets):
        left, right = np.nonzero(np.triu(common, low + 1))  # each pair once
        both = common[left, right]
        left = left + low
        x, y = sizes[left], sizes[right]
        near = np.maximum(x, y) <= measure.largest_partner(np.minimum(x, y))
        left, right, both, x, y = (column[near] for column in (left, right, both, x, y))
        resemblance = both / (x + y - both)
        place = np.minimum((resemblance * BINS).astype(np.int64), BINS - 1)
        weight = weights.of(left, right)
        found = measure.may_reach(both, x, y)
        window += np.bincount(place, weight, BINS)
        possible += np.bincount(place, weight * may_reach(measure, maps, sizes, left, right), BINS)
        matches += np.bincount(place, weight * found, BINS)
        sums += np.bincount(place, resemblance, BINS)
        counts += np.bincount(place, minlength=BINS)
        seen += int(found.sum())
    return Likeness(window, possible, matches, sums / np.maximum(counts, 1), seen)


def common_tokens(sets: Ragged) -> Iterator[tuple[int, np.ndarray]]:
    """(low, table): how many tokens records low, low+1, … share with each (int64 (…, n)).

    >>> [(low, table.tolist()) for low, table in common_tokens(Ragged.from_rows([[1, 2], [2, 3]]))]
    [(0, [[2, 1], [1, 2]])]
    """
    n = len(sets)
    owner = np.repeat(np.arange(n), sets.sizes)
    holders = owner[np.argsort(sets.values, kind="stable")]
    starts, counts = _holders_of(sets)
    work = np.add.reduceat(counts, sets.offsets[:-1]) + n * SHARED_AT_ONCE // COMPARED_AT_ONCE
    for low, high in chunks(work, SHARED_AT_ONCE):
        some = slice(sets.offsets[low], sets.offsets[high])
        others = holders[spans(starts[some], counts[some])]
        row = np.repeat(owner[some] - low, counts[some])
        table = np.bincount(row * n + others, minlength=(high - low) * n)
        yield low, table.reshape(high - low, n)


def _holders_of(sets: Ragged) -> tuple[np.ndarray, np.ndarray]:
    """int64 (T,): where the holders of each value begin, among all in order, and how many."""
    tokens, counts = distinct(sets.values)
    rank = np.searchsorted(tokens, sets.values)
    return (np.cumsum(counts) - counts)[rank], counts[rank]


def comparable(sets: Ragged) -> int:
    """How many of the records can be compared with each other in a few seconds."""
    shared = int(_holders_of(sets)[1].sum())
    return int(len(sets) * min(1.0, (MOST_SHARED / max(shared, 1)) ** 0.5))


def candidate_counts(
    sets: Ragged, keys: Ragged, measure: Measure, weights: Weights
) -> CandidateCounts | None:
    """The pairs of records that share a key; None where they are too many to look at."""
    met = _met(keys)
    if met is None:
        return None
    left, right = met
    sizes = sets.sizes
    x, y = sizes[left], sizes[right]
    near = np.maximum(x, y) <= measure.largest_partner(np.minimum(x, y))
    left, right = left[near], right[near]
    weight = weights.of(left, right)
    verified = weight @ may_reach(measure, wide_bitmaps(sets), sizes, left, right)
    return CandidateCounts(float(weight.sum()), float(verified), len(left))


def _met(keys: Ragged) -> tuple[np.ndarray, np.ndarray] | None:
    """(left, right) of each pair that shares a key, left < right."""
    n = len(keys)
    order = np.argsort(keys.values, kind="stable")
    owner = np.repeat(np.arange(n), keys.sizes)[order]  # ascending in a bucket
    starts = starts_of_runs(keys.values[order])
    members = np.diff(starts, append=len(order))
    if not len(order) or float(members @ (members - 1)) / 2 > MOST_MET:
        return None if len(order) else (np.empty(0, np.int64),) * 2
    left, right = pairs_in_runs(later_in_run(members))
    pairs, _ = distinct(owner[left] * n + owner[right])
    return pairs // n, pairs % n


TRIALS = 3
BLOCK_TOKENS = BLOCK_BYTES // 7


def seconds(task: Callable[[], object]) -> float:
    """What it takes one core, if nothing else disturbs it."""
    times = [process_time()]
    for _ in range(TRIALS):
        task()
        times.append(process_time())
    return min(b - a for a, b in zip(times, times[1:]))


def check_readable(sample: LineSample, parse: Parser, input_: str) -> None:
    """StageError where no line of a sample is a record, with what they look like."""
    for lines in sample.lines[:LOOKED_AT], sample.lines:  # most often the first ones tell
        _, bad = parse(as_block(lines))
        if len(bad) < len(lines) or not bad:
            return
    judged({f"{BAD}{bad[0].reason}": len(bad), **looks_of(sample.lines, input_)}, MAX_BAD)


def check_enough(records: int, sample: LineSample) -> None:
    """StageError where a sample has no two records."""
    if records < 2:
        what = "one record" if records else "no record"
        raise StageError(f"{what} in a sample of {len(sample.lines):,} lines; a pair takes two")


@dataclass(frozen=True)
class Survey:
    """batch: the records that were compared; weights: what they stand for; whole: whether these
    are all; bad: lines of the sample that are no records; parsing: seconds for the whole input."""

    batch: Batch
    weights: Weights
    whole: bool
    bad: int
    parsing: float
    measure: SetMeasure
    likeness: Likeness

    @classmethod
    def of(cls, sample: LineSample, parse: Parser, measure: SetMeasure, seed: int) -> Survey:
        """StageError where there are no two records."""
        batch, bad = parse(as_block(sample.lines))
        good = np.ones(len(sample.lines), dtype=bool)
        out = [*(line.number for line in bad), *batch.without_shingles]
        good[out] = False
        n = len(batch.ids)
        check_enough(n, sample)
        # In random order, so that a part of them is a sample too.
        order = np.random.default_rng(seed).permutation(n)[: max(2, comparable(batch.sets))]
        weights = Weights.of_sample(sample, good).take(order)
        batch = batch.take(order)
        found = likeness(batch.sets, measure, weights)
        block = sample.lines[:: max(1, sum(map(len, sample.lines)) // BLOCK_BYTES)]
        parsing = seconds(lambda: parse(as_block(block))) / len(block) * sample.total
        whole = sample.whole and len(order) == n and n + len(out) == round(sample.total)
        return cls(batch, weights, whole, len(bad), parsing, measure, found)

    def __len__(self) -> int:
        return len(self.batch.ids)

    @property
    def block(self) -> Batch:
        """About as many records as are read at once."""
        step = max(1, int(len(self.batch.sets.values) // BLOCK_TOKENS))
        return self.batch.take(np.arange(0, len(self), step))

    @property
    def records(self) -> float:
        """In the whole input."""
        return len(self) * self.weights.records

    @property
    def tokens(self) -> float:
        """In the sets of the whole input."""
        return len(self.batch.sets.values) * self.weights.records

    def counted(self) -> tuple[Survey, TokenCounts]:
        """For schemes that count tokens: some of the records, and the counts for them.

        Subtle: tokens are counted in one half of the sample, and those of the other half then meet.
        Among records that were counted themselves, no token that two of them share looks rare.
        """
        sets = self.batch.sets
        if self.whole:
            return self, TokenCounts.of_sets(sets)
        met, counting = np.arange(0, len(self), 2), np.arange(1, len(self), 2)
        counted = sets.take(counting)
        scale = self.records / len(counting)
        tokens, known = distinct(counted.values)
        every, _ = distinct(sets.values)
        seen = np.zeros(len(every))
        seen[np.searchsorted(every, tokens)] = known
        # One that was not seen has some records all the same; the order is what counts.
        frequencies = np.maximum(2, (seen + 0.5) * scale).astype(np.int64)
        sizes, holders = distinct(sets.sizes)
        holders = np.maximum(1, holders * self.weights.records).astype(np.int64)
        counts = TokenCounts(sizes, holders, every, frequencies, counted)
        half = replace(self, batch=self.batch.take(met), weights=self.weights.take(met))
        return half, counts
