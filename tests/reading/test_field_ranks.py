"""Values of fields are turned into ordered integers, or have no rank."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.reading.field_values import number_of, ranks
from neardup.reading.input_format import InputFormat
from tests.support.engines import RUN_LOCAL, succeed

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
    assert number_of(value)[0] == number


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
    "value",
    [
        *NONE,
        *NO_NUMBERS,
        *OTHER_TIMES,
        True,
        False,
        10**400,
        -(10**4000),
        "1" * 5000,
        "1e9" + "9" * 30,
    ],
)
def test_no_values(value: Any) -> None:
    nearest, rest = number_of(value)
    assert (math.isnan(nearest), rest) == (True, 0)
    assert ranks(np.array([nearest])).tolist() == [0]


INTEGERS = st.integers(-(10**31), 10**31) | st.integers(2**53 - 9, 2**53 + 9)
DECIMALS = st.decimals(
    allow_nan=False, allow_infinity=False, places=9, min_value=-(10**20), max_value=10**20
)


@given(st.lists(INTEGERS | DECIMALS, min_size=2))
@example(
    [2**53, 2**53 + 1, -(2**53) - 1, Decimal("0.1000000000000000055"), Decimal("0.1"), 2**63 + 1]
)
def test_numbers_of_31_digits_are_told_apart(values: list[int | Decimal]) -> None:
    found = [tuple(ranks(np.array(number_of(str(value)))).tolist()) for value in values]
    for a, x in zip(values, found):
        assert type(a) is Decimal or number_of(a) == number_of(str(a))
        for b, y in zip(values, found):
            assert (x < y) == (a < b)


def test_nanoseconds_are_told_apart() -> None:
    times = [f"2026-05-31T18:00:01.{n:09}Z" for n in (1, 2, 100, 999_999_999)]
    found = list(map(number_of, [*times, "2026-05-31T18:00:02Z"]))
    assert sorted({*found}) == found


def test_the_largest_integer_is_kept(tmp_path: Path) -> None:
    """Snowflake ids and times in nanoseconds differ above 2^53."""
    rows = (b'{"id": "%d", "text": "a b c", "n": %d}\n' % (n, 10**18 + n) for n in range(3))
    for path, data in [("a.jsonl", b"".join(rows)), ("a.csv", b"")]:
        lines = "id,text,n\n" + "".join(f"{n},a b c,{10**18 + n}\n" for n in range(3))
        (tmp_path / path).write_bytes(data or lines.encode())
        for keep, kept in (("max:n", b"2"), ("min:n", b"0")):
            words = [*RUN_LOCAL, "--output=removed", f"--keep={keep}", tmp_path / path]
            removed = succeed(words, tmp_path).lines()
            assert {line.split(b"\t")[1] for line in removed} == {kept}
            assert len(removed) == 2


def test_fractions_of_json_are_not_rounded(tmp_path: Path) -> None:
    """Python reads both numbers as one float; as texts of CSV they were told apart."""
    for low, high in [
        ("0.12345678901234567891", "0.12345678901234567892"),
        ("1.0000000000000000001e3", "1.0000000000000000002e3"),
    ]:
        path = tmp_path / "a.jsonl"
        lines = (f'{{"id": "{n}", "text": "a b c", "n": {n}}}\n' for n in (low, high))
        path.write_text("".join(lines))
        for keep, gone in (("max:n", low), ("min:n", high)):
            words = [*RUN_LOCAL, "--output=removed", f"--keep={keep}", path]
            assert succeed(words, tmp_path).lines()[0].startswith(f"{gone}\t".encode())
        for within in ([], ["--across=n"]):
            assert succeed([*RUN_LOCAL, *within, path], tmp_path).lines()
        assert not succeed([*RUN_LOCAL, "--within=n", path], tmp_path).lines()


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
    expected = ranks(np.array([[7, 0, math.nan, 0], [-1, 0, 0, 0]]))
    assert batch.ranks.tolist() == expected.tolist()
