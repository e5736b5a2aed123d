"""CSV and TSV rows: columns are found, bad rows have reasons, and fields keep their content."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.reading.blocks import numbered, read_files
from neardup.reading.input_format import InputFormat
from neardup.reading.separated_rows import kept_rows, opened_table, rows_of, split_rows
from neardup.runtime.program import StageError
from tests.support.engines import a_file, refuse
from tests.support.programs import MAPPER, RUN_LOCAL, run

LIMIT = 1 << 20


def form_of(kind: str, id_: str | None = None, text: str | None = None) -> InputFormat:
    return InputFormat.of(kind, None, None, id_, text)


def read(data: bytes, form: InputFormat, tmp: Path, limit: int = LIMIT) -> list[tuple[int, Any]]:
    """Return (number of the row, its fields or its flaw) of all rows but blank ones."""
    path = a_file(tmp / "table", data)
    found: list[tuple[int, Any]] = []
    for block in read_files(numbered([str(path)]), limit, pieces=form.pieces):
        assert block.place == f"{path}: row "
        rows = [block.flaw] if block.flaw else block.data
        found += [(block.line + i, row) for i, row in enumerate(rows) if row]
    return found


def flaws(data: bytes, form: InputFormat, tmp: Path) -> list[tuple[int, bytes, str]]:
    """Return (row number, text, reason) of each row that the parser rejects."""
    path = a_file(tmp / "table", data)
    blocks = read_files(numbered([str(path)]), LIMIT, pieces=form.pieces)
    parse = form.parser()
    return [
        (block.line + bad.number, bad.text, bad.reason)
        for block in blocks
        if not block.flaw
        for bad in parse(block.data)[1]
    ]


CSV, TSV = form_of("csv"), form_of("tsv")


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    data = b'n,id,text,x\r\n1,a,"to be, ""or"" not\r\nto be",3\r\n\r\n2,,b,4\r\n'
    expected = [(1, {"id": "a", "text": 'to be, "or" not\r\nto be'}), (3, {"id": "", "text": "b"})]
    assert read(data, CSV, tmp_path) == expected
    assert read(b"\xef\xbb\xbf" + data, CSV, tmp_path) == expected
    assert read(data, form_of("csv", "n", "x,id"), tmp_path)[0] == (
        1,
        {"n": "1", "x": "3", "id": "a"},
    )


def test_tabs(tmp_path: Path) -> None:
    data = b'text\tid\n"to ""be"" or, not"\ta\n6" pipe "x"\tb\n"half\tc\n \t \n\n\td\n'
    assert read(data, TSV, tmp_path) == [
        (1, {"id": "a", "text": 'to "be" or, not'}),
        (2, {"id": "b", "text": '6" pipe "x"'}),
        (3, {"id": "c", "text": '"half'}),
        (6, {"id": "d", "text": ""}),
    ]


def test_columns_by_number(tmp_path: Path) -> None:
    data = b"a\ten\tto be\nb\tde\nc\tfr\tx\ty\n"
    form = form_of("tsv", "1", "3,2")
    assert read(data, form, tmp_path)[0] == (1, {"1": "a", "3": "to be", "2": "en"})
    assert flaws(data, form, tmp_path) == [(2, b"b,de", "too few fields")]
    without = form_of("csv", None, "2")
    assert read(b"a,to be\n", without, tmp_path) == [(1, {"2": "to be"})]


def test_rows_that_are_none(tmp_path: Path) -> None:
    data = b'id,text\na,b\nc\nd,e,f\n\ng,caf\xe9\nh,"a\0b"\n\xe9,i\n"j\nk",l\nm,\n'
    assert flaws(data, CSV, tmp_path) == [
        (2, b"c", "another number of fields than the header"),
        (3, b"d,e,f", "another number of fields than the header"),
        (5, b'{"id":"g","text":"caf\xe9"}', "not UTF-8"),
        (6, b'{"id":"h","text":"a\\u0000b"}', "NUL byte"),
        (7, b'{"id":"\xe9","text":"i"}', "not UTF-8"),
        (8, b'{"id":"j\\nk","text":"l"}', "tab or line end in the id"),
        (9, b'{"id":"m","text":""}', "no shingles"),
    ]


def test_a_field_of_200_kilobytes(tmp_path: Path) -> None:
    text = "to be " * 35_000 + '\n,"'
    quoted = '"' + text.replace('"', '""') + '"'
    data = f"id,text\na,{quoted}\nb,c\n".encode()
    assert read(data, CSV, tmp_path) == [
        (1, {"id": "a", "text": text}),
        (2, {"id": "b", "text": "c"}),
    ]
    assert read(data, CSV, tmp_path, limit=1000)[-1][1] == {"id": "b", "text": "c"}


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_nothing_or_a_header_alone(kind: str, tmp_path: Path) -> None:
    form = form_of(kind)
    header = b"id,text" if kind == "csv" else b"id\ttext"
    for data in (b"", b"\xef\xbb\xbf", header, header + b"\r\n"):
        assert read(data, form, tmp_path) == []


@pytest.mark.parametrize(
    ("header", "names", "told"),
    [
        (b"id,body", (None, None), "no column 'text'; name one with --text: it has id, body"),
        (b"key,text", ("id", None), "no column 'id'; name one with --id: it has key, text"),
        (b"id,text,text", (None, None), "has 2 columns 'text'; rename all but one"),
        (b"id,id,text", (None, None), "has 2 columns 'id'; rename all but one"),
        (b"id,meta", (None, "meta.body"), "has no column 'meta.body'"),
        (b"id,Text", (None, None), "no column 'text'"),
        (b"", (None, None), "no column 'text'; name one with --text: it has none"),
        (b'id,"text', (None, None), "row 1, which names the columns: quote is not closed"),
    ],
)
def test_headers(header: bytes, names: tuple, told: str, tmp_path: Path) -> None:
    with pytest.raises(StageError, match=told):
        read(header + b"\na,b\n", form_of("csv", *names), tmp_path)


def test_other_columns_may_be_there_twice(tmp_path: Path) -> None:
    assert read(b",id,text,x,x\n0,a,b,,\n", CSV, tmp_path) == [(1, {"id": "a", "text": "b"})]
    assert read(b"id,meta.body\na,b\n", form_of("csv", None, "meta.body"), tmp_path) == [
        (1, {"id": "a", "meta.body": "b"})
    ]


def test_what_is_no_table(tmp_path: Path) -> None:
    path = a_file(tmp_path / "a.csv", b"PAR1\x15\x04\x15 and so on")
    refuse([*RUN_LOCAL, path], tmp_path, "a.csv: is not a Parquet file, or damaged", code=1)


def test_a_feather_file_of_version_1_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.feather").write_bytes(b"FEA1" + bytes(40) + b"FEA1")
    result = run([*RUN_LOCAL, tmp_path / "a.feather"], tmp_path)
    assert (result.code, result.out) == (1, b"")
    assert "a.feather: is a Feather file of version 1, to write as Parquet\n" in result.err


fields = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
tables = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(fields, min_size=width, max_size=width), max_size=6)
)


@given(tables, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_what_csv_wrote_is_read(rows: list[list[str]], end: str, all_: bool) -> None:
    sink = io.StringIO(newline="")
    # Before Python 3.13 a writer quotes no line end but its own.
    has_ends = any({*"\r\n"} & {*field} for row in rows for field in row)
    quoting = csv.QUOTE_ALL if all_ or has_ends else csv.QUOTE_MINIMAL
    csv.writer(sink, lineterminator=end, quoting=quoting).writerows(rows)
    data = sink.getvalue().encode()
    assert list(split_rows("csv", data)) == rows
    if rows:
        columns = {str(i): i for i in range(len(rows[0]))}
        found = rows_of("csv", columns, 0, data)
        assert [list(row.values()) for row in found if isinstance(row, dict)] == rows


# Rows that stay.


def kept(kind: str, data: bytes, gone: list[int], limit: int = LIMIT) -> bytes:
    table = opened_table(kind, True, io.BytesIO(data), "table", limit)
    return b"".join(kept_rows(table, 100, iter(gone)))


@given(st.data(), st.sampled_from(["\n", "\r\n", "\r"]))
def test_the_bytes_of_those_that_stay(data: st.DataObject, end: str) -> None:
    some = st.sampled_from(["a", '"b"', '"c,\n"', '"""\r\n"', "", 'd"e', "é"])
    rows = data.draw(st.lists(st.tuples(some, some).map(",".join), max_size=8))
    gone = sorted(data.draw(st.sets(st.integers(0, len(rows)))))
    encoded = [f"{row}{end}".encode() for row in ["id,text", *rows]]
    stays = [row for i, row in enumerate(encoded[1:]) if i not in gone]
    assert kept("csv", b"".join(encoded), [100 + i for i in gone]) == b"".join([encoded[0], *stays])


