"""Estimates for the whole input from a sample of its lines, and of what each setting would cost.

All pairs of the sample are compared exactly, and counted in histograms of their resemblance.  A
sampled pair stands for many pairs of the input (`line_sample`).  For banding, the sum of
P(s) = 1 - (1 - s^r)^b over a histogram is an unbiased estimate of the mean number of candidates
over all seeds.  `candidate_counts` counts the pairs of the sample that share a key, for any scheme
and with the hash functions of the run; if there are many, it is the better estimate.

Costs are counted, not timed: keys, candidate pairs, bytes sent.  The *work* of a setting is its
keys, its candidate pairs, and the tokens that are counted first, if a scheme asks for it.  The
setting with the least work is recommended; of equal ones, the one that sends the fewest bytes.

Letters: n records in the sample (3,000), s resemblance, b bands, r rows.
Cost: n²/2 pairs, and one addition for each token that two records share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from neardup.joins.inverted_index import InvertedIndex
from neardup.lines.keyed_lines import KEY_WIDTH, encode_sets
from neardup.options.settings import Settings, counts_first
from neardup.options.table import Options
from neardup.reading.input_check import Parser
from neardup.runtime.program import StageError
from neardup.schemes import SCHEMES, banding, minhash
from neardup.schemes.scheme import Scheme
from neardup.sets.ragged import Batch, Ragged, distinct
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import Measure, SetMeasure
from neardup.similarity.sketches import may_reach, wide_bitmaps
from neardup.tools.judge.line_sample import LineSample, as_block

BINS = 256
MAX_SHARED = 1 << 28  # tokens shared by pairs: takes seconds; a sample with more is reduced
MAX_CANDIDATES = 1 << 24  # pairs that share a key, counted with repeats
MAX_BANDS = 64
ENOUGH_CANDIDATES = 100  # pairs of the sample; with fewer, the expected number is used for banding
ENOUGH_SEEN = 20  # pairs at the threshold; with fewer, similarities are assumed to be uniform
MODEL = 200  # steps


@dataclass(frozen=True)
class Weights:
    """The number of pairs in the input that a sampled pair stands for.

    cells: int64 (n,), the cell of each record in its file; within, between: the weight of a pair
    from one cell and from two; records: how many records of the input a sampled one stands for.
    """

    cells: np.ndarray
    within: float
    between: float
    records: float

    @classmethod
    def of_sample(cls, sample: LineSample, good: np.ndarray) -> Weights:
        """Return weights for the lines that `good` (bool) marks; StageError for fewer than two."""
        lines, records = len(sample.lines), np.count_nonzero(good)
        if records < 2:
            what = "one record" if records else "no record"
            raise StageError(f"{what} in a sample of {lines:,} lines; at least two are needed")
        return cls(sample.cells[good], sample.within, sample.between, sample.total / lines)

    def of(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        same = self.cells[left] == self.cells[right]
        return np.where(same, self.within, self.between)

    def take(self, some: np.ndarray) -> Weights:
        """Return the weights for the records at random positions `some` (int64) of the sample."""
        n, m = len(self.cells), len(some)
        scale = n * (n - 1) / max(m * (m - 1), 1)
        within, between = self.within * scale, self.between * scale
        return Weights(self.cells[some], within, between, self.records * n / max(m, 1))


@dataclass(frozen=True)
class Likeness:
    """Estimated histograms, by resemblance, of the input's pairs that share a token.

    Each is float64 (BINS,).  window: pairs that pass the length filter; possible: those that also
    pass the bitmap filter; matches: pairs at or above the threshold; resemblance: the mean in each
    bin; seen: the number of matches in the sample.
    """

    window: np.ndarray
    possible: np.ndarray
    matches: np.ndarray
    resemblance: np.ndarray
    seen: int

    def sharing(self, pairs: np.ndarray, bands: int, rows: int) -> float:
        """Return how many of a histogram's pairs are expected to share a key for a random seed."""
        return float(pairs @ (1 - (1 - self.resemblance**rows) ** bands))


