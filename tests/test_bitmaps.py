"""The bitmap bound never rules out a pair that reaches the threshold."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.bitmaps import bitmaps, most_in_common
from neardup.ragged import Ragged, shared
from tests.strategies import shingle_sets


def bounds(sets: Ragged, pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """(what pairs have in common, the bound of it)."""
    left, right = np.array(pairs, dtype=np.int64).T
    bound = most_in_common(bitmaps(sets), sets.sizes, left, right)
    return shared(sets, left, right).sizes, bound


def test_all_pairs_of_subsets_of_a_small_universe() -> None:
    universe = [3, 5, 2**40, 2**64 - 1]
    rows = [
        [x for x, kept in zip(universe, kept_ones) if kept]
        for kept_ones in product([0, 1], repeat=4)
        if any(kept_ones)
    ]
    common, bound = bounds(Ragged.from_rows(rows), list(product(range(15), repeat=2)))
    assert (common <= bound).all()
    assert (common < bound).sum() < 20  # four shingles seldom fall on one bit


@given(st.lists(shingle_sets.filter(bool), min_size=2, max_size=6))
def test_it_is_an_upper_bound(sets: list[frozenset[int]]) -> None:
    rows = Ragged.from_rows([sorted(x) for x in sets])
    common, bound = bounds(rows, list(combinations(range(len(sets)), 2)))
    assert (common <= bound).all()


def test_it_tells_strangers_from_near_copies() -> None:
    """Of two sets of 40 that share half, the bound leaves little doubt."""
    near, strangers = list(range(39)) + [99], list(range(20)) + list(range(200, 220))
    rows = Ragged.from_rows([list(range(40)), near, strangers])
    common, bound = bounds(rows, [(0, 1), (0, 2)])
    assert common.tolist() == [39, 20]
    assert bound[0] == 39
    assert bound[1] < 32
