"""Weights of tokens, and exact measures of weighted sets.

The weight of a token is its count in a record, depends on its rarity, or is given on the line.  The
idf weight of a token that df of N records have is 8·log2(N / df), rounded, from 1 to 255: its
inverse document frequency (Spärck Jones 1972) in eighths of a bit.  A token in half of all records
weighs 8, one in a thousandth of them 80.  A weight is k or more where N / df ≥ 2^((k - 1/2) / 8),
compared in integers: every machine gets the same weights.

Similarities are fractions of integers; x_i is the weight of token i in x, 0 if x lacks the token:

    jaccard   Σ min(x_i, y_i) / Σ max(x_i, y_i)
    dice      2·Σ min(x_i, y_i) / (Σ x_i + Σ y_i)
    cosine    Σ x_i·y_i / √(Σ x_i² · Σ y_i²)

With Σ min as the overlap of two sets and Σ x_i as the size of x, the first two are the formulas for
plain sets.
"""

from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import NamedTuple

import numpy as np

from neardup.sets.ragged import PAIR_STEP, Ragged, chunks, spans, starts_of_runs
from neardup.sets.token_counts import TokenCounts
from neardup.similarity import measures
from neardup.similarity.measures import Measure, SetMeasure, Threshold, UnboundedMeasure, Verified

MAX_WEIGHT = 255


@dataclass(eq=False)
class Idf:
    """The inverse document frequencies of tokens as integer weights.

    >>> counts = TokenCounts.of_sets(Ragged.from_rows([[5, 7], [5], [5, 9], [5, 7]]))
    >>> Idf(counts).of(np.array([5, 7, 9, 100], np.uint64)).tolist()
    [1, 8, 16, 16]
    """

    counts: TokenCounts

    def of(self, tokens: np.ndarray) -> np.ndarray:
        """Return the weights (int64, 1 … 255) of tokens (uint64)."""
        below = np.searchsorted(self._limits, self.counts.of(tokens))
        return np.maximum(len(self._limits) - below, 1)

    @cached_property
    def _limits(self) -> np.ndarray:
        """The maximum document frequency for weights 255, 254, … 1: int64, ascending, above 0."""
        power = self.counts.records**16
        roots = []
        for k in range(MAX_WEIGHT, 0, -1):  # ⌊x^(1/16)⌋: the floor of roots of floors
            roots.append(isqrt(isqrt(isqrt(isqrt(power >> 2 * k - 1)))))
        return np.array([root for root in roots if root], dtype=np.int64)


@dataclass(eq=False)
class TokenWeights:
    """The weighting of tokens: by repeats, by the input, by idf, or by several of these.

    repeats: weights are counts; own: weights are given on the line of the record.
    """

    repeats: bool = False
    own: bool = False
    idf: "Idf | None" = None

    def of(self, sets: Ragged) -> np.ndarray:
        """Return the weight of each token: int64 (T,), above 0."""
        weights = sets.weighed()
        return weights if self.idf is None else weights * self.idf.of(sets.values)

    @property
    def are_counts(self) -> bool:
        """True if the weights of a record add up to at most the number of tokens on its line."""
        return self.repeats and self.idf is None


class CommonPlaces(NamedTuple):
    """Values that both rows of a pair have: the pair, and two positions in `rows.values`."""

    pair: np.ndarray
    left: np.ndarray
    right: np.ndarray


def common_places(rows: Ragged, left: np.ndarray, right: np.ndarray) -> CommonPlaces:
    """Find the positions of the common values of each pair of rows (left[p], right[p]).

    >>> rows = Ragged.from_rows([[1, 5, 9], [5], [5, 9]])
    >>> [column.tolist() for column in common_places(rows, np.array([0, 1]), np.array([2, 2]))]
    [[0, 0, 1], [1, 2, 3], [4, 5, 4]]
    """
    found = [CommonPlaces(*(np.empty(0, np.int64) for _ in range(3)))]
    for low, high in chunks(rows.sizes[left] + rows.sizes[right], PAIR_STEP):
        step = _common_places(rows, left[low:high], right[low:high])
        found.append(step._replace(pair=step.pair + low))
    return CommonPlaces(*(np.concatenate(column) for column in zip(*found)))


