"""What a join gives: the pairs, and how many candidates each of its filters has left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Joined:
    """Pairs of row numbers, ascending, and their overlaps.

    left, right, common: int64 arrays of shape (P,), left < right; what weighted rows share are
    sums of weights, Python's integers (object).
    candidates: filter → how many pairs are left after it, in the order of the filters; before them
    comes "all" that are no empty row's, and after them "pairs", which is P.
    """

    left: np.ndarray
    right: np.ndarray
    common: np.ndarray
    candidates: dict[str, int]

    @classmethod
    def of(
        cls,
        row: np.ndarray,
        found: np.ndarray | Sequence[tuple[int, int, int]],
        candidates: dict[str, int],
    ) -> Joined:
        """From (x, y, overlap) of records that are numbered in another order.

        row: the row number of each record (int64); found: shape (P, 3), int64 or object.

        >>> joined = Joined.of(np.array([5, 9, 7]), [(1, 2, 30), (0, 2, 40)], {"all": 3})
        >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist()
        ([5, 7], [7, 9], [40, 30])
        >>> joined.candidates
        {'all': 3, 'pairs': 2}
        """
        if not isinstance(found, np.ndarray):
            found = np.array(found, dtype=np.int64)
        ends, common = found.reshape(-1, 3)[:, :2].astype(np.int64), found.reshape(-1, 3)[:, 2]
        x, y = ends.T
        left, right = np.minimum(row[x], row[y]), np.maximum(row[x], row[y])
        order = np.lexsort((right, left))
        counts = {**candidates, "pairs": len(order)}
        return cls(left[order], right[order], common[order], counts)
