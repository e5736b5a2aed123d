"""Times of frames follow from time stamps that are missing, late, or jump back and forth."""

from __future__ import annotations

import pytest

from neardup.media.frames.decoding import MAX_JUMP, VideoClock


def times(stamps: list[float | None], step: float = 0.5, parts: bool = False) -> list[float]:
    clock = VideoClock(step, parts)
    return [round(clock.time(stamp), 6) for stamp in stamps]


@pytest.mark.parametrize("start", [0.0, -3.0, 1e6])
def test_times_are_relative_to_the_first_frame(start: float) -> None:
    assert times([start, start + 0.5, start + 2]) == [0, 0.5, 2]


def test_a_frame_without_a_time_stamp_follows_the_one_before() -> None:
    assert times([None, None, 7.0, None, 8.0]) == [0, 0.5, 1, 1.5, 2]


def test_the_duration_of_a_frame_counts() -> None:
    clock = VideoClock(0.5)
    assert [clock.time(None, 2.0), clock.time(None, 0.0), clock.time(None)] == [0, 2, 2.5]
    assert clock.end() == 3.0


def test_small_steps_back_are_shown_at_once() -> None:
    assert times([0.0, 0.5, 0.3, 1.0]) == [0, 0.5, 0.5, 1]


def test_a_jump_back_begins_a_new_part() -> None:
    assert times([5.0, 5.5, 6.0, 0.0, 0.5]) == [0, 0.5, 1, 1.5, 2]


def test_a_jump_forward_is_a_still_or_a_new_part() -> None:
    assert times([0.0, 30.0, 30.5]) == [0, 30, 30.5]
    assert times([0.0, 30.0, 30.5], parts=True) == [0, 0.5, 1]
    assert times([0.0, 9.0], parts=True) == [0, 9]


def test_a_jump_forward_in_a_damaged_file_is_a_new_part() -> None:
    clock = VideoClock(0.5)
    assert [clock.time(0.0), clock.time(30.0)] == [0, 30]
    clock.distrust()
    assert [clock.time(60.0), clock.time(60.5)] == [30.5, 31]


def test_no_time_stamp_makes_a_file_last_for_years() -> None:
    assert times([0.0, 1e9, 1e9 + 0.5, -1e12]) == [0, 0.5, 1, 1.5]
    assert times([0.0, MAX_JUMP]) == [0, MAX_JUMP]


def test_times_never_decrease() -> None:
    stamps = [(k * 7919) % 101 / 10 for k in range(500)]
    found = times(list(stamps), 0.04, True)
    assert found == sorted(found)
    assert len(set(found)) > 2


@pytest.mark.parametrize("step", [0.0, -1.0, 1e9, float("inf"), float("nan")])
def test_a_senseless_frame_rate_is_not_used(step: float) -> None:
    assert times([None, None], step) == [0, 0.04]
