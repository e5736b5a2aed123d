"""MergeOpt: merge the lists of tokens, the longest ones last.

What MergeOpt adds up over the tokens that two records share, and how much of it a pair has.

Letters: t the threshold; x and y two records, x_i and y_i the weights of token i in them.

    SharedMinima     Σ min(x_i, y_i); a pair has t/(1+t)·(Σx_i + Σy_i): that is Jaccard.
                     No partner of y has a total below t·Σy_i.  Where all weigh 1, that is of sets.
    SharedProducts   Σ u_i·v_i, of u_i = x_i/|x| and v_i = y_i/|y|; a pair has t: that is cosine.
                     No partner of y has only tokens with u_i < t/Σv_i.

All are Python's integers, which have no end.  u_i is rounded up to a multiple of 2^-32, so the sum
of products is a bound that no pair is below; who reaches it is decided by the weights themselves,
(Σ x_i·y_i)² ≥ t²·Σx_i²·Σy_i².

MergeOpt: merges whole lists of an index instead of prefixes, and sets the longest lists aside.

Sarawagi, Kirpal: Efficient Set Joins on Similarity Predicates (SIGMOD 2004).  A partner of y shares
T = ⌈t·|y|⌉ tokens with it or more.  Of the lists of y's tokens, T-1 long ones cannot make a
pair by themselves.  So the short ones are merged, and only the records met there are looked up in
the long ones, from the shortest list on, as long as the overlap can still be reached.

With weights a list counts by the most that its token can add: by what it weighs in y and, at most,
in the records of the list.  The longest lists are set aside while these bounds add up to
less than T, the least that a partner of y shares with it; and a lookup goes on while what is met,
and the bounds of the lists that are left, can still come to what that pair needs.

It leaves out prefixes and positions.  Where the paper merges by a heap, a table adds up.  Cost: a
look into the table for each entry of the short lists; a doubling search for each lookup in a long
one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from math import isqrt
from typing import Callable, ClassVar, Protocol

import numpy as np

from neardup.joins.inverted_index import Joined
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Threshold

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


def merge_opt(rows: Ragged, threshold: Threshold) -> Joined:
    """The pairs of rows whose resemblance reaches the threshold.

    >>> rows = Ragged.from_rows([[*range(9)], [*range(10)], [*range(5, 15)]])
    >>> joined = merge_opt(rows, Threshold.parse("0.9"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist(), joined.candidates
    ([0], [1], [9], {'all': 3, 'length': 3, 'merged': 1, 'pairs': 1})
    """
    sums = SharedMinima(rows.bare(), threshold)
    found, counts = _pairs(sums)
    return Joined.of(sums.row, found, counts)


def weighted_merge_opt(rows: Ragged, measure: str, threshold: Threshold) -> Joined:
    """The same by a measure of weighted rows: jaccard, dice or cosine.

    >>> tokens, weights = np.array([5, 7, 5, 7], np.uint64), np.array([1, 9, 2, 8])
    >>> rows = Ragged(tokens, np.array([0, 2, 4]), weights)
    >>> joined = weighted_merge_opt(rows, "jaccard", Threshold.parse("9/11"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist()
    ([0], [1], [9])
    """
    sums = SUMS[measure](rows, threshold)
    found, counts = _pairs(sums)
    return Joined.of(sums.row, np.array(found, dtype=object), counts)


class TokenList:
    """Of one token: the records that have it, ascending, its weight in each, and the heaviest."""

    __slots__ = ("heaviest", "records", "weights")

    def __init__(self) -> None:
        self.records: list[int] = []
        self.weights: list[int] = []
        self.heaviest = 0


def _pairs(sums: Sum) -> tuple[list[tuple[int, int, int]], dict[str, int]]:
    """(x, y, what they share) of records, and how many each filter leaves."""
    n = len(sums.row)
    near = sum(y - first for y, first in enumerate(sums.first))
    counts = {"all": n * (n - 1) // 2, sums.filter: near, "merged": 0}
    index: dict[int, TokenList] = defaultdict(TokenList)
    found = []
    for y, (tokens, weights) in enumerate(zip(sums.tokens, sums.weights)):
        lists = [(index[token], own) for token, own in zip(tokens, weights)]
        short, long, rest = _set_aside(lists, sums, sums.least(y))
        met: dict[int, int] = defaultdict(int)
        for list_, own in short:
            start = bisect_left(list_.records, sums.first[y])
            terms = sums.terms(list_.weights[start:], own, list_.heaviest)
            for x, term in zip(list_.records[start:], terms):
                met[x] += term
        counts["merged"] += len(met)
        places = [0] * len(long)
        for x in sorted(met):  # ascending, so that each search starts where the last one ended
            total, needed = met[x], sums.needed(x, y)
            for k, (list_, own) in enumerate(long):
                if total + rest[k] < needed:
                    break
                place = places[k] = doubling_search(list_.records, x, places[k])
                if list_.records[place : place + 1] == [x]:
                    total += sums.term(list_.weights[place], own)
            if total >= needed and (common := sums.exactly(x, y, total)) is not None:
                found.append((x, y, common))
        for list_, own in lists:
            list_.records.append(y)
            list_.weights.append(own)
            if own > list_.heaviest:
                list_.heaviest = own
    return found, counts


Lists = list[tuple[TokenList, int]]  # each with the weight of its token in the record that asks


def _set_aside(lists: Lists, sums: Sum, least: int) -> tuple[Lists, Lists, list[int]]:
    """Those to merge, those set aside, the shortest first, and what these can add from each on."""
    lists = sorted(lists, key=_length)
    cut, most, rest = len(lists), 0, []
    for list_, own in reversed(lists):
        most += sums.term(list_.heaviest, own)
        if most >= least:
            break
        rest.append(most)
        cut -= 1
    return lists[:cut], lists[cut:], rest[::-1]


def _length(list_: tuple[TokenList, int]) -> int:
    return len(list_[0].records)


def doubling_search(numbers: Sequence[int], wanted: int, start: int) -> int:
    """The first place from `start` on with a number ≥ `wanted`, which is thought to be near.

    >>> doubling_search([10, 20, 30, 40, 50, 60], 50, 1), doubling_search([10, 20], 99, 0)
    (4, 2)
    """
    low, step = start, 1
    while start + step <= len(numbers) and numbers[start + step - 1] < wanted:
        low = start + step
        step *= 2
    return bisect_left(numbers, wanted, low, min(start + step - 1, len(numbers)))
