"""The nested loop: the definition of a join, and the oracle of the tests.

It compares every two rows, n·(n-1)/2 of them, and leaves nothing out.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Callable

import numpy as np

from neardup.joins.joined import Joined
from neardup.sets.ragged import Ragged
from neardup.similarity.definitions import (
    Weights,
    resemblance,
    squared_weighted_cosine,
    weighted_dice,
    weighted_resemblance,
)
from neardup.similarity.threshold import Threshold

# Of each measure of weighted rows: how similar two are, in which power, and what a token adds.
DEFINITIONS: dict[str, tuple[Callable[[Weights, Weights], Fraction], int, Callable[..., int]]] = {
    "jaccard": (weighted_resemblance, 1, min),
    "dice": (weighted_dice, 1, min),
    "cosine": (squared_weighted_cosine, 2, int.__mul__),
}


def nested_loop(rows: Ragged, threshold: Threshold) -> Joined:
    """The pairs of rows whose resemblance reaches the threshold; an empty row is in none.

    >>> rows = Ragged.from_rows([[*range(9)], [*range(10)], [*range(5, 15)], []])
    >>> joined = nested_loop(rows, Threshold.parse("0.9"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist(), joined.candidates
    ([0], [1], [9], {'all': 3, 'pairs': 1})
    """
    sets = [frozenset(rows.row(i).tolist()) for i in range(len(rows))]
    every = [(i, j) for i, j in combinations(range(len(sets)), 2) if sets[i] and sets[j]]
    found = [
        (i, j, len(sets[i] & sets[j]))
        for i, j in every
        if resemblance(sets[i], sets[j]) * threshold.den >= threshold.num
    ]
    return Joined.of(np.arange(len(sets)), found, {"all": len(every)})


def weighted_nested_loop(rows: Ragged, measure: str, threshold: Threshold) -> Joined:
    """The same by a measure of weighted rows: jaccard, dice or cosine.

    >>> tokens, weights = np.array([5, 7, 5, 7], np.uint64), np.array([1, 9, 2, 8])
    >>> rows = Ragged(tokens, np.array([0, 2, 4]), weights)
    >>> joined = weighted_nested_loop(rows, "cosine", Threshold.parse("0.99"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist()
    ([0], [1], [74])
    """
    similarity, power, term = DEFINITIONS[measure]
    least = Fraction(threshold.num, threshold.den) ** power
    ends, weights = rows.offsets.tolist(), rows.weighed()
    sets = [
        dict(zip(rows.values[low:high].tolist(), weights[low:high].tolist()))
        for low, high in zip(ends, ends[1:])
    ]
    every = [(i, j) for i, j in combinations(range(len(sets)), 2) if sets[i] and sets[j]]
    found = [
        (i, j, sum(term(sets[i][token], sets[j][token]) for token in sets[i].keys() & sets[j]))
        for i, j in every
        if similarity(sets[i], sets[j]) >= least
    ]
    return Joined.of(np.arange(len(sets)), np.array(found, dtype=object), {"all": len(every)})
