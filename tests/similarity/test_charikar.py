"""Hash functions with Pr[h(x) = h(y)] = sim(x, y) have the consequences that Charikar proves.

Charikar, "Similarity estimation techniques from rounding algorithms", 2002:

* 1 - sim keeps the triangle inequality; so some similarities have no such family;
* (1 + sim) / 2 has one whose hashes are single bits: hash the hash to a bit, by a random function.
  Two hashes that are equal give equal bits, others do so half of the time;
* N such bits put each x at a corner of a cube, at a Hamming distance of (1 - sim) / 2 · N on
  average: 1 - sim, but for the factor.

Measured on N draws of the hash functions for each pair.  The draws are independent, so the number
of equal bits is binomial, and its Clopper-Pearson interval at α = 1e-9 holds the formula but in one
of 10^9 draws.  Seeds are fixed.
"""

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

from neardup.sets.hashing import band_words, mix, random_words, signs
from neardup.sets.ragged import Ragged
from neardup.similarity.definitions import cosine, dice, overlap_coefficient, resemblance
from neardup.similarity.intervals import clopper_pearson
from neardup.similarity.sketches import signatures
from tests.similarity.test_definitions import ROUNDING, SETS, is_a_metric
from tests.support.oracle import angular_distance

ALPHA = 1e-9
N = 20_000
HASHES = {
    "signatures": signatures,
    "bands of one row": lambda sets, n, seed: band_words(sets, np.arange(n), 1, seed),
}
every_hash = pytest.mark.parametrize("hashes", HASHES.values(), ids=HASHES)


def one_bit(hashes: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return the hashes (n, N), each hashed to 0 or 1 by a random function of its place."""
    draws = random_words(seed, hashes.shape[1], stream=9)
    return mix(hashes.astype(np.uint64) ^ draws) >> np.uint64(63)


def sides(sets: Ragged, n: int, seed: int = 0) -> np.ndarray:
    """Return the sides of n random hyperplanes on which the sets are, as 0 or 1."""
    octets = signs(sets, None, seed, 0, n).astype("<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :n]


def interval(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the confidence interval of Pr[x = y], from two arrays of N hashes."""
    return clopper_pearson(int(np.count_nonzero(x == y)), len(x), ALPHA)


def two_sets(common: int, left: int, right: int) -> list[list[int]]:
    """Return two sets with these values of |x∩y|, |x - y| and |y - x|."""
    x, y = range(common + left), range(common + left, common + left + right)
    return [list(x), [*range(common), *y]]


def angle(x: list[int], y: list[int]) -> float:
    """Return the angle θ/π of two sets as vectors of 0 and 1."""
    return angular_distance(dict.fromkeys(x, 1.0), dict.fromkeys(y, 1.0))


# Hashes of one bit.


@every_hash
@pytest.mark.parametrize(
    "shape", [(0, 40, 60), (1, 1, 1), (10, 20, 20), (50, 0, 50), (90, 5, 5), (30, 0, 0)], ids=str
)
def test_min_hashes_of_one_bit_agree_with_half_of_one_plus_the_resemblance(hashes, shape):
    pair = two_sets(*shape)
    s = resemblance(*pair)
    assert s == Fraction(shape[0], sum(shape))
    full = hashes(Ragged.from_rows(pair), N, 1)
    low, high = interval(*full)
    assert low <= s <= high
    low, high = interval(*one_bit(full))
    assert low <= (1 + s) / 2 <= high
    assert high - low < 0.05
    assert s == 1 or not low <= s <= high  # a bit agrees more often than its hash


@pytest.mark.parametrize(
    "shape", [(500, 1500, 1500), (1000, 1000, 1000), (1800, 200, 200), (500, 0, 1500)], ids=str
)
def test_a_hyperplane_is_a_hash_of_one_bit_already(shape):
    """Sides of a hyperplane agree with probability 1 - θ/π, and with 1 - θ/(2π) once hashed."""
    pair = two_sets(*shape)
    same_side = 1 - angle(*pair)
    bits = sides(Ragged.from_rows(pair), N)
    low, high = interval(*bits)
    assert low <= same_side <= high
    again_low, again_high = interval(*one_bit(bits))
    assert again_low <= (1 + same_side) / 2 <= again_high
    assert again_low > high


# The cube.

TRIPLES = {
    "a chain": [range(60), range(20, 80), range(40, 100)],
    "of any sizes": [range(10), range(5, 50), range(45, 160)],
    "nested": [range(20), range(50), range(100)],
    "dissimilar": [range(30), range(30, 70), range(70, 75)],
    "the detour is as long": [[1], [1, 2], [2]],
}


@every_hash
@pytest.mark.parametrize("triple", TRIPLES.values(), ids=TRIPLES)
def test_the_corners_of_a_cube_are_as_far_apart_as_sets_but_for_the_factor(hashes, triple):
    corners = one_bit(hashes(Ragged.from_rows([list(x) for x in triple]), N, 2))
    for i, j in combinations(range(3), 2):
        low, high = interval(corners[i], corners[j])
        distance = 1 - resemblance(triple[i], triple[j])
        assert 1 - high <= distance / 2 <= 1 - low
    for i, j, k in permutations(range(3)):
        x, y, z = (triple[m] for m in (i, j, k))
        assert 1 - resemblance(x, z) <= 2 - resemblance(x, y) - resemblance(y, z)
        detour = np.count_nonzero(corners[i] != corners[j]) + np.count_nonzero(
            corners[j] != corners[k]
        )
        assert np.count_nonzero(corners[i] != corners[k]) <= detour


def test_the_sides_of_hyperplanes_are_corners_as_far_apart_as_the_angles():
    triple = [list(range(k * 400, k * 400 + 2000)) for k in range(3)]
    corners = sides(Ragged.from_rows(triple), N)
    for i, j in combinations(range(3), 2):
        low, high = interval(corners[i], corners[j])
        assert 1 - high <= angle(triple[i], triple[j]) <= 1 - low
    direct, first, second = (angle(triple[i], triple[j]) for i, j in ((0, 2), (0, 1), (1, 2)))
    assert direct < first + second


# Similarities without such hashes.


@pytest.mark.parametrize("similarity", [dice, overlap_coefficient, cosine])
def test_one_minus_some_similarities_is_no_metric_so_they_have_no_lsh_family(similarity):
    """For dice, overlap and cosine, 1 - sim is not a metric, so they have no LSH family."""
    assert not is_a_metric(lambda x, y: 1 - similarity(x, y), SETS, rounding=ROUNDING)
    assert (1 - similarity("a", "ab")) + (1 - similarity("ab", "b")) < 1 - similarity("a", "b")
