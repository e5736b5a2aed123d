"""Bags as plain sets, and min-hashes of weighted sets.

*Bags.*  A value that occurs w times becomes w elements, value, value#2 … value#w: two bags share
the smaller count of each value, and the Jaccard similarity of these sets is Σ min / Σ max.

*Consistent weighted sampling*: two weighted sets agree in a sample with probability Σ min / Σ max
(Manasse, McSherry, Talwar 2010; Ioffe, ICDM 2010).  Each token has a half-plane of random points,
a Poisson process: across, the weight; up, the rank; and each point has the number of one of K hash
functions.  A set sees the points within the weights of its tokens.  Its sample for a hash function
is the lowest point with that number.

    rank │    ·   2   |            x weighs 5 here, y weighs 3.  The lowest point that either
         │  1      ·  | 3     ·    sees is seen by both with probability 3/5, and over all
         │     3      |   1        tokens with Σ min / Σ max.
         └────────────┴──────────
         0     y = 3  x = 5        The points of each number are a process by themselves.

All hash functions share one process: a set costs some K·log K points, and not K times its tokens
(DartMinHash: Christiani 2020).  The half-plane is cut into strips, 0-1, 1-2, 2-4, 4-8 …, and a
strip of width W into cells of height 1/W, each with Poisson(1) points drawn by its token, strip and
number.  Weights are whole numbers, and no logarithm is taken: every machine gets the same points.

Letters: T tokens in n sets; K hash functions (105), of which some are needed.  Cost: 0.3 to 0.8 ms
for a set of 100 tokens at K = 105, a hundred times that of plain min-hashes.
"""

from fractions import Fraction
from math import factorial
from typing import NamedTuple

import numpy as np

from neardup.sets.hashing import WORD, combine, mix, random_words
from neardup.sets.ragged import Ragged, chunks, first_of_run, spans

CELLS_AT_ONCE = 1 << 15
STRIPS_AT_ONCE = 1 << 16  # a heavy token has forty strips
MAX_STRIPS = 63
POINTS = 2  # expected points of each number, besides log K: few sets need more
RANK_BITS = 40


def bags(sets: Ragged) -> Ragged:
    """Convert weighted rows to plain sets, with w different elements for a value of weight w."""
    if sets.weights is None:
        return sets
    values = np.repeat(sets.values, sets.weights)
    ordinals = spans(np.ones(len(sets.weights), np.int64), sets.weights)
    sizes = np.diff(np.concatenate((np.zeros(1, np.int64), np.cumsum(sets.weights)))[sets.offsets])
    return Ragged.from_unsorted(_set_apart(values, ordinals), sizes)


def counted(values: np.ndarray, sizes: np.ndarray) -> Ragged:
    """Make rows from values laid end to end; a value's weight is how often the row has it.

    >>> rows = counted(np.array([7, 5, 7, 7], np.uint64), np.array([3, 1]))
    >>> rows.values.tolist(), rows.weights.tolist()
    ([5, 7, 7], [1, 2, 1])
    """
    return Ragged.summed(values, sizes, np.ones(len(values), np.int64))


def bagged(values: np.ndarray, sizes: np.ndarray) -> Ragged:
    return bags(counted(values, sizes))


