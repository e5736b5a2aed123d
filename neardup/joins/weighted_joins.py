"""All-Pairs: a prefix join, here of weighted rows by Jaccard, Dice, cosine or containment.

With W(x) the total weight of a row, or for the cosine the sum of its squared weights, a pair shares

    jaccard       2t/(1+t)·W(x) and t·W(y), where W(x) ≤ W(y)
    dice          t·W(x) and t/(2-t)·W(y): that is Jaccard of t/(2-t)
    cosine        t²·W(x) and t²·W(y), by the inequality of Cauchy and Schwarz
    containment   t·W(x), where W(x) ≤ W(y)

Tokens are ordered, the rarest first.  If a row must share α, its first common token is in its
*prefix*: the tokens from which on the row still has α or more.  So a token that very many rows have
is looked up for few of them.  Each pair that shares a token of its prefixes is verified.  (Prefix
filter: Chaudhuri, Ganti, Kaushik, ICDE 2006; All-Pairs: Bayardo, Ma, Srikant, WWW 2007.)

Letters: t the threshold; x, y rows; W totals.  Cost: a hit for each token of a prefix and each row
that has it in its own, and a merge of both rows for each candidate pair.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Callable, NamedTuple

import numpy as np

from neardup.joins.filters import ranks
from neardup.joins.inverted_index import InvertedIndex, Joined
from neardup.sets.ragged import PAIR_STEP, Ragged, chunks, in_rows
from neardup.similarity.measures import Threshold
from neardup.similarity.weighted_measures import TokenWeights, weighted_measure

JACCARD, CONTAINMENT, COSINE = "jaccard", "containment", "cosine"
Wanted = Callable[[np.ndarray, np.ndarray], np.ndarray]  # row numbers of pairs → bool
# The shares of W(x) and of W(y) that rows of a pair have in common.
SHARES: dict[str, Callable[[Fraction], tuple[Fraction, Fraction]]] = {
    JACCARD: lambda t: (2 * t / (1 + t), t),
    "dice": lambda t: (t, t / (2 - t)),
    COSINE: lambda t: (t * t, t * t),
    CONTAINMENT: lambda t: (t, Fraction(0)),
}


class RowPairs(NamedTuple):
    """Pairs of rows x, y and their common weight; x has the smaller total (ties: lower row number).

    x, y: int64 (P,), row numbers; common: int64 or Python's integers (P,), the numerator of the
    similarity: for Jaccard and containment the total weight of the common tokens; compared: how
    many pairs were compared.
    """

    x: np.ndarray
    y: np.ndarray
    common: np.ndarray
    compared: int


def every_pair(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.ones(len(x), bool)


def totals(rows: Ragged) -> np.ndarray:
    """Return the total weight of each row (int64 (n,))."""
    return _totals(rows, rows.weighed())


def _totals(rows: Ragged, weights: np.ndarray) -> np.ndarray:
    return np.diff(np.append(0, np.cumsum(weights))[rows.offsets])


def all_pairs(rows: Ragged, threshold: Threshold) -> Joined:
    """Return the pairs of rows whose resemblance reaches the threshold."""
    return weighted_all_pairs(rows.bare(), JACCARD, threshold)


def weighted_all_pairs(
    rows: Ragged, measure: str, threshold: Threshold, filtered: bool = True
) -> Joined:
    """Return the pairs of weighted rows whose jaccard, dice or cosine reaches the threshold.

    >>> tokens, weights = np.array([5, 7, 5, 7], np.uint64), np.array([1, 9, 2, 8])
    >>> rows = Ragged(tokens, np.array([0, 2, 4]), weights)
    >>> joined = weighted_all_pairs(rows, "jaccard", Threshold.parse("9/11"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.candidates
    ([0], [1], {'all': 1, 'prefix': 1, 'pairs': 1})
    """
    *pairs, compared = contained_rows(rows, measure, threshold, filtered=filtered)
    n = int((rows.sizes > 0).sum())
    counts = {"all": n * (n - 1) // 2, "prefix" if filtered else "a common shingle": compared}
    return Joined.of(np.arange(len(rows)), np.column_stack(pairs), counts)


def weighted_nested_loop(rows: Ragged, measure: str, threshold: Threshold) -> Joined:
    """Return the same pairs, by any measure: all rows that share a token are compared."""
    return weighted_all_pairs(rows, measure, threshold, filtered=False)


def contained_rows(
    rows: Ragged,
    measure: str,
    threshold: Threshold,
    wanted: Wanted = every_pair,
    filtered: bool = True,
) -> RowPairs:
    """Return the pairs of rows that pass `wanted`, share a token and reach the threshold.

    filtered: look up the tokens of prefixes alone

    >>> rows = Ragged.from_rows([[1, 2, 3], [1, 2], [7]])
    >>> contained_rows(rows, "containment", Threshold.parse("1"))
    RowPairs(x=array([1]), y=array([0]), common=array([2]), compared=1)
    """
    rows, compared = _rarest_first(rows), 0
    weights = _squares(rows) if measure == COSINE else rows.weighed()
    total, asking, holding = _totals(rows, weights), rows, rows
    if filtered:
        shares = SHARES[measure](Fraction(threshold.num, threshold.den))
        asking, holding = (_prefixes(rows, weights, total, share) for share in shares)
    place = np.empty(len(rows), np.int64)
    place[np.lexsort((np.arange(len(rows)), total))] = np.arange(len(rows))
    exact = weighted_measure(measure, threshold, TokenWeights())
    found: list[Any] = [np.empty((3, 0), np.int64)]
    for x, y, _ in InvertedIndex.of(holding).overlaps(asking):
        once = place[x] < place[y]
        x, y = x[once], y[once]
        kept = wanted(x, y)
        x, y = x[kept], y[kept]
        compared += len(x)
        for low, high in chunks(rows.sizes[x] + rows.sizes[y], PAIR_STEP):
            both = np.concatenate((x[low:high], y[low:high]))
            numbers, at = np.unique(both, return_inverse=True)
            pairs = exact.verified(rows.take(numbers), *np.split(at, 2))
            found.append((numbers[pairs.left], numbers[pairs.right], pairs.part))
    left, right, common = map(np.concatenate, zip(*found))
    return RowPairs(left, right, common, compared)


def _rarest_first(rows: Ragged) -> Ragged:
    """Renumber tokens, the rarest as 0."""
    tokens, _ = ranks(rows.values)
    order = in_rows(tokens, np.repeat(np.arange(len(rows)), rows.sizes))
    return Ragged(tokens[order], rows.offsets, rows.weighed()[order])


def _squares(rows: Ragged) -> np.ndarray:
    """Return the squared weights: int64, or Python's integers where a row's sum would be larger."""
    weights = rows.weighed()
    large = int(weights.max(initial=0)) ** 2 * int(rows.sizes.max(initial=0)) >> 62
    weights = weights.astype(object) if large else weights
    return weights * weights


def _prefixes(rows: Ragged, weights: np.ndarray, total: np.ndarray, share: Fraction) -> Ragged:
    """Return row prefixes: tokens that, with all later ones, weigh `share` of the row or more."""
    num, den = share.numerator, share.denominator
    needed = [max(1, -(-each * num // den)) for each in total.tolist()]
    before = np.append(0, np.cumsum(weights))
    row = np.repeat(np.arange(len(rows)), rows.sizes)
    rest = before[rows.offsets[1:]][row] - before[:-1]
    return rows.where((rest >= np.array(needed, weights.dtype)[row]).astype(bool))
