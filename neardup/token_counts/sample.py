"""A sample of the records, drawn by a hash: the sets whose hashes are smallest.

Who reads which record does not matter: the smallest of all are among the smallest of each part.
Equal sets count as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged
from neardup.sets.runs import first_of_run

MOST_SETS = 1000
MOST_TOKENS = 1 << 21  # of all together: a few sets may be as large as all others

MOST_HASH = (1 << 64) - 1

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
        self._bound = np.uint64(MOST_HASH)  # above which nothing is kept any more

    def watch(self, batches: Iterable[Ragged]) -> Iterator[Ragged]:
        """Pass the batches on, and draw from them.  No set may be empty."""
        for sets in batches:
            self.draw(np.add.reduceat(mix(sets.values), sets.offsets[:-1]), sets)
            yield sets

    def draw(self, hashes: np.ndarray, sets: Ragged) -> None:
        """Keep the smallest of those held and these."""
        some = np.flatnonzero(hashes < self._bound)
        hashes, sets = hashes[some], sets.bare().take(some)
        hashes, sets = np.concatenate((self.hashes, hashes)), self.sets.beside(sets)
        order = np.argsort(hashes, kind="stable")
        order = order[first_of_run(hashes[order])]
        kept = int(np.searchsorted(np.cumsum(sets.sizes[order]), MOST_TOKENS, side="right"))
        kept = min(max(1, kept), MOST_SETS)
        if kept < len(order):
            self._bound = hashes[order[kept]]
        self.hashes, self.sets = hashes[order[:kept]], sets.take(order[:kept])
