"""Weighted sets as text are read as they were written, or refused."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.lines.keyed_lines import (
    decode_sets,
    encode_sets,
    encoded_size,
    flaw_in_line,
    format_keyed_lines,
)
from neardup.runtime.program import WireError
from neardup.sets.ragged import Batch, Ragged
from neardup.verification.bucket_batch import BucketBatch
from tests.sets.test_ragged import as_dicts, with_weights
from tests.support.drawn import shingles

weights = st.just(1) | st.integers(1, 1100) | st.integers(1, 2**59)
weighted_sets = st.dictionaries(shingles, weights, min_size=1, max_size=12)
DIGITS = [chr(c).encode() for c in range(48, 112)]


def naive_text(row):
    """Return the text of a weighted set, encoded digit by digit."""
    text, before = b"", 0
    for value in sorted(row):
        step, weight, digits, ours = value - before, row[value], b"", b""
        before = value
        digits, step = DIGITS[step % 32], step // 32
        while step:
            digits, step = DIGITS[32 + step % 32] + digits, step // 32
        if weight > 1:
            while weight:
                weight, digit = divmod(weight - 1, 31)
                ours = DIGITS[32 + digit + 1] + ours
            ours = b"P" + ours + b"P"
        text += ours + digits
    return text


@given(st.lists(weighted_sets, max_size=6))
@example([{3: 1, 7: 40}])
@example([{0: 31, 2**64 - 1: 32}, {0: 2**59}])
def test_weighted_sets_survive_the_round_trip(rows):
    texts = encode_sets(with_weights(rows))
    assert texts == list(map(naive_text, rows))
    assert as_dicts(decode_sets(texts)) == rows
    assert list(map(encoded_size, texts)) == list(map(len, rows))


@given(st.lists(st.frozensets(shingles, max_size=9), max_size=4))
def test_weights_of_1_are_not_written(rows):
    bare = Ragged.from_rows([list(row) for row in rows])
    ones = Ragged(bare.values, bare.offsets, np.ones(len(bare.values), np.int64))
    assert encode_sets(ones) == encode_sets(bare)
    assert decode_sets(encode_sets(ones)).weights is None


@given(weighted_sets, weighted_sets)
def test_equal_weighted_sets_have_equal_bytes_and_different_ones_have_not(x, y):
    a, b = encode_sets(with_weights([x, y]))
    assert (a == b) == (x == y)


@given(st.lists(weighted_sets, min_size=1, max_size=3), st.data())
def test_damaged_texts_are_refused_or_are_other_sets(rows, data):
    texts = encode_sets(with_weights(rows))
    i = data.draw(st.integers(0, len(texts) - 1))
    at = data.draw(st.integers(0, len(texts[i]) - 1))
    texts[i] = data.draw(
        st.sampled_from(
            [
                texts[i][:at]
                + data.draw(st.sampled_from(DIGITS + [b"P"] * 20))
                + texts[i][at + 1 :],
                texts[i][:at] + data.draw(st.sampled_from([b"P", b"PP", b"Q"])) + texts[i][at:],
                texts[i][:at] + texts[i][at + 1 :],
            ]
        )
    )
    try:
        decoded = decode_sets(texts)
    except WireError:
        return
    assert encode_sets(decoded) == texts
    assert decoded.weighed().min(initial=1) > 0


@pytest.mark.parametrize(
    "text",
    [
        b"P3",  # a zero in front, and no other one
        b"PQ3",
        b"PP3",  # no digit of a weight
        b"PPP3",
        b"PQP3",  # a weight of 1, which is not written
        b"PRP",  # no shingle
        b"PRPP3",  # a shingle with a leading zero
        b"PRPPRP3",
        b"3PR",
        b"0PRP0",  # twice the same shingle
        b"P" + b"o" * 13 + b"P3",
    ],
)
def test_what_no_set_is_written_as(text):
    with pytest.raises(WireError):
        decode_sets([b"34o8", text, b"0"])


@given(weighted_sets)
def test_a_keyed_line_has_the_size_of_its_set(row):
    batch = Batch([b"v"], with_weights([row]))
    ((_, lines),) = format_keyed_lines(batch, Ragged.from_rows([[5]]))
    assert flaw_in_line(lines[:-1]) == ""
    batch = BucketBatch.of_lines([lines[:-1]])
    assert (batch.sets.sizes.tolist(), as_dicts(batch.sets)) == ([len(row)], [row])
