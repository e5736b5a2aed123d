"""Min-hashes in bands: the least value of a random hash over a set, r of them hashed to one word.

The minimum is equal for two sets with probability s, their resemblance (Broder 1997), so the word
of a band is equal with probability s^r.

Letters: n sets, B bands (15), r rows (7).  Cost: 0.3 ns for each token and hash.
"""

from __future__ import annotations

import numpy as np

from neardup.sets.hashing import combine, mix, random_words
from neardup.sets.ragged import Ragged, chunks

CACHE_TOKENS = 1 << 16  # hashed together: two arrays of 256 KiB stay in the second-level cache


def band_words(sets: Ragged, bands: np.ndarray, rows: int, seed: int) -> np.ndarray:
    """uint64 (n, B): for each set, none of them empty, the words of the bands (int64) asked for.

    >>> sets = Ragged.from_rows([[1, 2, 3], [1, 2, 3], [7, 8]])
    >>> words = band_words(sets, np.arange(2), rows=3, seed=0)
    >>> bool((words[0] == words[1]).all()), bool((words[0] == words[2]).any())
    (True, False)
    """
    words = np.empty((len(sets), len(bands)), dtype=np.uint64)
    mixed = (mix(sets.values ^ random_words(seed, 1, stream=1)) >> np.uint64(32)).astype(np.uint32)
    mixed |= np.uint32(1)
    for first, last in chunks(sets.sizes, CACHE_TOKENS):
        start, stop = sets.offsets[first], sets.offsets[last]
        starts = sets.offsets[first:last] - start
        words[first:last] = combine(
            _minima(mixed[start:stop], starts, bands, rows, seed), seed=bands[:, np.newaxis]
        ).T
    return words


def _minima(
    mixed: np.ndarray, starts: np.ndarray, bands: np.ndarray, rows: int, seed: int
) -> np.ndarray:
    """uint32 (rows, B, n), of n sets whose mixed tokens (uint32, odd) begin at `starts`.

    A hash function is one multiplication by a random odd word: of a token that is odd, too, each
    odd word comes out with the same probability, and no token has a hash that is always small.
    """
    if len(starts) == 1 and len(mixed) > CACHE_TOKENS:  # a large set, piece by piece
        cuts = range(0, len(mixed), CACHE_TOKENS)
        pieces = [_minima(mixed[i : i + CACHE_TOKENS], starts, bands, rows, seed) for i in cuts]
        return np.minimum.reduce(pieces)
    draws = random_words(seed, (int(bands.max(initial=-1)) + 1) * rows, stream=2)
    factors = (draws >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
    hashed = np.empty_like(mixed)
    minima = np.empty((rows, len(bands), len(starts)), dtype=np.uint32)
    for i, band in enumerate(bands.tolist()):
        for row in range(rows):
            np.multiply(mixed, factors[band * rows + row], out=hashed)
            np.minimum.reduceat(hashed, starts, out=minima[row, i])
    return minima
