"""Lines between stages are read as written; a damaged line is refused, or is still valid."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.lines.answer_lines import format_pair, parse_pair
from neardup.lines.keyed_lines import (
    decode_sets,
    encode_sets,
    flaw_in_line,
    format_keyed_lines,
    format_keys,
    lines_of,
    parse_keyed_lines,
    parse_keys,
)
from neardup.runtime.program import StageError, shown
from neardup.sets.ragged import Batch, Ragged
from neardup.verification.bucket_batch import BucketBatch
from tests.support.drawn import shingle_sets

KEYS = st.integers(0, (1 << 52) - 1)
LINE = b"001:00000000ff\t00000003\tv1\t34o8"


@given(st.lists(shingle_sets, max_size=6))
@example([frozenset(1 << k for k in range(64))])
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
    assert parse_keys(texts).tolist() == keys
    assert parse_keys(sorted(texts)).tolist() == sorted(keys)


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


@pytest.mark.parametrize("line", [LINE, b"001:00000000ff\t00000003\tv1\tPSP3PoQP4o8"])
@given(st.data(), st.integers(0, 255))
def test_a_damaged_line_is_refused_or_is_another_good_line(line, data, byte):
    position = data.draw(st.integers(0, len(line) - 1))
    damaged = line[:position] + bytes([byte]) + line[position + 1 :]
    try:
        batch = BucketBatch.of_lines([damaged])
    except StageError:
        return
    assert batch.sets.sizes.tolist() == [3]
    assert batch.sets.row(0).tolist() == sorted(set(batch.sets.row(0).tolist()))
    assert (batch.sets.weighed() > 0).all()


BATCH = Batch(
    [b"v1", b"-z_\x01 ~", "é…😀".encode(), b"v"],
    Ragged.from_rows([[3, 7, 1007], range(0, 700, 2), [0], [1 << k for k in range(64)]]),
)
BLOCK = b"".join(
    piece for _, piece in format_keyed_lines(BATCH, Ragged.from_rows([[255, 1 << 45]] * 4))
)
PLACES = st.integers(0, len(BLOCK) - 1)
AFTER = len(b"001:00000000ff\t00000003\tv1\t34o8")


def agree(block: bytes) -> None:
    """Check that `lines_of` finds the first flaw that `flaw_in_line` finds in a block's lines."""
    lines = block.split(b"\n")[:-1]
    flaws = [f"line {i}: {flaw}" for i, flaw in enumerate(map(flaw_in_line, lines), 7) if flaw]
    if flaws:
        with pytest.raises(StageError) as raised:
            lines_of(block, 7)
        assert str(raised.value) == flaws[0]
        return
    found = lines_of(block, 7)
    bounds = zip(found.starts.tolist(), found.ends.tolist())
    assert [block[a:b] for a, b in bounds] == lines
    words = zip(found.high.tolist(), found.low.tolist())
    keys = [a.to_bytes(8, "big") + b.to_bytes(6, "big") for a, b in words]
    assert keys == [line[:14] for line in lines]


def test_what_the_mapper_writes_has_its_form():
    assert not any(map(flaw_in_line, BLOCK.split(b"\n")[:-1]))
    agree(BLOCK)


@pytest.mark.parametrize("byte", [*b"\0\t\n\r /0:`afgOPp~", 128, 195, 255])
def test_any_byte_at_any_place_is_seen_in_a_block_as_in_a_line(byte):
    for line in LINE, LINE.replace(b"v1", "né".encode()):
        for place in range(len(line)):
            agree(LINE + b"\n" + line[:place] + bytes([byte]) + line[place + 1 :] + b"\n")


@given(PLACES, st.integers(0, 9), st.binary(max_size=4) | st.sampled_from([b"\t", b"\n", b"0"]))
@example(AFTER, 1, b"")  # two lines joined
@example(22, 0, b"\t")
@example(15, 8, b"00000259")  # 3 modulo 256
def test_damage_is_seen_in_a_block_as_in_a_line(place, cut, put):
    agree(BLOCK[:place] + put + BLOCK[place + cut :].rstrip(b"\n") + b"\n")


@given(PLACES, PLACES, st.integers(1, 40))
def test_what_stands_twice_or_is_moved_is_seen_in_a_block_as_in_a_line(a, b, length):
    agree(BLOCK[:a] + BLOCK[b : b + length] + BLOCK[a:])


