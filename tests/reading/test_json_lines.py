"""JSON lines become batches, bad ones have a reason, and names or numbers select fields."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.reading.cleaning import Cleaning
from neardup.reading.input_check import BadLine
from neardup.reading.input_format import InputFormat
from neardup.reading.missing_fields import check_columns
from neardup.reading.shingling import Shingler
from neardup.reading.text_rows import Fields, row_records, text_lines, text_parser
from neardup.runtime.program import StageError, UsageError
from neardup.sets.ragged import Ragged
from tests.support.programs import MAPPER, run

SHINGLER = Shingler.parse("word:2")
USUAL = Fields.of(None, None)
USUAL_RECORDS = partial(row_records, fields=USUAL)
TITLE_AND_BODY = Fields.of(None, "title,meta.body")


def rows_of(sets: Ragged) -> list[list[int]]:
    return [sets.row(i).tolist() for i in range(len(sets))]


def row(line: bytes, fields: Fields = USUAL, needs_id: bool = False) -> tuple[bytes, Any, str]:
    (found,) = row_records(line, fields, needs_id)
    return found.id, found.content, found.flaw


BAD: dict[str, tuple[bytes, str]] = {
    "half a line": (b'{"id": "a", "text": "to be', "not a JSON object"),
    "text": (b"a\tto be or not", "not a JSON object"),
    "list": (b'["a", "to be"]', "not a JSON object"),
    "string": (b'"to be"', "not a JSON object"),
    "null": (b"null", "not a JSON object"),
    "two": (b'{"id": "a", "text": "b"} {"id": "c", "text": "d"}', "not a JSON object"),
    "comma": (b'{"id": "a", "text": "b",}', "not a JSON object"),
    "single quotes": (b"{'id': 'a', 'text': 'b'}", "not a JSON object"),
    "deep": (b'{"text":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "not a JSON object"),
    "deep, open": (b"[" * 200_000, "not a JSON object"),
    "not UTF-8": (b'{"id": "a", "text": "caf\xe9"}', "not UTF-8"),
    "half a character in the id": (
        b'{"id": "\\ud83d", "text": "to be"}',
        "half a surrogate pair in the id",
    ),
    "UTF-16": ('{"id": "a", "text": "to be"}'.encode("utf-16-le"), "not a JSON object"),
    "no text": (b'{"id": "a", "body": "to be"}', "no text"),
    "text null": (b'{"id": "a", "text": null}', "no text"),
    "nothing": (b"{}", "no text"),
    "empty text": (b'{"id": "a", "text": ""}', "no shingles"),
    "blank text": (b'{"id": "a", "text": " \\n\\u3000"}', "no shingles"),
    "NUL": (b'{"id": "a", "text": "to\\u0000be"}', "NUL byte"),
    "text a number": (b'{"id": "a", "text": 7}', "text is not a string"),
    "text true": (b'{"id": "a", "text": true}', "text is not a string"),
    "text an object": (b'{"id": "a", "text": {"body": "to be"}}', "text is not a string"),
    "no shingles": (b'{"id": "a", "text": []}', "no shingles"),
    "float": (b'{"id": "a", "text": [1, 2.0]}', "not an integer"),
    "true": (b'{"id": "a", "text": [1, true]}', "not an integer"),
    "null shingle": (b'{"id": "a", "text": [1, null]}', "not an integer"),
    "negative": (b'{"id": "a", "text": [1, -1]}', "negative shingle"),
    "large": (b'{"id": "a", "text": [18446744073709551616]}', "shingle over 2^64-1"),
    "id a float": (b'{"id": 1.5, "text": "b"}', "id is neither a string nor a whole number"),
    "id NaN": (b'{"id": NaN, "text": "b"}', "id is neither a string nor a whole number"),
    "id true": (b'{"id": true, "text": "b"}', "id is neither a string nor a whole number"),
    "id a list": (b'{"id": [1], "text": "b"}', "id is neither a string nor a whole number"),
    "tab in the id": (b'{"id": "a\\tb", "text": "to be"}', "tab or line end in the id"),
    "LF in the id": (b'{"id": "a\\n", "text": "to be"}', "tab or line end in the id"),
    "CR in the id": (b'{"id": "\\ra", "text": "to be"}', "tab or line end in the id"),
    "NUL in the id": (b'{"id": "a\\u0000", "text": "to be"}', "NUL byte"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_record(case: str) -> None:
    line, why = BAD[case]
    assert row(line)[1:] == ("", why)
    parse = text_parser(USUAL_RECORDS, SHINGLER)
    batch, (bad,) = parse(b'{"text": "first"}\n' + line + b'\n{"text": "last"}\n')
    assert (bad.number, bad.reason) == (1, why)
    assert batch.places.tolist() == [0, 2]
    assert bad.text == line


def test_rows_that_tables_could_not_read() -> None:
    rows = [{"text": "first"}, BadLine(1, b"a", "too few fields"), b"", {"id": "b", "text": ""}]
    batch, bad = text_parser(USUAL_RECORDS, SHINGLER)(rows)
    assert batch.places.tolist() == [0]
    assert [(line.number, line.text, line.reason) for line in bad] == [
        (1, b"a", "too few fields"),
        (3, b'{"id":"b","text":""}', "no shingles"),
    ]


@pytest.mark.skipif(not hasattr(sys, "get_int_max_str_digits"), reason="Python reads it")
def test_a_number_too_long_for_python() -> None:
    assert row(b'{"id": "a", "text": [%b]}' % (b"9" * 5000))[2] == "not a JSON object"


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        (b'{"id": "a b", "text": "t"}', b"a b"),
        (b'{"id": "\\u00e9", "text": "t"}', "é".encode()),
        (b'{"id": "\\ud83d\\ude00", "text": "t"}', "😀".encode()),
        (b'{"id": 0, "text": "t"}', b"0"),
        (b'{"id": -7, "text": "t"}', b"-7"),
        (b'{"id": 123456789012345678901234567890, "text": "t"}', b"123456789012345678901234567890"),
        (b'{"id": null, "text": "t"}', b""),
        (b'{"id": "", "text": "t"}', b""),
        (b'{"text": "t"}', b""),
        (b'{"text": "t", "id": "a", "id": "b"}', b"b"),
        (b' {"id" : "a" , "text" : "t" , "more": [{}, null]} ', b"a"),
    ],
)
def test_ids(line: bytes, id_: bytes) -> None:
    assert row(line) == (id_, "t", "")
    needed = row(line, needs_id=True)
    assert needed == ((id_, "t", "") if id_ else (b"", "", "no id"))


@pytest.mark.parametrize(
    ("line", "text", "why"),
    [
        ({"title": "a", "meta": {"body": "b"}}, "a\nb", ""),
        ({"title": "a", "meta.body": "c", "meta": {"body": "b"}}, "a\nc", ""),
        ({"title": "a", "meta": None}, "a", ""),
        ({"title": None, "meta": {"body": "b"}}, "b", ""),
        ({"title": "a", "meta": ["body"]}, "a", ""),
        ({"title": "a", "meta": "body"}, "a", ""),
        ({"title": None, "meta": {}}, "", "no text"),
        ({"title": "a", "meta": {"body": 3}}, "", "text is not a string"),
        ({"title": [1], "meta": {"body": "b"}}, "", "text is not a string"),
        ({"title": " ", "meta": {"body": ""}}, "", "no shingles"),
    ],
)
def test_several_texts_are_one_text_or_none(line: dict, text: str, why: str) -> None:
    assert row(json.dumps(line).encode(), TITLE_AND_BODY) == (b"", text, why)


def test_a_field_of_fields_is_an_id() -> None:
    fields = Fields.of("meta.url", "text")
    assert row(b'{"meta": {"url": "u"}, "text": "t"}', fields)[0] == b"u"
    assert row(b'{"meta": {}, "text": "t"}', fields, needs_id=True)[2] == "no id"


# Batches.


def test_texts_and_shingles_in_the_order_of_their_lines() -> None:
    parse = text_parser(USUAL_RECORDS, SHINGLER, Cleaning.parse("digits"))
    block = (
        b'{"id": "a", "text": [7, 3, 7]}\r\n\r\n{"id": "b", "text": "to be"}\n  \n'
        b'{"id": "c", "text": "123"}\r{"id": "d", "text": [18446744073709551615]}\n'
    )
    batch, bad = parse(block)
    assert (batch.ids, bad) == ([b"a", b"b", b"d"], [])
    assert rows_of(batch.sets)[::2] == [[3, 7], [2**64 - 1]]
    assert batch.places.tolist() == [0, 2, 5]
    assert list(batch.without_shingles) == [4]


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
plain = texts.filter(lambda t: t.strip() and not set(t) & set("\t\n\r\0"))


@given(st.lists(plain, max_size=5), st.booleans())
def test_the_same_texts_as_text_lines(drawn: list[str], ascii_: bool) -> None:
    rows = [{"id": f"v{i}", "text": text} for i, text in enumerate(drawn)]
    jsonl = "".join(json.dumps(row, ensure_ascii=ascii_) + "\n" for row in rows).encode()
    lines = "".join(f"{row['id']}\t{row['text']}\n" for row in rows).encode()
    batch, bad = text_parser(USUAL_RECORDS, SHINGLER)(jsonl)
    other, _ = text_parser(text_lines, SHINGLER)(lines)
    assert bad == []
    assert batch.ids == other.ids
    assert rows_of(batch.sets) == rows_of(other.sets)


@given(st.lists(st.sampled_from([*(line for line, _ in BAD.values()), b'{"text": "t"}', b""])))
def test_every_line_is_a_record_or_bad_or_blank(lines: list[bytes]) -> None:
    lines = [line for line in lines if len(line) < 1000]
    parse = text_parser(USUAL_RECORDS, SHINGLER)
    batch, bad = parse(b"".join(x + b"\n" for x in lines))
    found = sorted([*batch.places.tolist(), *(line.number for line in bad)])
    assert found == [i for i, line in enumerate(lines) if line]


# Rows without ids.


def test_what_is_said_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_bytes(b'{"id": "a", "text": "to be"}\n')
    (tmp_path / "two.jsonl").write_bytes(b'\n{"id": "b"}\n{"id": "c", "text": "to be"}\n')
    result = run([*MAPPER, "one.jsonl", "two.jsonl"], tmp_path, cwd=tmp_path)
    assert result.code == 0
    assert result.messages() == ['mapper: two.jsonl: line 2: no text: \'{"id": "b"}\'']


def test_a_bag_of_integers() -> None:
    parse = InputFormat.of("jsonl", "word:1:bag", None).parser()
    batch, _ = parse(b'{"id": "a", "text": [1, 1, 2]}\n{"id": "b", "text": "to to be"}\n')
    assert batch.sets.sizes.tolist() == [3, 3]


# Names and numbers select fields and columns.


ALL = Fields("id", (), needs_id=False)


@pytest.mark.parametrize(
    ("id_", "text", "told"),
    [
        (None, "", "--text: ''"),
        (None, "a,,b", "--text: 'a,,b'"),
        (None, "a,", "--text: 'a,'"),
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


def test_columns_that_are_missing_or_twice() -> None:
    many = [f"column{i}" for i in range(50)]
    with pytest.raises(StageError, match=r"t: has no column 'text'.*column19 …$"):
        check_columns(many, Fields.of(None, None), "t", list)
    with pytest.raises(StageError, match="t: has 3 columns 'text'"):
        check_columns(["text"] * 3, Fields.of(None, None), "t", list)
    with pytest.raises(StageError, match="t: has 2 columns 'x'"):
        check_columns(["x", "y", "x"], ALL, "t", list)  # all are asked for
    assert Fields.of(None, None).places(["x", "text", "x"]) == {"text": 1}
