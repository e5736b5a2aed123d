"""Seeded hashing, min-hashes and random hyperplanes: the same in every process and on any machine.

*Hashing* is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): Python's own `hash()` differs between
processes, and a linear hash alone is not random for consecutive ids.  All arithmetic wraps.

*Min-hashes* (`band_words`): two sets have the same minimum of a random hash with probability s,
their resemblance (Broder 1997).  r of them make one word, equal with probability s^r.

*Random hyperplanes* (Charikar 2002): two vectors at an angle θ lie on the same side of one with
probability 1 - θ/π, if it is drawn from a normal distribution (`hyperplane_sides`).  `signs` draws
+1 or -1 for each token and dimension, which is almost the same for many tokens of similar weight.
A sum of 0 gets a random bit, drawn by the smallest word of the set, which similar sets share.

`signs` sums eight dimensions, or four where tokens have weights up to 255, in the lanes of a word:

    word >> j & 0x0101010101010101      bits j, j+8, j+16 … of a token's word, each in a byte
    sum over 255 tokens                 255 at most: no lane runs over

A normal number is the quantile of 12 random bits, in whole multiples of 2^-11, and weights are cut
to add up to less than 2^39: so all sums are whole numbers below 2^53, which float64 has exactly.

Letters: T tokens in n sets; B bands (15) of r rows (7); D dimensions (2,108).  Cost in ns for each
token: 0.3 a min-hash; 0.2 a dimension of `signs`, 10 of `hyperplane_sides`.
"""

from functools import cache

import numpy as np

from neardup.runtime import kernels
from neardup.sets.ragged import Ragged, chunks

WORD = 1 << 64
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: SplitMix64's step
# Tokens hashed, or summed, together: two arrays of 256 KiB, or a few, stay in the L2 cache.
CACHE_TOKENS, SUMMED_TOKENS = 1 << 16, 1 << 15
SET_TOKENS = 32  # memory for the sums of a set, in tokens
LANE_TOKENS = 255  # tokens whose sum fits in a lane: of 8 bits, or of 16 for weights up to 255
STEP_BITS, SCALE = 12, 1 << 11  # of normal numbers
DRAWS = 4  # normal numbers from a random word
TOTAL_BITS = 39  # for a sum of weights; with 13 bits of a number, float64 is still exact
NORMAL_CACHE_TOKENS = 1 << 11
DISTINCT_AT_ONCE = 1 << 16


def mix(values: np.ndarray) -> np.ndarray:
    """Hash values (uint64, any shape) by a bijection that spreads them over all 64 bits.

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
    """Invert `mix`: unmix(mix(x)) equals x (uint64, any shape)."""
    values = values ^ (values >> np.uint64(31)) ^ (values >> np.uint64(62))
    values *= np.uint64(pow(0x94D049BB133111EB, -1, WORD))
    values ^= (values >> np.uint64(27)) ^ (values >> np.uint64(54))
    values *= np.uint64(pow(0xBF58476D1CE4E5B9, -1, WORD))
    values ^= (values >> np.uint64(30)) ^ (values >> np.uint64(60))
    return values


def random_words(seed: int, count: int, stream: int = 0) -> np.ndarray:
    """Return the first `count` words (uint64) of SplitMix64 for a `seed` (0 … 2^64-1) and `stream`.

    Streams of one seed are independent.  numpy's generators may change between versions.

    >>> random_words(0, 2).tolist()
    [16294208416658607535, 7960286522194355700]
    """
    start = (seed + stream * 0xD1342543DE82EF95) % WORD  # an odd step keeps the streams apart
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    return mix(steps + np.uint64(start))


def combine(columns: np.ndarray, seed: "int | np.ndarray") -> np.ndarray:
    """Hash k words to one along the first axis of `columns`, uint64 (k, …); their order matters."""
    digest = np.empty(columns.shape[1:], dtype=np.uint64)
    digest[...] = seed
    for column in columns:
        digest *= np.uint64(GOLDEN)
        digest += column
    return mix(digest)


def band_words(sets: Ragged, bands: np.ndarray, rows: int, seed: int) -> np.ndarray:
    """Return a word for each set and band, hashed from `rows` min-hashes: uint64 (n, B).

    bands: int64 (B,), the numbers of the bands.  No set may be empty.

    >>> sets = Ragged.from_rows([[1, 2, 3], [1, 2, 3], [7, 8]])
    >>> words = band_words(sets, np.arange(2), rows=3, seed=0)
    >>> bool((words[0] == words[1]).all()), bool((words[0] == words[2]).any())
    (True, False)
    """
    seeds = random_words(seed, 1, stream=1)
    draws = random_words(seed, (int(bands.max(initial=-1)) + 1) * rows, stream=2)
    factors = (draws >> np.uint64(32)).astype(np.uint32).reshape(-1, rows)[bands] | np.uint32(1)
    if kernels.COMPILED:
        return kernels.band_words(sets.values, sets.offsets, int(seeds[0]), factors, bands)
    words = np.empty((len(sets), len(bands)), dtype=np.uint64)
    mixed = (mix(sets.values ^ seeds) >> np.uint64(32)).astype(np.uint32)
    mixed |= np.uint32(1)
    for first, last in chunks(sets.sizes, CACHE_TOKENS):
        start, stop = sets.offsets[first], sets.offsets[last]
        starts = sets.offsets[first:last] - start
        minima = _minima(mixed[start:stop], starts, factors)
        words[first:last] = combine(minima, seed=bands[:, np.newaxis]).T
    return words


def _minima(mixed: np.ndarray, starts: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the min-hashes, uint32 (rows, B, n), of n sets; set i begins at mixed[starts[i]].

    mixed: hashed tokens, uint32, odd.  A hash function multiplies by a random odd factor, uint32
    (B, rows): each odd product is equally likely.
    """
    if len(starts) == 1 and len(mixed) > CACHE_TOKENS:  # a large set, piece by piece
        cuts = range(0, len(mixed), CACHE_TOKENS)
        return np.minimum.reduce(
            [_minima(mixed[i : i + CACHE_TOKENS], starts, factors) for i in cuts]
        )
    bands, rows = factors.shape
    hashed = np.empty_like(mixed)
    minima = np.empty((rows, bands, len(starts)), dtype=np.uint32)
    for band in range(bands):
        for row in range(rows):
            np.multiply(mixed, factors[band, row], out=hashed)
            np.minimum.reduceat(hashed, starts, out=minima[row, band])
    return minima


