"""Token counts: the number of records with each token and of each size, and a sample of records.

The prefix filter and I-Match need to know how rare a token is.  Two map-reduce steps count first:

    record lines → t0…042 TAB 1    → (shuffle) → 999999999982:t0…042 TAB 17 → (shuffle) → counts
                   s0…035 TAB 1                   000000000000:s0…035 TAB 1200
                   r5…077 TAB 34o8                000000000000:r5…077 TAB 34o8
             map                         sum                                     order

`t` is a token, `s` a size, and `r` a set of the sample behind its hash.  The second key begins with
10^12 - 1 less the count, so that the most frequent tokens come first; the first million of them are
kept.  Any other token is in one record, or in no more records than the last of the million.

`run_local.sh` and the cluster count in pieces on disk; `TokenCounter` has all distinct tokens in
memory, at 16 bytes each.

The sample consists of the sets with the smallest hashes.  Each of them is in the sample of its part
of the input, so parts can be sampled one by one.  Equal sets count as one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged, distinct, first_of_run, starts_of_runs

MAX_SETS = 1000
SAMPLE_TOKENS = 1 << 21  # in the whole sample: a few sets may be as large as all others
MAX_TOKENS = 1_000_000
TOKENS_AT_ONCE = 1 << 21  # a mapper counts so many in memory, at some 40 bytes each
MOST = 10**12 - 1

NO_SETS = Ragged(np.empty(0, np.uint64), np.zeros(1, np.int64))
Column = tuple[np.ndarray, np.ndarray]  # values (uint64), ascending, and how often each occurs
NO_COUNTS: Column = np.empty(0, np.uint64), np.empty(0, np.int64)


class Sample:
    """A sample of all sets passed to `draw`: those with the smallest hashes, in order of hash.

    sets, tokens: maximum numbers of them; a single set may have more tokens.
    """

    def __init__(self, sets: int = MAX_SETS, tokens: int = SAMPLE_TOKENS) -> None:
        self._max_sets, self._max_tokens = sets, tokens
        self._hashes, self._sets = np.empty(0, np.uint64), NO_SETS
        self._bound = np.uint64((1 << 64) - 1)  # no larger hash can be among the smallest
        self._new: list[tuple[np.ndarray, Ragged]] = []  # drawn, and not yet merged
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
        """Yield the batches unchanged, and draw the sample from them; no set may be empty."""
        for sets in batches:
            self.draw(np.add.reduceat(mix(sets.values), sets.offsets[:-1]), sets)
            yield sets

    def merge(self, other: "Sample") -> None:
        """Draw from all sets that `other`, which has the same maximum numbers, was drawn from."""
        hashes, sets = other.hashes, other.sets
        self._bound = min(self._bound, other._bound)  # `other` may have left out larger hashes
        self.draw(hashes, sets)

    def draw(self, hashes: np.ndarray, sets: Ragged) -> None:
        """Draw from some sets, none of them empty; hashes: uint64, one for each set."""
        smallest = distinct(hashes[hashes < self._bound])[0][: self._max_sets + 1]
        if len(smallest) > self._max_sets:
            self._bound = smallest[-1]
        some = np.flatnonzero(hashes < self._bound)
        if len(some):
            drawn = sets.bare().take(some)
            self._new.append((hashes[some], drawn))
            self._new_sets += len(drawn)
            self._new_tokens += len(drawn.values)
            if self._new_sets > self._max_sets or self._new_tokens > self._max_tokens // 4:
                self._choose()

    def _choose(self) -> None:
        if not self._new:
            return
        hashes = np.concatenate([self._hashes, *(some for some, _ in self._new)])
        sets = Ragged.end_to_end([self._sets, *(some for _, some in self._new)])
        self._new, self._new_sets, self._new_tokens = [], 0, 0
        order = np.argsort(hashes, kind="stable")
        order = order[first_of_run(hashes[order]) & (hashes[order] < self._bound)]
        kept = int(np.searchsorted(np.cumsum(sets.sizes[order]), self._max_tokens, side="right"))
        kept = min(max(1, kept), self._max_sets)
        if kept < len(order):
            self._bound = hashes[order[kept]]
        self._hashes, self._sets = hashes[order[:kept]], sets.take(order[:kept])


@dataclass(eq=False)
class TokenCounts:
    """The number of records of each size and with each frequent token, and a sample of records.

    sizes: int64 (m,), ascending; holders: int64 (m,), how many records have each; tokens: uint64
    (k,), ascending; frequencies: int64 (k,), in how many records each is, 2 or more; sample: some
    of the sets; own: True if exactly the records to be compared were counted.

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
    def empty(cls) -> "TokenCounts":
        """Return empty token counts, for a scheme that is made before tokens are counted."""
        none = np.empty(0, np.int64)
        return cls(none, none, none.astype(np.uint64), none)

    @classmethod
    def of_sets(cls, sets: Ragged) -> "TokenCounts":
        """Count the tokens of non-empty sets."""
        counter = TokenCounter()
        if len(sets):
            counter.add(sets)
        return counter.counts()

    @property
    def records(self) -> int:
        return int(self.holders.sum())

    @property
    def complete(self) -> bool:
        """True if each token without a count is known to be in one record only."""
        return self.own and len(self.tokens) < MAX_TOKENS

    def digest(self) -> tuple[int, ...]:
        """Return a checksum of the counts: four integers."""
        weighed = (self.tokens * self.frequencies.astype(np.uint64)).sum()
        return self.records, len(self.tokens), int(weighed), int(self.own)

    def description(self) -> str:
        """Return a phrase that identifies the counts: number of records, checksum, --own-counts."""
        sum_ = 0
        for column in self.sizes, self.holders, self.tokens, self.frequencies, self.sample.values:
            sum_ = crc32(column.astype("<u8").tobytes(), sum_)
        own = " and --own-counts" if self.own else ""
        return f"of {self.records:,} records (checksum {sum_:08x}){own}"

    def of(self, tokens: np.ndarray) -> np.ndarray:
        """Return the number of records with each token (uint64); 1 for tokens without a count."""
        if not len(self.tokens):
            return np.ones(len(tokens), dtype=np.int64)
        place = np.minimum(np.searchsorted(self.tokens, tokens), len(self.tokens) - 1)
        return np.where(self.tokens[place] == tokens, self.frequencies[place], 1)


