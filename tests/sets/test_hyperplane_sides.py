"""Sides of hyperplanes are the signs of sums, and two sets share as many as their angle implies."""

from math import hypot

import numpy as np
import pytest

from neardup.schemes.bit_keys import agreement
from neardup.sets import hashing as module
from neardup.sets.bit_vectors import popcount
from neardup.sets.hashing import hyperplane_sides, mix, quantiles, random_words
from neardup.sets.ragged import Ragged
from neardup.similarity.intervals import clopper_pearson

SIZES = [1, 2, 3, 40, 7, 300, 1, 1]


def drawn(most: int) -> tuple[Ragged, np.ndarray]:
    rng = np.random.default_rng(5)
    values = rng.integers(0, 1 << 63, sum(SIZES)).astype(np.uint64)
    return Ragged.from_unsorted(values, np.array(SIZES)), rng.integers(1, most, sum(SIZES))


def slow_bit(tokens: list[int], weights: list[int], d: int, seed: int) -> int:
    """Return one bit, computed token by token in Python integers."""
    cut = max(sum(weights).bit_length() - module.TOTAL_BITS, 0)
    first = mix(np.array(tokens, np.uint64) ^ random_words(seed, 1, stream=1))
    random = mix(first + random_words(seed, d // 4 + 1, stream=7)[-1]).tolist()
    steps = [word >> 16 * (d % 4) & 0xFFFF for word in random]
    total = sum((w >> cut) * int(quantiles()[step >> 4]) for w, step in zip(weights, steps))
    if total:
        return int(total > 0)
    smallest = mix(np.array(tokens, np.uint64)).min()
    return int(mix(np.array([smallest + np.uint64(d // 64)]))[0]) >> d % 64 & 1


@pytest.mark.parametrize("most", [2, 256, 10**12, 1 << 58])
def test_a_bit_is_the_sign_of_a_sum(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NORMAL_CACHE_TOKENS", 50)
    monkeypatch.setattr(module, "DISTINCT_AT_ONCE", 310)
    sets, weights = drawn(most)
    words = hyperplane_sides(sets, weights, 7, 0, 192)
    for i in range(len(SIZES)):
        mine = slice(sets.offsets[i], sets.offsets[i + 1])
        tokens, some = sets.values[mine].tolist(), weights[mine].tolist()
        for d in (0, 1, 3, 4, 62, 63, 64, 100, 191):
            assert int(words[i, d // 64]) >> d % 64 & 1 == slow_bit(tokens, some, d, 7)


def test_some_dimensions_are_those_of_all() -> None:
    sets, weights = drawn(1000)
    everything = hyperplane_sides(sets, weights, 3, 0, 256)
    for low, high in [(0, 1), (0, 64), (5, 60), (60, 70), (70, 199), (128, 256)]:
        first, last = low // 64, -(-high // 64)
        inside = [sum(1 << d - 64 * w for d in range(low, high) if d // 64 == w) for w in range(4)]
        mask = np.array(inside[first:last], dtype=np.uint64)
        found = hyperplane_sides(sets, weights, 3, low, high)
        assert (found == everything[:, first:last] & mask).all()
        alone = hyperplane_sides(sets.take(np.array([3])), weights[6:46], 3, low, high)
        assert (alone[0] == found[3]).all()


def test_numbers_are_normal() -> None:
    """The quantiles are normal: mean 0, variance 1, symmetric, and never 0."""
    assert (-quantiles()[::-1] == quantiles()).all()
    assert (np.diff(quantiles()) >= 0).all()
    assert quantiles().all()
    assert abs((quantiles() ** 2).mean() / module.SCALE**2 - 1) < 0.001
    assert np.abs(quantiles()).max() < 1 << 13
    assert (quantiles().round() == quantiles()).all()


@pytest.mark.parametrize(
    ("x", "y"),
    [((4, 1), (1, 4)), ((10, 10), (10, 13)), ((1000, 1), (1000, 1000)), ((1, 0), (1, 10**9))],
)
def test_two_tokens_agree_by_their_angle(x: tuple[int, int], y: tuple[int, int]) -> None:
    """Sets of one or two tokens agree as often as their angle implies, at an error rate of 1e-9."""
    dimensions, pairs = 640, 400
    rows = [[2 * p + i for i in (0, 1) if z[i]] for p in range(pairs) for z in (x, y)]
    weights = np.array([w for _ in range(pairs) for z in (x, y) for w in z if w])
    words = hyperplane_sides(Ragged.from_rows(rows), weights, 11, 0, dimensions)
    differ = int(popcount((words[0::2] ^ words[1::2]).ravel()).sum())
    count = dimensions * pairs
    low, high = clopper_pearson(count - differ, count, 1e-9)
    cosine = (x[0] * y[0] + x[1] * y[1]) / hypot(*x) / hypot(*y)
    assert low <= agreement(cosine) <= high
    assert high - low < 0.02
