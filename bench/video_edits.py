"""Edits of videos, made with PyAV filters and numpy, and which times of the source each copy shows.

An edit is a chain of FFmpeg's filters, drawings on the luma of each frame, or both, and a codec.
`Edit.kept` returns which stretches of the source are in the copy, and at which second each begins.

Letters: W, H width and height of a frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Callable, NamedTuple

import numpy as np
from numpy.typing import NDArray

Chain = Sequence[tuple[str, str]]  # names of filters, with arguments
Luma = NDArray[np.uint8]
H264, QUICK = "libx264", {"crf": "26", "preset": "veryfast"}
BRIGHT = 38  # 15 % of 255


class Kept(NamedTuple):
    """A stretch of the source that a copy shows, where it begins in the copy, and its rate."""

    start: float
    end: float
    at: float  # of the copy
    rate: float = 1.0  # seconds of the copy for a second of the source


class Edit(NamedTuple):
    """An edit: filters, drawings and encoding that make a copy of a source."""

    name: str
    filters: Chain = ()
    draw: Callable[[Luma, float], None] | None = None  # on the luma (H, W), at a time in seconds
    codec: str = H264
    options: dict[str, str] = QUICK
    fps: float | None = None
    speed: float = 1.0
    part: tuple[float, float] = (0.0, 1.0)  # of the source's length
    frames: Callable[[Iterator[Any]], Iterator[Any]] | None = None
    spliced: float = 0.0  # seconds of something else in the middle

    def kept(self, seconds: float) -> list[Kept]:
        """Return the stretches of the source that the copy shows; seconds: the source's length.

        >>> Edit("faster", speed=2.0).kept(10.0)
        [Kept(start=0.0, end=10.0, at=0.0, rate=0.5)]
        """
        start, end = (share * seconds for share in self.part)
        if not self.spliced:
            return [Kept(start, end, 0.0, 1 / self.speed)]
        half = seconds / 2
        return [Kept(0.0, half, 0.0), Kept(half, seconds, half + self.spliced)]


def luma_map(expression: str) -> tuple[str, str]:
    return ("lutyuv", f"y='clip({expression},0,255)'")


# ---- drawings


def logo(share: float) -> Callable[[Luma, float], None]:
    """Return a function that draws a white box with a dark centre, at `share` of the frame size."""

    def draw(luma: Luma, _: float) -> None:
        high, wide = (int(side * share) for side in luma.shape)
        top, right = luma.shape[0] // 25, luma.shape[1] - luma.shape[1] // 25
        box = luma[top : top + high, right - wide : right]
        box[:] = 225
        box[high // 4 : 3 * high // 4, wide // 4 : 3 * wide // 4] = 30

    return draw


def subtitles(boxed: bool) -> Callable[[Luma, float], None]:
    """Return a function that draws subtitles, boxed or not, which change every 2.5 seconds."""

    def draw(luma: Luma, seconds: float) -> None:
        high, wide = luma.shape
        rng = np.random.default_rng(int(seconds / 2.5))
        dot = max(1, high // 120)
        letters = rng.random((7, 6 * 26)) < 0.45
        letters[:, ::6] = False
        text = np.kron(letters, np.ones((dot, dot), bool))[:, : int(0.66 * wide)]
        top, left = int(0.86 * high), (wide - text.shape[1]) // 2
        if boxed:
            margin = high // 50
            luma[top - margin : top + 7 * dot + margin, wide // 6 : wide - wide // 6] = 16
        else:
            shade = luma[top + 1 : top + 1 + text.shape[0], left + 1 : left + 1 + text.shape[1]]
            shade[text[: len(shade)]] = 20
        luma[top : top + text.shape[0], left : left + text.shape[1]][text] = 235

    return draw


def _pip(frames: Iterator[Any]) -> Iterator[Any]:
    """Yield each frame at a third of its size, inside a moving pattern."""
    import av

    for number, frame in enumerate(frames):
        wide, high = frame.width, frame.height
        small = frame.reformat(wide // 6 * 2, high // 6 * 2, "gray").to_ndarray()
        row, column = np.mgrid[:high, :wide]
        ground = (row * 3 + column * 2 + 4 * number) % 256
        ground[
            -high // 20 - len(small) : -high // 20, -wide // 20 - small.shape[1] : -wide // 20
        ] = small
        yield _timed(av.VideoFrame.from_ndarray(ground.astype(np.uint8), format="gray"), frame)


SPLICED = 3.0  # seconds


def _splice(frames: Iterator[Any]) -> Iterator[Any]:
    """Yield the frames, with a pattern of SPLICED seconds inserted in the middle of the video."""
    import av

    every = list(frames)
    first, last = every[: len(every) // 2], every[len(every) // 2 :]
    gap = round(SPLICED / (every[1].time - every[0].time))
    row, column = np.mgrid[: every[0].height, : every[0].width]
    yield from first
    for k in range(gap):
        other = (np.sin(row / 9 + k / 5) + np.cos(column / 13 - k / 7)) * 60 + 128
        yield av.VideoFrame.from_ndarray(other.astype(np.uint8), format="gray")
    yield from last


REPOST: Chain = [("scale", "-2:144"), ("fps", "15")]
LETTERBOX: Chain = [("pad", "iw:trunc(ih*2/3)*2:0:(oh-ih)/2")]
EDITS = [
    Edit("x264, CRF 35", options={"crf": "35", "preset": "veryfast"}),
    Edit(
        "x265, CRF 30",
        codec="libx265",
        options={"crf": "30", "preset": "ultrafast", "x265-params": "log-level=error"},
    ),
    Edit(
        "VP9, CRF 38",
        codec="libvpx-vp9",
        options={"crf": "38", "b": "0", "deadline": "realtime", "cpu-used": "8"},
    ),
    Edit("MPEG-4", codec="mpeg4", options={"qscale": "8", "flags": "+qscale"}),
    Edit("scaled to 144 lines", [("scale", "-2:144")]),
    Edit("squeezed to 4:5 of the width", [("scale", "trunc(iw*2/5)*2:ih")]),
    Edit("15 fps", [("fps", "15")], fps=15),
    Edit("60 fps", [("fps", "60")], fps=60),
    Edit("grey", [("hue", "s=0")]),
    Edit("brightness + 15 %", [luma_map(f"val+{BRIGHT}")]),
    Edit("brightness - 15 %", [luma_map(f"val-{BRIGHT}")]),
    Edit("contrast 1.4", [luma_map("(val-128)*1.4+128")]),
    Edit("contrast 0.7", [luma_map("(val-128)*0.7+128")]),
    Edit("letterbox", LETTERBOX),
    Edit("pillarbox", [("pad", "trunc(iw*2/3)*2:ih:(ow-iw)/2:0")]),
    Edit("grey bars", [("pad", "iw:trunc(ih*2/3)*2:0:(oh-ih)/2:color=0x707070")]),
    Edit("letterbox with a logo in the bar", LETTERBOX, draw=logo(0.1)),
    Edit("logo 12 %", draw=logo(0.12)),
    Edit("logo 30 %", draw=logo(0.3)),
    Edit("subtitles", draw=subtitles(False)),
    Edit("subtitles in a box", draw=subtitles(True)),
    Edit("speed + 5 %", [("setpts", "PTS/1.05")], speed=1.05),
    Edit("speed - 5 %", [("setpts", "PTS/0.95")], speed=0.95),
    Edit("mirrored", [("hflip", "")]),
    Edit("crop to 95 %", [("crop", "trunc(iw*0.475)*2:trunc(ih*0.475)*2")]),
    Edit("crop to 90 %", [("crop", "trunc(iw*0.45)*2:trunc(ih*0.45)*2")]),
    Edit("crop to 90 % at a corner", [("crop", "trunc(iw*0.45)*2:trunc(ih*0.45)*2:0:0")]),
    Edit("first third cut", part=(1 / 3, 1.0)),
    Edit("last third cut", part=(0.0, 2 / 3)),
    Edit("spliced: 3 s of something else", frames=_splice, spliced=SPLICED),
    Edit(
        "repost: 144 lines, 15 fps, CRF 35, logo 12 %, letterbox",
        [*REPOST, *LETTERBOX],
        draw=logo(0.12),
        options={"crf": "35", "preset": "veryfast"},
        fps=15,
    ),
    Edit("noise", [("noise", "alls=20:allf=t")]),
    Edit("blurred", [("gblur", "sigma=2")]),
    Edit("picture in picture", frames=_pip),
]


# ---- reading and writing


def edited(source: Path, edit: Edit, path: Path, fps: float, seconds: float) -> None:
    """Write an edited copy of a source; fps, seconds: frame rate and length of the source."""
    start, end = (share * seconds for share in edit.part)
    frames = filtered(source, [*edit.filters, ("format", "yuv420p")], start, end)
    if edit.frames:
        frames = edit.frames(frames)
    if edit.draw:
        frames = _drawn(frames, edit.draw)
    write(frames, path, edit.fps or fps * edit.speed, edit.codec, edit.options)


def _drawn(frames: Iterable[Any], draw: Callable[[Luma, float], None]) -> Iterator[Any]:
    import av

    for frame in frames:
        planes = frame.to_ndarray()
        draw(planes[: frame.height], float(frame.time or 0))
        yield _timed(av.VideoFrame.from_ndarray(planes, format="yuv420p"), frame)


def _timed(frame: Any, like: Any) -> Any:
    frame.pts, frame.time_base = like.pts, like.time_base
    return frame


def filtered(path: Path, chain: Chain, start: float = 0.0, end: float = 1e9) -> Iterator[Any]:
    """Yield the filtered frames of a file from `start` to `end`, in seconds; times begin at 0."""
    import av

    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        graph = av.filter.Graph()
        ends = graph.add_buffer(template=stream), graph.add("buffersink")
        nodes = [graph.add(name, args or None) for name, args in chain]
        graph.link_nodes(ends[0], *nodes, ends[1]).configure()
        first: float | None = None
        for frame in file.decode(stream):
            time = float(frame.time or 0)
            first = time if first is None else first
            if time - first >= end:
                break
            if time - first >= start:
                frame.pts -= round((first + start) / float(frame.time_base))
                graph.push(frame)
                yield from _pulled(graph)
        graph.push(None)
        yield from _pulled(graph)


def _pulled(graph: Any) -> Iterator[Any]:
    import av

    while True:
        try:
            yield graph.pull()
        except (av.error.BlockingIOError, av.error.EOFError):
            return


def write(
    frames: Iterable[Any],
    path: Path,
    fps: float,
    codec: str = H264,
    options: dict[str, str] = QUICK,
) -> None:
    """Encode frames at a constant rate; the file appears under its name only when complete."""
    import av

    rate = Fraction(fps).limit_denominator(1000)
    part = path.with_name(f"part.{path.name}")
    stream: Any = None
    with av.open(str(part), "w") as file:
        for number, frame in enumerate(frames):
            if stream is None:
                stream = file.add_stream(codec, rate=rate, options=dict(options))
                stream.width, stream.height = frame.width // 2 * 2, frame.height // 2 * 2
                stream.pix_fmt = "yuv420p"
                stream.codec_context.thread_count = 1
            shown = frame.reformat(stream.width, stream.height, "yuv420p")
            shown.pts, shown.time_base = number, 1 / rate
            file.mux(stream.encode(shown))
        if stream:
            file.mux(stream.encode(None))
    part.rename(path)