def _common_places(rows: Ragged, left: np.ndarray, right: np.ndarray) -> CommonPlaces:
    """Compute `common_places` in one sort of words: pair number (high bits), then value."""
    sizes = [rows.sizes[side] for side in (left, right)]
    places = np.concatenate([spans(rows.offsets[r], n) for r, n in zip((left, right), sizes)])
    pair = np.concatenate([np.repeat(np.arange(len(left)), n) for n in sizes])
    values = rows.values[places]
    shift = 64 - len(left).bit_length()
    if len(values) and int(values.max()) >> shift:  # no room for the pair number
        values = np.unique(values, return_inverse=True)[1].astype(np.uint64)
    packed = values | pair.astype(np.uint64) << np.uint64(shift)
    order = np.argsort(packed, kind="stable")  # of equal words, the left row's is first
    first = np.flatnonzero(packed[order[1:]] == packed[order[:-1]])
    return CommonPlaces(pair[order[first]], places[order[first]], places[order[first + 1]])


@dataclass(eq=False)
class MinSum(UnboundedMeasure):
    """A measure of weighted sets in which the overlap is Σ min of the weights of common tokens.

    >>> tokens, weights = np.array([1, 2, 1, 2], np.uint64), np.array([4, 1, 1, 4])
    >>> sets = Ragged(tokens, np.array([0, 2, 4]), weights)
    >>> measure = MinSum(measures.Jaccard(Threshold.parse("0.2")), TokenWeights())
    >>> [column.tolist() for column in measure.verified(sets, np.array([0]), np.array([1]))]
    [[0], [1], [2], [8]]
    """

    measure: SetMeasure
    weights: TokenWeights

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        weights = self.weights.of(sets)
        totals = _sums(weights, sets.offsets)
        if 2 * int(totals.max(initial=0)) * measures.MAX_DENOMINATOR >> 63:
            totals = totals.astype(object)  # Python's integers
        x, y = totals[left], totals[right]
        possible = np.flatnonzero(self.measure.may_reach(np.minimum(x, y), x, y))
        left, right, x, y = left[possible], right[possible], x[possible], y[possible]
        places = common_places(sets, left, right)
        shared = np.minimum(weights[places.left], weights[places.right])
        common = _sums_of_pairs(shared, places.pair, len(left)).astype(totals.dtype)
        good = self.measure.may_reach(common, x, y)
        fraction = self.measure.fraction(common[good], x[good], y[good])
        return Verified(left[good], right[good], *fraction)


@dataclass(eq=False)
class WeightedCosine(UnboundedMeasure):
    """The measure cosine for weighted sets: the cosine of the angle between two sets."""

    threshold: Threshold
    weights: TokenWeights

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        weights = self.weights.of(sets)
        if int(weights.max(initial=0)) ** 2 * int(sets.sizes.max(initial=0)) >> 62:
            weights = weights.astype(object)
        squares = _sums(weights * weights, sets.offsets)
        x, y = squares[left], squares[right]
        places = common_places(sets, left, right)
        products = weights[places.left] * weights[places.right]
        dot = _sums_of_pairs(products, places.pair, len(left))
        good = measures.cosine_reached(self.threshold, dot, x, y)
        fraction = measures.millionths(dot[good], x[good], y[good])
        return Verified(left[good], right[good], *fraction)


def weighted_measure(name: str, threshold: Threshold, weights: TokenWeights) -> Measure:
    """Return the measure called `name` for sets with the given token weights."""
    if name == "cosine":
        return WeightedCosine(threshold, weights)
    return MinSum(measures.measure_of(name, threshold), weights)


def _sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the sum of each row (int64 or Python integers); no row may be empty."""
    return np.add.reduceat(values, offsets[:-1]) if len(values) else values[:0]


def _sums_of_pairs(values: np.ndarray, pair: np.ndarray, count: int) -> np.ndarray:
    """Return the sum of the values of each of `count` pairs (0 if none); `pair` must ascend."""
    sums = np.zeros(count, dtype=values.dtype)
    starts = starts_of_runs(pair)
    if len(starts):
        sums[pair[starts]] = np.add.reduceat(values, starts)
    return sums
