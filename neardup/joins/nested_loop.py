"""The nested loop: the definition of a join, and the oracle of the tests.

It compares every two rows, n·(n-1)/2 of them, and leaves nothing out.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from neardup.joins.joined import Joined
from neardup.sets.ragged import Ragged
from neardup.similarity.definitions import resemblance
from neardup.similarity.threshold import Threshold


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
