"""A prefix join by Jaccard or containment; a token has the same weight in every row.

The weight of a token is, for example, the bytes of a file.  With W(x) the total of a row, a pair
shares a weight of

    jaccard       t/(1+t)·(W(x) + W(y)): at least t·W(y), and 2t/(1+t)·W(x), where W(x) ≤ W(y)
    containment   t·W(x), where W(x) ≤ W(y)

Tokens are ordered, the rarest first.  If a row must share a weight of α, its first common token is
in its *prefix*: the tokens from which on the row still has a weight of α or more.  So a token that
very many rows have is looked up for few of them.  (Prefix filter: Chaudhuri, Ganti, Kaushik, ICDE
2006.)

Letters: t the threshold; x, y rows; W total weights.  Cost: a hit for each token of a prefix and
each row that has it, and a merge of both rows for each candidate pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable, NamedTuple

import numpy as np

from neardup.joins.filters import ranks
from neardup.joins.inverted_index import InvertedIndex
from neardup.sets.ragged import PAIR_STEP, Ragged, chunks, shared
from neardup.similarity.measures import Threshold

JACCARD, CONTAINMENT = "jaccard", "containment"
Wanted = Callable[[np.ndarray, np.ndarray], np.ndarray]  # row numbers of pairs → bool


class RowPairs(NamedTuple):
    """Pairs of rows x, y and their common weight; x has the smaller total (ties: lower row number).

    x, y: int64 (P,), row numbers; common: int64 (P,), total weight of the common tokens.
    """

    x: np.ndarray
    y: np.ndarray
    common: np.ndarray


def every_pair(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.ones(len(x), bool)


def totals(rows: Ragged) -> np.ndarray:
    """Return the total weight of each row (int64 (n,))."""
    return np.diff(np.append(0, np.cumsum(rows.weighed()))[rows.offsets])


def contained_rows(
    rows: Ragged, measure: str, threshold: Threshold, wanted: Wanted = every_pair
) -> RowPairs:
    """Return the pairs of rows that pass `wanted`, share a token and reach the threshold.

    >>> rows = Ragged.from_rows([[1, 2, 3], [1, 2], [7]])
    >>> contained_rows(rows, "containment", Threshold.parse("1"))
    RowPairs(x=array([1]), y=array([0]), common=array([2]))
    """
    rows, weights = _rarest_first(rows)
    total, found = totals(rows), [RowPairs(*np.empty((3, 0), np.int64))]
    for x, y in _candidates(rows, total, measure, threshold):
        kept = wanted(x, y)
        x, y = x[kept], y[kept]
        for low, high in chunks(rows.sizes[x] + rows.sizes[y], PAIR_STEP):
            ends = x[low:high], y[low:high]
            pairs = RowPairs(*ends, totals(_weighed(shared(rows, *ends), weights)))
            reached = _reach(pairs, total, measure, threshold)
            found.append(RowPairs(*(column[reached] for column in pairs)))
    return RowPairs(*map(np.concatenate, zip(*found)))


def _rarest_first(rows: Ragged) -> tuple[Ragged, np.ndarray]:
    """Renumber tokens, the rarest as 0; return the rows, and the weight of each number (int64)."""
    renamed, many = ranks(rows.values)
    weights = np.zeros(many, np.int64)
    weights[renamed.astype(np.int64)] = rows.weighed()
    ordered = Ragged.from_unsorted(renamed, rows.sizes)
    return _weighed(ordered, weights), weights


def _weighed(rows: Ragged, weights: np.ndarray) -> Ragged:
    return Ragged(rows.values, rows.offsets, weights[rows.values.astype(np.int64)])


def _candidates(
    rows: Ragged, total: np.ndarray, measure: str, t: Threshold
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs (x, y) of rows that pass the prefix filter; x has the smaller total weight."""
    order = np.lexsort((np.arange(len(total)), total))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    asking = _prefixes(rows, total, t.num, t.den)
    holding = _prefixes(rows, total, 2 * t.num, t.num + t.den) if measure == JACCARD else rows
    for asker, holder, _ in InvertedIndex.of(holding).overlaps(asking):
        x, y = (holder, asker) if measure == JACCARD else (asker, holder)
        once = place[x] < place[y]
        yield x[once], y[once]


def _prefixes(rows: Ragged, total: np.ndarray, num: int, den: int) -> Ragged:
    """Return row prefixes: tokens that, with all later ones, weigh num/den of the row or more."""
    needed = np.array([max(1, -(-each * num // den)) for each in total.tolist()], np.int64)
    before = np.append(0, np.cumsum(rows.weighed()))
    row = np.repeat(np.arange(len(rows)), rows.sizes)
    rest = before[rows.offsets[1:]][row] - before[:-1]
    return rows.where(rest >= needed[row])


def _reach(pairs: RowPairs, total: np.ndarray, measure: str, t: Threshold) -> np.ndarray:
    """Return which pairs reach the threshold (bool), computed with integers of any size."""
    part = pairs.common.astype(object)
    whole = total[pairs.x] + (total[pairs.y] - pairs.common if measure == JACCARD else 0)
    return np.asarray(part * t.den >= whole.astype(object) * t.num, bool)
