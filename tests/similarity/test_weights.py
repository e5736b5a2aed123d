"""Idf weights are in eighths of a bit, from 1 to 255, and agree with exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.schemes.scheme import WEIGHTS, Request, weighing
from neardup.sets.ragged import Ragged
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import NINE_TENTHS
from neardup.similarity.weighted_measures import Idf
from tests.support.drawn import COUNTS, shingle_sets

TOP = (1 << 64) - 1


def counts_of(records, frequencies):
    """Return the counts of tokens 0, 1, 2 … with these frequencies."""
    return TokenCounts(
        np.array([1]),
        np.array([records]),
        np.arange(len(frequencies), dtype=np.uint64),
        np.array(frequencies),
    )


def tokens(*values):
    return np.array(values, dtype=np.uint64)


def weight(records, frequency):
    """Return 8·log2(N / df), rounded by exact fractions, and at least 1 and at most 255.

    It is the largest w with (N / df)^16 ≥ 2^(2w - 1).
    """
    power = Fraction(records, frequency) ** 16
    return max([w for w in range(1, 256) if power >= 2 ** (2 * w - 1)], default=1)


@given(st.integers(2, 10**12), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_a_weight_is_the_idf_in_eighths_of_a_bit(records, shares):
    frequencies = [max(1, int(records**share)) for share in shares]
    weights = Idf(counts_of(records, frequencies)).of(tokens(*range(len(shares))))
    assert weights.tolist() == [weight(records, frequency) for frequency in frequencies]
    floats = np.clip(8 * np.log2(records / np.array(frequencies)), 1, 255)
    assert (np.abs(weights - floats) <= 0.5 + 1e-9).all()


def test_no_weight_is_below_1_or_above_255():
    frequencies = [10**12, 10**12 - 1, 10**6, 2, 1]
    weights = Idf(counts_of(10**12, frequencies)).of(tokens(0, 1, 2, 3, 4, 99))
    assert weights.tolist() == [1, 1, 159, 255, 255, 255]
    assert Idf(TokenCounts.empty()).of(tokens(1, 2)).tolist() == [1, 1]


@given(st.lists(shingle_sets.filter(bool), min_size=1, max_size=6))
def test_weights_do_not_depend_on_the_batch(sets):
    rows = Ragged.from_rows([list(x) for x in sets])
    together = Idf(COUNTS).of(rows.values)
    for i, x in enumerate(sets):
        alone = Idf(COUNTS).of(tokens(*sorted(x)))
        assert together[rows.offsets[i] : rows.offsets[i + 1]].tolist() == alone.tolist()


def test_weights_need_counts():
    for name in ("idf", "tfidf"):
        with pytest.raises(ValueError, match=f"--weights {name} needs --counts"):
            weighing(Request(NINE_TENTHS, None, values={WEIGHTS.flag: name}))
    assert weighing(Request(NINE_TENTHS, None)) == (None, 0)


@pytest.mark.parametrize(
    ("name", "expected"), [("tf", [2, 1]), ("own", [2, 1]), ("idf", [8, 16]), ("tfidf", [16, 16])]
)
def test_what_a_record_gives_is_multiplied_by_what_is_rare(name, expected):
    counts = counts_of(4, [2, 1])
    weights, _ = weighing(Request(NINE_TENTHS, None, counts=counts, values={"--weights": name}))
    own = None if name == "idf" else np.array([2, 1])
    sets = Ragged(tokens(0, 1), np.array([0, 2]), own)
    assert weights.of(sets).tolist() == expected
