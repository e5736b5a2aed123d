"""Lines between the stages: what is written is read again, and what is damaged is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.lines.keyed_lines import format_keyed_lines, parse_keyed_lines
from neardup.lines.keys import format_keys, parse_key
from neardup.lines.pair_lines import format_pair, parse_pair
from neardup.lines.set_text import decode_sets, encode_sets
from neardup.process.errors import StageError, shown
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged
from neardup.verification.pile import Pile
from tests.support.drawn import shingle_sets

KEYS = st.integers(0, (1 << 52) - 1)
LINE = b"001:00000000ff\t00000003\tv1\t34o8"


@given(st.lists(shingle_sets, max_size=6))
def test_sets_survive_the_round_trip(sets):
    decoded = decode_sets(encode_sets(Ragged.from_rows([list(x) for x in sets])))
    assert [decoded.row(i).tolist() for i in range(len(sets))] == [sorted(x) for x in sets]


@given(shingle_sets, shingle_sets)
def test_equal_sets_have_equal_bytes_and_different_ones_have_not(x, y):
    a, b = encode_sets(Ragged.from_rows([list(x), list(y)]))
    assert (a == b) == (x == y)


@given(shingle_sets)
def test_shingles_are_printable_characters(x):
    (text,) = encode_sets(Ragged.from_rows([list(x)]))
    assert all(ord("0") <= c <= ord("o") for c in text)


@given(st.lists(KEYS, min_size=2))
def test_keys_survive_the_round_trip_and_keep_their_order(keys):
    texts = format_keys(np.array(keys, np.uint64)).tolist()
    assert [parse_key(text) for text in texts] == keys
    assert [parse_key(text) for text in sorted(texts)] == sorted(keys)


@given(st.lists(KEYS, min_size=1, unique=True), st.integers(1, 5))
def test_partitions_together_hold_every_line_once(keys, partitions):
    batch = Batch([b"v"], Ragged.from_rows([[1, 2]]))
    rows = Ragged.from_rows([keys])
    everything = b"".join(piece for _, piece in format_keyed_lines(batch, rows))
    parts = [piece for _, piece in format_keyed_lines(batch, rows, partitions)]
    assert sorted(b"".join(parts).splitlines()) == everything.splitlines()
    assert len(everything.splitlines()) == len(keys)


@given(KEYS, st.integers(2, 5))
def test_a_key_goes_to_one_partition_whoever_sends_it(key, partitions):
    went = set()
    for id_ in (b"a", b"b"):
        batch = Batch([id_], Ragged.from_rows([[len(went) + 1]]))
        lines = format_keyed_lines(batch, Ragged.from_rows([[key]]), partitions)
        went |= {number for number, piece in lines if piece}
    assert len(went) == 1


def test_a_large_output_comes_in_pieces(monkeypatch):
    monkeypatch.setattr("neardup.lines.keyed_lines.OUTPUT_BYTES", 100)
    batch = Batch([b"v"], Ragged.from_rows([[1]]))
    pieces = [piece for _, piece in format_keyed_lines(batch, Ragged.from_rows([list(range(50))]))]
    assert len(pieces) > 10
    assert b"".join(pieces).count(b"\n") == 50


@given(st.integers(0, len(LINE) - 1), st.integers(0, 255))
def test_a_damaged_line_is_refused_or_is_another_good_line(position, byte):
    damaged = LINE[:position] + bytes([byte]) + LINE[position + 1 :]
    try:
        pile = Pile.of_lines([damaged])
    except StageError:
        return
    assert pile.sizes.tolist() == [3]
    assert pile.sets.row(0).tolist() == sorted(set(pile.sets.row(0).tolist()))


@pytest.mark.parametrize(
    "line",
    [b"", b"x", LINE.replace(b"\t", b" "), LINE + b"\tmore", LINE[:-1] + b"p", LINE[:-1] + b"/"]
    + [LINE[:-1], LINE + b"o", LINE + b"0", b"1:" + LINE[4:], b"00x" + LINE[3:]]
    + [LINE.replace(b"00000003", b"00000004")],
)
def test_no_damaged_line_passes_for_a_record(line):
    with pytest.raises(StageError):
        Pile.of_lines([line])


@given(st.text("0aAfFx_+- :19", min_size=14, max_size=14).map(str.encode))
@example(b"-01:0000000000")
@example(b"0x1:0000000000")
@example(b"00A:0000000000")
def test_a_key_is_read_only_as_it_is_written(text):
    text = text[:3] + b":" + text[4:]
    try:
        key = parse_key(text)
    except StageError:
        return
    assert format_keys(np.array([key], np.uint64)).tolist() == [text]


@given(st.text("01?@NOPQno", max_size=15).map(str.encode))
@example(b"P1")
@example(b"o" * 12 + b"0")
@example(b"P" * 13 + b"1")
def test_a_set_is_read_only_as_it_is_written(text):
    try:
        decoded = decode_sets([text])
    except StageError:
        return
    assert encode_sets(decoded) == [text]


def test_a_set_of_every_width_of_number_is_read_as_written():
    (text,) = encode_sets(Ragged.from_rows([[1 << k for k in range(64)]]))
    assert decode_sets([text]).row(0).tolist() == [1 << k for k in range(64)]


def test_the_undamaged_line_does():
    assert Pile.of_lines([LINE]).ids == [[b"v1"]]
    assert parse_keyed_lines([LINE]) == [[b"001:00000000ff", b"00000003", b"v1", b"34o8"]]


def test_pairs_are_in_byte_order_and_survive():
    assert format_pair(b"b", b"a", b"0.900000") == b"a\tb\t0.900000\n"
    assert format_pair(b"b", b"a", b"0.900000", directed=True) == b"b\ta\t0.900000\n"
    assert format_pair("é".encode(), b"z", b"1.000000").startswith(b"z\t")
    for line in (b"a\tb\t0.900000\n", b"a\tb\t0.900000\t\n", b"a\tb\t0.900000"):
        assert parse_pair(line) == (b"a", b"b", b"0.900000")


@pytest.mark.parametrize(
    "line",
    [b"\n", b"a\tb\n", b"a\tb\tc\td\n", b"a\tb\t0.9\n", b"a\tb\tmuch\n", b"\tb\t0.900000\n"],
)
def test_what_is_no_pair_is_refused(line):
    with pytest.raises(StageError, match="expected A B SIMILARITY"):
        parse_pair(line)


def test_messages_show_lines_without_control_characters():
    assert shown(b"a\x1b[31m\xff") == r"'a\x1b[31m\xff'"
    assert shown(b"x" * 100).endswith("x'…")
