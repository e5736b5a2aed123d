"""Values of fields are turned into ordered integers, or have no rank."""

import math
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.reading.field_values import number_of, ranks
from neardup.reading.input_format import InputFormat

EAST = timezone(timedelta(hours=2))


@given(st.lists(st.floats(allow_nan=False), min_size=2))
def test_the_order_is_that_of_the_values(values: list[float]) -> None:
    found = ranks(np.array(values)).tolist()
    for a, x in zip(values, found):
        for b, y in zip(values, found):
            assert (x < y) == (a < b)
    assert min(found) > 0
    assert max(found) < 2**64 - 1


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (-3, -3),
        (" 1e3 ", 1000),
        ("+.5", 0.5),
        ("-7.E-1", -0.7),
        ("2024-05-31", datetime(2024, 5, 31, tzinfo=timezone.utc).timestamp()),
        ("2024-05-31 18:00:01", datetime(2024, 5, 31, 18, 0, 1, tzinfo=timezone.utc).timestamp()),
        ("2024-05-31T18:00:00Z", datetime(2024, 5, 31, 18, tzinfo=timezone.utc).timestamp()),
        ("2024-05-31T18:00:00+02:00", datetime(2024, 5, 31, 18, tzinfo=EAST).timestamp()),
        ("0001-01-01T00:00:00+05:00", -62135614800),
        # As Parquet's nanoseconds are written, whatever Python's version reads.
        ("1970-01-02T00:00:01.500000000Z", 86401.5),
        ("1970-01-02 01:00:01.123456789+0100", 86401.123456789),
        ("1970-01-02T01", 90000),
    ],
)
def test_numbers_and_dates(value: Any, number: float) -> None:
    assert number_of(value) == number


NO_NUMBERS = [
    "1_0",
    "\uff17",
    "1\uff17",
    "\u0667",
    "1e999",
    "-1e999",
    "inf",
    "Infinity",
    "0x1",
    "1e",
    ".",
]
OTHER_TIMES = ["1970-W01-1", "19700101T01", "1970-01-02T01:00:00,5", "1970-01-02+01:00"]
NONE = [None, "", "many", "2024-13-01", "2024-01-1\uff17", [1], {"a": 1}, math.nan, "nan", math.inf]


@pytest.mark.parametrize(
    "value", [*NONE, *NO_NUMBERS, *OTHER_TIMES, True, False, 10**400, -(10**400), "1" * 5000]
)
def test_no_values(value: Any) -> None:
    assert math.isnan(number_of(value))
    assert ranks(np.array([number_of(value)])).tolist() == [0]


def test_of_the_records_of_a_block() -> None:
    """Only the records of a block have ranks, not its bad rows."""
    form = InputFormat.of("jsonl", "word:1", None, ranked=("n", "a.b"))
    block = b"""{"id":"a","text":"x y","n":7}
{"id":"b","n":5}

{"id":"c","text":"z","n":"-1","a":{"b":"1970-01-01"}}
"""
    batch, bad = form.parser()(block)
    assert [line.number for line in bad] == [1]
    assert batch.ids == [b"a", b"c"]
    expected = ranks(np.array([[7, math.nan], [-1, 0]]))
    assert batch.ranks.tolist() == expected.tolist()
