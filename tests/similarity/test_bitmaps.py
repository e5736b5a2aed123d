"""Bitmaps rule out most dissimilar records, and no pair that reaches the threshold."""

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.sets.ragged import Ragged, shared
from neardup.similarity import sketches as module
from neardup.similarity.definitions import resemblance
from neardup.similarity.measures import Jaccard, Threshold, measure_of
from neardup.similarity.sketches import bitmaps, bitmaps_and_sums, may_reach, wide_bitmaps
from tests.support.drawn import SOME_MEASURES, shingle_sets

Maps = Callable[[Ragged], np.ndarray]
both_kinds = pytest.mark.parametrize("maps", [bitmaps, wide_bitmaps])


def possible(maps: Maps, sets: Ragged, t: str, pairs: list[tuple[int, int]]) -> np.ndarray:
    left, right = np.array(pairs).T
    return may_reach(Jaccard(Threshold.parse(t)), maps(sets), sets.sizes, left, right)


@both_kinds
@pytest.mark.parametrize("t", ["0.3", "0.5", "0.75", "1"])
@pytest.mark.parametrize("measure", SOME_MEASURES)
def test_all_pairs_of_subsets_of_a_small_universe(maps: Maps, t: str, measure: str) -> None:
    universe = [3, 5, 2**40, 2**64 - 1]
    rows = [
        [x for x, kept in zip(universe, kept_ones) if kept]
        for kept_ones in product([0, 1], repeat=4)
        if any(kept_ones)
    ]
    sets = Ragged.from_rows(rows)
    left, right = np.array([*product(range(15), repeat=2)]).T
    measured = measure_of(measure, Threshold.parse(t))
    reached = measured.may_reach(
        shared(sets, left, right).sizes, sets.sizes[left], sets.sizes[right]
    )
    kept = may_reach(measured, maps(sets), sets.sizes, left, right)
    assert (kept | ~reached).all()
    assert reached.sum() <= kept.sum() < len(left)


@both_kinds
@given(st.lists(shingle_sets.filter(bool), min_size=2, max_size=6))
def test_no_pair_is_ruled_out(maps: Maps, sets: list[frozenset[int]]) -> None:
    rows = Ragged.from_rows([sorted(x) for x in sets])
    pairs = [*combinations(range(len(sets)), 2)]
    for (i, j), kept in zip(pairs, possible(maps, rows, "0.6", pairs)):
        assert kept or resemblance(sets[i], sets[j]) < Fraction(6, 10)


@pytest.mark.parametrize("size", [40, 300, 5000])
@pytest.mark.parametrize("at_once", [1, module.BITS_AT_ONCE])
def test_large_sets_have_bitmaps_large_enough(
    size: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BITS_AT_ONCE", at_once)
    rng = random.Random(size)
    base = rng.sample(range(10**6), size)
    apart = size // 20  # the near-copy is at 0.905 or above
    near = base[apart:] + rng.sample(range(10**6, 10**7), apart - apart // 8)
    dissimilar = [rng.sample(range(10**6), size) for _ in range(20)]
    rows = Ragged.from_rows([base, near, *dissimilar])
    pairs = [(0, i) for i in range(1, 22)]
    kept = possible(wide_bitmaps, rows, "0.9", pairs).tolist()
    assert kept == [True] + [False] * 20


def test_different_sets_have_different_sums() -> None:
    """Also with the token 0, whose hash is 0, and with tokens that are a size of a set."""
    sets = [list(x) for size in range(1, 10) for x in combinations(range(9), size)]
    assert len({*bitmaps_and_sums(Ragged.from_rows(sets))[1].tolist()}) == len(sets)
