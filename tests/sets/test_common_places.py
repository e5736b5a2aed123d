"""The positions at which two rows hold the same value are those of plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.sets.ragged import Ragged
from neardup.similarity import weighted_measures as module
from neardup.similarity.weighted_measures import common_places
from tests.sets.test_ragged import row_lists


def naive(sets, pairs):
    rows = Ragged.from_rows([list(row) for row in sets])
    found = []
    for pair, (i, j) in enumerate(pairs):
        for value in sorted(sets[i] & sets[j]):
            places = (rows.offsets[k] + rows.row(k).tolist().index(value) for k in (i, j))
            found.append((pair, *map(int, places)))
    return found


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_places_of_what_two_rows_share(step, monkeypatch):
    monkeypatch.setattr(module, "PAIR_STEP", step)

    @given(st.data(), row_lists.filter(bool))
    def check(data, sets):
        index = st.integers(0, len(sets) - 1)
        pairs = data.draw(st.lists(st.tuples(index, index), max_size=20))
        rows = Ragged.from_rows([list(row) for row in sets])
        left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
        columns = common_places(rows, left, right)
        assert list(zip(*(column.tolist() for column in columns))) == naive(sets, pairs)

    check()


def test_no_pairs_have_no_places():
    nothing = np.empty(0, np.int64)
    assert [len(column) for column in common_places(Ragged.from_rows([]), nothing, nothing)] == [
        0,
        0,
        0,
    ]
