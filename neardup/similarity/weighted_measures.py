"""Measures of weighted sets, exactly: sums of whole numbers, which are compared as fractions.

    jaccard   Σ min(x_i, y_i) / Σ max(x_i, y_i)
    dice      2·Σ min(x_i, y_i) / (Σ x_i + Σ y_i)
    cosine    Σ x_i·y_i / √(Σ x_i² · Σ y_i²)

x_i and y_i are the weights of token i, 0 where a set has it not.  With Σ min for what two sets
share and Σ x_i for their sizes, the first two are the formulas of plain sets; where all weights are
1, all three are.  Similarities do not change when all weights are multiplied by one number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neardup.sets.common_places import common_places
from neardup.sets.ragged import Ragged
from neardup.sets.runs import starts_of_runs
from neardup.similarity.measures import (
    MEASURES,
    Measure,
    SetMeasure,
    UnboundedMeasure,
    Verified,
    cosine_reached,
    millionths,
)
from neardup.similarity.threshold import MAX_DENOMINATOR, Threshold
from neardup.similarity.weights import TokenWeights


@dataclass(frozen=True)
class MinSum(UnboundedMeasure):
    """A set measure, of sets in which each token counts by its weight.

    >>> tokens, weights = np.array([1, 2, 1, 2], np.uint64), np.array([4, 1, 1, 4])
    >>> sets = Ragged(tokens, np.array([0, 2, 4]), weights)
    >>> measure = MinSum(MEASURES["jaccard"](Threshold.parse("0.2")), TokenWeights())
    >>> [column.tolist() for column in measure.verified(sets, np.array([0]), np.array([1]))]
    [[0], [1], [2], [8]]
    """

    measure: SetMeasure
    weights: TokenWeights

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        weights = self.weights.of(sets)
        totals = _sums(weights, sets.offsets)
        if 2 * int(totals.max(initial=0)) * MAX_DENOMINATOR >> 63:
            totals = totals.astype(object)  # Python's integers, that have no end
        x, y = totals[left], totals[right]
        possible = np.flatnonzero(self.measure.may_reach(np.minimum(x, y), x, y))
        left, right, x, y = left[possible], right[possible], x[possible], y[possible]
        places = common_places(sets, left, right)
        shared = np.minimum(weights[places.left], weights[places.right])
        common = _sums_of_pairs(shared, places.pair, len(left)).astype(totals.dtype)
        good = self.measure.may_reach(common, x, y)
        fraction = self.measure.fraction(common[good], x[good], y[good])
        return Verified(left[good], right[good], *fraction)


@dataclass(frozen=True)
class WeightedCosine(UnboundedMeasure):
    """The cosine of the angle between two weighted sets.

    >>> tokens, weights = np.array([1, 2, 1, 2], np.uint64), np.array([4, 1, 1, 4])
    >>> sets = Ragged(tokens, np.array([0, 2, 4]), weights)
    >>> measure = WeightedCosine(Threshold.parse("0.4"), TokenWeights())
    >>> [column.tolist() for column in measure.verified(sets, np.array([0]), np.array([1]))]
    [[0], [1], [470588], [1000000]]
    """

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
        good = cosine_reached(self.threshold, dot, x, y)
        fraction = millionths(dot[good], x[good], y[good])
        return Verified(left[good], right[good], *fraction)


def weighted_measure(name: str, threshold: Threshold, weights: TokenWeights | None) -> Measure:
    """The measure of that name for sets with these weights."""
    measure = MEASURES[name](threshold)
    if weights is None:
        return measure
    if name == "cosine":
        return WeightedCosine(threshold, weights)
    return MinSum(measure, weights)


def _sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Of each row, none of which is empty; of Python's integers, too."""
    return np.add.reduceat(values, offsets[:-1]) if len(values) else values[:0]


def _sums_of_pairs(values: np.ndarray, pair: np.ndarray, count: int) -> np.ndarray:
    """Of each of `count` pairs, 0 where it has none; `pair` is ascending."""
    sums = np.zeros(count, dtype=values.dtype)
    starts = starts_of_runs(pair)
    if len(starts):
        sums[pair[starts]] = np.add.reduceat(values, starts)
    return sums
