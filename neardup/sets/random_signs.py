"""Random hyperplanes: on which sides of them a set lies (Charikar 2002).

In dimension d every token counts +1 or -1, by a bit of its random word.  The sign of the sum over
a set, each token times its weight, tells the side.  The vectors of two sets at an angle θ lie on
the same side of a hyperplane with probability 1 - θ/π.  That is exact for hyperplanes drawn from
a normal distribution; those of ±1 come near it as the tokens grow in number (central limit), as
long as no few of them outweigh the others: `normal_sides` has normal ones.

A sum of 0 would lie on both sides.  It gets a random bit, drawn by the smallest word of the set:
neither side is favoured, similar sets get the same bit most of the time, others half of the time.

Eight dimensions, or four where tokens have weights up to 255, are summed in the lanes of one 64-bit
word; heavier ones by themselves:

    word >> j & 0x0101010101010101      bits j, j+8, j+16 … of a token's word, each in a byte
    sum over 255 tokens                 255 at most: no lane runs over

Letters: T tokens in n sets, D dimensions (2,108).  Cost: some 0.2 ns for each token and dimension.
"""

from __future__ import annotations

import numpy as np

from neardup.sets.hashing import mix, random_words
from neardup.sets.ragged import Ragged, chunks

CACHE_TOKENS = 1 << 15  # summed together: a few arrays of 256 KiB stay in the second-level cache
SET_TOKENS = 32  # what the sums of a set take in memory, in tokens
LANE_TOKENS = 255  # whose sum fits a lane: of 8 bits, or of 16 where each weighs up to 255


def signs(sets: Ragged, weights: np.ndarray | None, seed: int, low: int, high: int) -> np.ndarray:
    """uint64 (n, W): bit d of set i is bit d % 64 of word d // 64 - low // 64 in row i.

    For dimensions d = low … high-1; other bits are 0.  weights: int64 (T,), above 0, less than 2^62
    in a set, or None where every token weighs 1.  No set may be empty.

    >>> sets = Ragged.from_rows([[1, 2, 3], [1, 2, 3, 4], [7]])
    >>> words = signs(sets, None, seed=0, low=0, high=64)[:, 0]
    >>> [bin(int(words[0]) ^ int(words[i])).count("1") for i in (1, 2)]
    [12, 31]
    """
    first_word, last_word = low // 64, -(-high // 64)
    draws = random_words(seed, last_word, stream=3)
    mixed = mix(sets.values ^ random_words(seed, 1, stream=1))
    result = np.empty((len(sets), max(last_word - first_word, 0)), dtype=np.uint64)
    for first, last in chunks(sets.sizes + SET_TOKENS, CACHE_TOKENS):
        start, stop = sets.offsets[first], sets.offsets[last]
        starts = sets.offsets[first:last] - start
        some = None if weights is None else weights[start:stop].astype(np.uint64)
        for word in range(first_word, last_word):
            dimensions = range(max(low - 64 * word, 0), min(high - 64 * word, 64))
            random = mix(mixed[start:stop] + draws[word])
            result[first:last, word - first_word] = _sides(random, some, starts, dimensions)
    return result


def _sides(
    random: np.ndarray, weights: np.ndarray | None, starts: np.ndarray, dimensions: range
) -> np.ndarray:
    """uint64 (n,), of n sets whose tokens' random words begin at `starts`."""
    sums, total = _sums(random, weights, starts, dimensions)
    tie = mix(np.minimum.reduceat(random, starts))
    rest = total - sums
    sides = _packed(sums > rest) | _packed(sums == rest) & tie
    return sides & np.uint64(sum(1 << d for d in dimensions))


def _sums(
    random: np.ndarray, weights: np.ndarray | None, starts: np.ndarray, dimensions: range
) -> tuple[np.ndarray, np.ndarray]:
    """What the tokens with a 1 weigh in each of 64 dimensions, int64 (64, n); and all tokens, (n,).

    Lane i of the word shifted by j is dimension j·lanes + i; those not asked for stay 0.  Heavy
    tokens have one lane, and take the bits that they would have in four.
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
    """64 rows of bits (64, n) as n words, the first row in the lowest bit."""
    octets = np.packbits(bits, axis=0, bitorder="little")
    return np.ascontiguousarray(octets.T).view("<u8")[:, 0].astype(np.uint64)
