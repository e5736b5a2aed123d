"""The prefix join of rows with fixed weights finds the pairs of the nested loop."""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.joins.weighted_joins import CONTAINMENT, JACCARD, contained_rows, totals
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Threshold

MEASURES = (JACCARD, CONTAINMENT)


def nested_loop_of_weights(
    rows: Ragged, measure: str, threshold: Threshold
) -> set[tuple[int, int]]:
    """Compare every two rows; return the pairs (x, y) that `contained_rows` finds."""
    ends, weights = rows.offsets.tolist(), rows.weighed().tolist()
    sets = [dict(zip(rows.row(i).tolist(), weights[low:])) for i, low in enumerate(ends[:-1])]
    found = set()
    for i, j in combinations(range(len(sets)), 2):
        x, y = sorted((i, j), key=lambda k: (sum(sets[k].values()), k))
        common = sum(weight for token, weight in sets[x].items() if token in sets[y])
        whole = sum(sets[x].values())
        whole += (sum(sets[y].values()) - common) * (measure == JACCARD)
        if common and Fraction(common, whole) >= Fraction(threshold.num, threshold.den):
            found.add((x, y))
    return found


def weighted(sets: list[set[int]], weights: list[int]) -> Ragged:
    rows = Ragged.from_rows([list(some) for some in sets])
    return Ragged(rows.values, rows.offsets, np.array(weights, np.int64)[rows.values.astype(int)])


@pytest.mark.parametrize("measure", MEASURES)
@given(
    sets=st.lists(st.sets(st.integers(0, 11), max_size=9), max_size=12),
    weights=st.lists(st.sampled_from([0, 1, 2, 7, 10**15]), min_size=12, max_size=12),
    threshold=st.sampled_from(["0.3", "1/2", "0.8", "0.999999999", "1"]),
)
def test_as_the_nested_loop(
    measure: str, sets: list[set[int]], weights: list[int], threshold: str
) -> None:
    rows, t = weighted(sets, weights), Threshold.parse(threshold)
    found = contained_rows(rows, measure, t)
    pairs = list(zip(found.x.tolist(), found.y.tolist()))
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == nested_loop_of_weights(rows, measure, t)
    for x, y, common in zip(*(column.tolist() for column in found[:3])):
        assert common == sum(weights[token] for token in sets[x] & sets[y])
        assert totals(rows)[x] <= totals(rows)[y]


def test_pairs_that_are_not_wanted() -> None:
    rows = Ragged.from_rows([[1, 2], [1, 2], [1, 2]])
    found = contained_rows(rows, JACCARD, Threshold.parse("1"), lambda x, y: x + y != 2)
    assert sorted(zip(found.x.tolist(), found.y.tolist())) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("measure", MEASURES)
def test_a_token_of_all_rows_does_not_compare_all(measure: str) -> None:
    """A token common to 20,000 rows does not make the join compare all rows."""
    rows = Ragged.from_rows([[0, 1, 2 * i + 2, 2 * i + 3] for i in range(20_000)] + [[2, 3, 0, 1]])
    start = time.process_time()
    assert len(contained_rows(rows, measure, Threshold.parse("0.8")).x) == 1
    assert time.process_time() - start < 5
