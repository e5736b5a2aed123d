r"""Token counts: how many records have each token, and how many have each size.

Some schemes ask how rare a token is: the prefix filter looks at the rarest tokens of a record
first, and I-Match drops the rarest and the most frequent.  Two map-reduce steps count before them:

    record lines → t0…042 TAB 1    → (shuffle) → 999999999982:t0…042 TAB 17 → (shuffle) → counts
                   s0…035 TAB 1                   000000000000:s0…035 TAB 1200
             map                         sum                                     order

`t` is a token and `s` a size.  The second key begins with what is left to 10^12 - 1, so that the
most frequent tokens come first, and of them the first million stays.  A token that is not among
the counts has one record, or where a million are, no more than the last of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neardup.errors import StageError
from neardup.ragged import Ragged, first_of_run

MOST_TOKENS = 1_000_000
TOKENS_AT_ONCE = 1 << 21  # counted in memory by a mapper, at some 40 bytes each
MOST = 10**12 - 1


NO_SETS = Ragged(np.empty(0, np.uint64), np.zeros(1, np.int64))


@dataclass(frozen=True, eq=False)
class TokenCounts:
    """sizes: int64 (m,), ascending; holders: int64 (m,), how many records have each; tokens: uint64
    (k,), ascending; frequencies: int64 (k,), in how many records each is, 2 or more; sample: some
    of the sets, drawn by a hash.

    >>> counts = TokenCounts.of_sets(Ragged.from_rows([[5, 7], [5], [5, 9]]))
    >>> counts.records, counts.of(np.array([5, 7, 100], np.uint64)).tolist()
    (3, [3, 1, 1])
    """

    sizes: np.ndarray
    holders: np.ndarray
    tokens: np.ndarray
    frequencies: np.ndarray
    sample: Ragged = NO_SETS

    @classmethod
    def of_sets(cls, sets: Ragged) -> TokenCounts:
        """Of records that are all at hand."""
        return cls(*distinct(sets.sizes), *most_frequent(*distinct(sets.values)))

    @classmethod
    def read(cls, path: str) -> TokenCounts:
        """From a file that the last step wrote; StageError for any other."""
        data = Path(path).read_bytes()
        first_token = data.find(b"t")
        cut = len(data) if first_token < 0 else first_token
        sizes, holders = _columns(path, data[:cut], b"s")
        tokens, frequencies = _columns(path, data[cut:], b"t")
        order = np.argsort(tokens)
        return cls(
            sizes.astype(np.int64),
            holders.astype(np.int64),
            tokens[order],
            frequencies[order].astype(np.int64),
        )

    @property
    def records(self) -> int:
        return int(self.holders.sum())

    @property
    def complete(self) -> bool:
        """Whether a token without a count is known to be in one record only."""
        return len(self.tokens) < MOST_TOKENS

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
        wrong = f"{path}: is no file of token counts; count_tokens.py order writes them"
        raise StageError(wrong) from None
    return table[:, 0], table[:, 1]
