r"""CSV with escapes, as \" for a quote, and with other quotes; and what shows that it has them."""

from __future__ import annotations

import csv
import io
import shlex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.reading import separated_rows
from neardup.reading.dialects import Dialect
from neardup.reading.separated_rows import (
    check_widths,
    kept_rows,
    opened_table,
    row_ends,
    split_rows,
    whole_rows,
)
from neardup.runtime.program import StageError, UsageError

LIMIT = 1 << 20
ESCAPED = Dialect(escape="\\")
UNKNOWN = Dialect.of(None, None)  # neither --quote nor --escape
FIELD = st.text(st.sampled_from(list("ab'\"\\,;\n\rN\té ")), max_size=6)
ROWS = st.lists(st.lists(FIELD, min_size=2, max_size=3), min_size=1, max_size=5)
DIALECTS = [
    Dialect(delimiter, "", quote, escape)
    for delimiter in ",;\t"
    for quote in "\"'"
    for escape in ("\\", "", "^")
]


def written(rows: list[list[str]], dialect: Dialect, doubled: bool, quoted: bool, end: str) -> str:
    """Write CSV by hand: fields are quoted or escaped, and quotes in them doubled or escaped."""
    escape, quote = dialect.escape or "", dialect.quote

    def field(value: str) -> str:
        special = {escape, "\r", "\n", dialect.delimiter, quote} - {""}
        if not escape or quoted:
            special = {escape, quote} - {""}
            double = {quote: quote * 2} if doubled or not escape else {}
            each = (double.get(c, escape + c if c in special else c) for c in value)
            return f"{quote}{''.join(each)}{quote}"
        return "".join(escape + c if c in special else c for c in value)

    return "".join(dialect.delimiter.join(map(field, row)) + end for row in rows)


