"""The frames taken every quarter of a second are the expected ones; each shows its number."""

from math import ceil, floor
from pathlib import Path
from typing import Any

import pytest

av = pytest.importorskip("av")

from neardup.media.frames import decoding  # noqa: E402
from neardup.media.frames.containers import opened  # noqa: E402
from neardup.media.frames.decoding import Decoder  # noqa: E402
from neardup.media.frames.frame_spans import Shrinker  # noqa: E402
from tests.support.drawn_videos import encode, number_of, numbered, remuxed  # noqa: E402

TICK = 0.25


def read(path: Path, damaged: int = 0) -> list[tuple[float, int]]:
    """Return times and numbers of the frames at each quarter of a second, or of the key frames."""
    shrinker = Shrinker()
    with opened(bytes(path)) as (container, stream):
        decoder = Decoder(container, stream, 4)
        ticks = decoder.at_ticks()
        found = [(round(time, 3), number_of(shrinker.small(frame))) for time, frame in ticks]
        assert decoder.damaged == damaged
    return found


def expected(times: list[float], end: float) -> list[tuple[float, int]]:
    """Return the expected (time, number) for each quarter of a second, from the times of frames."""
    found: dict[float, int] = {}
    for tick in range(ceil(end / TICK - 1e-6)):
        at = tick * TICK
        later = [k for k, time in enumerate(times) if time >= at - 1e-6]
        if later and times[later[0]] < at + TICK - 1e-6:
            found.setdefault(round(times[later[0]], 3), later[0])
        else:  # held
            found[round(at, 3)] = (later[0] if later else len(times)) - 1
    return sorted(found.items())


def made(path: Path, number: int, fps: float, **options: Any) -> Path:
    return encode(path, (numbered(k) for k in range(number)), fps, **options)


CASES = [
    ("h264.mp4", 25, {"codec": "libx264", "options": {"bf": "3", "g": "40"}}),
    ("h264.mkv", 30000 / 1001, {"codec": "libx264", "options": {"bf": "8", "g": "300"}}),
    ("h264.ts", 25, {"codec": "libx264"}),
    ("h264.avi", 25, {"codec": "libx264"}),
    ("hevc.mp4", 60, {"codec": "libx265"}),
    ("mpeg4.avi", 15, {"codec": "mpeg4", "options": {"bf": "2"}}),
    ("mpeg2.mpg", 25, {"codec": "mpeg2video", "options": {"bf": "2"}}),
    ("vp9.webm", 24, {"codec": "libvpx-vp9"}),
    ("a.gif", 10, {"codec": "gif"}),
    ("slow.mp4", 1, {"codec": "libx264"}),
    ("slower.mkv", 0.5, {"codec": "mpeg4"}),
    ("three.mp4", 3, {"codec": "libx264"}),
    ("four.mp4", 4, {"codec": "libx264"}),
]


@pytest.mark.parametrize(("name", "fps", "options"), CASES)
def test_the_first_frame_at_or_after_each_tick_is_taken(
    tmp_path: Path, name: str, fps: float, options: dict[str, Any]
) -> None:
    number = max(3, round(3 * fps))
    path = made(tmp_path / name, number, fps, **options)
    times = [k / fps for k in range(number)]
    found, right = read(path), expected(times, number / fps)
    assert [shown for _, shown in found] == [shown for _, shown in right]
    assert [time for time, _ in found] == pytest.approx([time for time, _ in right], abs=0.002)


def test_frames_are_skipped_without_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path / "a.mp4", 150, 25, options={"bf": "3"})
    with opened(bytes(path)) as (container, stream):
        decoder = Decoder(container, stream, 4)
        decoded = sum(1 for _ in decoder.frames())
    found = read(path)
    monkeypatch.setattr(decoding, "SKIPS", set())
    assert read(path) == found
    assert len(found) == 24
    assert decoded < 110


def test_a_still_counts_for_as_long_as_it_is_shown(tmp_path: Path) -> None:
    times = [0, 0.04, 0.08, 0.12, 30.1, 30.14, 30.18, 31.9]
    path = made(tmp_path / "a.mkv", len(times), 25, times=times)
    found = read(path)
    assert found == expected(times, found[-1][0] + 0.01)
    assert len([number for _, number in found if number == 3]) == 119


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_a_variable_frame_rate(tmp_path: Path, name: str) -> None:
    times = [0.0]
    while times[-1] < 6:
        times.append(times[-1] + (0.02, 0.04, 0.3, 0.1, 0.7)[len(times) % 5])
    found = read(made(tmp_path / name, len(times), 25, times=times))
    right = expected(times, times[-1])
    assert found[: len(right)] == right
    assert len(right) > 20


@pytest.mark.parametrize("start", [-900, 900, 90_000 * 1000])
def test_times_begin_with_the_first_frame(tmp_path: Path, start: int) -> None:
    source = made(tmp_path / "a.mp4", 50, 25)

    def late(k: int, packet: Any) -> None:
        shift = floor(start / 90_000 / packet.time_base)
        packet.pts, packet.dts = packet.pts + shift, packet.dts + shift

    path = remuxed(source, tmp_path / "b.mkv", late)
    assert read(path) == read(source)


def test_a_transport_stream_whose_time_starts_again(tmp_path: Path) -> None:
    parts = [made(tmp_path / f"{k}.ts", 50, 25, options={"bf": "0"}) for k in range(2)]
    joined = tmp_path / "joined.ts"
    joined.write_bytes(parts[0].read_bytes() + parts[1].read_bytes())
    found = read(joined, damaged=1)  # its packets are not numbered on
    assert [time for time, _ in found] == sorted(time for time, _ in found)
    assert len(found) == 16
    assert 3.7 < found[-1][0] < 4.1
    assert [number for _, number in found[:8]] == [number for _, number in read(parts[0])]


def test_a_stream_without_time_stamps(tmp_path: Path) -> None:
    path = made(tmp_path / "a.h264", 50, 25, options={"bf": "2"}, format="h264")
    found = read(path)
    assert [number for _, number in found] == [0, 7, 13, 19, 25, 32, 38, 44]


def test_the_end_of_a_last_frame_that_is_held(tmp_path: Path) -> None:
    path = made(tmp_path / "a.mp4", 3, 1)
    assert [number for _, number in read(path)] == [0] * 4 + [1] * 4 + [2] * 4
