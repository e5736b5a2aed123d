"""A survey: what a sample of lines tells of all records of the input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import process_time

import numpy as np

from neardup.process.errors import StageError
from neardup.process.summary import BAD
from neardup.process.verdict import MAX_BAD, judged
from neardup.reading.bad_lines import Parser
from neardup.reading.blocks import BLOCK_BYTES
from neardup.reading.looks import LOOKED_AT, looks_of
from neardup.sets.batch import Batch
from neardup.sets.runs import distinct
from neardup.similarity.measures import SetMeasure
from neardup.token_counts.counts import TokenCounts
from neardup.tuning.estimates import Likeness, Weights, comparable, likeness
from neardup.tuning.line_sample import LineSample

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
        _, bad = parse(b"".join(lines))
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
        batch, bad = parse(b"".join(sample.lines))
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
        parsing = seconds(lambda: parse(b"".join(block))) / len(block) * sample.total
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