def most_frequent(*columns: Column) -> Column:
    """Return up to MAX_TOKENS of the most frequent tokens, ascending, and their counts (> 1).

    No token may be in two of the columns.
    """
    tokens, frequencies = map(np.concatenate, zip(*columns))
    several = np.flatnonzero(frequencies > 1)
    best = several[np.lexsort((tokens[several], -frequencies[several]))[:MAX_TOKENS]]
    best = best[np.argsort(tokens[best])]
    return tokens[best], frequencies[best]


def partial_counts(batches: Iterable[Ragged]) -> Iterator[tuple[Column, Column]]:
    """Yield the counts of sizes and of tokens for each group of batches of a few million tokens."""
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


class TokenCounter:
    """A counter of how many records have each token and each size; batches are added one by one."""

    def __init__(self) -> None:
        self._sample = Sample()
        self._sizes = self._tokens = NO_COUNTS
        self._waiting: list[Ragged] = []
        self._room = TOKENS_AT_ONCE

    def add(self, sets: Ragged) -> None:
        self._waiting += self._sample.watch([sets])
        self._room -= len(sets.values)
        if self._room < 0:
            self._count()

    def counts(self) -> TokenCounts:
        if self._waiting:
            self._count()
        sizes, holders = self._sizes
        tokens = most_frequent(self._tokens)
        return TokenCounts(sizes.astype(np.int64), holders, *tokens, self._sample.sets)

    def _count(self) -> None:
        sizes, tokens = _counted(self._waiting)
        self._sizes, self._tokens = added(self._sizes, sizes), added(self._tokens, tokens)
        self._waiting, self._room = [], max(TOKENS_AT_ONCE, len(self._tokens[0]))


def added(one: Column, other: Column) -> Column:
    """Return the values of two columns, and the sums of their counts."""
    values, counts = map(np.concatenate, zip(one, other))
    order = np.argsort(values, kind="stable")
    starts = starts_of_runs(values[order])
    return values[order][starts], np.add.reduceat(counts[order], starts)
