"""Batches: some thousand records at a time, the unit of work of every stage.

numpy pays only in bulk: parsing all tokens of a block of lines at once takes a tenth of the time
of `split` and `int`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from neardup.sets.ragged import Ragged


@dataclass(frozen=True)
class Batch:
    """Records: `ids[i]` has the shingles `sets.row(i)`, ascending and distinct, at least one."""

    ids: list[bytes]
    sets: Ragged
    without_shingles: tuple[int, ...] = ()  # the numbers, in its block, of lines of empty sets
    # uint64 (n,): the line of each, in its block or as `reading.places` counts them.
    places: np.ndarray = field(default_factory=partial(np.empty, 0, np.uint64))

    def take(self, index: np.ndarray) -> Batch:
        """The records at `index` (int64 array), in that order."""
        places = self.places[index] if len(self.places) else self.places
        return Batch([self.ids[i] for i in index.tolist()], self.sets.take(index), places=places)
