"""Token counts of records that stream by, where a scheme asks for them and no --counts are given.

run_local.sh and the cluster count in pieces on disk; here all distinct tokens are in memory, at 16
bytes each.
"""

from __future__ import annotations

import numpy as np

from neardup.sets.ragged import Ragged
from neardup.sets.runs import distinct, starts_of_runs
from neardup.token_counts.counts import TOKENS_AT_ONCE, TokenCounts, most_frequent
from neardup.token_counts.sample import Sample


class TokenCounter:
    """
    >>> counter = TokenCounter()
    >>> counter.add(Ragged.from_rows([[5, 7], [5]]))
    >>> counter.add(Ragged.from_rows([[5, 9]]))
    >>> counts = counter.counts()
    >>> counts.records, counts.of(np.array([5, 7], np.uint64)).tolist()
    (3, [3, 1])
    """

    def __init__(self) -> None:
        self._sizes, self._tokens = ValueCounter(np.int64), ValueCounter(np.uint64)
        self._sample = Sample()

    def add(self, sets: Ragged) -> None:
        for watched in self._sample.watch([sets]):
            self._sizes.add(watched.sizes)
            self._tokens.add(watched.values)

    def counts(self) -> TokenCounts:
        tokens = most_frequent(*self._tokens.total())
        return TokenCounts(*self._sizes.total(), *tokens, self._sample.sets)


class ValueCounter:
    """How often each value has come."""

    def __init__(self, kind: type) -> None:
        self._values: np.ndarray = np.empty(0, kind)
        self._counts: np.ndarray = np.empty(0, np.int64)
        self._waiting: list[np.ndarray] = []
        self._room = TOKENS_AT_ONCE

    def add(self, values: np.ndarray) -> None:
        self._waiting.append(values)
        self._room -= len(values)
        if self._room < 0:
            self.total()

    def total(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct values, ascending, and how often each has come (int64)."""
        new, often = distinct(np.concatenate([self._values[:0], *self._waiting]))
        values = np.concatenate((self._values, new))
        order = np.argsort(values, kind="stable")
        starts = starts_of_runs(values[order])
        counts = np.concatenate((self._counts, often))[order]
        self._values = values[order][starts]
        self._counts = np.add.reduceat(counts, starts)
        self._waiting, self._room = [], max(TOKENS_AT_ONCE, len(starts))
        return self._values, self._counts
