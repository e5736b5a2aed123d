"""A sample of the records, drawn by a hash: the sets whose hashes are smallest.

Who reads which record does not matter: the smallest of all are among the smallest of each part.
Equal sets count as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from neardup.hashing import mix
from neardup.ragged import Ragged, first_of_run

MOST_SETS = 1000
MOST_TOKENS = 1 << 21  # of all together: a few sets may be as large as all others

NO_SETS = Ragged(np.empty(0, np.uint64), np.zeros(1, np.int64))


class Sample:
    """The sets drawn so far (`sets`, n rows) by their hashes (uint64 (n,), ascending).

    >>> sample = Sample()
    >>> for sets in sample.watch([Ragged.from_rows([[1, 2], [3]]), Ragged.from_rows([[2, 1]])]):
    ...     pass
    >>> sorted(sample.sets.sizes.tolist())
    [1, 2]
    """

    def __init__(self) -> None:
        self.hashes, self.sets = np.empty(0, np.uint64), NO_SETS

    def watch(self, batches: Iterable[Ragged]) -> Iterator[Ragged]:
        """Pass the batches on, and draw from them.  No set may be empty."""
        for sets in batches:
            self.draw(np.add.reduceat(mix(sets.values), sets.offsets[:-1]), sets)
            yield sets

    def draw(self, hashes: np.ndarray, sets: Ragged) -> None:
        """Keep the smallest of those held and these."""
        if len(self.hashes) == MOST_SETS:
            some = np.flatnonzero(hashes < self.hashes[-1])
            hashes, sets = hashes[some], sets.take(some)
        hashes, sets = np.concatenate((self.hashes, hashes)), self.sets.beside(sets)
        order = np.argsort(hashes, kind="stable")
        order = order[first_of_run(hashes[order])][:MOST_SETS]
        kept = np.searchsorted(np.cumsum(sets.sizes[order]), MOST_TOKENS, side="right")
        order = order[: max(1, int(kept))]
        self.hashes, self.sets = hashes[order], sets.take(order)
