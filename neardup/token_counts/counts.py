r"""Token counts: how many records have each token, and how many have each size.

Some schemes ask how rare a token is: the prefix filter looks at the rarest tokens of a record
first, and I-Match drops the rarest and the most frequent.  Two map-reduce steps count before them:

    record lines → t0…042 TAB 1    → (shuffle) → 999999999982:t0…042 TAB 17 → (shuffle) → counts
                   s0…035 TAB 1                   000000000000:s0…035 TAB 1200
                   r5…077 TAB 34o8                000000000000:r5…077 TAB 34o8
             map                         sum                                     order

`t` is a token, `s` a size, and `r` a set of the sample behind its hash (`sample`).  The
second key begins with what is left to 10^12 - 1, so that the most frequent tokens come first, and
of them the first million stays.  A token that is not among the counts has one record, or where a
million are, no more than the last of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from neardup.sets.ragged import Ragged
from neardup.sets.runs import distinct
from neardup.token_counts.sample import NO_SETS, Sample

MOST_TOKENS = 1_000_000
TOKENS_AT_ONCE = 1 << 21  # counted in memory by a mapper, at some 40 bytes each
MOST = 10**12 - 1


@dataclass(frozen=True, eq=False)
class TokenCounts:
    """sizes: int64 (m,), ascending; holders: int64 (m,), how many records have each; tokens: uint64
    (k,), ascending; frequencies: int64 (k,), in how many records each is, 2 or more; sample: some
    of the sets, drawn by a hash; own: whether they are of the very records that are to meet.

    >>> counts = TokenCounts.of_sets(Ragged.from_rows([[5, 7], [5], [5, 9]]))
    >>> counts.records, counts.of(np.array([5, 7, 100], np.uint64)).tolist()
    (3, [3, 1, 1])
    """

    sizes: np.ndarray
    holders: np.ndarray
    tokens: np.ndarray
    frequencies: np.ndarray
    sample: Ragged = NO_SETS
    own: bool = True

    @classmethod
    def empty(cls) -> TokenCounts:
        """Of no records; what a scheme has before the counting step."""
        none = np.empty(0, np.int64)
        return cls(none, none, none.astype(np.uint64), none)

    @classmethod
    def of_sets(cls, sets: Ragged) -> TokenCounts:
        """Of records that are all at hand, none of them empty."""
        sample = Sample()
        for _ in sample.watch([sets] if len(sets) else []):
            pass
        counted = *distinct(sets.sizes), *most_frequent(*distinct(sets.values))
        return cls(*counted, sample.sets)

    @property
    def records(self) -> int:
        return int(self.holders.sum())

    @property
    def complete(self) -> bool:
        """Whether a token without a count is known to be in one record only."""
        return self.own and len(self.tokens) < MOST_TOKENS

    def digest(self) -> tuple[int, ...]:
        """The same for the same counts, and hardly for others."""
        weighed = (self.tokens * self.frequencies.astype(np.uint64)).sum()
        return self.records, len(self.tokens), int(weighed), int(self.own)

    def told(self) -> str:
        """In words, the same for the same counts only."""
        columns = self.sizes, self.holders, self.tokens, self.frequencies, self.sample.values
        sum_ = 0
        for column in columns:
            sum_ = crc32(column.astype("<u8").tobytes(), sum_)
        own = " and --own-counts" if self.own else ""
        return f"of {self.records:,} records (checksum {sum_:08x}){own}"

    def of(self, tokens: np.ndarray) -> np.ndarray:
        """int64: in how many records each of these tokens (uint64) is, 1 for those not listed."""
        if not len(self.tokens):
            return np.ones(len(tokens), dtype=np.int64)
        place = np.minimum(np.searchsorted(self.tokens, tokens), len(self.tokens) - 1)
        return np.where(self.tokens[place] == tokens, self.frequencies[place], 1)


def most_frequent(tokens: np.ndarray, frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most frequent of those that are in several records, by token."""
    several = np.flatnonzero(frequencies > 1)
    best = several[np.lexsort((tokens[several], -frequencies[several]))[:MOST_TOKENS]]
    best = best[np.argsort(tokens[best])]
    return tokens[best], frequencies[best]


Column = tuple[np.ndarray, np.ndarray]  # values (uint64), ascending, and how often each is there


def partial_counts(batches: Iterable[Ragged]) -> Iterator[tuple[Column, Column]]:
    """(sizes, tokens) of a few million tokens at a time, and in how many records each is."""
    held: list[Ragged] = []
    size = 0
    for sets in batches:
        held.append(sets)
        size += len(sets.values)
        if size >= TOKENS_AT_ONCE:
            yield _counted(held)
            held, size = [], 0
    if held:
        yield _counted(held)


def _counted(held: list[Ragged]) -> tuple[Column, Column]:
    sizes = np.concatenate([sets.sizes for sets in held]).astype(np.uint64)
    return distinct(sizes), distinct(np.concatenate([sets.values for sets in held]))
