"""MinHash banding, and any scheme for records of which only a sample is sent (--verify sketch).

The minimum of a random hash over a set is equal for two sets with probability s, their resemblance
(Broder 1997).  A signature of b·r such minima is cut into b bands of r rows; a key is the band's
number and a hash of its r minima (Indyk, Motwani 1998).  So two sets share a key with probability
1 - (1 - s^r)^b.

Of weighted sets (--weights) s is Σ min / Σ max of the weights, and the minima are those of bags, or
of consistent weighted sampling where weights are large (`sets.bags`, `sets.weighted_minima`).

Letters: b bands (15), r rows (7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS, MAX_BANDS
from neardup.schemes import banding, scheme
from neardup.schemes.scheme import Option, Request, Scheme
from neardup.sets.hashing import band_words
from neardup.sets.ragged import Ragged
from neardup.sets.weighted_sets import bags, weighted_band_words
from neardup.similarity.estimated import CONFIDENCE, DEFAULT_SIZE, keys_of, sampled
from neardup.similarity.measures import NINE_TENTHS, Threshold
from neardup.similarity.weighted_measures import TokenWeights

MAX_BANDS_ASKED = 16


@dataclass(eq=False)
class MinHash(Scheme):
    """b bands of r rows; `seed` (0 … 2^64-1) draws the hash functions; `weights`: of tokens.

    >>> sets = Ragged.from_rows([[1, 2, 3], [1, 2, 3], [7, 8]])
    >>> keys = MinHash(bands=2, rows=3, seed=0).keys(sets)
    >>> [int(key) >> 40 for key in keys.row(0)]
    [0, 1]
    >>> bool((keys.row(0) == keys.row(1)).all()), bool((keys.row(0) == keys.row(2)).any())
    (True, False)
    """

    bands: int
    rows: int
    seed: int = 0
    resemblance: Threshold = NINE_TENTHS  # for which the promise holds
    weights: TokenWeights | None = None
    options: ClassVar[tuple[Option, ...]] = (*banding.OPTIONS, scheme.WEIGHTS)
    keeps_recall: ClassVar[bool] = True

    @classmethod
    def of(cls, request: Request) -> MinHash:
        bands, rows = banding.asked_for(request, float(request.least), MAX_BANDS_ASKED)
        weights = scheme.asked_weights(request)
        if weights is not None and request.measure == "cosine":
            raise ValueError(
                f"--weights {request.value(scheme.WEIGHTS)} with --measure cosine: the weighted "
                "Jaccard similarity of such pairs may be anything; use --scheme projection"
            )
        return cls(bands, rows, scheme.weighted_seed(request), request.least, weights)

    @property
    def promise(self) -> str:
        return (
            f"{self.bands} bands of {self.rows} rows find a pair at {self.resemblance} "
            f"with probability {scheme.shown(self.recall(float(self.resemblance)))}"
        )

    def cost(self) -> list[str]:
        at = float(self.resemblance)
        most = MAX_BANDS_ASKED
        return banding.dearer_by_hand(at, banding.DISSIMILAR, self.bands, self.rows, most)

    def recall(self, similarity: float) -> float:
        return banding.recall(similarity, self.bands, self.rows)

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), self.bands)

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        bands = np.arange(low, min(high, self.bands))
        if self.weights is None or self.weights.are_counts:
            units = sets if self.weights is None else bags(sets)
            words = band_words(units, bands, self.rows, self.seed)
        else:
            weights = self.weights.of(sets)
            words = weighted_band_words(sets, weights, bands, self.bands, self.rows, self.seed)
        return scheme.banded(words, bands)


@dataclass(eq=False)
class Sketched(Scheme):
    """`inner` makes the keys; `size` hashes of each set are sent, drawn by `seed` (0 … 2^64-1).

    The keys are made from the whole set and sent with its sample: a reducer reads them there
    instead of making them again.  See `similarity.estimated`.

    >>> from neardup.similarity.measures import NINE_TENTHS
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
        """The usual scheme, with samples of the usual size."""
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
        """The keys of sets as they are sent."""
        high = min(high, MAX_BANDS)
        return keys_of(sets, self.size, low << HASH_BITS, high << HASH_BITS)

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return self.inner.key_counts(sizes)

    def recall(self, similarity: float) -> float:
        return self.inner.recall(similarity)

    def cost(self) -> list[str]:
        return self.inner.cost()
