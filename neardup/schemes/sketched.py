"""Any scheme, for records that travel as samples (--verify sketch).

The keys are made of the whole set, by the scheme itself, and travel with its sample: a reducer
reads them off where it would make them again.  See `similarity.estimated`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from neardup.lines.keys import HASH_BITS, MAX_BANDS
from neardup.schemes.minhash import MinHash
from neardup.schemes.request import Request
from neardup.schemes.scheme import Scheme
from neardup.sets.ragged import Ragged
from neardup.similarity.estimated import CONFIDENCE, DEFAULT_SIZE, keys_of, sampled


@dataclass(frozen=True)
class Sketched(Scheme):
    """`inner` makes the keys; of a set travel `size` hashes, drawn by `seed` (0 … 2^64-1).

    >>> from neardup.similarity.threshold import NINE_TENTHS
    >>> scheme = Sketched.of(Request(NINE_TENTHS, NINE_TENTHS))
    >>> sets = Ragged.from_rows([[*range(1000)], [*range(5)]])
    >>> rows = scheme.travelling(sets)
    >>> rows.sizes.tolist()
    [272, 21]
    >>> scheme.keys(rows).values.tolist() == scheme.inner.keys(sets).values.tolist()
    True
    """

    inner: Scheme
    size: int
    seed: int
    measures: ClassVar[tuple[str, ...]] = ("jaccard",)
    one_a_band: ClassVar[bool] = False  # whatever the inner one's are: both ways are right

    @classmethod
    def of(cls, request: Request) -> Sketched:
        """Of the usual scheme, with samples of the usual size."""
        return cls(MinHash.of(request), DEFAULT_SIZE, request.seed)

    @property
    def promise(self) -> str:
        return (
            f"{self.inner.promise}; pairs are estimates from {self.size} hashes of each set, and "
            f"a resemblance lies outside of its interval with P = {float(1 - CONFIDENCE):g} at most"
        )

    def travelling(self, sets: Ragged) -> Ragged:
        return sampled(sets, self.inner.keys(sets), self.size, self.seed)

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        """Of sets as they travel."""
        high = min(high, MAX_BANDS)
        return keys_of(sets, self.size, low << HASH_BITS, high << HASH_BITS)

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        """Of sets as they are."""
        return self.inner.key_counts(sizes)

    def recall(self, similarity: float) -> float:
        return self.inner.recall(similarity)

    def cost(self) -> list[str]:
        return self.inner.cost()
