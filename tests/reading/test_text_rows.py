"""Names or numbers select columns; names select the fields of rows, also nested fields."""

from __future__ import annotations

import pytest

from neardup.reading.missing_fields import check_columns
from neardup.reading.text_rows import Fields
from neardup.runtime.program import StageError, UsageError

ALL = Fields("id", (), needs_id=False)


def test_what_they_are_when_nothing_is_said() -> None:
    assert Fields.of(None, None) == Fields("id", ("text",), needs_id=False)
    assert Fields.of("id", None) == Fields("id", ("text",), needs_id=True)
    assert Fields.of("", None) == Fields("", ("text",), needs_id=False)


@pytest.mark.parametrize(
    ("id_", "text", "told"),
    [
        (None, "", "--text: ''"),
        (None, "a,,b", "--text: 'a,,b'"),
        (None, ",", "--text"),
        ("1", None, "must both be column numbers, or both be names"),
        ("id", "2", "must both be column numbers, or both be names"),
        (None, "2,body", "must both be column numbers, or both be names"),
        ("0", "2", "column numbers start at 1"),
        (None, "0", "column numbers start at 1"),
        (None, "00", "column numbers start at 1"),
        (None, "9" * 5000, "have at most 20 digits"),
        ("9" * 5000, "1", "have at most 20 digits"),
    ],
)
def test_names_that_are_none(id_: str | None, text: str | None, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Fields.of(id_, text)


@pytest.mark.parametrize(
    ("row", "name", "value"),
    [
        ({"a": 1}, "a", 1),
        ({"a": 1}, "b", None),
        ({"a": {"b": 1}}, "a.b", 1),
        ({"a": {"b": {"c": 1}}}, "a.b.c", 1),
        ({"a.b": 2, "a": {"b": 1}}, "a.b", 2),
        ({"a": None}, "a.b", None),
        ({"a": [{"b": 1}]}, "a.b", [1]),
        ({"a": "b"}, "a.b", None),
        ({}, "a.b", None),
        ({"": 1}, ".", None),
        ({"a": 1}, "", None),
        ({"": 1}, "", None),
    ],
)
def test_values(row: dict, name: str, value: object) -> None:
    assert ALL.value(row, name) == value


def test_places_in_a_table() -> None:
    assert Fields.of(None, "text,id").places(["x", "text", "id"]) == {"id": 2, "text": 1}
    assert Fields.of(None, None).places(["text"]) == {"text": 0}
    assert Fields.of("2", "1").places([]) == {"2": 1, "1": 0}
    assert Fields.of(None, "3").places([]) == {"3": 2}
    assert ALL.places(["b", "a"]) == {"b": 0, "a": 1}


def test_columns_that_are_missing_or_twice() -> None:
    many = [f"column{i}" for i in range(50)]
    with pytest.raises(StageError, match=r"t: has no column 'text'.*column19 …$"):
        check_columns(many, Fields.of(None, None), "t", list)
    with pytest.raises(StageError, match="t: has no column 'key'; name one with --id: it has text"):
        check_columns(["text"], Fields.of("key", None), "t", list)
    with pytest.raises(StageError, match="t: has 3 columns 'text'"):
        check_columns(["text"] * 3, Fields.of(None, None), "t", list)
    with pytest.raises(StageError, match="t: has 2 columns 'x'"):
        check_columns(["x", "y", "x"], ALL, "t", list)  # all are asked for
    assert Fields.of(None, None).places(["x", "text", "x"]) == {"text": 1}
