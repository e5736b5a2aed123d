"""Estimate, from a sample of fingerprints, the number of pairs and the cost by distance.

All pairs of the sample are compared, and counted by the number of differing bits; a sampled pair
stands for many pairs of the input (`line_sample`).  The candidates of drawn masks are a weighted
sum over this histogram.

*By chance*: two fingerprints of independent coin flips differ in at most D of F bits with P(D) =
Σ C(F, d) / 2^F, d = 0 … D, so n records have n²/2 · P(D) pairs: 20 for F = 64, D = 7, n = 10^6.

Letters: F bits (256), D the distance (31), n records.  Cost: n²/2 comparisons in the sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from neardup.evaluation.choices import number, short
from neardup.evaluation.estimates import Weights, candidate_counts
from neardup.evaluation.line_sample import LineSample, as_block
from neardup.lines.keyed_lines import format_keyed_lines
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.input_check import Parser
from neardup.schemes.bit_keys import Drawn, Ways
from neardup.schemes.fingerprints import Fingerprints, Hamming
from neardup.sets.bit_vectors import Prints, bits_apart
from neardup.sets.ragged import Batch

COUNTED = 1 << 18  # keys that are computed from a part of the sample
QUARTERS = (2, 3, 4, 5, 6)  # of the given distance; the cost is shown for these multiples
NOTES = """
by chance: expected if all bits were independent coin flips; bits of real fingerprints are not
recall: for pairs at the distance; all: every pair is found even without --exact
candidate pairs: pairs that share a key; work: keys and candidate pairs; both are for a pipe, Hadoop
or Spark: run_local.sh sends few of the keys, so that --exact costs it little"""


@dataclass(frozen=True)
class Distances:
    """Histograms of pairs by number of differing bits, from a sample of fingerprints.

    Each is float64 (F + 1,).  near, own: estimates for the input, by distance of the nearest two
    fingerprints, of which at least one is a record's own, and by distance of the records' own
    fingerprints; seen: `near`, counted in the sample.
    """

    batch: Batch
    weights: Weights
    bits: int
    near: np.ndarray
    own: np.ndarray
    seen: np.ndarray

    @classmethod
    def of(cls, sample: LineSample, parse: Parser, bits: int) -> Distances:
        """Compare all pairs of a sample; StageError if it has fewer than two records."""
        batch, bad = parse(as_block(sample.lines))
        good = np.ones(len(sample.lines), dtype=bool)
        good[[line.number for line in bad]] = False
        weights = Weights.of_sample(sample, good)
        near, own, seen = np.zeros((3, bits + 1))
        for i, nearest, apart in _apart(Prints.of(batch.sets, bits)):
            stands_for = weights.of(np.array([i]), np.arange(i + 1, len(batch.ids)))
            near += np.bincount(nearest, stands_for, bits + 1)
            own += np.bincount(apart, stands_for, bits + 1)
            seen += np.bincount(nearest, minlength=bits + 1)
        return cls(batch, weights, bits, near, own, seen)

    @property
    def records(self) -> float:
        return len(self.batch.ids) * self.weights.records

    @property
    def variants(self) -> float:
        """The mean number of fingerprints per record, those of its variants included."""
        return float(Prints.of(self.batch.sets, self.bits).counts.mean())

    def by_chance(self, distance: int) -> float:
        """Return the expected number of pairs within a distance if all bits were coin flips."""
        chance = sum(comb(self.bits, d) for d in range(distance + 1)) / (1 << self.bits)
        return chance * self.records * (self.records - 1) / 2 * (2 * self.variants - 1)

    def strangers_from(self) -> int:
        """Return the smallest distance at which at least one pair is expected by chance."""
        return next((d for d in range(self.bits) if self.by_chance(d) >= 1), self.bits)

    def candidates(self, scheme: Fingerprints) -> float:
        """Estimate how many pairs share a key, or the number within the distance if that is larger.

        For drawn masks it is the mean over all draws, for blocks it is estimated from the keys of a
        part of the sample.
        """
        ways, pairs = scheme.ways, float(self.near[: scheme.distance + 1].sum())
        if isinstance(ways, Drawn):
            chances = [ways.recall(self.bits - d) for d in range(self.bits + 1)]
            return max(pairs, float(self.own @ chances) * self.variants**2)
        part = max(2, int(COUNTED / (len(ways) * self.variants)))
        some = np.random.default_rng(0).permutation(len(self.batch.ids))[:part]
        sets, anything = self.batch.sets.take(some), Hamming(self.bits, self.bits)
        found = candidate_counts(sets, scheme.keys(sets), anything, self.weights.take(some))
        return max(pairs, found.candidates if found else float(self.own.sum()))

    def shuffled(self, scheme: Fingerprints) -> float:
        """Estimate the bytes that mapper.py writes; lines of all bands have the same length."""
        lines = format_keyed_lines(self.batch, scheme.keys(self.batch.sets, 0, 1))
        return sum(len(some) for _, some in lines) * len(scheme.ways) * self.weights.records


def _apart(prints: Prints) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield (i, nearest, own): the distances from record i to later records; see `Distances`."""
    vectors, starts = prints.vectors, prints.own
    for i in range(len(starts) - 1):
        later, mine = starts[i + 1 :], vectors[starts[i] : starts[i + 1]]
        apart = bits_apart(vectors[later[0] :], mine[0])
        near, own = np.minimum.reduceat(apart, later - later[0]), apart[later - later[0]]
        for variant in mine[1:]:
            near = np.minimum(near, bits_apart(vectors[later], variant))
        yield i, near, own


def report(known: Distances, options: Options, distance: int, recall: float) -> Iterator[str]:
    """Yield the lines that `tune` prints for fingerprints, about distances around `distance`."""
    places = [round(distance * part / 4) for part in (0, *QUARTERS, 8, 10)]
    shown = list(dict.fromkeys(min(d, known.bits) for d in places))
    yield _line("distance", *map(str, shown))
    yield _line("pairs", *(number(known.near[: d + 1].sum()) for d in shown))
    yield _line("in sample", *(f"{known.seen[: d + 1].sum():,.0f}" for d in shown))
    yield _line("by chance", *(short(x) if x >= 0.01 else "0" for x in map(known.by_chance, shown)))
    yield f"\nFrom distance {known.strangers_from()} on, {number(known.records)} unrelated records"
    yield "have pairs by chance.\n"
    yield _line("", "", "keys a", "candidate", "shuffled,")
    yield _line("distance", "recall", "record", "pairs", "MB", "work")
    for each in dict.fromkeys(min(d, known.bits // 2) for d in places[1:-2]):
        ways: list[Ways] = []  # of the lines printed so far
        for flags in ({"--recall": str(recall)}, {"--recall": "0.99"}, {"--exact": True}):
            scheme = Settings.of(options.with_values({"--distance": str(each), **flags})).scheme
            assert isinstance(scheme, Fingerprints)
            if scheme.ways not in ways:
                ways.append(scheme.ways)
                found = str(flags.get("--recall")) if isinstance(scheme.ways, Drawn) else "all"
                yield _row(known, scheme, "--exact" if "--exact" in flags else found)
    yield NOTES


def _row(known: Distances, scheme: Fingerprints, recall: str) -> str:
    keys, pairs = len(scheme.ways) * known.variants, known.candidates(scheme)
    costs = pairs, known.shuffled(scheme) / 1e6, keys * known.records + pairs
    return _line(str(scheme.distance), recall, f"{keys:.0f}", *map(short, costs))


def _line(name: str, *cells: str) -> str:
    return f"{name:10}" + "".join(f"{cell:>10}" for cell in cells)
