"""Frames of any colour range, depth, size or rotation become correct small pictures."""

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

av = pytest.importorskip("av")

from neardup.media.frames.containers import opened  # noqa: E402
from neardup.media.frames.frame_spans import Shrinker, turn_by, turned  # noqa: E402
from tests.support.drawn_videos import encode, picture  # noqa: E402


def flat(format: str, luma: int, size: tuple[int, int] = (130, 98)) -> Any:
    """Return a frame of one grey level."""
    frame = av.VideoFrame(*size, format)
    deep = "10" in format
    for k, plane in enumerate(frame.planes):
        values = np.frombuffer(plane, np.uint16 if deep else np.uint8)
        middle = 512 if deep else 128
        plane.update(np.full_like(values, luma if k == 0 else middle).tobytes())
    return frame


@pytest.mark.parametrize(
    ("format", "black", "white"),
    [
        ("yuv420p", 16, 235),
        ("yuv444p", 16, 235),
        ("nv12", 16, 235),
        ("yuva420p", 16, 235),
        ("yuvj420p", 0, 255),
        ("gray", 0, 255),
        ("rgb24", 0, 255),
        ("yuv420p10le", 64, 940),
    ],
)
def test_black_is_0_and_white_is_255(format: str, black: int, white: int) -> None:
    small = Shrinker().small
    assert small(flat(format, black)).max() <= 1
    assert small(flat(format, white)).min() >= 254
    grey = small(flat(format, (black + white) // 2))
    assert (grey.shape, grey.dtype) == ((64, 64), np.uint8)
    assert 125 <= grey.min() <= grey.max() <= 130


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc")
def test_no_thread_is_started() -> None:
    """There is a process for each core, and swscale hangs where memory for a thread is missing."""
    before = os.listdir("/proc/self/task")
    shrinker, frame = Shrinker(), flat("yuv420p", 90, (1280, 720))
    shrinker.small(frame)
    shrinker.whole(frame)
    shrinker.colour(frame)
    assert os.listdir("/proc/self/task") == before


def test_a_stream_of_full_range_is_not_stretched(tmp_path: Path) -> None:
    frames = [np.full((64, 64, 3), level, np.uint8) for level in (0, 20, 128, 235, 255)]
    for codec, name, pixels in [("mjpeg", "a.avi", "yuvj420p"), ("libx264", "a.mp4", "yuv420p")]:
        path = encode(tmp_path / name, frames, 5, codec, pixels=pixels, options={"crf": "1"})
        small = Shrinker().small
        with opened(bytes(path)) as (container, stream):
            levels = [int(small(frame).mean()) for frame in container.decode(stream)]
        assert levels == pytest.approx([0, 20, 128, 235, 255], abs=3)


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (63, 65), (1, 999), (4096, 16), (801, 451)])
def test_frames_of_any_size(size: tuple[int, int]) -> None:
    assert (Shrinker().small(flat("yuv420p", 235, size)) >= 254).all()


def test_sizes_and_formats_may_change() -> None:
    shrinker = Shrinker()
    for format, size in [("yuv420p", (64, 48)), ("yuv420p", (320, 240)), ("nv12", (99, 55))] * 2:
        assert (shrinker.small(flat(format, 235, size)) >= 254).all()


@pytest.mark.parametrize("format", ["bgra", "gbrp", "rgb48le", "pal8", "monow", "ya8", "uyvy422"])
def test_other_formats(format: str) -> None:
    assert Shrinker().small(av.VideoFrame(80, 60, format)).shape == (64, 64)


@pytest.mark.slow
def test_areas_are_averaged() -> None:
    colours = picture(5, 0.5, 2, (640, 512))
    grey = colours @ [0.299, 0.587, 0.114]
    means = grey.reshape(64, 8, 64, 10).mean(axis=(1, 3))
    found = Shrinker().small(av.VideoFrame.from_ndarray(colours, "rgb24"))
    assert np.abs(found - means).max() <= 3
    assert np.ptp(means) > 100


def test_both_fields_of_an_interlaced_frame_count() -> None:
    rows = np.zeros((480, 640, 3), np.uint8)
    rows[::2] = 200
    found = Shrinker().small(av.VideoFrame.from_ndarray(rows, "rgb24"))
    assert np.abs(found.astype(int) - 100).max() <= 15


def displayed(matrix: tuple[int, int, int, int], source: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the displayed picture by the definition: (x, y) is shown at (ax + cy, bx + dy)."""
    a, b, c, d = matrix
    points = {(b * x + d * y, a * x + c * y): value for (y, x), value in np.ndenumerate(source)}
    rows, columns = (sorted({point[k] for point in points}) for k in (0, 1))
    return np.array([[points[row, column] for column in columns] for row in rows], np.uint8)


@pytest.mark.parametrize(
    "matrix",
    [(s, 0, 0, t) for s in (1, -1) for t in (1, -1)]
    + [(0, s, t, 0) for s in (1, -1) for t in (1, -1)],
)
def test_display_matrices(matrix: tuple[int, int, int, int]) -> None:
    source = np.arange(16, dtype=np.uint8).reshape(4, 4)
    a, b, c, d = (65536 * value for value in matrix)
    turn = turn_by(struct.pack("=9i", a, b, 0, c, d, 0, 0, 0, 1 << 30))
    assert turned(source, turn).tolist() == displayed(matrix, source).tolist()


@pytest.mark.parametrize(("angle", "corner"), [(0, 0), (90, 2), (180, 3), (270, 1), (-90, 1)])
@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_videos_are_turned(tmp_path: Path, angle: int, corner: int, name: str) -> None:
    frame = np.zeros((96, 160, 3), np.uint8)
    frame[:48, :80] = 255  # upper left; anticlockwise, it becomes lower left
    path = encode(tmp_path / name, [frame] * 3, rotation=angle)
    with opened(bytes(path)) as (container, stream):
        small = Shrinker().small(next(container.decode(stream)))
    assert [k for k in range(4) if small[16 + 32 * (k // 2), 16 + 32 * (k % 2)] > 128] == [corner]
