"""What MergeOpt adds up over the tokens that two records share, and how much of it a pair has.

Letters: t the threshold; x and y two records, x_i and y_i the weights of token i in them.

    SharedMinima     Σ min(x_i, y_i); a pair has t/(1+t)·(Σx_i + Σy_i): that is Jaccard.
                     No partner of y has a total below t·Σy_i.  Where all weigh 1, that is of sets.
    SharedProducts   Σ u_i·v_i, of u_i = x_i/|x| and v_i = y_i/|y|; a pair has t: that is cosine.
                     No partner of y has only tokens with u_i < t/Σv_i.

All are Python's integers, which have no end.  u_i is rounded up to a multiple of 2^-32, so the sum
of products is a bound that no pair is below; who reaches it is decided by the weights themselves,
(Σ x_i·y_i)² ≥ t²·Σx_i²·Σy_i².
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import isqrt
from typing import Callable, ClassVar, Protocol

import numpy as np

from neardup.sets.ragged import Ragged
from neardup.similarity.threshold import Threshold

BITS = 32


class Sum(Protocol):
    """The rows that are not empty as records 0 … n-1, in an order in which partners are near."""

    row: np.ndarray
    """int64 (n,): the row number of each record."""
    tokens: list[list[int]]
    weights: list[list[int]]
    """Of the tokens of each record, as they go into the sum."""
    first: list[int]
    """Records first[y] … y-1 may be partners of y."""
    filter: ClassVar[str]
    """What it is by which the others may not."""

    def term(self, one: int, other: int) -> int:
        """What a token adds; no more with a smaller weight."""
        ...

    def terms(self, weights: Sequence[int], own: int, heaviest: int) -> Sequence[int]:
        """What a token adds with each of these weights, none of which is above the heaviest."""
        ...

    def least(self, y: int) -> int:
        """No pair of y and a record before it has less."""
        ...

    def needed(self, x: int, y: int) -> int:
        """What these two need."""
        ...

    def exactly(self, x: int, y: int, total: int) -> int | None:
        """The sum of the weights as they were, if two that have a total of `needed` are a pair."""
        ...


class SharedMinima:
    """
    >>> rows = Ragged(np.array([5, 7, 7], np.uint64), np.array([0, 2, 3]), np.array([1, 9, 8]))
    >>> sums = SharedMinima(rows, Threshold.parse("0.8"))
    >>> sums.weights, sums.first, sums.least(1), sums.needed(0, 1)
    ([[8], [1, 9]], [0, 0], 8, 8)
    """

    filter: ClassVar[str] = "length"

    def __init__(self, rows: Ragged, threshold: Threshold):
        weights = _lists(rows, rows.weighed())
        totals = [sum(some) for some in weights]
        self.row, self._totals = _ascending(totals)
        self.tokens = [rows.row(i).tolist() for i in self.row.tolist()]
        self.weights = [weights[i] for i in self.row.tolist()]
        self._t, self._both = threshold, threshold.num + threshold.den
        self.first = [bisect_left(self._totals, self.least(y)) for y in range(len(self.row))]

    def term(self, one: int, other: int) -> int:
        return one if one < other else other

    def terms(self, weights: Sequence[int], own: int, heaviest: int) -> Sequence[int]:
        if heaviest <= own:
            return weights
        return [weight if weight < own else own for weight in weights]

    def least(self, y: int) -> int:
        return self._t.smallest_partner(self._totals[y])

    def needed(self, x: int, y: int) -> int:
        return -(-(self._totals[x] + self._totals[y]) * self._t.num // self._both)

    def exactly(self, x: int, y: int, total: int) -> int | None:
        return total


class SharedProducts:
    """
    >>> rows = Ragged(np.array([5, 7, 7], np.uint64), np.array([0, 2, 3]), np.array([3, 4, 8]))
    >>> sums = SharedProducts(rows, Threshold.parse("0.8"))
    >>> sums.tokens, sums.first, sums.exactly(0, 1, 0)
    ([[5, 7], [7]], [0, 0], 32)
    """

    filter: ClassVar[str] = "heaviest token"

    def __init__(self, rows: Ragged, threshold: Threshold):
        weights = _lists(rows, rows.weighed())
        units = [_unit(some) for some in weights]
        self.row, largest = _ascending([max(some, default=0) for some in units])
        self.tokens = [rows.row(i).tolist() for i in self.row.tolist()]
        self.weights = [units[i] for i in self.row.tolist()]
        self._own = [weights[i] for i in self.row.tolist()]
        self._t = threshold
        self._least = -((-threshold.num << 2 * BITS) // threshold.den)
        self.first = [bisect_left(largest, -(-self._least // sum(some))) for some in self.weights]

    def term(self, one: int, other: int) -> int:
        return one * other

    def terms(self, weights: Sequence[int], own: int, heaviest: int) -> Sequence[int]:
        return [weight * own for weight in weights]

    def least(self, y: int) -> int:
        return self._least

    def needed(self, x: int, y: int) -> int:
        return self._least

    def exactly(self, x: int, y: int, total: int) -> int | None:
        mine, yours = self._own[x], self._own[y]
        by_token = dict(zip(self.tokens[x], mine))
        dot = sum(by_token.get(i, 0) * weight for i, weight in zip(self.tokens[y], yours))
        squares = sum(w * w for w in mine) * sum(w * w for w in yours)
        return dot if (dot * self._t.den) ** 2 >= squares * self._t.num**2 else None


def dice(rows: Ragged, threshold: Threshold) -> SharedMinima:
    """Dice reaches t exactly where Jaccard reaches t / (2 - t)."""
    return SharedMinima(rows, Threshold(threshold.num, 2 * threshold.den - threshold.num))


SUMS: dict[str, Callable[[Ragged, Threshold], Sum]] = {
    "jaccard": SharedMinima,
    "dice": dice,
    "cosine": SharedProducts,
}


def _lists(rows: Ragged, flat: np.ndarray) -> list[list[int]]:
    """What belongs to the values of each row."""
    numbers, ends = flat.tolist(), rows.offsets.tolist()
    return [numbers[low:high] for low, high in zip(ends, ends[1:])]


def _ascending(numbers: list[int]) -> tuple[np.ndarray, list[int]]:
    """Where those that are not 0 stand, in ascending order (ties: the first first), and they."""
    some = [i for i, number in enumerate(numbers) if number]
    some.sort(key=numbers.__getitem__)
    return np.array(some, dtype=np.int64), [numbers[i] for i in some]


def _unit(weights: list[int]) -> list[int]:
    """Divided by their length, in steps of 2^-32, rounded up."""
    square = sum(weight * weight for weight in weights)
    return [1 + isqrt((weight * weight << 2 * BITS) // square) for weight in weights]
