"""Prefix: a key is one of a record's first tokens, in an order that has the rare ones first.

Exact: every pair shares one of them (Chaudhuri, Ganti, Kaushik, ICDE 2006; Bayardo, Ma, Srikant,
WWW 2007; see `prefix_filter`).  Without token counts it is exact too, and slow where some
tokens are frequent.  Where a measure bounds no resemblance, as containment, all tokens are keys.

Letters: n a record's size (35), t the least resemblance (0.9): n - ⌈t·n⌉ + 1 keys (4), but none
for a token that is in no other record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from neardup.lines.keys import MAX_BANDS
from neardup.schemes.by_size.costs import TOKENS, dearer_than_exact
from neardup.schemes.prefix_filter import first_tokens, prefix_sizes, token_keys
from neardup.schemes.request import Request
from neardup.schemes.scheme import Scheme
from neardup.sets.ragged import Ragged
from neardup.similarity.threshold import Threshold
from neardup.token_counts.counts import TokenCounts


@dataclass(frozen=True)
class Prefix(Scheme):
    """All keys are of band 0.

    >>> scheme = Prefix(Threshold.parse("0.8"), TokenCounts.of_sets(
    ...     Ragged.from_rows([[1, 2, 3, 4, 5], [1, 2, 3, 4], [4, 7, 8], [4, 9]])))
    >>> keys = scheme.keys(Ragged.from_rows([[1, 2, 3, 4, 5], [1, 2, 3, 4]]))
    >>> keys.sizes.tolist()  # of 2 and 1 first tokens, but nobody else has 5
    [1, 1]
    """

    resemblance: Threshold | None
    counts: TokenCounts | None = None
    seed: int = 0
    measures: ClassVar[tuple[str, ...]] = ("jaccard", "dice", "cosine", "overlap", "containment")
    counting: ClassVar[bool] = True
    keeps_recall: ClassVar[bool] = True
    one_a_band: ClassVar[bool] = False

    @classmethod
    def of(cls, request: Request) -> Prefix:
        return cls(request.resemblance, request.counts, request.key_seed("prefix"))

    @property
    def promise(self) -> str:
        return "exact: every pair shares one of its rarest tokens"

    def recall(self, similarity: float) -> float:
        return float(self.resemblance is None or similarity >= float(self.resemblance))

    def cost(self) -> list[str]:
        if self.resemblance is None or self.counts is None:
            return []
        return dearer_than_exact("prefix", TOKENS, self.resemblance, self.counts)

    def probe(self) -> str:
        """See `Scheme.probe`; counts of an input would refuse sets that it does not have."""
        return super().probe() if self.counts is None else replace(self, counts=None).probe()

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return prefix_sizes(sizes, self.resemblance)

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        """See `Scheme.keys`."""
        if not low <= 0 < high:
            return Ragged(np.empty(0, np.uint64), np.zeros(len(sets) + 1, np.int64))
        tokens = first_tokens(sets, self.resemblance, self.counts)
        return Ragged.from_unsorted(token_keys(tokens.values, self.seed), tokens.sizes)
