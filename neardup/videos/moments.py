"""Small pictures of a video at given times, for a page: the frames that are shown then, as JPEG.

    file ─▶ seek before a time ─▶ decode up to it ─▶ scaled, upright ─▶ JPEG

Times are seconds since the first frame, as in the print of a video.  What cannot be found by
seeking is found by decoding from the start.  Work ends after SECONDS: times that were not reached
have no picture, nor have those after the end.  Files that hang or crash a decoder are a matter for
`images/decoders.py`.

Memory: the frames that a decoder holds, and the pictures (5 to 10 kB each).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.images.pictures import RefusedError
from neardup.images.results import Failure
from neardup.videos.containers import NO_FRAMES, opened
from neardup.videos.decoding import frame_seconds

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer

SIDE = 240  # pixels: the longest side of a picture
SECONDS = 20.0  # on the clock, for one file
LATEST = 1e7  # seconds: no later time is looked for
LONGEST_PIXEL = 4  # times as wide as high, or as high as wide: more is an error in the file
LINGER = 1.0  # seconds that the last frame is shown, where the file does not say
QUALITY = "5"  # of the JPEG encoder, from 2 (best) to 31
SLIP = 1e-4  # seconds: times are rounded
# MPEG-TS is searched by time alone: what is decoded begins at the next key frame.
LEADS = (0.0, 12.0)  # seconds to seek before a time: first so, then so
NEAR = 5.0  # seconds: from one time to the next, decoding on is as fast as seeking


class Sight(NamedTuple):
    """What is seen of a video at n times."""

    seconds: float  # of the file; 0 if it does not say
    width: int  # as displayed
    height: int
    fps: float  # 0 if unknown
    size: int  # bytes
    codec: str
    pictures: tuple[bytes, ...]  # n JPEG files of at most SIDE pixels a side; b"" for none


def sight_of(path: bytes, times: Sequence[float]) -> Sight | Failure:
    """Return what a video shows at `times`, in seconds; Failure if it cannot be read."""
    try:
        return _sight(path, times)
    except RefusedError as refused:
        return Failure(*refused.args)


class OpenVideo(NamedTuple):
    """A container, and its video stream."""

    container: InputContainer
    stream: Any


def _sight(path: bytes, times: Sequence[float]) -> Sight | Failure:
    ends = time.monotonic() + SECONDS
    with opened(path) as found_streams:
        video = OpenVideo(*found_streams)
        first = next(_frames(video, ends), None)
        if first is None:
            return Failure(NO_FRAMES, "")
        view = _View.of(first[1], video.stream.sample_aspect_ratio)
        search = _Search(video, first[0], view.scaled(), ends)
        seconds = _seconds(video)
        wanted = _wanted(times, seconds)
        found = search.by_seeking(wanted)
        rate, codec = float(video.stream.average_rate or 0), video.stream.codec_context.name
        size = os.path.getsize(path)
    missing = [at for at in wanted if at not in found]
    if missing:
        with opened(path) as found_streams:
            again = search._replace(video=OpenVideo(*found_streams))
            found.update(again.from_here(missing))
    pictures = tuple(found.get(at, b"") for at in times)
    return Sight(seconds, *view.upright(), rate, size, codec, pictures)


def _wanted(times: Sequence[float], seconds: float) -> list[float]:
    """Return the times to look for, in order: those within the file, if it says how long it is."""
    latest = min(seconds + LINGER if seconds else LATEST, LATEST)
    return sorted({at for at in times if 0 <= at <= latest})


class _Search(NamedTuple):
    """An open video whose frames begin at `start`, in seconds, and when to give up."""

    video: OpenVideo
    start: float
    view: _View
    ends: float

    def by_seeking(self, times: list[float]) -> dict[float, bytes]:
        """Return the pictures at `times`, in order, that are found by seeking."""
        import av

        found: dict[float, bytes] = {}
        for lead in LEADS:
            for near in _near_each_other([at for at in times if at not in found]):
                with suppress(av.error.FFmpegError, OSError):
                    self.video.container.seek(int((self.start + near[0] - lead) * av.time_base))
                    found.update(self.from_here(near))
        return found

    def from_here(self, times: list[float]) -> dict[float, bytes]:
        """Return the pictures at `times`, in order, as decoded from where the file is."""
        found: dict[float, bytes] = {}
        waiting = times[::-1]
        before: VideoFrame | None = None
        with suppress(TimeoutError):
            for now, frame in _frames(self.video, self.ends):
                while waiting and now > self.start + waiting[-1] + SLIP:
                    if before is None:  # it is too late already
                        return found
                    found[waiting.pop()] = self.view.jpeg(before)
                if not waiting:
                    return found
                before = frame
            found.update((at, self.view.jpeg(before)) for at in waiting if before)
        return found


def _near_each_other(times: list[float]) -> list[list[float]]:
    """Return times, which are in order, in lists whose gaps are at most NEAR.

    >>> _near_each_other([1.0, 2.5, 60.0, 61.0])
    [[1.0, 2.5], [60.0, 61.0]]
    """
    lists: list[list[float]] = []
    for at in times:
        if lists and at - lists[-1][-1] <= NEAR:
            lists[-1].append(at)
        else:
            lists.append([at])
    return lists


def _frames(video: OpenVideo, ends: float) -> Iterator[tuple[float, VideoFrame]]:
    """Yield times and frames, without damaged ones; TimeoutError at the time `ends`.

    Frames without a time, as in a raw stream, follow each other at the usual rate.
    """
    import av

    step = frame_seconds(video.stream)
    now = -step
    for packet in video.container.demux(video.stream):
        if time.monotonic() > ends:
            raise TimeoutError
        with suppress(av.error.FFmpegError):
            for frame in packet.decode():
                now = now + step if frame.time is None else float(frame.time)
                yield now, frame


def _seconds(video: OpenVideo) -> float:
    """Return the length of a video, or 0 if the file does not say."""
    import av

    container, stream = video
    if stream.duration and stream.time_base:
        return max(0.0, float(stream.duration * stream.time_base))
    return max(0.0, (container.duration or 0) / av.time_base)


class _View(NamedTuple):
    """How frames are displayed: in square pixels, and upright."""

    width: int  # before it is turned
    height: int
    turns: int  # quarter turns to the left, 0 … 3; 0 before PyAV 14

    @classmethod
    def of(cls, frame: VideoFrame, aspect: Fraction | None) -> _View:
        """Return the view of a frame; `aspect` is width by height of its pixels."""
        width = round(frame.width * min(max(aspect or 1, 1 / LONGEST_PIXEL), LONGEST_PIXEL))
        return cls(width, frame.height, round(getattr(frame, "rotation", 0) / 90) % 4)

    def upright(self) -> tuple[int, int]:
        """Return width and height as displayed."""
        return (self.height, self.width) if self.turns % 2 else (self.width, self.height)

    def scaled(self) -> _View:
        scale = min(1.0, SIDE / max(self.width, self.height))
        width, height = max(1, round(self.width * scale)), max(1, round(self.height * scale))
        return _View(width, height, self.turns)

    def jpeg(self, frame: VideoFrame) -> bytes:
        """Return a frame as a JPEG file."""
        import av

        small = frame.reformat(self.width, self.height, "rgb24", interpolation="AREA")
        turned: Any = np.ascontiguousarray(np.rot90(small.to_ndarray(), self.turns))
        encoder: Any = av.CodecContext.create("mjpeg", "w")
        encoder.width, encoder.height = self.upright()
        encoder.pix_fmt, encoder.time_base = "yuvj420p", Fraction(1)
        encoder.options = {"qmin": QUALITY, "qmax": QUALITY}
        picture = av.VideoFrame.from_ndarray(turned, "rgb24").reformat(format="yuvj420p")
        return b"".join(map(bytes, [*encoder.encode(picture), *encoder.encode(None)]))
