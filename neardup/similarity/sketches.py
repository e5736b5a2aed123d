"""Sketches: small samples of sets to estimate resemblance and containment, and bitmaps of sets.

One seeded random order of all shingles makes the samples of all sets comparable (Broder 1997).  A
shingle's place in it is a hash of 48 bits: in one of 500 sets of a million shingles, two shingles
have the same hash.

    MIN_s      M(x): the s smallest hashes of x, or all if x has fewer
    MOD_m      L(x): the hashes of x that m divides, about |x|/m of them
    signature  the smallest hash of x in each of `length` random orders

    resemblance   |MIN_s(M(x)∪M(y)) ∩ M(x) ∩ M(y)| / |MIN_s(M(x)∪M(y))|   unbiased
                  |L(x)∩L(y)| / |L(x)∪L(y)|                               unbiased
                  the share of equal places in two signatures             unbiased
    containment   |L(x)∩L(y)| / |L(x)|                                    unbiased, of x in y

Subtle: the s smallest of M(x)∪M(y) are the s smallest of x∪y, a fair sample.  The rest is not: a
large hash of x may be in y and not in M(y).  Where M(x) and M(y) have fewer than s hashes each,
they are the sets themselves, and all of them count.

A bitmap is a cheap upper bound of what two sets share (Sandes, Teodoro, Melo, "Bitmap filter",
Information Systems 2020).  Each shingle flips one of 64 bits or more, and where the bitmaps of two
sets differ, a shingle is in one of them only:

    |x△y| ≥ popcount(bitmap(x) xor bitmap(y))   and   2·|x∩y| = |x| + |y| - |x△y|

64 bits rule out few pairs of sets of a hundred shingles; twice as many bits as shingles rule out
nearly all dissimilar pairs.

Letters: n sets, s and m as above (s = 64, m = 25), P pairs of row numbers (left[p], right[p]).
"""

import numpy as np

from neardup.runtime import kernels
from neardup.sets.bit_vectors import popcount
from neardup.sets.hashing import GOLDEN, mix, random_words
from neardup.sets.ragged import PAIR_STEP, Ragged, chunks, first_of_run
from neardup.similarity.measures import Measure

SAMPLE_BITS = 48  # of a hash: the other 16 are for a row number, so that one plain sort is enough
PAIR_HASHES = 32  # the fixed cost of a pair, in hashes: no step has 2^16 pairs
CACHE_TOKENS = 1 << 16  # hashed together: two arrays of 256 KiB stay in the L2 cache
MAX_BITS = 16  # of a bitmap, as a power of two
BITS_AT_ONCE = 1 << 20


def min_s(sets: Ragged, s: int, seed: int = 0) -> Ragged:
    """Return M(x) of each set: its `s` smallest hashes (s ≥ 1).

    >>> min_s(Ragged.from_rows([range(100), [7, 8]]), s=4).sizes.tolist()
    [4, 2]
    """
    hashes = _hashed(sets, seed)
    likely = s + 5 * np.sqrt(s) + 5  # the expected number of hashes below the bound
    bound = (2.0**SAMPLE_BITS * np.minimum(1, likely / np.maximum(1, sets.sizes))).astype(np.uint64)
    low = hashes < np.repeat(bound, sets.sizes)
    short = sets.where(low).sizes < np.minimum(s, sets.sizes)
    low |= np.repeat(short, sets.sizes)
    rows = _in_order(hashes[low], sets.where(low).sizes)
    place = np.arange(len(rows.values)) - np.repeat(rows.offsets[:-1], rows.sizes)
    return rows.where(place < s)


def mod_m(sets: Ragged, m: int, seed: int = 0) -> Ragged:
    """Return L(x) of each set: its hashes that `m` divides (1 ≤ m < 2^48).

    >>> mod_m(Ragged.from_rows([range(10_000), range(5000)]), m=25).sizes.tolist()
    [424, 193]
    """
    hashes = _hashed(sets, seed)
    multiples = hashes % np.uint64(m) == 0
    return _in_order(hashes[multiples], sets.where(multiples).sizes)


def signatures(sets: Ragged, length: int, seed: int = 0) -> np.ndarray:
    """Return the min-hash signatures, uint32 (n, length); no set may be empty."""
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


