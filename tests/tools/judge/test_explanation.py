"""The confidence interval of an angle, from equal bits, has the promised coverage."""

from __future__ import annotations

from math import acos, pi

import numpy as np
import pytest

from neardup.schemes.bit_keys import Blocks
from neardup.schemes.projection import AgreeingBits
from neardup.similarity.intervals import clopper_pearson
from neardup.similarity.measures import Threshold
from neardup.tools.judge.explanation import angles
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