def rows_read(data: bytes, dialect: Dialect, block: int = 1 << 18) -> list[tuple[int, bytes, str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(separated_rows, "BLOCK_BYTES", block)
        return list(whole_rows(io.BytesIO(data), "a.csv", LIMIT, dialect))


@given(
    ROWS, st.sampled_from(DIALECTS), st.booleans(), st.booleans(), st.sampled_from(["\n", "\r\n"])
)
@example([["\\", "a\\"], ['"', '\\"']], Dialect(escape="\\"), False, True, "\n")
@example([["\r\n", "\\\r\n"]], Dialect(escape="\\"), True, False, "\r\n")
@example([["a", "\r"], ["b", "c"]], Dialect(escape="\\"), False, False, "\n")
@example([["", "\r"]], Dialect(escape="\\"), False, False, "\n")
def test_fields_are_those_that_were_written(
    rows: list[list[str]], dialect: Dialect, doubled: bool, quoted: bool, end: str
) -> None:
    """In both ways to write a quote, mixed or not, and wherever blocks of the file end."""
    rows = [["" if f == f"{dialect.escape or '-'}N" else f for f in row] for row in rows]
    data = written(rows, dialect, doubled, quoted, end).encode()
    data += written(rows, dialect, not doubled, quoted, end).encode()
    table = opened_table("csv", False, io.BytesIO(data), "a.csv", LIMIT, dialect=dialect)
    dialect = table.dialect
    found = list(split_rows("csv", data, dialect))
    assert [row or ["", ""] for row in found] == 2 * rows
    for block in (1, 7, 1 << 18):
        pieces = rows_read(data, dialect, block)
        assert b"".join(piece for _, piece, _ in pieces) == data
        assert not any(flaw for _, _, flaw in pieces)
    assert len(row_ends(data, dialect=dialect)) == len(found)
    kept = b"".join(kept_rows(table, 0, iter([0]), with_header=False))
    assert kept == data[int(row_ends(data, dialect=dialect)[0]) :]


@pytest.mark.parametrize("size", [1, 300_000])  # more than a block before the first row end
def test_an_escaped_cr_lf_is_one_where_rows_end_in_cr_lf(size: int) -> None:
    """As MySQL writes it, which escapes the first character of a row end alone."""
    long = b"x" * size
    data = b"1,%ba\\\r\nb\r\n2,c\\\r\n" % long
    table = opened_table("csv", False, io.BytesIO(data + b"d"), "a.csv", LIMIT, dialect=ESCAPED)
    rows = b"".join(rows.data for rows in table.rows)
    texts = [row[1] for row in split_rows("csv", rows, table.dialect)]
    assert texts == [long.decode() + "a\r\nb", "c\r\nd"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_last_row_that_ends_in_an_escaped_line_end_is_read(end: str) -> None:
    data = f"1,a{end}2,b\\\n".encode()
    table = opened_table("csv", False, io.BytesIO(data), "a.csv", LIMIT, dialect=ESCAPED)
    rows = [(rows.data, rows.flaw) for rows in table.rows]
    assert rows == [(data + b"\n", "")]
    assert [*split_rows("csv", rows[0][0], table.dialect)] == [["1", "a"], ["2", "b\n"]]


def test_an_escape_stays_before_other_characters() -> None:
    r"""So that \n and n are two texts, and so are \x and x; csv would drop the escape."""
    data = rb'a\b,"\n",\\,\N,"\N","\\\"","\0\,"' + b"\n"
    (row,) = split_rows("csv", data, Dialect(escape="\\"))
    assert row == ["a\\b", "\\n", "\\", "", "", '\\"', "\\0,"]


def test_an_escape_that_is_the_quote_means_doubled_quotes() -> None:
    assert Dialect.of(None, None, escape='"').escape == ""
    assert Dialect.of(None, None, quote="'", escape="'").quote == "'"


@pytest.mark.parametrize(
    "data",
    [
        b'1,"say \\"hi\\" to"\n',
        b'1,"a ""b"" c"\n2,"say \\"hi\\" to"\n',  # both dialects
        b'1,"twelve \\"",x\n2,b\n',  # at the end of a field
        b'1,"12\\""\r\n2,"13\\""\r\n',
        b'1,"\\"a, b\\""\n2,c\n',
        b'1,5" pipe\n' * 50 + b'2,"a \\"b\\" c"\n',  # beside a quote in the middle of a field
        b"0,plain\n" * 200_000 + b'1,"say \\"hi\\" to"\n',  # in a later block
    ],
)
def test_backslashes_before_quotes_stop_the_run(data: bytes) -> None:
    with pytest.raises(StageError, match=r"in quotes near row .* add: --escape '.'; or"):
        rows_read(data, UNKNOWN)
    for sure in ("", "\\"):
        assert b"".join(row for _, row, _ in rows_read(data, UNKNOWN._replace(escape=sure)))


@pytest.mark.parametrize(
    "data",
    [
        b'1,"C:\\"\n2,"D:\\"\n',
        b'1,"C:\\","D:\\",x\n2,"a",b,c\n',
        b'1,"{""a"": ""say \\""hi\\"", ok""}"\n2,b\n',  # JSON
        b'1,{"a": "say \\"hi\\" ok"}\n2,b\n',  # JSON without quotes around it
        b'1,5" pipe\n2,a "b" c\n',
        b'1,"open\n2,b\n',
        b"1,C:\\new\\table\n",
    ],
)
def test_other_files_are_read(data: bytes) -> None:
    assert b"".join(row for _, row, _ in rows_read(data, UNKNOWN)) == data


@given(st.lists(st.lists(st.text(st.sampled_from(list('ab"\\,\n{:}')), max_size=8), min_size=2)))
def test_what_csv_writes_is_never_refused(rows: list[list[str]]) -> None:
    """RFC 4180, with backslashes anywhere."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    data = text.getvalue().encode()
    for block in (5, 1 << 18):
        assert b"".join(row for _, row, _ in rows_read(data, UNKNOWN, block)) == data


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_row_of_many_lines_is_refused(end: bytes) -> None:
    def row(lines: int, close: bytes = b'"') -> bytes:
        return b'1,b%b2,"' % end + end.join([b"a"] * lines) + close + end

    assert len(rows_read(row(1000), UNKNOWN)) == 1
    for data in (row(1001), row(1001, b""), row(1001) + b'3,"c"' + end):
        with pytest.raises(StageError, match=r"row 2: more than 1,000 lines; .* --quote '\"'"):
            rows_read(data, UNKNOWN)
        assert b"".join(r for _, r, _ in rows_read(data, Dialect.of(None, None, quote='"'))) == data


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        (dict(escape="ab"), "--escape: expected one ASCII character"),
        (dict(quote=""), "--quote: expected one ASCII character"),
        (dict(quote="\n"), "--quote: expected one ASCII character"),
        (dict(escape="é"), "--escape: expected one ASCII character"),
        (dict(escape=","), "--delimiter ',' is also --quote or --escape"),
        (dict(quote=","), "--delimiter ',' is also --quote or --escape"),
        (dict(quote="'", kinds=["tsv"]), "--quote needs --input csv, but --input is tsv"),
        (dict(escape="", kinds=["jsonl"]), "--escape needs --input csv, but --input is jsonl"),
    ],
)
def test_characters_that_cannot_be(given_: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Dialect.of(None, None, **given_)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("row", "flags"),
    [
        ("'to be, or not'", ["--quote", "'"]),
        ("'to be\nor not'", ["--quote", "'"]),
        ("'that''s, it'", ["--quote", "'"]),
        ("'that\\'s, it'", ["--quote", "'", "--escape", "\\"]),
        ("to be\\, or not", ["--escape", "\\"]),
        ("to be\\\nor not", ["--escape", "\\"]),
    ],
)
def test_rows_of_one_width_with_other_quotes_stop_the_run(row: str, flags: list[str]) -> None:
    """Read as RFC 4180, a half of a record would be a record, or a text would be cut."""
    with pytest.raises(StageError, match="differ in their number of fields") as error:
        check_widths(f"id,text\n1,{row}\n2,plain\n".encode(), "a.csv", UNKNOWN)
    assert f"add: {shlex.join(flags)}; or, to leave out bad rows, " in str(error.value)


@pytest.mark.parametrize(
    "data",
    [
        "id,text\n1,'to be', or not\n2,plain\n3,don't\n",  # bad in every way
        "id,text\n1,'to be'\n2,C:\\dir\\\n",  # alike as it is
        "id;text\n1;'to, be'\n",  # has one column
        "",
    ],
)
def test_other_rows_do_not_stop_it(data: str) -> None:
    check_widths(data.encode(), "a.csv", UNKNOWN)
    told = Dialect.of(None, None, quote='"', escape="")
    check_widths(b"id,text\n1,'to be, or not'\n2,plain\n", "a.csv", told)


@pytest.mark.parametrize(("has_header", "number"), [(True, 2), (False, 3)])
def test_a_message_numbers_rows_without_the_header(has_header: bool, number: int) -> None:
    long = b'id,text\n1,a\n2,"' + b"b\n" * 1001 + b'"\n'
    with pytest.raises(StageError, match=f"row {number}: more than 1,000 lines"):
        list(opened_table("csv", has_header, io.BytesIO(long), "a.csv", LIMIT, dialect=UNKNOWN)[1])
