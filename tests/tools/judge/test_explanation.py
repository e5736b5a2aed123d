"""The interval of an angle has the promised coverage; the nearest fingerprints are shown."""

from __future__ import annotations

from math import acos, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.reading.fingerprint_lines import fingerprint_lines, fingerprint_parser
from neardup.schemes.bit_keys import Blocks
from neardup.schemes.projection import AgreeingBits
from neardup.similarity.intervals import clopper_pearson
from neardup.similarity.measures import Threshold
from neardup.tools.judge.pair_elements import block_difference, hexadecimal, nearest, print_elements
from neardup.tools.judge.why import angles
from tests.schemes.test_schemes import PAIRS, pairs_of_similarity
from tests.support.cases import some

BITS, ALPHA = 64, 0.05


@pytest.mark.slow
@some("common", [60, 80, 90], 80)
def test_the_interval_holds_the_angle_of_the_sets(common: int) -> None:
    """The interval holds the sets' angle in at least 95 % of pairs, at an error rate of 1e-9."""
    sets, left, right = pairs_of_similarity(common, 100, "random")
    scheme = AgreeingBits(1, Blocks(BITS, 1, 0), seed=common)
    found = scheme.measure("agreement", Threshold(1, BITS)).verified(sets, left, right)
    assert len(found.part) == PAIRS
    cosine = 2 * common / (100 + common)  # sets of equal size
    found_angles = [angles(equal, BITS, ALPHA) for equal in found.part.tolist()]
    held = sum(low <= acos(cosine) <= high for _, low, high in found_angles)
    assert clopper_pearson(held, PAIRS, 1e-9)[1] >= 1 - ALPHA
    assert held < PAIRS
    assert np.mean([each for each, _, _ in found_angles]) == pytest.approx(acos(cosine), rel=0.03)


def test_its_ends() -> None:
    assert angles(64, 64, 0.05)[:2] == (0, 0)
    assert angles(0, 64, 0.05)[::2] == (pi, pi)
    assert angles(64, 64, 0.05)[2] == pytest.approx(pi * (1 - 0.025 ** (1 / 64)))


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
