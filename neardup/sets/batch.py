"""Batches: some thousand records at a time, the unit of work of every stage.

numpy pays only in bulk: parsing all tokens of a block of lines at once takes a tenth of the time
of `split` and `int`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neardup.sets.ragged import Ragged


@dataclass(frozen=True)
class Batch:
    """Records: `ids[i]` has the shingles `sets.row(i)`, ascending and distinct, at least one."""

    ids: list[bytes]
    sets: Ragged
    without_spots: tuple[int, ...] = ()  # where in its block other records begin, with empty sets

    def take(self, index: np.ndarray) -> Batch:
        """The records at `index` (int64 array), in that order."""
        return Batch([self.ids[i] for i in index.tolist()], self.sets.take(index))