@dataclass(frozen=True)
class CandidateCounts:
    candidates: float  # pairs in the input that share a key and pass the length filter
    verified: float  # candidates that also pass the bitmap filter
    seen: int  # candidates in the sample


def likeness(sets: Ragged, measure: Measure, weights: Weights) -> Likeness:
    """Compare all pairs of sampled records; return histograms of pairs by resemblance."""
    sizes, maps = sets.sizes, wide_bitmaps(sets)
    window, possible, matches, sums, counts = np.zeros((5, BINS))
    seen = 0
    for left, right, common in _pairs_that_share(sets, sizes, measure):
        x, y = sizes[left], sizes[right]
        resemblance = common / (x + y - common)
        place = np.minimum((resemblance * BINS).astype(np.int64), BINS - 1)
        weight = weights.of(left, right)
        found = measure.may_reach(common, x, y)
        window += np.bincount(place, weight, BINS)
        possible += np.bincount(place, weight * may_reach(measure, maps, sizes, left, right), BINS)
        matches += np.bincount(place, weight * found, BINS)
        sums += np.bincount(place, resemblance, BINS)
        counts += np.bincount(place, minlength=BINS)
        seen += int(found.sum())
    return Likeness(window, possible, matches, sums / np.maximum(counts, 1), seen)


