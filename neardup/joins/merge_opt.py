"""MergeOpt: a join that merges short postings lists, and looks up records in the longest ones.

A partner of y shares T = ⌈t·|y|⌉ tokens with it or more, so T-1 of y's lists cannot make a pair by
themselves (Sarawagi, Kirpal, SIGMOD 2004).  The longest ones are set aside and the others merged;
only the records found there are looked up in the long lists, the shortest first, while the overlap
can still be reached.

With weights, a list counts by the most that its token can add, given its weight in y and the
heaviest one in the list.  What is added up:

    SharedMinima     Σ min(x_i, y_i); a pair has t/(1+t)·(Σx_i + Σy_i): that is Jaccard.
                     No partner of y has a total below t·Σy_i.  With weights of 1: sets.
    SharedProducts   Σ u_i·v_i, with u_i = x_i/|x| and v_i = y_i/|y|; a pair has t: that is cosine.
                     No partner of y has only tokens with u_i < t/Σv_i.

All are Python's integers, which cannot overflow.  u_i is rounded up to a multiple of 2^-32, so the
sum of products is an upper bound; the weights themselves decide: (Σ x_i·y_i)² ≥ t²·Σx_i²·Σy_i².

Letters: t the threshold; x and y two records, x_i and y_i the weights of token i in them.  Cost:
one step for each posting of the short lists, and a binary search for each lookup in a long one.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import isqrt

import numpy as np

from neardup.joins.inverted_index import Joined
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Threshold

BITS = 32


class SharedMinima:
    """Non-empty rows as records 0 … n-1 in order of total weight, compared by Σ min(x_i, y_i).

    row: int64 (n,), the row number of each record; tokens, weights: those of each record
    that are added up; first: records first[y] … y-1 may be partners of y, by `filter`.

    >>> rows = Ragged(np.array([5, 7, 7], np.uint64), np.array([0, 2, 3]), np.array([1, 9, 8]))
    >>> sums = SharedMinima(rows, Threshold.parse("0.8"))
    >>> sums.weights, sums.first, sums.least(1), sums.needed(0, 1)
    ([[8], [1, 9]], [0, 0], 8, 8)
    """

    filter = "length"

    def __init__(self, rows: Ragged, threshold: Threshold):
        self._t = threshold
        weights = _lists(rows, rows.weighed())
        self._set_order(rows, weights, [sum(some) for some in weights])
        self.first = [bisect_left(self._totals, self.least(y)) for y in range(len(self.row))]

    def _set_order(self, rows: Ragged, weights: list[list[int]], totals: list[int]) -> None:
        """Sort the records by `totals` (ties: by row); leave out records of total 0."""
        some = sorted((i for i, total in enumerate(totals) if total), key=totals.__getitem__)
        self.row = np.array(some, dtype=np.int64)
        self.tokens = [rows.row(i).tolist() for i in some]
        self.weights = [weights[i] for i in some]
        self._totals = [totals[i] for i in some]

    def term(self, one: int, other: int) -> int:
        """Return what a token adds to the sum, given its weights in two records."""
        return one if one < other else other

    def terms(self, weights: Sequence[int], own: int, heaviest: int) -> Sequence[int]:
        """Return what a token of weight `own` adds to sums for each of `weights` (≤ `heaviest`)."""
        if heaviest <= own:
            return weights
        return [weight if weight < own else own for weight in weights]

    def least(self, y: int) -> int:
        """Return a lower bound of the sum that y and an earlier record need to be a pair."""
        return self._t.smallest_partner(self._totals[y])

    def needed(self, x: int, y: int) -> int:
        """Return the minimum sum with which records x and y are a pair."""
        both = self._totals[x] + self._totals[y]
        return -(-both * self._t.num // (self._t.num + self._t.den))

    def exactly(self, x: int, y: int, total: int) -> "int | None":
        """Return the sum for the original weights, or None if records x and y are not a pair."""
        return total


class SharedProducts(SharedMinima):
    """Non-empty rows as records, compared by cosine; weights are divided by their Euclidean norm.

    >>> rows = Ragged(np.array([5, 7, 7], np.uint64), np.array([0, 2, 3]), np.array([3, 4, 8]))
    >>> sums = SharedProducts(rows, Threshold.parse("0.8"))
    >>> sums.tokens, sums.first, sums.exactly(0, 1, 0)
    ([[5, 7], [7]], [0, 0], 32)
    """

    filter = "heaviest token"

    def __init__(self, rows: Ragged, threshold: Threshold):
        self._t = threshold
        self._least = -((-threshold.num << 2 * BITS) // threshold.den)
        weights = _lists(rows, rows.weighed())
        units = [_unit(some) for some in weights]
        self._set_order(rows, units, [max(some, default=0) for some in units])
        self._own = [weights[i] for i in self.row.tolist()]
        bounds = [-(-self._least // sum(some)) for some in self.weights]
        self.first = [bisect_left(self._totals, bound) for bound in bounds]

    def term(self, one: int, other: int) -> int:
        return one * other

    def terms(self, weights: Sequence[int], own: int, heaviest: int) -> Sequence[int]:
        return [weight * own for weight in weights]

    def least(self, y: int) -> int:
        return self._least

    def needed(self, x: int, y: int) -> int:
        return self._least

    def exactly(self, x: int, y: int, total: int) -> "int | None":
        mine, yours = self._own[x], self._own[y]
        by_token = dict(zip(self.tokens[x], mine))
        dot = sum(by_token.get(i, 0) * weight for i, weight in zip(self.tokens[y], yours))
        squares = sum(w * w for w in mine) * sum(w * w for w in yours)
        return dot if (dot * self._t.den) ** 2 >= squares * self._t.num**2 else None


SUMS: dict[str, Callable[[Ragged, Threshold], SharedMinima]] = {
    "jaccard": SharedMinima,
    # Dice reaches t exactly where Jaccard reaches t / (2 - t).
    "dice": lambda rows, t: SharedMinima(rows, Threshold(t.num, 2 * t.den - t.num)),
    "cosine": SharedProducts,
}


def _lists(rows: Ragged, flat: np.ndarray) -> list[list[int]]:
    numbers, ends = flat.tolist(), rows.offsets.tolist()
    return [numbers[low:high] for low, high in zip(ends, ends[1:])]


def _unit(weights: list[int]) -> list[int]:
    """Return the weights divided by their Euclidean norm, as the next larger multiples of 2^-32."""
    square = sum(weight * weight for weight in weights)
    return [1 + isqrt((weight * weight << 2 * BITS) // square) for weight in weights]


def merge_opt(rows: Ragged, threshold: Threshold) -> Joined:
    """Return the pairs of rows whose resemblance reaches the threshold, by MergeOpt.

    >>> rows = Ragged.from_rows([[*range(9)], [*range(10)], [*range(5, 15)]])
    >>> joined = merge_opt(rows, Threshold.parse("0.9"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist(), joined.candidates
    ([0], [1], [9], {'all': 3, 'length': 3, 'merged': 1, 'pairs': 1})
    """
    return _joined(SharedMinima(rows.bare(), threshold), np.int64)


def weighted_merge_opt(rows: Ragged, measure: str, threshold: Threshold) -> Joined:
    """Return the pairs of weighted rows whose jaccard, dice or cosine reaches the threshold.

    >>> tokens, weights = np.array([5, 7, 5, 7], np.uint64), np.array([1, 9, 2, 8])
    >>> rows = Ragged(tokens, np.array([0, 2, 4]), weights)
    >>> joined = weighted_merge_opt(rows, "jaccard", Threshold.parse("9/11"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist()
    ([0], [1], [9])
    """
    return _joined(SUMS[measure](rows, threshold), object)


class Postings:
    """The postings list of a token: its records (ascending), weights, and largest weight."""

    def __init__(self) -> None:
        self.records: list[int] = []
        self.weights: list[int] = []
        self.heaviest = 0


Lists = list[tuple[Postings, int]]  # each with the weight of its token in the asking record


def _joined(sums: SharedMinima, kind: type) -> Joined:
    n = len(sums.row)
    near = sum(y - first for y, first in enumerate(sums.first))
    counts = {"all": n * (n - 1) // 2, sums.filter: near, "merged": 0}
    index: dict[int, Postings] = defaultdict(Postings)
    found = []
    for y, (tokens, weights) in enumerate(zip(sums.tokens, sums.weights)):
        lists = [(index[token], own) for token, own in zip(tokens, weights)]
        short, long, rest = _set_aside(lists, sums, sums.least(y))
        totals: dict[int, int] = defaultdict(int)
        for list_, own in short:
            start = bisect_left(list_.records, sums.first[y])
            terms = sums.terms(list_.weights[start:], own, list_.heaviest)
            for x, term in zip(list_.records[start:], terms):
                totals[x] += term
        counts["merged"] += len(totals)
        places = [0] * len(long)
        for x in sorted(totals):  # ascending, so that each search starts where the last one ended
            total, needed = totals[x], sums.needed(x, y)
            for k, (list_, own) in enumerate(long):
                if total + rest[k] < needed:
                    break
                place = places[k] = bisect_left(list_.records, x, places[k])
                if list_.records[place : place + 1] == [x]:
                    total += sums.term(list_.weights[place], own)
            if total >= needed and (common := sums.exactly(x, y, total)) is not None:
                found.append((x, y, common))
        for list_, own in lists:
            list_.records.append(y)
            list_.weights.append(own)
            list_.heaviest = max(list_.heaviest, own)
    return Joined.of(sums.row, np.array(found, dtype=kind), counts)


def _set_aside(lists: Lists, sums: SharedMinima, least: int) -> tuple[Lists, Lists, list[int]]:
    """Return short and long lists, and the most that each long list and all later ones can add."""
    lists = sorted(lists, key=lambda each: len(each[0].records))
    cut, most, rest = len(lists), 0, []
    for list_, own in reversed(lists):
        most += sums.term(list_.heaviest, own)
        if most >= least:
            break
        rest.append(most)
        cut -= 1
    return lists[:cut], lists[cut:], rest[::-1]
