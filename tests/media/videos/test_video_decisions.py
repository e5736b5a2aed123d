"""Which of several similar videos is the original, and where that is in doubt."""

from __future__ import annotations

import pytest

from neardup.media.pictures.keep_rules import VIDEOS, Facts, in_order, keep_rules
from neardup.media.pictures.originals import doubt
from neardup.media.videos.runs import Run, VideoPair
from neardup.media.videos.video_decisions import compare

SPECTRUM = [float(4000 / (k + 1) ** 2) for k in range(17)]


def facts(fps: float = 25.0, **more: object) -> Facts:
    return {
        **{"seconds": 60.0, "width": 640, "height": 480, "bytes": 9, "fps": fps, "colour": 30.0},
        **{"inside": [1.0, 1.0], "spectrum": SPECTRUM, "noise": 0.5, "grain": 12.0},
        **{"levels": [120.0, 50.0], "cells": [9.0] * 16, "small": list(range(64)), **more},
    }


def pair(a: int, b: int, rate: float = 1.0, mirrored: bool = False) -> VideoPair:
    return VideoPair(a, b, mirrored, (Run(50.0, 0.0, 50.0, 0.0, 50.0, rate, 200),), 50.0, 1, 1, 1)


def order_of(some: list[Facts], pairs: list[VideoPair]) -> list[int]:
    compare(pairs, some)
    return in_order(some, list("abc")[: len(some)], keep_rules(VIDEOS))


@pytest.mark.parametrize("fps", [10.0, 23.976, 24.0, 25.0, 29.97, 30.0, 50.0, 59.94, 60.0])
def test_a_slowed_copy_has_an_unusual_rate_of_frames(fps: float) -> None:
    copy, original = facts(fps * 0.95, bytes=1), facts(fps)
    assert order_of([copy, original], [pair(0, 1, 1.05)]) == [1, 0]
    assert (copy["changes"], doubt(original, copy)) == (["speed"], "")


def test_of_two_usual_rates_the_speed_is_doubtful() -> None:
    some = [facts(24.0), facts(25.0)]
    order_of(some, [pair(0, 1, 1.04)])
    assert doubt(*some) == doubt(*some[::-1]) == "speed"


def test_the_one_that_is_mirrored_is_known_among_three() -> None:
    two = [facts(bytes=1), facts()]
    order_of(two, [pair(0, 1, mirrored=True)])
    assert doubt(*two) == "mirrored"
    three = [facts(bytes=1), facts(), facts()]
    found = [pair(0, 1, mirrored=True), pair(0, 2, mirrored=True), pair(1, 2)]
    assert order_of(three, found)[-1] == 0
    assert doubt(three[1], three[0]) == ""


def test_a_copy_compressed_again_has_less_power_whatever_its_rate_of_frames() -> None:
    for fps in (15.0, 30.0, 60.0):
        assert order_of([facts(fps, grain=11.5, bytes=1), facts(30.0)], [pair(0, 1)]) == [1, 0]


def test_grey_and_noise_are_known_beside_the_original() -> None:
    weak = [0.8 * power for power in SPECTRUM]
    for copy, word in ((facts(colour=0.5), "grey"), (facts(noise=9.0, spectrum=weak), "noise")):
        assert order_of([copy, facts()], [pair(0, 1)]) == [1, 0]
        assert copy["changes"] == [word]
