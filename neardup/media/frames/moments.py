"""Small JPEG pictures of a video: the frames that are shown at given times, for an HTML page.

    file ─▶ seek before a time ─▶ decode up to it ─▶ scaled, upright ─▶ JPEG

Times are seconds since the first frame, as in the print of a video.  What cannot be found by
seeking is found by decoding from the start.  Work ends after SECONDS: times that were not reached
have no picture, nor have those after the end.  `reading.decoders` deals with files that hang or
crash a decoder.

Memory: the frames that a decoder holds, and the pictures (5 to 10 kB each).
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.media.frames.containers import NO_FRAMES, opened
from neardup.media.frames.decoding import Decoder
from neardup.media.frames.frame_spans import Turn, scaled, turn_of, turned
from neardup.media.pictures.pictures import RefusedError
from neardup.reading.decoders import UNREADABLE, Failure

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer

SIDE = 240  # pixels: the longest side of a picture
SECONDS = 20.0  # on the clock, for one file
MAX_TIME = 1e7  # seconds: no later time is looked for
MAX_PIXEL_ASPECT = 4  # times as wide as high, or as high as wide: more is an error in the file
LINGER = 1.0  # seconds that the last frame is shown, where the file does not say
QUALITY = "5"  # of the JPEG encoder, from 2 (best) to 31
SLIP = 1e-4  # seconds: times are rounded
# A seek in MPEG-TS is by time alone: decoding begins at the next key frame.
LEADS = (0.0, 12.0)  # seconds to seek before a time: the first try, and the second
ALL = 1000  # ticks a second: no frame falls between two
NEAR = 5.0  # seconds: from one time to the next, decoding on is as fast as seeking


class Sight(NamedTuple):
    """The pictures of a video at n times, and facts about the file."""

    seconds: float  # of the file; 0 if it does not say
    width: int  # as displayed
    height: int
    fps: float  # 0 if unknown
    size: int  # bytes
    codec: str
    pictures: tuple[bytes, ...]  # n JPEG files of at most SIDE pixels a side; b"" for none


def sight_of(path: bytes, times: Sequence[float]) -> Sight | Failure:
    """Return a video's pictures at `times` (seconds) and its facts; Failure if it is unreadable."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would wait for ever
            return Failure(UNREADABLE, "not a regular file")
        return _sight(path, times)
    except RefusedError as refused:
        return Failure(*refused.args)
    except OSError as error:
        return Failure(UNREADABLE, error.strerror or str(error))


def _sight(path: bytes, times: Sequence[float]) -> Sight | Failure:
    ends = time.monotonic() + SECONDS
    with opened(path) as (container, stream):
        stream.codec_context.thread_count = 1
        first = next(_decoded(container, stream), None)
        if first is None:
            return Failure(NO_FRAMES, "")
        view = _View.of(first, stream.sample_aspect_ratio)
        sight = _facts(path, container, stream, view)
        wanted = _wanted(times, sight.seconds)
        found = {}
        if first.time is not None:
            found = _Search(container, stream, float(first.time), ends).pictures(wanted, view)
    missing = [at for at in wanted if at not in found]
    if missing:
        with opened(path) as (container, stream):
            frames = Decoder(container, stream, ALL).frames()
            found.update(_shown(_until(ends, frames), missing, view))
    return sight._replace(pictures=tuple(found.get(at, b"") for at in times))


def _wanted(times: Sequence[float], seconds: float) -> list[float]:
    """Return the distinct times in order, without those before the start or well after the end."""
    latest = min(seconds + LINGER if seconds else MAX_TIME, MAX_TIME)
    return sorted({at for at in times if 0 <= at <= latest})


def _facts(path: bytes, container: InputContainer, stream: Any, view: _View) -> Sight:
    """Return the facts about a file as a `Sight` without pictures."""
    import av

    seconds = float((stream.duration or 0) * (stream.time_base or 0))
    seconds = seconds or (container.duration or 0) / av.time_base
    codec = stream.codec_context.name
    size = os.path.getsize(path)
    rate = float(stream.average_rate or 0)
    return Sight(max(0.0, seconds), *view.upright(), rate, size, codec, ())