def sample_of_min_s(
    sketches: Ragged, s: int, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count common and all values in a sample of each pair's union; mark samples that are complete.

    Three arrays (P,): int64, int64, and bool, which is True if the sample is the whole union.
    """
    whole = np.maximum(sketches.sizes[left], sketches.sizes[right]) < s
    limit = np.where(whole, np.iinfo(np.int64).max, s)
    both, all_ = (np.zeros(len(left), dtype=np.int64) for _ in range(2))
    weights = sketches.sizes[left] + sketches.sizes[right] + PAIR_HASHES
    for low, high in chunks(weights, PAIR_STEP):
        sides = [sketches.take(rows[low:high]) for rows in (left, right)]
        number = np.arange(high - low, dtype=np.uint64) << np.uint64(SAMPLE_BITS)
        words = np.concatenate([side.values | np.repeat(number, side.sizes) for side in sides])
        words.sort(kind="stable")  # merges two ascending runs
        first = np.flatnonzero(first_of_run(words))
        twice = np.diff(first, append=len(words)) > 1
        pair = (words[first] >> np.uint64(SAMPLE_BITS)).astype(np.int64)
        rank = np.arange(len(pair)) - np.searchsorted(pair, np.arange(high - low))[pair]
        sampled = rank < limit[low:high][pair]
        all_[low:high] = np.bincount(pair[sampled], minlength=high - low)
        both[low:high] = np.bincount(pair[sampled & twice], minlength=high - low)
    return both, all_, whole  # int64, int64, bool


def _hashed(sets: Ragged, seed: int) -> np.ndarray:
    """Return a 48-bit hash of each shingle (uint64), seeded with `seed`."""
    mixed = mix(sets.values ^ random_words(seed, 1, stream=3))
    return mixed >> np.uint64(64 - SAMPLE_BITS)


def _in_order(values: np.ndarray, sizes: np.ndarray) -> Ragged:
    """Make rows from values laid end to end; sort each row and drop its repeats."""
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    parts = [
        Ragged.from_unsorted(values[ends[low] : ends[high]], sizes[low:high])
        for low, high in chunks(sizes + PAIR_HASHES, PAIR_STEP)
    ]
    return parts[0] if len(parts) == 1 else Ragged.end_to_end(parts)


def bitmaps(sets: Ragged) -> np.ndarray:
    """Return a bitmap of 64 bits for each row: uint64 (n, 1); no row may be empty."""
    return bitmaps_and_sums(sets)[0]


def bitmaps_and_sums(sets: Ragged) -> tuple[np.ndarray, np.ndarray]:
    """Return the bitmap of each row, uint64 (n, 1), and a sum of hashes, uint64 (n,).

    Equal rows have equal sums, and others hardly ever; no row may be empty.
    """
    if sets.sketches:
        return sets.sketches
    if kernels.COMPILED:
        maps, sums = kernels.sketch_rows(sets.values, sets.offsets, GOLDEN)
    else:
        bits = np.uint64(1) << (sets.values * np.uint64(GOLDEN) >> np.uint64(64 - 6))
        maps = np.bitwise_xor.reduceat(bits, sets.offsets[:-1])
        sums = np.add.reduceat(mix(sets.values), sets.offsets[:-1])
    sums += sets.sizes.astype(np.uint64) * np.uint64(GOLDEN)
    sets.sketches = maps[:, np.newaxis], sums
    return sets.sketches


def wide_bitmaps(sets: Ragged, log: "int | None" = None) -> np.ndarray:
    """Return bitmaps, uint64 (n, words), of 2^log bits, 6 to 16 (None: 2 to 4 times the mean size).

    >>> wide_bitmaps(Ragged.from_rows([range(100), range(50, 150)])).shape
    (2, 4)
    """
    mean = len(sets.values) // max(1, len(sets))
    log = log or min(max(6, mean.bit_length() + 1), MAX_BITS)
    if kernels.COMPILED:
        return kernels.parity_maps(sets.values, sets.offsets, GOLDEN, log)
    rows = np.arange(len(sets)) << log
    maps = np.zeros(len(sets) << log - 6, dtype=np.uint64)
    for low, high in chunks(sets.sizes + (1 << log), BITS_AT_ONCE):
        some = sets.take(np.arange(low, high))
        places = some.values * np.uint64(GOLDEN) >> np.uint64(64 - log)
        flips = np.repeat(rows[: high - low], some.sizes) + places.astype(np.int64)
        odd = (np.bincount(flips, minlength=high - low << log) & 1).astype(np.uint8)
        maps[low << log - 6 : high << log - 6] = np.packbits(odd, bitorder="little").view("<u8")
    return maps.reshape(len(sets), 1 << log - 6)


def may_reach(
    measure: Measure, maps: np.ndarray, sizes: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Mark pairs that may reach the threshold, by a bound on the overlap from their bitmaps (bool).

    The words of wide bitmaps are compared one by one: few pairs are left for the last word.

    >>> from neardup.similarity.measures import NINE_TENTHS, Jaccard
    >>> measure, sets = Jaccard(NINE_TENTHS), Ragged.from_rows([range(9), range(10), range(20)])
    >>> left, right = np.array([0, 0]), np.array([1, 2])
    >>> may_reach(measure, bitmaps(sets), sets.sizes, left, right).tolist()
    [True, False]
    """
    possible = np.zeros(len(left), dtype=bool)
    live, apart = np.arange(len(left)), np.zeros(len(left), dtype=np.int64)
    x, y = sizes[left], sizes[right]
    for word in maps.T:
        apart += popcount(word[left] ^ word[right])
        common = np.minimum((x + y - apart) // 2, np.minimum(x, y))
        still = np.flatnonzero(measure.may_reach(common, x, y))
        if len(still) < len(live):
            left, right, x, y = left[still], right[still], x[still], y[still]
            live, apart = live[still], apart[still]
        if not len(live):
            break
    possible[live] = True
    return possible
