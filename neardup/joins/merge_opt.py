"""MergeOpt: merges whole lists of an index instead of prefixes, and sets the longest lists aside.

Sarawagi, Kirpal: Efficient Set Joins on Similarity Predicates (SIGMOD 2004).  A partner of y shares
T = ⌈t·|y|⌉ tokens with it or more.  Of the lists of y's tokens, T-1 long ones cannot make a
pair by themselves.  So the short ones are merged, and only the records met there are looked up in
the long ones, from the shortest list on, as long as the overlap can still be reached.

With weights a list counts by the most that its token can add: by what it weighs in y and, at most,
in the records of the list (`sums`).  The longest lists are set aside while these bounds add up to
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

import numpy as np

from neardup.joins.joined import Joined
from neardup.joins.sums import SUMS, SharedMinima, Sum
from neardup.sets.ragged import Ragged
from neardup.similarity.threshold import Threshold


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
