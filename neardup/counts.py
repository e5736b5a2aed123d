r"""Token counts: how many records have each token, and how many have each size.

Some schemes ask how rare a token is: the prefix filter looks at the rarest tokens of a record
first, and I-Match drops the rarest and the most frequent.  Two map-reduce steps count before them:

    record lines → t0…042 TAB 1    → (shuffle) → 999999999982:t0…042 TAB 17 → (shuffle) → counts
                   s0…035 TAB 1                   000000000000:s0…035 TAB 1200
                   r5…077 TAB 34o8                000000000000:r5…077 TAB 34o8
             map                         sum                                     order

`t` is a token, `s` a size, and `r` a set of the sample behind its hash (`neardup.sample`).  The
second key begins with what is left to 10^12 - 1, so that the most frequent tokens come first, and
of them the first million stays.  A token that is not among the counts has one record, or where a
million are, no more than the last of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neardup.errors import StageError
from neardup.ragged import Ragged, first_of_run
from neardup.sample import NO_SETS, Sample
from neardup.wire import WireError, decode_sets

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
    def of_sets(cls, sets: Ragged) -> TokenCounts:
        """Of records that are all at hand, none of them empty."""
        sample = Sample()
        for _ in sample.watch([sets] if len(sets) else []):
            pass
        counted = *distinct(sets.sizes), *most_frequent(*distinct(sets.values))
        return cls(*counted, sample.sets)

    @classmethod
    def read(cls, path: str, own: bool = False) -> TokenCounts:
        """From a file that the last step wrote; StageError for any other."""
        data = Path(path).read_bytes()
        # Subtle: the digits of a set go from "0" to "o", so these letters begin lines only.
        to_sizes = data.find(b"s") if b"s" in data else len(data)
        to_tokens = data.find(b"t") if b"t" in data else len(data)
        sample = _sets(path, data[:to_sizes])
        sizes, holders = _columns(path, data[to_sizes:to_tokens], b"s")
        tokens, frequencies = _columns(path, data[to_tokens:], b"t")
        order = np.argsort(tokens)
        return cls(
            sizes.astype(np.int64),
            holders.astype(np.int64),
            tokens[order],
            frequencies[order].astype(np.int64),
            sample,
            own,
        )

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

    def of(self, tokens: np.ndarray) -> np.ndarray:
        """int64: in how many records each of these tokens (uint64) is, 1 for those not listed."""
        if not len(self.tokens):
            return np.ones(len(tokens), dtype=np.int64)
        place = np.minimum(np.searchsorted(self.tokens, tokens), len(self.tokens) - 1)
        return np.where(self.tokens[place] == tokens, self.frequencies[place], 1)


_NO = np.empty(0, np.int64)
NONE = TokenCounts(_NO, _NO, _NO.astype(np.uint64), _NO)


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, ascending, and how often each is there (int64)."""
    values = np.sort(values)
    starts = np.flatnonzero(first_of_run(values)) if len(values) else np.empty(0, np.int64)
    return values[starts], np.diff(starts, append=len(values))


def most_frequent(tokens: np.ndarray, frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most frequent of those that are in several records, by token."""
    several = np.flatnonzero(frequencies > 1)
    best = several[np.lexsort((tokens[several], -frequencies[several]))[:MOST_TOKENS]]
    best = best[np.argsort(tokens[best])]
    return tokens[best], frequencies[best]


def _sets(path: str, data: bytes) -> Ragged:
    """The sets of lines that all begin with "r"."""
    lines = data.splitlines()
    try:
        if not all(line.startswith(b"r") and line.count(b"\t") == 1 for line in lines):
            raise WireError("no sets")
        return decode_sets([line.split(b"\t")[1] for line in lines])
    except WireError:
        raise _no_counts(path) from None


def _columns(path: str, data: bytes, kind: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The two columns (uint64) of lines that all begin with `kind`."""
    lines = data.count(b"\n")
    numbers = data.replace(kind, b"").split()
    ours = data.count(kind) == lines and len(numbers) == 2 * lines
    try:
        if not (ours and all(map(bytes.isdigit, numbers))):
            raise ValueError
        table = np.array(numbers, dtype=np.uint64).reshape(-1, 2)
    except (ValueError, OverflowError):
        raise _no_counts(path) from None
    return table[:, 0], table[:, 1]


def _no_counts(path: str) -> StageError:
    return StageError(f"{path}: is no file of token counts; count_tokens.py order writes them")
