"""Small videos, drawn by numpy and encoded by PyAV.

A scene is a film of moving shapes over a texture, with a cut every few seconds, drawn by a seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

av = pytest.importorskip("av")

QUICK = {
    "libx264": {"preset": "ultrafast", "crf": "20"},
    "libx265": {"preset": "ultrafast", "x265-params": "log-level=error"},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8", "crf": "32", "b:v": "0"},
}
SHOT = 2.0  # seconds
WAVES, SHAPES = 5, 4


def scene(
    seed: int, seconds: float = 4.0, fps: float = 12.0, size: tuple[int, int] = (96, 72)
) -> np.ndarray:
    """Return the frames of a scene, uint8 (n, height, width, 3); the same film for any fps."""
    times = np.arange(round(seconds * fps)) / fps
    return np.stack([frame_at(seed, time, size) for time in times])


def frame_at(seed: int, time: float, size: tuple[int, int] = (96, 72)) -> np.ndarray:
    """Return the frame of a scene at a time in seconds, uint8 (height, width, 3)."""
    width, height = size
    shot, within = divmod(time, SHOT)
    draw = np.random.default_rng([seed, int(shot)])
    x, y = np.meshgrid((np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height)
    image = np.zeros((height, width))
    for _ in range(WAVES):
        a, b, phase, speed = draw.uniform([-9, -9, 0, -2], [9, 9, 6.3, 2])
        image += np.sin(a * x + b * y + phase + speed * within)
    image = 128 + 60 * image / max(1.0, float(np.abs(image).max()))
    for _ in range(SHAPES):
        cx, cy, vx, vy, size_, level = draw.uniform(
            [0, 0, -0.3, -0.3, 0.08, 0], [1, 1, 0.3, 0.3, 0.25, 255]
        )
        inside = np.hypot((x - cx - vx * within) % 1 - 0.5, (y - cy - vy * within) % 1 - 0.5)
        image[inside < size_] = level
    tint = draw.uniform(0.7, 1.0, 3)
    return np.clip(image[:, :, np.newaxis] * tint, 0, 255).astype(np.uint8)


def encode(
    path: Path,
    frames: Iterable[np.ndarray],
    fps: float = 12.0,
    codec: str = "libx264",
    options: Mapping[str, str] | None = None,
    times: Iterable[float] | None = None,
    pixels: str = "yuv420p",
    container: str | None = None,
    **stream_values: Any,
) -> Path:
    """Encode frames, uint8 (height, width, 3 or 4), to a file; return its path.

    times: the seconds of each frame, instead of those of `fps`; stream_values: of the codec.
    """
    rate = Fraction(fps).limit_denominator(1001)
    base = Fraction(1, 48000)  # mpeg4 takes no finer one
    wanted = {**QUICK.get(codec, {}), **(options or {})}
    with av.open(str(path), "w", format=container) as file:
        stream = None
        clock = iter(times) if times is not None else None
        for number, picture in enumerate(frames):
            if stream is None:
                stream = file.add_stream(codec, rate=rate, options=wanted)
                stream.height, stream.width = picture.shape[:2]
                stream.pix_fmt = pixels
                stream.time_base = stream.codec_context.time_base = base
                for name, value in stream_values.items():
                    setattr(stream.codec_context, name, value)
            form = "rgba" if picture.shape[2] == 4 else "rgb24"
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format=form)
            second = next(clock) if clock else float(number / rate)
            frame.pts, frame.time_base = round(second / base), base
            file.mux(stream.encode(frame))
        if stream is not None:
            file.mux(stream.encode())
    return path


def write_scene(
    path: Path,
    seed: int,
    seconds: float = 4.0,
    fps: float = 12.0,
    size: tuple[int, int] = (96, 72),
    **how: Any,
) -> Path:
    """Encode a scene; return the path."""
    return encode(path, scene(seed, seconds, fps, size), fps, **how)
