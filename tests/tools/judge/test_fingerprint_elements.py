"""The nearest fingerprints of two records are shown, with their hexadecimal digits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.reading.fingerprint_lines import fingerprint_lines, fingerprint_parser
from neardup.tools.judge.explanation import (
    block_difference,
    hexadecimal,
    nearest,
    print_elements,
)


@pytest.mark.parametrize("bits", [32, 36, 40, 64, 1020])
@given(data=st.data())
def test_the_digits_are_those_of_the_line(bits: int, data: st.DataObject) -> None:
    texts = data.draw(
        st.lists(
            st.text("0123456789abcdef", min_size=bits // 4, max_size=bits // 4),
            min_size=1,
            max_size=3,
        )
    )
    line = " ".join(["id", *texts]) + "\n"
    batch, bad = fingerprint_parser(fingerprint_lines, bits)(line.encode())
    assert not bad
    assert hexadecimal(batch.sets.row(0), bits) == texts


def test_two_variants_are_not_compared() -> None:
    found = nearest(["00000000", "ffffffff"], ["0000ffff", "fffffffe"])
    assert (found.bits, found.i, found.j) == (16, 0, 0)
    assert nearest(["00000000", "ffffffff"], ["fffffffe", "0000ffff"])[:3] == (1, 1, 0)


def test_lines_name_variants_only_if_there_are_any() -> None:
    lines = dict(print_elements(["000000ff"], ["000010fe"], 32))
    assert lines == {
        "differ": "2 of 32 bits",
        "of A": "000000ff",
        "of B": "000010fe",
        "xor": "....1..1",
    }
    assert dict(print_elements(["000000ff"], ["ffffff00", "000000ff"], 32))["differ"] == (
        "0 of 32 bits: A's own fingerprint, and variant 1 of B"
    )


def test_blocks() -> None:
    assert block_difference("AB00ffff1", "ab01ffff1") == [
        ("only_a", "ab00"),
        ("only_b", "ab01"),
        ("same", "ffff 1"),
    ]
    with pytest.raises(ValueError, match="invalid literal"):
        block_difference("xyz0", "ab01")
