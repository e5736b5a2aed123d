"""Seeded hashing, the same in every process and on every machine; min-hashes of sets.

Python's own `hash()` differs between processes, and a linear hash alone leans on consecutive ids,
so every token goes once through a 64-bit finaliser before anything linear touches it.  The
finaliser and the generator are SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).

All arithmetic is modulo 2^64 (`uint64`) or 2^32 (`uint32`) and relies on wrapping.

Min-hashes in bands: the least value of a random hash over a set, r of them hashed to one word.

The minimum is equal for two sets with probability s, their resemblance (Broder 1997), so the word
of a band is equal with probability s^r.

Letters: n sets, B bands (15), r rows (7).  Cost: 0.3 ns for each token and hash.
"""

from __future__ import annotations

import numpy as np

from neardup.sets.ragged import Ragged, chunks

WORD = 1 << 64
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: SplitMix64's step


def mix(values: np.ndarray) -> np.ndarray:
    """Spread 64-bit values evenly over all 64 bits; a bijection.

    `values` is a uint64 array of any shape; so is the result.

    >>> [hex(int(x)) for x in mix(np.array([0, 1, 2], np.uint64))]
    ['0x0', '0x5692161d100b05e5', '0xdbd238973a2b148a']
    """
    values = values ^ (values >> np.uint64(30))
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


def unmix(values: np.ndarray) -> np.ndarray:
    """The inverse of `mix`, step by step: what was shifted out is shifted in again.

    >>> unmix(mix(np.array([0, 1, WORD - 1], np.uint64))).tolist()
    [0, 1, 18446744073709551615]
    """
    values = values ^ (values >> np.uint64(31)) ^ (values >> np.uint64(62))
    values *= np.uint64(pow(0x94D049BB133111EB, -1, WORD))
    values ^= (values >> np.uint64(27)) ^ (values >> np.uint64(54))
    values *= np.uint64(pow(0xBF58476D1CE4E5B9, -1, WORD))
    values ^= (values >> np.uint64(30)) ^ (values >> np.uint64(60))
    return values


def random_words(seed: int, count: int, stream: int = 0) -> np.ndarray:
    """The first `count` outputs (uint64) of SplitMix64 for `seed` (0 … 2^64-1).

    Streams of one seed are independent of each other.  numpy's generators are not used because
    their streams may change between versions, and every mapper and reducer must agree.

    >>> random_words(0, 2).tolist()
    [16294208416658607535, 7960286522194355700]
    """
    start = (seed + stream * 0xD1342543DE82EF95) % WORD  # an odd step keeps the streams apart
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    return mix(steps + np.uint64(start))


def combine(columns: np.ndarray, seed: int | np.ndarray) -> np.ndarray:
    """Hash k words at each of many places to 64 bits; their order counts.

    `columns` has shape (k, …), k ≥ 1, and holds random-looking words, such as `mix` makes; the
    result (uint64) has the shape of one column, which `seed` must fit.
    """
    digest = np.empty(columns.shape[1:], dtype=np.uint64)
    digest[...] = seed
    for column in columns:
        digest *= np.uint64(GOLDEN)
        digest += column
    return mix(digest)


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