@pytest.mark.parametrize("limit", [100, LIMIT])
def test_they_are_numbered_as_they_were_read(limit: int, tmp_path: Path) -> None:
    """Reading and keeping give a row the same number, even after an open quote or overlong row."""
    rows = [b'a,"open\n', *(b"v%d,text\n" % i for i in range(60_000))]
    data = b"id,text\n" + b"".join(rows)
    form = InputFormat.of("csv", None, None, quote='"')
    numbers = {row["id"]: n for n, row in read(data, form, tmp_path, limit) if "id" in row}
    assert numbers["v7"] == 9
    gone = [99 + numbers["v0"], 99 + numbers["v59999"]]
    assert kept("csv", data, gone, limit) == b"id,text\n" + b"".join([rows[0], *rows[2:-1]])


def test_the_mapper_names_the_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'id,text\na,"b\nc"\nd\n"e,f\n')
    result = run([*MAPPER, "--max-bad=1", "a.csv"], tmp_path, cwd=tmp_path)
    assert "a.csv: row 2: another number of fields than the header: 'd'" in result.err
    assert "a.csv: row 3: quote is not closed: '\"e,f'" in result.err
    result = run([*MAPPER, "--strict", "a.csv"], tmp_path, cwd=tmp_path)
    assert result.code == 1
    assert "a.csv: row 2: another number" in result.err
