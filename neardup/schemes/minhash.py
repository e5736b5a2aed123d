"""MinHash banding: two sets share a key with probability 1 - (1 - s^r)^b.

The minimum of a random hash over a set is equal for two sets with probability s, their resemblance
(Broder 1997).  A signature of b·r such minima is cut into b bands of r rows; a key is the band's
number and a hash of its r minima (Indyk, Motwani 1998).

Letters: n records, T tokens, b bands (15), r rows (7).  Cost: 0.3 ns for each token and hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from neardup import lsh
from neardup.hashing import combine, mix, random_words
from neardup.keys import HASH_BITS, MAX_BANDS
from neardup.measures import NINE_TENTHS, Threshold
from neardup.ragged import Ragged, chunks
from neardup.schemes.scheme import Request, Scheme

MAX_BANDS_ASKED = 16
CACHE_TOKENS = 1 << 16  # hashed together: two arrays of 256 KiB stay in the second-level cache


@dataclass(frozen=True)
class MinHash(Scheme):
    """b bands of r rows; `seed` (0 … 2^64-1) draws the hash functions.

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
    resemblance: Threshold = NINE_TENTHS  # for which the promise is told
    options: ClassVar[tuple[str, ...]] = ("--recall", "--max-bands", "--bands", "--rows")

    @classmethod
    def of(cls, request: Request) -> MinHash:
        assert request.resemblance is not None
        bands, rows = request.banding(float(request.resemblance), MAX_BANDS_ASKED)
        return cls(bands, rows, request.seed, request.resemblance)

    @property
    def promise(self) -> str:
        return (
            f"{self.bands} bands of {self.rows} rows find a pair at {self.resemblance} "
            f"with probability {self.recall(float(self.resemblance)):.6f}"
        )

    def recall(self, similarity: float) -> float:
        return lsh.recall(similarity, self.bands, self.rows)

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), self.bands)

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        """See `Scheme.keys`.  The sets must not be empty."""
        bands = np.arange(low, min(high, self.bands))
        keys = np.empty((len(sets), len(bands)), dtype=np.uint64)
        mixed = mix(sets.values ^ random_words(self.seed, 1, stream=1)) >> np.uint64(32)
        words = mixed.astype(np.uint32)
        for first, last in chunks(sets.sizes, CACHE_TOKENS):
            start, stop = sets.offsets[first], sets.offsets[last]
            minima = self._minima(words[start:stop], sets.offsets[first:last] - start, bands)
            digest = combine(minima, seed=bands[:, np.newaxis]) >> np.uint64(64 - HASH_BITS)
            keys[first:last] = digest.T
        keys |= bands.astype(np.uint64) << np.uint64(HASH_BITS)
        return Ragged(keys.ravel(), np.arange(len(sets) + 1) * len(bands))

    def _minima(self, words: np.ndarray, starts: np.ndarray, bands: np.ndarray) -> np.ndarray:
        """uint32 (rows, bands, n), of n sets whose mixed tokens (uint32) begin at `starts`."""
        if len(starts) == 1 and len(words) > CACHE_TOKENS:  # a large set, piece by piece
            cuts = range(0, len(words), CACHE_TOKENS)
            pieces = [self._minima(words[i : i + CACHE_TOKENS], starts, bands) for i in cuts]
            return np.minimum.reduce(pieces)
        draws = random_words(self.seed, self.bands * self.rows, stream=2)
        factors = (draws >> np.uint64(32)).astype(np.uint32) | np.uint32(1)  # odd: a bijection
        terms = draws.astype(np.uint32)
        hashed = np.empty_like(words)
        minima = np.empty((self.rows, len(bands), len(starts)), dtype=np.uint32)
        for i, band in enumerate(bands.tolist()):
            for row in range(self.rows):
                function = band * self.rows + row
                np.multiply(words, factors[function], out=hashed)
                np.add(hashed, terms[function], out=hashed)
                np.minimum.reduceat(hashed, starts, out=minima[row, i])
        return minima