def _pairs_that_share(
    rows: Ragged, sizes: np.ndarray, measure: Measure
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield (left, right, number of common values), int64: pairs that pass the length filter."""
    for left, right, common in InvertedIndex.of(rows).overlaps(rows):
        x, y = sizes[left], sizes[right]
        near = (left < right) & (np.maximum(x, y) <= measure.largest_partner(np.minimum(x, y)))
        yield left[near], right[near], common[near]


def candidate_counts(
    sets: Ragged, keys: Ragged, measure: Measure, weights: Weights
) -> CandidateCounts | None:
    """Estimate the number of candidate pairs in the input; None if the sample has too many."""
    _, members = distinct(keys.values)
    if float(members @ (members - 1)) / 2 > MAX_CANDIDATES:
        return None
    sizes, maps = sets.sizes, wide_bitmaps(sets)
    candidates = verified = 0.0
    seen = 0
    for left, right, _ in _pairs_that_share(keys, sizes, measure):
        weight = weights.of(left, right)
        candidates += float(weight.sum())
        verified += float(weight @ may_reach(measure, maps, sizes, left, right))
        seen += len(left)
    return CandidateCounts(candidates, verified, seen)


def parsed(sample: LineSample, parse: Parser) -> tuple[Batch, Weights, int]:
    """Return a sample's records, their weights, and how many lines are bad.

    StageError if there are fewer than two records.
    """
    batch, bad = parse(as_block(sample.lines))
    good = np.ones(len(sample.lines), dtype=bool)
    good[[*(line.number for line in bad), *batch.without_shingles]] = False
    return batch, Weights.of_sample(sample, good), len(bad)


@dataclass(frozen=True)
class Survey:
    batch: Batch  # the sampled records that were compared
    weights: Weights
    whole: bool  # True if the batch is the whole input
    bad: int  # number of sampled lines that are not records
    measure: SetMeasure
    likeness: Likeness

    @classmethod
    def of(cls, sample: LineSample, parse: Parser, measure: SetMeasure, seed: int) -> Survey:
        """Parse and compare a sample; StageError if it has fewer than two records."""
        batch, weights, bad = parsed(sample, parse)
        n, out = len(batch.ids), bad + len(batch.without_shingles)
        _, holders = distinct(batch.sets.values)
        fit = n * min(1.0, (MAX_SHARED / max(int(holders @ holders), 1)) ** 0.5)
        # In random order: a part of them is a sample, too.
        order = np.random.default_rng(seed).permutation(n)[: max(2, int(fit))]
        batch, weights = batch.take(order), weights.take(order)
        found = likeness(batch.sets, measure, weights)
        whole = sample.whole and len(order) == n and n + out == round(sample.total)
        return cls(batch, weights, whole, bad, measure, found)

    def __len__(self) -> int:
        return len(self.batch.ids)

    @property
    def records(self) -> float:
        """The estimated number of records in the whole input."""
        return len(self) * self.weights.records

    @cached_property
    def line_sizes(self) -> np.ndarray:
        """The bytes of each record in a keyed line, after the key: int64 (n,)."""
        some = zip(self.batch.sets.sizes.tolist(), self.batch.ids, encode_sets(self.batch.sets))
        return np.array([len(b"\t%08d\t%b\t%b\n" % record) for record in some], np.int64)

    @property
    def tokens(self) -> float:
        """The estimated number of tokens in the whole input."""
        return len(self.batch.sets.values) * self.weights.records

    @cached_property
    def counted(self) -> tuple[Survey, TokenCounts]:
        """Two halves of the sample: a survey, and token counts; both are all of it if `whole`.

        Subtle: tokens are counted in one half of the sample, and records of the other half are
        compared.  Otherwise a token that two compared records share would never be rare.
        """
        sets = self.batch.sets
        if self.whole:
            return self, TokenCounts.of_sets(sets)
        compared, counting = np.arange(0, len(self), 2), np.arange(1, len(self), 2)
        counted = sets.take(counting)
        scale = self.records / len(counting)
        tokens, known = distinct(counted.values)
        every, _ = distinct(sets.values)
        seen = np.zeros(len(every))
        seen[np.searchsorted(every, tokens)] = known
        # A token that was not counted is in some records, too; only the order of tokens matters.
        frequencies = np.maximum(2, (seen + 0.5) * scale).astype(np.int64)
        sizes, holders = distinct(sets.sizes)
        holders = np.maximum(1, holders * self.weights.records).astype(np.int64)
        counts = TokenCounts(sizes, holders, every, frequencies, counted)
        half = replace(self, batch=self.batch.take(compared), weights=self.weights.take(compared))
        return half, counts


# ---- settings, and what they cost


def number(value: float) -> str:
    """Format a number with at most three significant digits: 63,100 or 2.35."""
    digits = float(f"{value:.3g}")
    return f"{digits:,.0f}" if digits >= 100 or digits == int(digits) else f"{digits:g}"


def short(value: float) -> str:
    """Format a number with at most three significant digits, and with k, M or G if it is large.

    >>> short(27_012_345), short(381.5), short(5.04e9)
    ('27M', '382', '5.04G')
    """
    for unit, letter in (10**9, "G"), (10**6, "M"), (10**4, "k"):
        if value >= unit * 0.9995:
            scale = 1000 if letter == "k" else unit
            return f"{float(f'{value / scale:.3g}'):g}{letter}"
    return number(value)


class Setting(NamedTuple):
    name: str  # in the table
    flags: list[str]  # the options that select this setting


class Cost(NamedTuple):
    """The estimated recall and cost of a setting for the whole input.

    at_threshold, of_pairs: recall of a pair at the threshold, and of all pairs; candidates,
    verified: see `CandidateCounts`; shuffled: bytes that mapper.py writes; counted: tokens.
    """

    choice: Setting
    at_threshold: float
    of_pairs: float
    records: float
    keys: float
    candidates: float
    verified: float
    shuffled: float
    counted: float

    @property
    def work(self) -> float:
        return self.keys + self.candidates + self.counted


def choices(measure: SetMeasure, like: str, recall: float) -> Iterator[Setting]:
    """Yield settings of a run that promise at least `recall` for the pairs by a measure.

    like: the measure without parameters whose schemes find these pairs (`promised_as`).

    >>> from neardup.similarity.measures import NINE_TENTHS, Jaccard
    >>> list(choices(Jaccard(NINE_TENTHS), "jaccard", 0.9999))[2]
    Setting(name='8 × 3', flags=['--bands=8', '--rows=3'])
    """
    least = measure.resemblance
    if like in minhash.MinHash.measures and least is not None:
        for rows in range(1, banding.MAX_ROWS + 1):
            bands = banding.bands_needed(float(least), rows, recall)
            if bands <= MAX_BANDS:
                yield Setting(f"{bands} × {rows}", [f"--bands={bands}", f"--rows={rows}"])
    for other, scheme in SCHEMES.items():
        if scheme is not minhash.MinHash and scheme.keeps_recall and like in scheme.measures:
            if banding.RECALL not in scheme.options:
                yield Setting(other, ["--exact" if other == "exact" else f"--scheme={other}"])
            elif least and banding.bands_needed(float(least), 1, recall) <= minhash.MAX_BANDS_ASKED:
                yield Setting(other, [f"--scheme={other}", f"--recall={recall}"])


def cost(survey: Survey, choice: Setting, asked: list[str]) -> Cost:
    """Estimate the recall and cost of a setting; `asked`: the options that define a pair."""
    options = Options.from_arguments([*asked, *choice.flags])
    part, counts = survey.counted if counts_first(options) else (survey, None)
    scheme = Settings.of(options, counts).scheme
    keys = scheme.keys(part.batch.sets)
    found = _candidate_counts(part, scheme, keys)
    each = part.weights.records
    return Cost(
        choice,
        *_recall(scheme, survey),
        survey.records,
        len(keys.values) * each,
        found.candidates,
        found.verified,
        shuffled=float(keys.sizes @ (part.line_sizes + KEY_WIDTH)) * each,
        counted=survey.tokens if counts else 0,
    )


def _candidate_counts(survey: Survey, scheme: Scheme, keys: Ragged) -> CandidateCounts:
    found = candidate_counts(survey.batch.sets, keys, survey.measure, survey.weights)
    known = survey.likeness
    if survey.whole and found:
        return found
    if isinstance(scheme, minhash.MinHash) and (found is None or found.seen < ENOUGH_CANDIDATES):
        b, r = scheme.bands, scheme.rows
        candidates = known.sharing(known.window, b, r)
        verified = known.sharing(known.possible, b, r)
    elif found is None:  # too many share a key to count them: assume that all do
        candidates = verified = float(known.window.sum())
    else:
        candidates, verified = found.candidates, found.verified
    pairs = float(known.matches.sum())  # all of them are candidates
    return CandidateCounts(max(candidates, pairs), max(verified, pairs), 0)


def _recall(scheme: Scheme, survey: Survey) -> tuple[float, float]:
    """Return a scheme's expected recall for a pair at the threshold, and for all similar pairs."""
    least = survey.measure.resemblance
    if least is None:
        return scheme.recall(0.0), scheme.recall(0.0)
    known, t = survey.likeness, float(least)
    if known.seen >= ENOUGH_SEEN:
        some = np.flatnonzero(known.matches)
        similarity, pairs = np.maximum(known.resemblance[some], t), known.matches[some]
    else:
        similarity = np.linspace(t, 1, MODEL)
        pairs = np.ones(MODEL)
    missed = float(pairs @ [1 - scheme.recall(s) for s in similarity.tolist()] / pairs.sum())
    return scheme.recall(t), min(1 - missed, banding.NEARLY_ONE) if missed else 1.0


def costs(survey: Survey, some: Iterable[Setting], asked: list[str], enough: int) -> list[Cost]:
    """Estimate the costs of settings; leave out bandings whose keys alone are too much work.

    At least `enough` settings are returned.
    """
    found: list[Cost] = []
    for choice in some:
        bands = int(choice.name.split(" × ")[0]) if "×" in choice.name else 0
        if len(found) < enough or bands * survey.records <= best(found).work:
            found.append(cost(survey, choice, asked))
    return found


def best(costs: list[Cost]) -> Cost:
    """Return the setting with the least work; ties go to the one that sends the fewest bytes."""
    return min(costs, key=lambda each: (each.work, each.shuffled))


def worth_showing(costs: list[Cost], how_many: int, always: Cost) -> list[Cost]:
    """Return `always`, and up to `how_many` settings of least work that no other one dominates.

    A setting dominates another if it has no more keys, and fewer candidates.
    """
    least: list[Cost] = []
    for each in sorted(costs, key=lambda each: each.work):
        if not any(one.keys <= each.keys and one.candidates < each.candidates for one in costs):
            least.append(each)
    least = least[:how_many]
    return [each for each in costs if each in least or each is always]