@pytest.mark.parametrize(
    ("message", "damages"),
    [
        (
            "expected KEY SIZE ID SHINGLES, as mapper.py writes them, got '001:",
            [
                (b"v1\t", b"\t"),
                (b"v1", b"v\xff"),
                (b"v1", b"v\0"),
                (b"34o8", b""),
                (b"\t34", b"34"),
            ],
        ),
        (
            "damaged, its size and shingles disagree; run mapper.py again: '001:",
            [(b"34o8", b"34o"), (b"003\t", b"259\t")],
        ),
    ],
)
def test_a_flaw_is_told(message, damages):
    assert flaw_in_line(LINE) == ""
    for damage in damages:
        assert flaw_in_line(LINE.replace(*damage)).startswith(message)


@pytest.mark.parametrize(
    "line",
    [b"", b"x", LINE.replace(b"\t", b" "), LINE + b"\tmore", LINE[:-1] + b"p", LINE[:-1] + b"/"]
    + [LINE[:-1], LINE + b"o", LINE + b"0", b"1:" + LINE[4:], b"00x" + LINE[3:]]
    + [LINE.replace(b"00000003", b"00000004")],
)
def test_no_damaged_line_passes_for_a_record(line):
    with pytest.raises(StageError):
        BucketBatch.of_lines([line])


@given(st.text("0aAfFx_+- :19", min_size=14, max_size=14).map(str.encode))
@example(b"-01:0000000000")
@example(b"0x1:0000000000")
@example(b"00A:0000000000")
def test_a_key_is_read_only_as_it_is_written(text):
    text = text[:3] + b":" + text[4:]
    try:
        keys = parse_keys([text])
    except StageError:
        return
    assert format_keys(keys).tolist() == [text]


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


def test_the_undamaged_line_does():
    assert BucketBatch.of_lines([LINE]).ids == [[b"v1"]]
    assert parse_keyed_lines([LINE]) == [[b"001:00000000ff", b"00000003", b"v1", b"34o8"]]


def test_pairs_are_in_byte_order_and_survive():
    assert format_pair(b"b", b"a", b"0.900000") == b"a\tb\t0.900000\n"
    assert format_pair(b"b", b"a", b"0.900000", directed=True) == b"b\ta\t0.900000\n"
    assert format_pair("é".encode(), b"z", b"1.000000").startswith(b"z\t")
    for line in (b"a\tb\t0.900000\n", b"a\tb\t0.900000\t\n", b"a\tb\t0.900000"):
        assert parse_pair(line) == (b"a", b"b", b"0.900000", b"")
    for rest in (b"\told", b"\tnew", b"\told\tcontains", b"\tnew\tcontained"):
        for end in (b"\n", b"\t\n", b""):
            assert parse_pair(b"b\ta\t0.900000" + rest + end) == (b"b", b"a", b"0.900000", rest)
    assert parse_pair(b"a\ta\t0.900000\told\n")[:2] == (b"a", b"a")  # of two collections


@pytest.mark.parametrize(
    "line",
    [b"\n", b"a\tb\n", b"a\tb\tc\td\n", b"a\tb\t0.9\n", b"a\tb\tmuch\n", b"\tb\t0.900000\n"]
    + [b"a\tb\t1.999999\n", b"a\tb\t1.000001\n", b"a\tb\t2.000000\n", b"a\tb\t0.900000\t\t\n"]
    + [b"a\ta\t0.900000\n", b"a\t\t0.900000\n", b"a\tb\xff\t0.900000\n", b"\xc3\tb\t0.900000\n"]
    + [b"a\0\tb\t0.900000\n", b"a\tb\r\t0.900000\n", b"a\tb\t0.900000\r\n", b"a\tb\t0.900000\n\n"]
    + [b"a\ta\t0.900000\tnew\n", b"a\tb\t0.900000\tOLD\n", b"a\tb\t0.900000\tcontains\n"]
    + [b"a\tb\t0.900000\told\tnew\n", b"a\tb\t0.900000\told\tcontain\n"]
    + [b"a\tb\t0.900000a\tb\t0.900000\n", b"a\tb\n0.900000\n", b"a\tb\t0.9000000\n"],
)
def test_what_is_no_pair_is_refused(line):
    with pytest.raises(StageError, match="expected A B SIMILARITY"):
        parse_pair(line)


def test_messages_show_lines_without_control_characters():
    assert shown(b"a\x1b[31m\xff") == r"'a\x1b[31m\xff'"
    assert shown(b"x" * 100).endswith("x'…")
