"""Sketches: small samples of large sets, from which resemblance and containment are estimated.

One seeded random order of all shingles (a 64-bit hash that is a bijection, so there are no ties)
gives each set x a sample that meets the sample of any other set (Broder 1997):

    MIN_s      M(x): the s smallest hashes of x, or all if x has fewer
    MOD_m      L(x): the hashes of x that m divides, about |x|/m of them
    signature  the smallest hash of x in each of `length` random orders

    resemblance   |MIN_s(M(x)∪M(y)) ∩ M(x) ∩ M(y)| / |MIN_s(M(x)∪M(y))|   unbiased
                  |L(x)∩L(y)| / |L(x)∪L(y)|                               unbiased
                  the share of equal places in two signatures             unbiased
    containment   |L(x)∩L(y)| / |L(x)|                                    unbiased, of x in y

Subtle: the outer MIN_s matters.  The s smallest of M(x)∪M(y) are the s smallest of x∪y, a fair
sample; the rest of M(x)∪M(y) is not, since a large hash of x may be missing from M(y) though it is
in y.  Where the denominator is empty there is no estimate: nan.

Letters: n sets, s and m as above (s = 64, m = 25), P pairs of row numbers (left[p], right[p]).
"""

from __future__ import annotations

import numpy as np

from neardup.sets.hashing import mix, random_words
from neardup.sets.ragged import PAIR_STEP, Ragged, chunks, shared

CACHE_TOKENS = 1 << 16  # hashed together: two arrays of 256 KiB stay in the second-level cache


def min_s(sets: Ragged, s: int, seed: int = 0) -> Ragged:
    """M(x) of each set: its `s` smallest hashes (s ≥ 1).

    >>> sketches = min_s(Ragged.from_rows([list(range(100)), [7, 8]]), s=4)
    >>> sketches.sizes.tolist()
    [4, 2]
    """
    return _smallest(_hashed(sets, seed), s)


def mod_m(sets: Ragged, m: int, seed: int = 0) -> Ragged:
    """L(x) of each set: its hashes that `m` divides (1 ≤ m < 2^64).

    >>> sets = Ragged.from_rows([list(range(10_000)), list(range(5000))])
    >>> mod_m(sets, m=25).sizes.tolist()
    [392, 192]
    """
    hashes = _hashed(sets, seed)
    return _kept(hashes, hashes.values % np.uint64(m) == 0)


def signatures(sets: Ragged, length: int, seed: int = 0) -> np.ndarray:
    """The min-hash signatures, uint32 of shape (n, length); no set may be empty.

    >>> signatures(Ragged.from_rows([[1, 2], [2, 1], [3]]), length=3).shape
    (3, 3)
    """
    mixed = mix(sets.values ^ random_words(seed, 1, stream=3)) >> np.uint64(32)
    words = mixed.astype(np.uint32)
    draws = random_words(seed, length, stream=4)
    factors = (draws >> np.uint64(32)).astype(np.uint32) | np.uint32(1)  # odd: a bijection
    terms = draws.astype(np.uint32)
    minima = np.empty((length, len(sets)), dtype=np.uint32)
    for first, last in chunks(sets.sizes, CACHE_TOKENS):
        start, stop = sets.offsets[first], sets.offsets[last]
        for i in range(length):
            hashed = words[start:stop] * factors[i] + terms[i]
            minima[i, first:last] = np.minimum.reduceat(hashed, sets.offsets[first:last] - start)
    return minima.T


def resemblance_of_min_s(
    sketches: Ragged, s: int, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Estimated resemblance (float64, shape (P,)) from the M(x) that `min_s` made with this s.

    >>> sketches = min_s(Ragged.from_rows([list(range(100)), list(range(50, 150))]), s=64)
    >>> resemblance_of_min_s(sketches, 64, np.array([0, 0]), np.array([0, 1])).tolist()
    [1.0, 0.359375]
    """
    estimates = [np.empty(0)]
    for low, high in chunks(sketches.sizes[left] + sketches.sizes[right], PAIR_STEP):
        sample = _smallest(_unions(sketches, left[low:high], right[low:high]), s)
        common = shared(sketches, left[low:high], right[low:high])
        places = np.arange(len(sample))
        both = shared(sample.beside(common), places, places + len(sample))
        estimates.append(_share(both.sizes, sample.sizes))
    return np.concatenate(estimates)


def resemblance_of_mod_m(sketches: Ragged, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Estimated resemblance (float64, shape (P,)) from the L(x) that `mod_m` made."""
    common = shared(sketches, left, right).sizes
    return _share(common, sketches.sizes[left] + sketches.sizes[right] - common)


def containment_of_mod_m(sketches: Ragged, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Estimated containment of left[p] in right[p] from the L(x) that `mod_m` made.

    >>> sketches = mod_m(Ragged.from_rows([list(range(100)), list(range(50))]), m=4)
    >>> containment_of_mod_m(sketches, np.array([0, 1]), np.array([1, 0])).tolist()
    [0.5, 1.0]
    """
    return _share(shared(sketches, left, right).sizes, sketches.sizes[left])


def agreement(signatures: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Estimated resemblance (float64, shape (P,)): the share of places where two signatures agree.

    >>> agreement(np.array([[1, 2, 3], [1, 5, 3]]), np.array([0]), np.array([1])).tolist()
    [0.6666666666666666]
    """
    estimates = [np.empty(0)]
    for low, high in chunks(np.full(len(left), signatures.shape[1]), PAIR_STEP):
        equal = signatures[left[low:high]] == signatures[right[low:high]]
        estimates.append(equal.mean(axis=1))
    return np.concatenate(estimates)


def _hashed(sets: Ragged, seed: int) -> Ragged:
    """The hashes of each set, ascending: its shingles in the random order."""
    return Ragged.from_unsorted(mix(sets.values ^ random_words(seed, 1, stream=3)), sets.sizes)


def _smallest(rows: Ragged, s: int) -> Ragged:
    """The first `s` values of each row."""
    place = np.arange(len(rows.values)) - np.repeat(rows.offsets[:-1], rows.sizes)
    return _kept(rows, place < s)


def _kept(rows: Ragged, keep: np.ndarray) -> Ragged:
    """The rows without the values where `keep` (bool, shape (T,)) is false."""
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(keep)))
    return Ragged(rows.values[keep], before[rows.offsets])


def _unions(rows: Ragged, left: np.ndarray, right: np.ndarray) -> Ragged:
    """Row left[p] and row right[p] as one row, for each p."""
    both = rows.take(np.column_stack((left, right)).ravel())
    return Ragged.from_unsorted(both.values, both.sizes.reshape(-1, 2).sum(axis=1))


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, and nan where the whole is 0."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
