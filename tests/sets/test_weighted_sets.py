"""Bags as sets have the sizes and the similarities of the bags."""

from collections import Counter
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.sets.ragged import Ragged
from neardup.sets.weighted_sets import bagged, bags, counted, numbered
from tests.support.drawn import TOP

tokens = st.integers(0, 5) | st.integers(TOP - 3, TOP)
bag_lists = st.lists(st.lists(tokens, max_size=12), max_size=6)


def flat(rows):
    values = np.array([value for row in rows for value in row], dtype=np.uint64)
    return values, np.array([len(row) for row in rows], dtype=np.int64)


@given(bag_lists)
def test_a_value_weighs_as_often_as_it_is_there(rows):
    found = counted(*flat(rows))
    assert len(found) == len(rows)
    weights = found.weighed()
    for i, row in enumerate(rows):
        places = slice(found.offsets[i], found.offsets[i + 1])
        pairs = zip(found.values[places].tolist(), weights[places].tolist())
        assert list(pairs) == sorted(Counter(row).items())


@given(bag_lists)
def test_bags_are_as_similar_as_their_counts(rows):
    sets = bagged(*flat(rows))
    assert sets.weights is None
    assert sets.sizes.tolist() == [len(row) for row in rows]
    some = [set(sets.row(i).tolist()) for i in range(len(rows))]
    for x, a in zip(some, rows):
        for y, b in zip(some, rows):
            if x or y:
                low, high = Counter(a) & Counter(b), Counter(a) | Counter(b)
                similarity = Fraction(sum(low.values()), sum(high.values()))
                assert Fraction(len(x & y), len(x | y)) == similarity


@given(bag_lists)
def test_one_row_at_a_time_gives_the_same_elements(rows):
    sets = bagged(*flat(rows))
    for i, row in enumerate(rows):
        alone = numbered(np.array(row, dtype=np.uint64), np.array([len(row)]))
        assert sorted(alone.tolist()) == sets.row(i).tolist()
        seen: Counter = Counter()
        for value, element in zip(row, alone.tolist()):
            seen[value] += 1
            assert (element == value) == (seen[value] == 1)


def test_sets_without_weights_are_bags():
    sets = Ragged.from_rows([[1, 2], [2]])
    assert bags(sets) is sets
