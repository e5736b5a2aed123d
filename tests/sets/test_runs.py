"""Runs of equal values in an array are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.sets.ragged import distinct


@given(st.lists(st.integers(0, 50) | st.integers(0, 2**64 - 1)), st.booleans())
def test_distinct_values_whether_they_are_counted_or_sorted(values: list[int], many: bool) -> None:
    given = np.array(values * (60 if many else 1), np.uint64)
    expected = np.unique(given, return_counts=True)
    for column, other in zip(distinct(given), expected):
        assert column.tolist() == other.tolist()
        assert column.dtype == other.dtype


@pytest.mark.parametrize("kind", [np.int64, np.uint32])
def test_distinct_values_of_other_kinds(kind: type) -> None:
    values, members = distinct(np.array([3, 1, 3, 0, 1, 3], kind))
    assert values.dtype == kind
    assert (values.tolist(), members.tolist()) == ([0, 1, 3], [1, 2, 3])
