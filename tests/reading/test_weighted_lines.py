"""Lines of weighted shingles are read as a naive reader with `split` and fractions reads them."""

import re
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from neardup.reading.input_check import (
    NO_SHINGLES,
    NOT_A_WEIGHT,
    NOT_AN_INTEGER,
    TWO_WEIGHTS,
    UNASKED_WEIGHT,
)
from neardup.reading.shingle_lines import parse_shingle_lines, parse_weighted_lines
from tests.reading.test_shingle_lines import (
    BLANKS,
    LINE_END,
    blanks,
    flaw_in_id,
    flaw_in_token,
    ids,
    numbers,
    odd_ids,
    odd_tokens,
    soup,
)
from tests.sets.test_ragged import as_dicts
from tests.support.drawn import TOP

FORM = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def weight_of(text):
    """Return a weight in millionths, or None if it is not valid."""
    if len(text) >= 40 or not FORM.fullmatch(text.decode("latin-1")):
        return None
    value = Fraction(text.decode())
    millionths = round(Fraction(float(value)) * 10**6) if value < 10**7 else 0
    return millionths if millionths and value <= 10**6 else None


def flaw_in_weighted(token):
    shingle, colon, weight = token.partition(b":")
    if flaw := flaw_in_token(shingle):
        return flaw
    return NOT_A_WEIGHT if colon and weight_of(weight) is None else ""


def value_of(token):
    shingle, colon, weight = token.partition(b":")
    return int(shingle.lstrip(b"0") or b"0"), weight_of(weight) if colon else 10**6


def read_naively(block):
    """Return [(id, token → millionths)], and [(line number, text, reason)] of the bad lines."""
    records, bad = [], []
    for number, line in enumerate(LINE_END.split(block), 1):
        if fields := line.split():
            id_, *tokens = fields
            flaws = [flaw_in_id(id_), *map(flaw_in_weighted, tokens), "" if tokens else NO_SHINGLES]
            flaw = next(filter(None, flaws), "")
            values = [] if flaw else list(map(value_of, tokens))
            if flaw or len(dict(values)) < len(values):
                bad.append((number, line.strip(BLANKS), flaw or TWO_WEIGHTS))
            else:
                records.append((id_, dict(values)))
    return records, bad


def in_plain_values(block, batch, bad):
    return list(zip(batch.ids, as_dicts(batch.sets))), [
        (line.number + 1, line.text, line.reason) for line in bad
    ]


decimals = st.builds(
    lambda zeros, whole, part, exponent: b"0" * zeros + whole + part + exponent,
    st.integers(0, 9),
    st.integers(0, 10**7).map(b"%d".__mod__),
    st.just(b"") | st.integers(0, 10**7).map(b".%07d".__mod__) | st.just(b"."),
    st.sampled_from([b""] * 6 + [b"e0", b"E+1", b"e-3", b"e-9", b"e5", b"e6", b"e308", b"e999"]),
)
odd_weights = st.sampled_from(
    [b"", b"0", b"0.0", b"-1", b"+1", b"1e", b"e1", b".", b".5", b"5.", b"1e-7", b"5e-7", b"6e-7"]
    + [b"1e6", b"1000000", b"1000000.1", b"1e400", b"inf", b"nan", b"1_0", b"0x1", b"1:1", b"\xff"]
    + ["٣".encode(), b"1\0", b"0" * 38 + b"1", b"0" * 39 + b"1", b"1e0006", b"1e-0", b"1,5"]
)
weighted = st.builds(lambda n, w: n + b":" + w, numbers, decimals)
odd = st.builds(lambda n, w: n + b":" + w, numbers | odd_tokens | st.just(b""), odd_weights)
lines = st.builds(
    lambda lead, id_, tokens, gap, end: lead + (b" " + gap).join([id_, *tokens]) + end,
    blanks,
    st.one_of(ids, ids, st.sampled_from([b"v:1", b"1:2", b":", b"a:b:c:"]), odd_ids),
    st.lists(st.one_of(*[weighted] * 9, numbers, numbers, odd, soup, odd_tokens), max_size=5),
    blanks,
    st.sampled_from([b"\n", b"\r\n", b"\r", b" \n\n"]),
)


BAD_LINES = [b"v", b"v:1", b"v 5:", b"v 5:0", b"v 5:1e-7", b"v 5:-1", b"v 5:1000000.000001"]
BAD_LINES += [b"v 5:1e400", b"v 5:1:2", b"v 5:nan", b"v :5", b"v :", b"v 1.5:2", b"v x:1 5:0"]
BAD_LINES += [b"v 5:0 x:1", b"v -5:1", b"v 18446744073709551616:1", b"v 7:1 7:2", b"v 7:1 07:1"]
BAD_LINES += [b"v 7 7", b"v 7:1 7:2 8:0", b"v\0 1:1", b"\xe9 1:1"]
WEIGHTS = b"1 0001.50 .25 3. 1e-6 0.0000019 1E+06 999999.999999 0.1 2.675".split()


@given(st.lists(lines, max_size=8).map(b"".join))
@example(b"".join(b"%b\ngood 2 3:0.5\n" % line for line in BAD_LINES))
@example(b"a:b " + b" ".join(b"%d:%b" % (TOP - i, w) for i, w in enumerate(WEIGHTS)) + b"\n")
@example(b"v 7:1\nthe_same 7:1\n")
@example(b"v %d:5 %d:5\n" % (TOP, TOP + 1))
@example(b"v 1:2\r3 4:5\r\n\n\r5:6\n7 8:9:1\n")
def test_weighted_lines_are_read_as_the_naive_reader_reads_them(block):
    batch, bad = parse_weighted_lines(block)
    assert in_plain_values(block, batch, bad) == read_naively(block)


@given(st.text("v 01:.e-\n\r\0", max_size=60).map(str.encode) | st.binary(max_size=60))
def test_any_bytes_are_records_or_bad_lines(block):
    block += b"\n"
    batch, bad = parse_weighted_lines(block)
    assert in_plain_values(block, batch, bad) == read_naively(block)


def test_more_weights_than_are_remembered(monkeypatch):
    monkeypatch.setattr("neardup.reading.shingle_lines.WEIGHT_CACHE", 3)
    batch, bad = parse_weighted_lines(
        b"v " + b" ".join(b"%d:0.%03d" % (k, k) for k in range(1, 99)) + b"\n"
    )
    assert (as_dicts(batch.sets), bad) == ([{k: 1000 * k for k in range(1, 99)}], [])


def test_a_weight_that_nobody_asked_for_has_a_reason_of_its_own():
    for token in (b"5:1", b"5:0.5", b"5:1e3"):
        _, bad = parse_shingle_lines(b"v 1 " + token + b"\n")
        assert [line.reason for line in bad] == [UNASKED_WEIGHT]
    for token in (b"5:x", b":5", b"x:5", b"5:1:1"):
        _, bad = parse_shingle_lines(b"v 1 " + token + b"\n")
        assert [line.reason for line in bad] == [NOT_AN_INTEGER]
