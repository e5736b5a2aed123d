"""Blocks are written as lines of text, and lines are gathered into blocks."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError
from neardup.stages import phases
from neardup.stages.pairs import sorted_lines
from neardup.stages.phases import format_blocks, java_hash, parse_blocks

ESCAPED = st.lists(st.sampled_from([b"\x1b", b"\n", b"\r", b"\t", b"0", b"1", b"\0", b"\xff"]))


@given(ESCAPED.map(b"".join) | st.binary(), st.integers(0, 9))
def test_any_block_comes_back(block, part):
    (line,) = format_blocks([(part, block)], 10)
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    assert list(parse_blocks([line])) == [(part, 10, block)]


@pytest.mark.parametrize("reducers", [1, 2, 3, 8, 40, 257, 999])
def test_each_partition_goes_to_the_reducer_of_its_number(reducers):
    parts = range(reducers)
    for part, line in zip(parts, format_blocks(((part, b"") for part in parts), reducers)):
        assert (java_hash(line.split(b"\t")[0]) & 0x7FFFFFFF) % reducers == part


def test_java_hashes_so():
    """java_hash equals the hash of Hadoop's Text, which starts from 1; a String's starts from 0."""
    assert java_hash(b"hello") == (99162322 + 31**5) & 0xFFFFFFFF


def test_a_flipped_bit_and_a_missing_tail_of_a_block_are_noticed():
    (line,) = format_blocks([(3, b"000:00000000ff\t00000003\tv1\t34o8\n" * 2)], 10)
    for place in range(len(line) - 1):
        cut = b"%b\n" % line[:place]
        for bit in range(8):
            flipped = bytearray(line)
            flipped[place] ^= 1 << bit
            for damaged in {bytes(flipped), cut}:
                with pytest.raises(StageError, match=r"damaged block|expected a block"):
                    list(parse_blocks([damaged]))


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=9))), st.integers(1, 20))
def test_gathered_lines_are_the_same(pieces, most):
    before = phases.BLOCK_BYTES, phases.HELD_BYTES
    phases.BLOCK_BYTES, phases.HELD_BYTES = most, 2 * most
    try:
        found = list(phases.gathered(iter(pieces)))
    finally:
        phases.BLOCK_BYTES, phases.HELD_BYTES = before
    expected, lines = defaultdict(bytes), defaultdict(bytes)
    for part, piece in pieces:
        expected[part] += piece
    for part, piece in found:
        lines[part] += piece
        assert len(piece) <= most + 9 + 2 * most
    assert lines == expected


@pytest.mark.slow
@given(st.lists(st.binary(max_size=5).map(lambda line: line.replace(b"\n", b"") + b"\n")))
def test_lines_come_in_order(lines):
    found = b"".join(sorted_lines(lines, Counters("reducer")))
    assert found == b"".join(sorted(lines, key=lambda line: line[:-1]))
