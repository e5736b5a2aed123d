"""Record lines are read as a naive reader with `split` and `int` reads them."""

import re
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.reading.input_check import (
    NEGATIVE,
    NO_ID,
    NO_SHINGLES,
    NOT_AN_INTEGER,
    NOT_UTF8,
    NUL_BYTE,
    TOO_LARGE,
)
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.reading.shingling import Shingler
from neardup.reading.text_rows import text_lines, text_parser
from tests.support.drawn import TOP, shingles

LINE_END = re.compile(rb"\r\n|\n|\r")
BLANKS = b" \t\v\f"


def flaw_in_id(id_):
    try:
        return NUL_BYTE if "\0" in id_.decode() else ""
    except UnicodeDecodeError:
        return NUL_BYTE if b"\0" in id_ else NOT_UTF8


def flaw_in_token(token):
    if b"\0" in token:
        return NUL_BYTE
    if not re.fullmatch(rb"-?[0-9]+", token):
        return NOT_AN_INTEGER
    if token.startswith(b"-"):
        return NEGATIVE
    digits = token.lstrip(b"0")  # int() takes no more than 4300 digits
    return TOO_LARGE if len(digits) > 20 or int(digits or b"0") > TOP else ""


def read_naively(block):
    """Return [(id, set)] of the records, and [(line number, text, reason)] of the bad lines."""
    records, bad = [], []
    for number, line in enumerate(LINE_END.split(block), 1):
        if fields := line.split():
            id_, *tokens = fields
            flaws = [flaw_in_id(id_), *map(flaw_in_token, tokens), "" if tokens else NO_SHINGLES]
            if flaw := next(filter(None, flaws), ""):
                bad.append((number, line.strip(BLANKS), flaw))
            else:
                records.append((id_, sorted({int(t.lstrip(b"0") or b"0") for t in tokens})))
    return records, bad


def in_plain_values(block, batch, bad):
    """Return a batch and bad lines in the form of `read_naively`."""
    records = [(id_, batch.sets.row(i).tolist()) for i, id_ in enumerate(batch.ids)]
    return records, [(line.number + 1, line.text, line.reason) for line in bad]


ids = st.sampled_from([b"v1", b"VIDEO_000000409", b"5", b"-3", b"\xc3\xa9", b"v1", b"a" * 300])
odd_ids = st.sampled_from([b"\xe9", b"a\0b", b"\0", b"\xff\0", b"\xed\xa0\x80"])
numbers = st.builds(lambda zeros, n: b"0" * zeros + b"%d" % n, st.integers(0, 30), shingles)
digits = st.text("0189", min_size=1, max_size=25).map(str.encode)
soup = st.text("0159/:;-+.\0\x7fé\x80", min_size=1, max_size=25).map(str.encode)
odd_tokens = st.sampled_from(
    [b"+5", b"1.5", b"-5", b"-", b"--", b"1_0", b"0x1f", b"1e3", b"\xff", b"7\0", b"\0", b"-\0"]
    + ["٣".encode(), "²".encode(), "7é".encode(), b"1" * 5000, b"0" * 5000 + b"7", b"-" + b"9" * 30]
    + [b"12345678x", b"x12345678", b"1234567890123456x", b"x1234567890123456", b"x" * 40]
    + [b"%d" % (TOP + 1), b"%d" % 10**20, b"%d" % (TOP + 10**16)]
)
blanks = st.text(BLANKS.decode(), max_size=3).map(str.encode)
lines = st.builds(
    lambda lead, fields, gap, trail, end: lead + (b" " + gap).join(fields) + trail + end,
    blanks,
    st.builds(
        lambda id_, tokens: [id_, *tokens],
        st.one_of(*[ids] * 9, odd_ids),
        st.lists(st.one_of(*[numbers] * 9, digits, soup, odd_tokens), max_size=6),
    )
    | st.just([]),
    blanks,
    blanks,
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
)


BAD_LINES = [b"v", b"v +5", b"v 1.5", b"v -", b"v --", b"v --5", b"v 1 \xff", "v 1 ٣".encode()]
BAD_LINES += [b"v 1 -5", b"v 18446744073709551616", b"v " + b"1" * 5000, b"v 1 x -5", b"v 1 -5 x"]
BAD_LINES += [b"v 1\0 2", b"v\0 1", b"\0", b"\xe9 1", b"\xe9", b"\xe9 x"]


@given(st.lists(lines, max_size=8).map(b"".join))
@example(b"".join(b"%b\ngood 1\n" % line for line in BAD_LINES))
@example(b"v %d %d\n" % (TOP, TOP + 1))
@example(b"v 1 2\r3 4\r\n\n\r5 6\n")
def test_shingle_lines_are_read_as_the_naive_reader_reads_them(block):
    batch, bad = parse_shingle_lines(block)
    assert in_plain_values(block, batch, bad) == read_naively(block)