def signs(sets: Ragged, weights: "np.ndarray | None", seed: int, low: int, high: int) -> np.ndarray:
    """Return the sign bits of random ±1 projections of each set, as rows of words: uint64 (n, W).

    For dimensions d = low … high-1; other bits are 0.  weights: int64 (T,), above 0, less than 2^62
    in a set, or None: every token weighs 1.  No set may be empty.

    >>> sets = Ragged.from_rows([[1, 2, 3], [1, 2, 3, 4], [7]])
    >>> words = signs(sets, None, seed=0, low=0, high=64)[:, 0]
    >>> [bin(int(words[0]) ^ int(words[i])).count("1") for i in (1, 2)]
    [12, 31]
    """
    first_word, last_word = low // 64, -(-high // 64)
    draws = random_words(seed, last_word, stream=3)
    mixed = mix(sets.values ^ random_words(seed, 1, stream=1))
    result = np.empty((len(sets), max(last_word - first_word, 0)), dtype=np.uint64)
    for first, last in chunks(sets.sizes + SET_TOKENS, SUMMED_TOKENS):
        start, stop = sets.offsets[first], sets.offsets[last]
        starts = sets.offsets[first:last] - start
        some = None if weights is None else weights[start:stop].astype(np.uint64)
        for word in range(first_word, last_word):
            dimensions = range(max(low - 64 * word, 0), min(high - 64 * word, 64))
            random = mix(mixed[start:stop] + draws[word])
            sums, total = _sums(random, some, starts, dimensions)
            ties = mix(np.minimum.reduceat(random, starts))
            sides = _packed(sums > total - sums) | _packed(sums == total - sums) & ties
            asked = np.uint64(sum(1 << d for d in dimensions))
            result[first:last, word - first_word] = sides & asked
    return result