def numbered(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """In each row, replace the second, third … of equal values by hashes of value and ordinal."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((values, owner))
    starts = np.flatnonzero(first_of_run(values[order]) | first_of_run(owner[order]))
    lengths = np.diff(starts, append=len(values))
    ordinals = np.empty(len(values), dtype=np.int64)
    ordinals[order] = np.arange(1, len(values) + 1) - np.repeat(starts, lengths)
    return _set_apart(values, ordinals)


def _set_apart(values: np.ndarray, ordinals: np.ndarray) -> np.ndarray:
    """Replace each value whose ordinal is above 1 by a hash of value and ordinal."""
    again = np.flatnonzero(ordinals > 1)
    apart = values.copy()
    words = np.stack((values[again], mix(ordinals[again].astype(np.uint64))))
    apart[again] = combine(words, seed=0)
    return apart


def _poisson_table() -> np.ndarray:
    """Return bounds (uint64): the number of bounds ≤ a random word is Poisson(1)-distributed."""
    terms = (Fraction((-1) ** i, factorial(i)) for i in range(40))
    inverse_e = sum(terms, Fraction(0))
    chances, below = [], Fraction(0)
    for k in range(20):
        below += inverse_e / factorial(k)
        chances.append(min(int(below * WORD), WORD - 1))
    return np.array(chances, dtype=np.uint64)


POISSON = _poisson_table()


def weighted_band_words(
    sets: Ragged, weights: np.ndarray, bands: np.ndarray, all_bands: int, rows: int, seed: int
) -> np.ndarray:
    """Hash the `rows` samples of each weighted set in each band to one word: uint64 (n, B).

    weights: int64 (T,), above 0, which add up to less than 2^62 in a set; no set may be empty.
    """
    numbers = (bands[:, np.newaxis] * rows + np.arange(rows)).ravel()
    samples = weighted_minima(sets, weights, numbers, all_bands * rows, seed)
    columns = np.moveaxis(samples.reshape(len(sets), len(bands), rows), 2, 0)
    return combine(columns, seed=bands.astype(np.uint64))


def weighted_minima(
    sets: Ragged, weights: np.ndarray, numbers: np.ndarray, functions: int, seed: int
) -> np.ndarray:
    """Return a min-hash of each of n weighted sets for each of m hash functions: uint64 (n, m).

    numbers: int64 (m,), ascending, of the hash functions.
    """
    samples = np.empty((len(sets), len(numbers)), dtype=np.uint64)
    if not samples.size:
        return samples
    column = np.full(functions, -1)
    column[numbers] = np.arange(len(numbers))
    tokens = mix(sets.values ^ random_words(seed, 1, stream=6))
    totals = np.add.reduceat(weights, sets.offsets[:-1])
    points = int(functions * (np.log2(len(numbers) + 1) + POINTS))  # affects only the cost
    waiting = np.arange(len(sets))
    while len(waiting):
        missed = []
        for low, high in chunks(2 * points + 8 * sets.sizes[waiting], CELLS_AT_ONCE):
            some = waiting[low:high]
            places = spans(sets.offsets[some], sets.sizes[some])
            owner = np.repeat(np.arange(len(some)), sets.sizes[some])
            seen = _Seen(tokens[places], weights[places], owner, totals[some])
            samples[some], full = _lowest(seen, points, column, len(numbers))
            missed.append(some[~full])
        waiting = np.concatenate(missed)
        points *= 2
    return samples


class _Seen(NamedTuple):
    """Tokens of several sets (uint64), with weights and set numbers, and the set totals (int64)."""

    tokens: np.ndarray
    weights: np.ndarray
    owner: np.ndarray
    totals: np.ndarray


def _lowest(
    seen: _Seen, points: int, column: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the min-hashes found for n sets, (n, width), and mark the sets that lack none."""
    lowest = np.full(len(seen.totals) * width, np.inf)
    samples = np.zeros(len(lowest), dtype=np.uint64)
    for low, high in chunks(_strips(seen.weights), STRIPS_AT_ONCE):
        tokens, weights, owner = (column[low:high] for column in seen[:3])
        some = _Seen(tokens, weights, owner, seen.totals)
        words, ranks, owner, place = _points(some, points, column)
        slot = owner * width + place
        lower = np.flatnonzero(ranks < lowest[slot])
        while len(lower):  # few rounds: numpy stores the last of several points for a slot
            lowest[slot[lower]], samples[slot[lower]] = ranks[lower], words[lower]
            lower = lower[ranks[lower] < lowest[slot[lower]]]
    full = np.isfinite(lowest).reshape(-1, width).all(axis=1)
    return samples.reshape(-1, width), full


def _strips(weights: np.ndarray) -> np.ndarray:
    """Return how many of the intervals 0-1, 1-2, 2-4, 4-8 … each weight reaches (int64)."""
    return 1 + np.searchsorted(1 << np.arange(MAX_STRIPS), weights).astype(np.int64)


def _points(
    seen: _Seen, points: int, column: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the random points of low rank in each set, as (words, ranks, sets, columns).

    A set has about `points` of them, and those of the needed hash functions are returned.
    """
    strips = _strips(seen.weights)
    token = np.repeat(np.arange(len(strips)), strips)
    strip = np.arange(len(token)) - np.repeat(np.cumsum(strips) - strips, strips)
    log_width = np.maximum(strip - 1, 0)
    heights = -(-(points << log_width) // seen.totals[seen.owner[token]])  # in cells
    cell = np.repeat(np.arange(len(token)), heights)
    number = np.arange(len(cell)) - np.repeat(np.cumsum(heights) - heights, heights)
    strip_words = mix(seen.tokens[token] + strip.astype(np.uint64))
    words = mix(strip_words[cell] + number.astype(np.uint64))
    counts = np.zeros(len(words), dtype=np.int64)
    more = np.arange(len(words))
    for bound in POISSON:
        more = more[words[more] >= bound]
        counts[more] += 1
        if not len(more):
            break
    several = np.repeat(np.arange(len(words)), counts)
    ordinal = np.arange(len(several)) - np.repeat(np.cumsum(counts) - counts, counts)
    words = mix(words[several] + (ordinal + 1).astype(np.uint64) * np.uint64(0xD1342543DE82EF95))
    place = column[((words >> np.uint64(32)) * np.uint64(len(column)) >> np.uint64(32)).astype(int)]
    wanted = np.flatnonzero(place >= 0)
    words, place, cells = words[wanted], place[wanted], several[wanted]
    strips_of = cell[cells]
    owner, log_width = seen.owner[token[strips_of]], log_width[strips_of]
    draws = mix(words)
    ranks = (draws >> np.uint64(64 - RANK_BITS)).astype(np.float64) / 2.0**RANK_BITS
    ranks = np.ldexp(ranks + number[cells], -log_width)
    # The place of a point in its strip, from 1 on: only the last strip ends beyond the weight.
    across = (mix(draws) & ((np.uint64(1) << log_width.astype(np.uint64)) - np.uint64(1))) + 1
    start = np.where(strip[strips_of] > 0, np.int64(1) << log_width, 0)
    visible = start + across.astype(np.int64) <= seen.weights[token[strips_of]]
    visible &= ranks * seen.totals[owner] < points
    return words[visible], ranks[visible], owner[visible], place[visible]