class _Search(NamedTuple):
    """Seeks pictures in an open video; start: time stamp of its first frame; ends: the deadline."""

    container: InputContainer
    stream: Any
    start: float
    ends: float

    def pictures(self, times: list[float], view: _View) -> dict[float, bytes]:
        """Return the pictures at `times` (ascending) that can be found by seeking."""
        found: dict[float, bytes] = {}
        for lead in LEADS:
            for near in _near_each_other([at for at in times if at not in found]):
                found.update(_shown(_until(self.ends, self._frames(near[0] - lead)), near, view))
        return found

    def _frames(self, at: float) -> Iterator[tuple[float, VideoFrame]]:
        """Yield times and frames from about `at` seconds on; yield nothing if seeking fails."""
        import av

        with suppress(av.error.FFmpegError, OSError):
            self.container.seek(int((self.start + at) * av.time_base))
            for frame in _decoded(self.container, self.stream):
                if frame.time is not None:
                    yield float(frame.time) - self.start, frame


def _near_each_other(times: list[float]) -> list[list[float]]:
    """Divide ascending times into lists in which gaps are at most NEAR seconds.

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


def _decoded(container: InputContainer, stream: Any) -> Iterator[VideoFrame]:
    """Yield the frames from the current position in a file on; skip undecodable packets."""
    import av

    for packet in container.demux(stream):
        with suppress(av.error.FFmpegError):
            yield from packet.decode()


def _until(
    ends: float, frames: Iterable[tuple[float, VideoFrame]]
) -> Iterator[tuple[float, VideoFrame]]:
    """Yield frames; raise TimeoutError after the time `ends` of the monotonic clock."""
    for frame in frames:
        if time.monotonic() > ends:
            raise TimeoutError
        yield frame


def _shown(
    frames: Iterable[tuple[float, VideoFrame]], times: list[float], view: _View
) -> dict[float, bytes]:
    """Return {time: JPEG} for each of `times` (ascending) whose frame was found."""
    found: dict[float, bytes] = {}
    waiting = times[::-1]
    before: VideoFrame | None = None
    with suppress(TimeoutError):
        for now, frame in frames:
            while waiting and now > waiting[-1] + SLIP:
                if before is None:  # the first frame is later than the moment
                    return found
                found[waiting.pop()] = view.jpeg(before)
            if not waiting:
                return found
            before = frame
        found.update((at, view.jpeg(before)) for at in waiting if before)
    return found


class _View(NamedTuple):
    """A way to display frames: upright, in square pixels, and with at most SIDE pixels a side."""

    width: int  # before it is turned
    height: int
    turn: Turn

    @classmethod
    def of(cls, frame: VideoFrame, aspect: Fraction | None) -> _View:
        """Return the view of a frame; `aspect` is the width of a pixel divided by its height."""
        width = round(frame.width * min(max(aspect or 1, 1 / MAX_PIXEL_ASPECT), MAX_PIXEL_ASPECT))
        return cls(width, frame.height, turn_of(frame))

    def upright(self) -> tuple[int, int]:
        """Return width and height as displayed."""
        return (self.height, self.width) if self.turn[0] else (self.width, self.height)

    def jpeg(self, frame: VideoFrame) -> bytes:
        """Return a frame as a JPEG file of at most SIDE pixels a side."""
        import av

        scale = min(1.0, SIDE / max(self.width, self.height))
        across, down = (max(1, round(side * scale)) for side in self[:2])
        small: Any = scaled(frame, across, down, "rgb24", "AREA").to_ndarray()
        colours = [turned(small[:, :, colour], self.turn) for colour in range(3)]
        upright = np.ascontiguousarray(np.stack(colours, axis=-1))
        encoder: Any = av.CodecContext.create("mjpeg", "w")
        encoder.height, encoder.width = upright.shape[:2]
        encoder.pix_fmt, encoder.time_base = "yuvj420p", Fraction(1)
        encoder.options = {"qmin": QUALITY, "qmax": QUALITY}
        encoder.thread_count = 1
        picture = scaled(av.VideoFrame.from_ndarray(upright, "rgb24"), None, None, "yuvj420p")
        return b"".join(map(bytes, [*encoder.encode(picture), *encoder.encode(None)]))
