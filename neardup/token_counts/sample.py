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
WAITING = MOST_TOKENS // 4  # tokens drawn, before some of them and of those held are chosen

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
        self._hashes, self._sets = np.empty(0, np.uint64), NO_SETS
        self._bound = np.uint64(MOST_HASH)  # above which nothing is kept any more
        self._new: list[tuple[np.ndarray, Ragged]] = []  # drawn, and not yet among the others
        self._new_sets = self._new_tokens = 0

    @property
    def hashes(self) -> np.ndarray:
        self._choose()
        return self._hashes

    @property
    def sets(self) -> Ragged:
        self._choose()
        return self._sets

    def watch(self, batches: Iterable[Ragged]) -> Iterator[Ragged]:
        """Pass the batches on, and draw from them.  No set may be empty."""
        for sets in batches:
            self.draw(np.add.reduceat(mix(sets.values), sets.offsets[:-1]), sets)
            yield sets

    def draw(self, hashes: np.ndarray, sets: Ragged) -> None:
        """Keep the smallest of those held and these."""
        some = np.flatnonzero(hashes < self._bound)
        if len(some):
            drawn = sets.bare().take(some)
            self._new.append((hashes[some], drawn))
            self._new_sets += len(drawn)
            self._new_tokens += len(drawn.values)
            # Not each time: the sample is copied as a whole, and may be larger than a batch.
            if self._new_sets > MOST_SETS or self._new_tokens > WAITING:
                self._choose()

    def _choose(self) -> None:
        if not self._new:
            return
        hashes = np.concatenate([self._hashes, *(some for some, _ in self._new)])
        sets = Ragged.end_to_end([self._sets, *(some for _, some in self._new)])
        self._new, self._new_sets, self._new_tokens = [], 0, 0
        order = np.argsort(hashes, kind="stable")
        order = order[first_of_run(hashes[order])]
        kept = int(np.searchsorted(np.cumsum(sets.sizes[order]), MOST_TOKENS, side="right"))
        kept = min(max(1, kept), MOST_SETS)
        if kept < len(order):
            self._bound = hashes[order[kept]]
        self._hashes, self._sets = hashes[order[:kept]], sets.take(order[:kept])
