"""What a scheme promises is a probability, and shown as what it is."""

from __future__ import annotations

import pytest

from neardup.schemes.banding import recall
from neardup.schemes.minhash import MinHash
from neardup.schemes.supershingle import SuperShingle
from tests.support.drawn import every_scheme

SIMILARITIES = [10.0**-k for k in range(1, 12)] + [k / 1000 for k in range(1001)]


@pytest.mark.parametrize("scheme", every_scheme().values(), ids=every_scheme())
def test_a_recall_is_from_0_to_1_and_grows(scheme) -> None:
    chances = [scheme.recall(s) for s in sorted(SIMILARITIES)]
    assert all(0 <= chance <= 1 for chance in chances)
    assert chances == sorted(chances)
    assert chances[0] < chances[-1] or chances[0] == chances[-1] == 1


def test_super_shingles_of_strangers_agree_by_the_first_term() -> None:
    """15·p² of p = s^14 is nearly all there is, and no difference of numbers near 1 shows it."""
    for s in (1e-1, 1e-2, 1e-3):
        assert SuperShingle().recall(s) == pytest.approx(15 * s**28, rel=1e-9)


def test_no_promise_below_1_is_shown_as_1() -> None:
    for bands, rows in ((200, 1), (4000, 1), (60, 2)):
        assert recall(0.9, bands, rows) < 1
        assert "probability 0.999999" in MinHash(bands, rows).promise
    assert recall(1, 1, 1) == 1