def _sums(
    random: np.ndarray, weights: "np.ndarray | None", starts: np.ndarray, dimensions: range
) -> tuple[np.ndarray, np.ndarray]:
    """Return the total weight, by set, of tokens with a 1 in each dimension, and of all tokens.

    Shapes: int64 (64, n) and (n,).  Lane i of the word shifted by j is dimension j·lanes + i.
    Heavy tokens have one lane, and use the bits that they would have in four.
    """
    heavy = weights is not None and int(weights.max()) > LANE_TOKENS
    lane = 8 if weights is None else 64 if heavy else 16
    lanes = 64 // lane
    mask = np.uint64(((1 << 64) - 1) // ((1 << lane) - 1))
    sizes = np.diff(starts, append=len(random))
    pieces = -(-sizes // LANE_TOKENS)
    first_piece = np.cumsum(pieces) - pieces
    cuts = np.repeat(starts - LANE_TOKENS * first_piece, pieces)
    cuts += LANE_TOKENS * np.arange(len(cuts))
    sums = np.zeros((lane, lanes, len(starts)), dtype=np.int64)
    part = np.empty_like(random)
    shifts = (lane * np.arange(lanes, dtype=np.uint64))[:, np.newaxis]
    for j in range(dimensions.start // lanes, -(-dimensions.stop // lanes)):
        np.right_shift(random, np.uint64(j % 4 * 16 + j // 4 if heavy else j), out=part)
        np.bitwise_and(part, mask, out=part)
        if weights is not None:
            np.multiply(part, weights, out=part)
        packed = np.add.reduceat(part, cuts) >> shifts & np.uint64((1 << lane) - 1)
        np.add.reduceat(packed.view(np.int64), first_piece, axis=1, out=sums[j])
    total = sizes if weights is None else np.add.reduceat(weights, starts).astype(np.int64)
    return sums.reshape(64, -1), total


def _packed(bits: np.ndarray) -> np.ndarray:
    """Pack 64 rows of bits (64, n) into n words, the first row in the lowest bit."""
    octets = np.packbits(bits, axis=0, bitorder="little")
    return np.ascontiguousarray(octets.T).view("<u8")[:, 0].astype(np.uint64)


@cache
def quantiles() -> np.ndarray:
    """Return 4,096 normal quantiles at equal probability steps, times 2^11, rounded (float64)."""
    from statistics import NormalDist  # takes as long to import as all schemes

    normal, steps = NormalDist(), 1 << STEP_BITS
    above = [normal.inv_cdf((steps + 2 * i + 1) / (2 * steps)) for i in range(steps // 2)]
    whole = np.array([round(SCALE * quantile) for quantile in above], dtype=np.float64)
    return np.concatenate((-whole[::-1], whole))


def hyperplane_sides(
    sets: Ragged, weights: np.ndarray, seed: int, low: int, high: int
) -> np.ndarray:
    """Return the sign bits of normally distributed projections, in the format of `signs`."""
    first_word, last_word = low // 64, -(-high // 64)
    result = np.empty((len(sets), max(last_word - first_word, 0)), dtype=np.uint64)
    exact = _cut(weights, sets.offsets).astype(np.float64)[:, np.newaxis]
    for first, last in chunks(sets.sizes, DISTINCT_AT_ONCE):
        bounds = sets.offsets[first : last + 1]
        some = sets.values[bounds[0] : bounds[-1]]
        distinct, place = np.unique(some, return_inverse=True)
        mixed = mix(distinct ^ random_words(seed, 1, stream=1))
        tie = np.minimum.reduceat(mix(some), bounds[:-1] - bounds[0])
        for word in range(first_word, last_word):
            numbers = _numbers(mixed, word, seed)
            for i, j in chunks(np.diff(bounds), NORMAL_CACHE_TOKENS):
                tokens = slice(bounds[i] - bounds[0], bounds[j] - bounds[0])
                terms = numbers[place[tokens]]
                terms *= exact[bounds[i] : bounds[j]]
                sums = np.add.reduceat(terms, bounds[i:j] - bounds[i], axis=0)
                ties = mix(tie[i:j] + np.uint64(word))
                sides = _packed((sums > 0).T) | _packed((sums == 0).T) & ties
                result[first + i : first + j, word - first_word] = sides
    inside = [range(max(low, 64 * w), min(high, 64 * w + 64)) for w in range(first_word, last_word)]
    return result & np.array([sum(1 << d % 64 for d in ds) for ds in inside], dtype=np.uint64)


def _numbers(mixed: np.ndarray, word: int, seed: int) -> np.ndarray:
    """Return normal variates, times 2^11, for each token in 64 dimensions: float64 (tokens, 64)."""
    draws = 64 // DRAWS
    random = mix(mixed[:, np.newaxis] + random_words(seed, (word + 1) * draws, stream=7)[-draws:])
    return quantiles()[random.astype("<u8").view("<u2") >> np.uint16(16 - STEP_BITS)]


def _cut(weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Shift the weights of each set right until they sum to less than 2^39."""
    totals = np.add.reduceat(weights, offsets[:-1]) if len(weights) else weights
    bits = np.frexp(totals.astype(np.float64))[1].astype(np.int64)
    return weights >> np.repeat(np.maximum(bits - TOTAL_BITS, 0), np.diff(offsets))