@given(st.binary(max_size=60))
def test_any_bytes_are_records_or_bad_lines(block):
    block += b"\n"
    batch, bad = parse_shingle_lines(block)
    assert in_plain_values(block, batch, bad) == read_naively(block)


def test_no_line_is_no_record():
    batch, bad = parse_shingle_lines(b"")
    assert (batch.ids, len(batch.sets), bad) == ([], 0, [])


def test_every_length_of_number_is_read_exactly():
    values = [10**k + d for k in range(20) for d in (-1, 0, 1)] + [TOP - 1, TOP]
    batch, bad = parse_shingle_lines(b"v " + b" ".join(b"%d" % v for v in values) + b"\n")
    assert batch.sets.row(0).tolist() == sorted(set(values))
    assert bad == []


@pytest.mark.parametrize("at_once", [1, 2, 7])
def test_numbers_do_not_depend_on_how_many_are_read_at_once(monkeypatch, at_once):
    monkeypatch.setattr("neardup.reading.shingle_lines.CACHE_NUMBERS", at_once)
    rows = [[10**k + d for k in range(1, 20, step) for d in (-1, 0, 1)] for step in (1, 2, 3)]
    block = b"".join(b"a1b22\t%b\n" % b" ".join(b"%020d" % v for v in row) for row in rows)
    batch, bad = parse_shingle_lines(block)
    assert [batch.sets.row(i).tolist() for i in range(3)] == [sorted(set(row)) for row in rows]
    assert bad == []


@pytest.mark.parametrize("line", [b"id " + b"a" * 10**6, b"i" * 10**6 + b" 1 2 3"])
def test_a_long_word_takes_a_few_times_its_bytes(line):
    tracemalloc.start()
    try:
        parse_shingle_lines(line + b"\n")
        assert tracemalloc.get_traced_memory()[1] < 10 * len(line)
    finally:
        tracemalloc.stop()


one_word = text_parser(text_lines, Shingler.parse("word:1"))


def words_read(block):
    """Return {id: number of distinct words}, and the reasons of bad lines."""
    batch, bad = one_word(block)
    return dict(zip(batch.ids, batch.sets.sizes.tolist())), [line.reason for line in bad]


@pytest.mark.parametrize(
    ("line", "id_", "count"),
    [
        (b"a\tto be or not to be", b"a", 4),
        (b"a to be or not to be", b"a", 4),
        (b"  a  to be", b"a", 2),
        (b" my video \tto be", b"my video", 2),
        (b"a\tto\tbe", b"a", 2),
        (b"a b\tc", b"a b", 1),
        ("é\tÉ é".encode(), "é".encode(), 1),
        (b"a\t" + b"x " * 9 + b"\r", b"a", 1),
    ],
)
def test_an_id_ends_at_the_tab_or_else_at_the_first_blank(line, id_, count):
    assert words_read(line + b"\n") == ({id_: count}, [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\tto be", NO_ID),
        (b"  \tto be", NO_ID),
        (b"a", NO_SHINGLES),
        (b"a\t", NO_SHINGLES),
        (b"a\t \v\f ", NO_SHINGLES),
        ("a\t\u3000\u2003".encode(), NO_SHINGLES),
        (b"a\tto \xff be", NOT_UTF8),
        (b"a\xff\tto be", NOT_UTF8),
        (b"a\tto\0be", NUL_BYTE),
        (b"a\0b\tto be", NUL_BYTE),
        (b"a\xff\tto\0be", NUL_BYTE),
    ],
)
def test_a_bad_text_line_is_told_from_its_neighbours(line, reason):
    block = b"before\tx\r" + line + b"\r\nafter y z\n"
    batch, bad = one_word(block)
    assert dict(zip(batch.ids, batch.sets.sizes.tolist())) == {b"before": 1, b"after": 2}
    assert bad == [(1, line, reason, b"a" * (line.split(b"\t")[0] == b"a"))]


@given(st.lists(st.text("ab \t\v\fé\0", max_size=9).map(str.encode), max_size=6))
def test_text_lines_are_read_as_the_naive_reader_reads_them(rows):
    expected, reasons = [], []
    for row in rows:
        if not row.strip(BLANKS):
            continue
        cut = row if b"\t" in row else row.strip(BLANKS)
        id_, _, text = cut.partition(b"\t" if b"\t" in row else b" ")
        id_ = id_.strip(BLANKS)
        words = set(text.lower().split())
        if b"\0" in row and id_:
            reasons.append(NUL_BYTE)
        elif not id_ or not words:
            reasons.append(NO_SHINGLES if id_ else NO_ID)
        else:
            expected.append((id_, len(words)))
    batch, bad = one_word(b"".join(row + b"\n" for row in rows))
    assert list(zip(batch.ids, batch.sets.sizes.tolist())) == expected
    assert [line.reason for line in bad] == reasons
