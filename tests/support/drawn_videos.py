"""Videos for tests, drawn by numpy from a seed and encoded by PyAV; each seed gives another one.

A scene depends on the time only, not on the frame rate or the size: frame k of a scene at 25 frames
a second shows what frame 2k of it shows at 50.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

Frame = NDArray[np.uint8]  # (height, width, 3), RGB
TICKS = 90_000  # of the time base of files that are written
PIXELS = {"gif": "rgb8", "png": "rgb24", "qtrle": "argb", "mjpeg": "yuvj420p", "ffv1": "yuv420p"}


class Shot(NamedTuple):
    """The content between two cuts: a panned background, and moving things."""

    start: float  # seconds
    end: float
    seed: int
    pan: tuple[float, float]  # heights a second, widths a second
    things: tuple[tuple[float, float, float, float, float, float], ...]  # at y, x; speed; size


@lru_cache(maxsize=64)
def shots(seed: int, seconds: float) -> tuple[Shot, ...]:
    """Return the shots of a scene, of 1.5 to 4 seconds each."""
    dice = np.random.default_rng([seed, 77])
    found: list[Shot] = []
    start = 0.0
    while start < seconds:
        end = start + dice.uniform(1.5, 4)
        things = tuple(
            (*dice.uniform(0, 1, 2), *dice.uniform(-0.3, 0.3, 2), *dice.uniform(0.1, 0.35, 2))
            for _ in range(4)
        )
        pan = tuple(dice.uniform(-0.12, 0.12, 2).tolist())
        found.append(Shot(start, end, int(dice.integers(1 << 30)), pan, things))
        start = end
    return tuple(found)


@lru_cache(maxsize=64)
def texture(seed: int, height: int, width: int) -> Frame:
    """Return a coloured texture of waves, edges and boxes for a seed, in any size."""
    dice = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width] / np.array([[[height]], [[width]]])
    total = np.zeros((height, width, 3))
    for _ in range(6):
        wave = np.sin(dice.uniform(-25, 25) * x + dice.uniform(-25, 25) * y + dice.uniform(0, 6))
        total += wave[..., np.newaxis] * dice.uniform(0.1, 0.5, 3)
    for _ in range(12):
        at_y, at_x, high, wide = dice.uniform(0, 1, 4) * [1, 1, 0.3, 0.3]
        inside = (np.abs(y - at_y) < high) & (np.abs(x - at_x) < wide)
        total += inside[..., np.newaxis] * dice.uniform(-1, 1, 3)
    total -= total.min()
    return np.asarray(total / total.max() * 255).astype(np.uint8)


def picture(seed: int, time: float, seconds: float, size: tuple[int, int]) -> Frame:
    """Return the frame that a scene of `seconds` shows at `time`; `size` is (width, height)."""
    width, height = size
    shot = next(shot for shot in reversed(shots(seed, seconds)) if shot.start <= time + 1e-9)
    since = time - shot.start
    ground = texture(shot.seed, 2 * height, 2 * width)
    top, left = (round((0.5 + pan * since) * n) for pan, n in zip(shot.pan, (height, width)))
    frame = ground[top : top + height, left : left + width].copy()
    for k, (y, x, down, right, high, wide) in enumerate(shot.things):
        rows, columns = max(2, round(high * height)), max(2, round(wide * width))
        top = round(((y + down * since) % 1) * (height - rows))
        left = round(((x + right * since) % 1) * (width - columns))
        frame[top : top + rows, left : left + columns] = texture(shot.seed + k + 1, rows, columns)
    return frame


def scene(
    seed: int, seconds: float = 6, fps: float = 25, size: tuple[int, int] = (160, 96)
) -> Iterator[Frame]:
    """Yield the frames (height, width, 3), uint8 RGB, of a scene; `size` is (width, height)."""
    for k in range(round(seconds * fps)):
        yield picture(seed, k / fps, seconds, size)


def encode(
    path: Path,
    frames: Iterable[Frame],
    fps: float = 25,
    codec: str = "libx264",
    size: tuple[int, int] | None = None,
    options: dict[str, str] | None = None,
    rotation: int = 0,
    pixels: str | None = None,
    times: Iterable[float] | None = None,
    format: str | None = None,
) -> Path:
    """Write frames as a video file; return its path.

    size        (width, height) to scale the frames to; as they are by default
    options     of the codec, such as {"crf": "35", "g": "25"}
    rotation    in degrees anticlockwise, by which a player turns the picture (a flag in the file)
    pixels      the pixel format, such as "yuv420p10le"
    times       seconds at which frames are shown, for variable rates; with a time base of 1/90000
    format      of the container, if the file name does not say it
    """
    import av

    rate = Fraction(fps).limit_denominator(1001)
    source = iter(frames)
    first = next(source)
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", format=format) as file:
        stream: Any = file.add_stream(codec, rate=rate, options=_fast(codec, options))
        stream.width, stream.height = size or (first.shape[1], first.shape[0])
        stream.pix_fmt = pixels or PIXELS.get(codec, "yuv420p")
        if times is not None:
            stream.codec_context.time_base = Fraction(1, TICKS)
        if rotation:
            if not hasattr(stream, "set_display_rotation"):
                pytest.skip("this PyAV writes no rotation")
            stream.set_display_rotation(rotation)
        moments = None if times is None else iter(times)
        for k, frame in enumerate(_chain(first, source)):
            shown = av.VideoFrame.from_ndarray(frame, "rgb24")
            shown = shown.reformat(
                stream.width, stream.height, stream.pix_fmt, interpolation="AREA"
            )
            shown.pts = k if moments is None else round(next(moments) * TICKS)
            shown.time_base = 1 / rate if moments is None else Fraction(1, TICKS)
            file.mux(stream.encode(shown))
        file.mux(stream.encode(None))
    return path


def add_sound(
    file: Any, track: Any, samples: NDArray[Any], rate: int, layout: str = "mono", channels: int = 1
) -> None:
    """Write sound to a track: samples (n,), of 16 bits, the same in each channel."""
    import av

    every = np.clip(samples, -32768, 32767).astype(np.int16).repeat(channels)[np.newaxis]
    for start in range(0, every.shape[1], rate * channels):
        second = np.ascontiguousarray(every[:, start : start + rate * channels])
        sound = av.AudioFrame.from_ndarray(second, "s16", layout)
        sound.sample_rate, sound.pts = rate, start // channels
        file.mux(track.encode(sound))
    file.mux(track.encode(None))


def with_speech(
    source: Path, path: Path, seed: int, codec: str = "aac", volume: float = 1.0, bits: int = 64000
) -> Path:
    """Write a copy of a video with sound, bursts as of syllables; each seed gives other ones."""
    import av

    rate, dice = 32000, np.random.default_rng([seed, 5])
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(source)) as old, av.open(str(path), "w") as new:
        shown = old.streams.video[0]
        seconds = float(shown.duration * shown.time_base)
        loud = dice.uniform(0, 1, round(seconds * 5)) ** 3 * (
            dice.uniform(0, 1, round(seconds * 5)) < 0.7
        )
        samples = dice.normal(0, 4000 * volume, len(loud) * rate // 5) * loud.repeat(rate // 5)
        video = copied_stream(new, shown)
        track: Any = new.add_stream(codec, rate=rate, layout="mono")
        if not codec.startswith("pcm"):
            track.codec_context.bit_rate = bits
        for packet in old.demux(shown):
            if packet.size:
                packet.stream = video
                new.mux(packet)
        add_sound(new, track, samples, rate)
    return path


def write_scene(
    path: Path,
    seed: int = 1,
    seconds: float = 6,
    fps: float = 25,
    size: tuple[int, int] = (160, 96),
    **more: Any,
) -> Path:
    """Write the scene of a seed as a video file, with `encode`; return its path."""
    return encode(path, scene(seed, seconds, fps, size), fps, **more)


def _chain(first: Frame, rest: Iterator[Frame]) -> Iterator[Frame]:
    yield first
    yield from rest


def _fast(codec: str, options: dict[str, str] | None) -> dict[str, str]:
    quick = {"libx264": {"preset": "veryfast"}, "libx265": {"preset": "ultrafast"}}
    quick["libx265"]["x265-params"] = "log-level=none"
    quick["libvpx-vp9"] = {"deadline": "realtime", "cpu-used": "8"}
    return {**quick.get(codec, {}), **(options or {})}


def numbered(number: int, size: tuple[int, int] = (128, 64)) -> Frame:
    """Return a frame that shows a number up to 65,535 as 4 × 4 black or white cells."""
    width, height = size
    bits = np.array([(number >> bit) & 1 for bit in range(16)], np.uint8).reshape(4, 4) * 255
    rows, columns = np.arange(height) * 4 // height, np.arange(width) * 4 // width
    return np.asarray(np.repeat(bits[rows][:, columns, np.newaxis], 3, axis=2))


def number_of(picture: NDArray[np.uint8]) -> int:
    """Return the number shown by a picture (64, 64) of a numbered frame."""
    bits = picture[8::16, 8::16].ravel() > 127
    return int((bits * (1 << np.arange(16))).sum())


def copied_stream(container: Any, stream: Any) -> Any:
    """Add a stream like another one, with PyAV 12 or later; return it."""
    if hasattr(container, "add_stream_from_template"):
        return container.add_stream_from_template(stream)
    return container.add_stream(template=stream)


def remuxed(source: Path, path: Path, change: Any, **container: Any) -> Path:
    """Copy the packets of a video without decoding them; return the path of the copy.

    `change` is called with the number of each packet in the order of the file, and the packet; it
    may set its time stamps, and returns False to leave it out; `container` goes to av.open.
    """
    import av

    with av.open(str(source)) as old, av.open(str(path), "w", **container) as new:
        stream = copied_stream(new, old.streams.video[0])
        for k, packet in enumerate(old.demux(old.streams.video[0])):
            if packet.size and change(k, packet) is not False:
                packet.stream = stream
                new.mux(packet)
    return path
