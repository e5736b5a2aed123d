"""CSV rows with closed quotes are those of Python's csv module, wherever the bytes are split."""

import codecs
import csv
import io
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from neardup.reading import separated_rows
from neardup.reading.blocks import numbered, read_files
from neardup.reading.dialects import Dialect
from neardup.reading.input_format import InputFormat
from neardup.reading.separated_rows import row_ends, split_rows, whole_rows
from neardup.runtime.program import StageError
from tests.support.failing import bounded

LIMIT = 1 << 20
SOME = st.sampled_from(['"', '""', ",", "\n", "\r\n", "\r", "a", "bc", "é", " "])
data = st.lists(SOME, max_size=24).map(lambda some: "".join(some).encode())
sizes = st.integers(1, 9)


def rows_of(given_: bytes, size: int, limit: int = LIMIT) -> list[tuple[int, bytes, str]]:
    """Return (number, bytes, flaw) of each row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(separated_rows, "BLOCK_BYTES", size)
        found = []
        for number, rows, flaw in whole_rows(io.BytesIO(given_), "a.csv", limit):
            ends = [len(rows)] if flaw else list(row_ends(rows))
            assert ends[-1] == len(rows)
            begins = [0, *ends]
            found += [(number + i, rows[begins[i] : end], flaw) for i, end in enumerate(ends)]
        return found


def by_csv(given_: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(given_.decode(), newline="")))


def closed(given_: bytes) -> bool:
    """Return whether the last quote is closed, so that a following line is a row of its own."""
    end = b"" if given_.endswith((b"\n", b"\r")) else b"\n"
    return by_csv(given_ + end + b"z")[-1:] == [["z"]]


@pytest.mark.slow
@settings(max_examples=400)
@given(data, sizes)
@example(b"a,b\n1,2\n3,4\n5,6\n", 4)  # blocks that end with a row
@example(b'a\r\n"b\r\n"\r\n', 2)
@example(b'"a"\r', 3)
@example(b"", 1)
def test_rows_are_those_of_csv(given_: bytes, size: int) -> None:
    rows = rows_of(given_, size)
    whole = given_ + b"\n" * (not given_.endswith((b"\n", b"\r")) and given_ != b"")
    assert b"".join(row for _, row, _ in rows) == whole
    assert [number for number, _, _ in rows] == list(range(1, len(rows) + 1))
    if closed(given_):
        assert [fields for _, row, _ in rows for fields in by_csv(row)] == by_csv(given_)
        assert all(len(by_csv(row)) == 1 for _, row, _ in rows)
        assert not any(flaw for _, _, flaw in rows)
        assert list(split_rows("csv", whole)) == by_csv(given_)
    else:
        assert sum(flaw == "quote is not closed" for _, _, flaw in rows) >= 1


@given(data, sizes)
def test_the_cuts_make_no_difference(given_: bytes, size: int) -> None:
    assert rows_of(given_, size) == rows_of(given_, 1 << 16)


@given(data)
@example(b'a,"b""c"\n"d"\r\ne"\n')
def test_both_ways_to_find_the_ends_agree(given_: bytes) -> None:
    for comma in ",;\t":
        other = given_.replace(b",", comma.encode())
        by_fields = list(separated_rows._by_fields(other, Dialect(comma)))
        assert row_ends(other, dialect=Dialect(comma)).tolist() == by_fields


@pytest.mark.slow
def test_a_field_of_quotes_alone_takes_no_more_memory_than_it_has() -> None:
    quotes = b'"' + b'""' * 600_000 + b'"x,y\n'  # no field has more
    both = quotes * 2
    tracemalloc.start()
    assert row_ends(both).tolist() == [len(quotes), len(both)]
    assert tracemalloc.get_traced_memory()[1] < len(both)
    tracemalloc.stop()


@pytest.mark.parametrize("size", range(1, 9))
def test_a_byte_order_mark(size: int) -> None:
    assert rows_of(codecs.BOM_UTF8 + b'"a\nb"\n', max(size, 3)) == [(1, b'"a\nb"\n', "")]
    assert rows_of(codecs.BOM_UTF8, max(size, 3)) == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 5, 1 << 16])
def test_of_a_quote_that_is_not_closed_only_the_line_is_lost(end: bytes, size: int) -> None:
    lines = [b"id,text", b'a,"x', b"b,y", b'c,"z', b'z"', b'd,"w', b"e,v"]
    flawed = rows_of(end.join(lines) + end, size)
    # "x … "z is a field, and so is what follows up to the next quote; the last one is open.
    assert [row for _, row, flaw in flawed if flaw] == [b'd,"w' + end]
    assert flawed[-1][1] == b"e,v" + end
    alone = rows_of(end.join([b"id,text", b'a,"x', b"b,y", b"c,z"]), size)
    assert [(number, row, flaw) for number, row, flaw in alone] == [
        (1, b"id,text" + end, ""),
        (2, b'a,"x' + end, "quote is not closed"),
        (3, b"b,y" + end, ""),
        (4, b"c,z\n", ""),
    ]


def test_a_row_longer_than_the_limit() -> None:
    many = b"".join(b"%d,t\n" % i for i in range(1000))
    rows = rows_of(b'id,text\nx,"open\n' + many, 64, limit=500)
    assert [row for row in rows if row[2]] == [(2, b'x,"open\n', "line too long")]
    assert b"".join(row for _, row, flaw in rows[2:]) == many
    assert rows[-1][0] == 1002


@pytest.mark.parametrize("size", [64, 400, 1 << 20])
def test_the_limit_does_not_depend_on_blocks(size: int) -> None:
    long = b'x,"' + b"y\n" * 300 + b'y"\n'
    rows = rows_of(
        b"id,text\n" + long + b"a,b\n" + long[:300] + b'"\n' + b"c" * 501 + b"\nd\n",
        size,
        limit=500,
    )
    flawed = [(row, flaw) for _, row, flaw in rows if flaw]
    assert flawed[0] == (b'x,"y\n', "line too long")
    assert (3, b"y\n", "") in rows
    assert long[:300] + b'"\n' in [row for _, row, flaw in rows if not flaw]
    assert b"a,b\n" not in [row for _, row, flaw in rows if flaw]


def test_one_line_longer_than_the_limit_is_no_csv() -> None:
    with pytest.raises(StageError, match=r"a\.csv: row 2: line too long; is this CSV\?"):
        rows_of(b"id\n" + b"x" * 1000, 64, limit=500)


@pytest.mark.parametrize(
    "row",
    [
        b'"' + b'""' * 600_000 + b'"',
        b'"' + b'a""' * 300_000,
        b'"' + b"a,\n" * 300_000 + b'"',
        b"a," * 300_000,
        b'""' * 300_001,
        b'"a",' * 300_000,
    ],
    ids=["doubled", "doubled, open", "lines", "fields", "nothing, and quotes", "quoted fields"],
)
def test_long_rows_take_no_longer_than_others(row: bytes) -> None:
    """A very long row is read in linear time; with repeated scans, this test would not end."""
    with bounded():
        rows = rows_of(row + b"\nz,y\n", 1 << 18)
    assert rows[-1][1] == b"z,y\n"


@pytest.mark.slow
def test_rows_are_all_there_whatever_the_blocks(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,text\n" + b"".join(b"%07d,t\n" % i for i in range(200_000)))
    form = InputFormat.of("csv", None, None)
    blocks = list(read_files(numbered([str(path)]), LIMIT, pieces=form.pieces))
    assert sum(len(block.data) for block in blocks) == 200_000
    assert [block.line for block in blocks][:2] == [1, 1 + len(blocks[0].data)]
