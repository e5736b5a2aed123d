"""The choice of a run on one machine whose options name no scheme: MinHash, or an exact join.

The cheaper one is chosen, by what it would cost in memory.  The choice depends on the records and
the options alone: it is the same on every machine, with every --memory and number of workers.

MinHash compares the sets that share a key, and an exact join those that share one of their rarest
tokens.  How many do is counted among the sets with the smallest hashes, s of n; among all of them
it is (n/s)² times as many.  The sample has one of equal sets, and n counts all, so that both joins
seem dearer than they are.  Which tokens are rare is counted in one half of these sets, and used in
the other: in the sets themselves those tokens seem rarest that by chance they do not share.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from neardup.options.settings import Settings
from neardup.schemes import by_size
from neardup.sets.ragged import Ragged
from neardup.sets.token_counts import Sample, TokenCounts
from neardup.similarity.measures import Measure
from neardup.similarity.sketches import bitmaps_and_sums
from neardup.stages.pairs_in_memory import beyond_partners, partners_in, words_of

SAMPLED_SETS, SAMPLED_TOKENS, MIN_RECORDS = 1024, 1 << 17, 4096
MAX_TOKENS = 1 << 25  # of all records; an exact join of more would not fit into most memories
MIN_PAIRS = 1 << 20  # candidate pairs that are worth a choice
# Nanoseconds of a join in memory, measured on one core; only their ratios matter.
KEY_PAIR, TOKEN_PAIR, TOKEN = 50, 20, 110


class Choice:
    """The basis of a choice: the numbers of records and of tokens, and a sample of the sets."""

    def __init__(self) -> None:
        self.records = self.tokens = 0
        self.sample = Sample(SAMPLED_SETS, SAMPLED_TOKENS)

    def add(self, sets: Ragged, sums: np.ndarray | None = None) -> None:
        """Add non-empty sets; sums: their sums by `bitmaps_and_sums`, if known."""
        self.records += len(sets)
        self.tokens += len(sets.values)
        if 0 < self.tokens <= MAX_TOKENS:
            self.sample.draw(bitmaps_and_sums(sets)[1] if sums is None else sums, sets)

    @classmethod
    def of_parts(cls, parts: Iterable[Choice]) -> Choice:
        """Return the choice for the records of all parts together."""
        whole = cls()
        for part in parts:
            whole.records += part.records
            whole.tokens += part.tokens
            whole.sample.merge(part.sample)
        return whole

    def is_exact(self, settings: Settings) -> bool:
        """Return whether an exact join costs less than one by the keys of the settings' scheme."""
        sets, measure = self.sample.sets, settings.measure
        if self.tokens > MAX_TOKENS or self.records < MIN_RECORDS:
            return False
        least = settings.request.least
        by_keys = _pairs(settings.scheme.keys(sets), sets, measure) * self.records**2
        by_keys //= len(sets) ** 2
        if by_keys < MIN_PAIRS or KEY_PAIR * by_keys < TOKEN * self.tokens:
            return False
        halves = [sets.take(np.arange(k, len(sets), 2)) for k in (0, 1)]
        by_tokens = 0
        for half, other in (halves, halves[::-1]):
            counts = TokenCounts.of_sets(other)
            rarest = by_size.rarest(half, counts, by_size.prefix_sizes(half.sizes, least))
            by_tokens += _pairs(rarest, half, measure) * self.records**2 // (2 * len(half) ** 2)
        return TOKEN_PAIR * by_tokens + TOKEN * self.tokens < KEY_PAIR * by_keys


def _pairs(keys: Ragged, sets: Ragged, measure: Measure) -> int:
    """Count the pairs of sets that share a key and may be similar by size, once for each key."""
    row = np.argsort(sets.sizes, kind="stable")
    beyond = beyond_partners(sets.sizes[row], measure)
    return sum(int(partners_in(make(), beyond)[1].sum()) for make in words_of(keys, row))
