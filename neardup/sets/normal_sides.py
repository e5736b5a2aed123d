"""On which sides of normally distributed hyperplanes a weighted set lies (Charikar 2002).

In dimension d a token has a number drawn from the standard normal distribution, and the sign of the
sum over a set, each times its weight, tells the side.  Two sets at an angle θ lie on the same side
with probability 1 - θ/π, whatever their weights are: signs of ±1 (`random_signs`) do not give that
where one token outweighs the others.

A number is the quantile of 12 random bits, in whole multiples of 2^-11: 4,096 steps, half of them
above 0, and none that is 0.  The weights of a set are cut, where need be, to add up to less than
2^39: so all sums are whole numbers below 2^53.  Cost: some 10 ns for each token and dimension.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from neardup.sets.hashing import mix, random_words
from neardup.sets.ragged import Ragged, chunks

STEP_BITS, SCALE = 12, 1 << 11
DRAWS = 4  # from a random word
WORD_BITS = 64
TOTAL_BITS = 39  # of weights that add up, beside 13 of a number: float64 has them all exactly
CACHE_TOKENS = 1 << 11
DISTINCT_AT_ONCE = 1 << 16


@cache
def quantiles() -> np.ndarray:
    """float64 (4096,), whole numbers: of the middle of each step."""
    from statistics import NormalDist  # which takes as long to import as all schemes

    normal, steps = NormalDist(), 1 << STEP_BITS
    above = [normal.inv_cdf((steps + 2 * i + 1) / (2 * steps)) for i in range(steps // 2)]
    whole = np.array([round(SCALE * quantile) for quantile in above], dtype=np.float64)
    return np.concatenate((-whole[::-1], whole))



def normal_sides(sets: Ragged, weights: np.ndarray, seed: int, low: int, high: int) -> np.ndarray:
    """uint64 (n, W): bit d of set i is bit d % 64 of word d // 64 - low // 64 in row i.

    For dimensions d = low … high-1; other bits are 0.  weights: int64 (T,), above 0, less than 2^62
    in a set.  No set may be empty.

    >>> sets = Ragged.from_rows([[1, 2], [1, 2], [1, 3]])
    >>> words = normal_sides(sets, np.array([4, 1, 1, 4, 4, 4]), seed=0, low=0, high=64)[:, 0]
    >>> [bin(int(words[0]) ^ int(words[i])).count("1") for i in (1, 2)]
    [24, 9]
    """
    first_word, last_word = low // WORD_BITS, -(-high // WORD_BITS)
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
            for i, j in chunks(np.diff(bounds), CACHE_TOKENS):
                tokens = slice(bounds[i] - bounds[0], bounds[j] - bounds[0])
                terms = numbers[place[tokens]]
                terms *= exact[bounds[i] : bounds[j]]
                sums = np.add.reduceat(terms, bounds[i:j] - bounds[i], axis=0)
                sides = _packed(sums > 0) | _packed(sums == 0) & mix(tie[i:j] + np.uint64(word))
                result[first + i : first + j, word - first_word] = sides
    inside = [range(max(low, 64 * w), min(high, 64 * w + 64)) for w in range(first_word, last_word)]
    return result & np.array([sum(1 << d % 64 for d in ds) for ds in inside], dtype=np.uint64)


def _numbers(mixed: np.ndarray, word: int, seed: int) -> np.ndarray:
    """float64 (V, 64): those of V tokens in the dimensions of a word."""
    draws = WORD_BITS // DRAWS
    random = mix(mixed[:, np.newaxis] + random_words(seed, (word + 1) * draws, stream=7)[-draws:])
    return quantiles()[random.astype("<u8").view("<u2") >> np.uint16(16 - STEP_BITS)]


def _packed(bits: np.ndarray) -> np.ndarray:
    """64 columns of bits (n, 64) as n words, the first column in the lowest bit."""
    return np.packbits(bits, axis=1, bitorder="little").view("<u8")[:, 0].astype(np.uint64)


def _cut(weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The same but for their last bits, where those of a set add up to more than there is room."""
    totals = np.add.reduceat(weights, offsets[:-1]) if len(weights) else weights
    bits = np.frexp(totals.astype(np.float64))[1].astype(np.int64)
    return weights >> np.repeat(np.maximum(bits - TOTAL_BITS, 0), np.diff(offsets))
