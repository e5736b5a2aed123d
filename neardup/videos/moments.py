"""Small pictures of a video at given times, for a page: the frames that are shown then, as JPEG.

    file ─▶ seek to the key frame before a time ─▶ decode up to it ─▶ scaled, upright ─▶ JPEG

Times are seconds since the first frame, as in the print of a video.  Where a file cannot be
searched, it is decoded from its start.  Work ends after SECONDS: times that were not reached have
no picture, nor have those after the end.  Files that hang or crash a decoder are a matter for
`images/decoders.py`.

Memory: the frames that a decoder holds, and the pictures (5 to 10 kB each).
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.images.results import Failure

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer

SIDE = 240  # pixels: the longest side of a picture
SECONDS = 20.0  # on the clock, for one file
LATEST = 1e7  # seconds: no later time is looked for
LONGEST_PIXEL = 4  # times as wide as high, or as high as wide: more is an error in the file
LINGER = 1.0  # seconds that the last frame is shown, where the file does not say
QUALITY = "5"  # of the JPEG encoder, from 2 (best) to 31
# MPEG-TS is searched by time alone: what is decoded begins at the next key frame.
LEADS = (0.0, 12.0, inf)  # seconds to seek before a time, one after the other
NEAR = 5.0  # seconds: from one time to the next, decoding on is as fast as seeking
FAR = 60.0  # seconds before 0, where no file begins
SLIP = 1e-4  # seconds: times are rounded
# A list of files, such as HLS, opens none of them; nothing is read from a network.
ALONE = {"protocol_whitelist": "none"}
GONE, NOT_A_FILE = "no such file", "not a regular file"
UNREADABLE, NO_PICTURES = "cannot be read", "has no pictures"


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
    import av

    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # a pipe would wait for ever
            return Failure(NOT_A_FILE, "")
        with open(path, "rb") as opened, av.open(opened, options=ALONE) as file:
            return _sight(file, status.st_size, times)
    except FileNotFoundError:
        return Failure(GONE, "")
    except (OSError, ValueError, MemoryError, av.error.FFmpegError) as error:
        return Failure(UNREADABLE, getattr(error, "strerror", None) or type(error).__name__)


def _sight(file: InputContainer, size: int, times: Sequence[float]) -> Sight | Failure:
    ends = time.monotonic() + SECONDS
    if not file.streams.video:
        return Failure(NO_PICTURES, "")
    stream, seconds = file.streams.video[0], _seconds(file)
    stream.codec_context.thread_count = 1
    first = next(_frames(file, ends), None)
    if first is None:
        return Failure(NO_PICTURES, "")
    view = _View.of(first, stream.sample_aspect_ratio)
    found = _pictures(
        _Search(file, float(first.time), view.scaled(), ends), _wanted(times, seconds)
    )
    return Sight(
        seconds,
        *view.upright(),
        float(stream.average_rate or 0),
        size,
        stream.codec_context.name,
        tuple(found.get(at, b"") for at in times),
    )


def _wanted(times: Sequence[float], seconds: float) -> list[float]:
    """Return the times to look for, in order: those within the file, if it says how long it is."""
    latest = min(seconds + LINGER if seconds else LATEST, LATEST)
    return sorted({at for at in times if 0 <= at <= latest})


class _Search(NamedTuple):
    """An open file whose frames begin at `start`, in seconds, and when to give up."""

    file: InputContainer
    start: float
    view: _View
    ends: float

    def frames(self, at: float) -> Iterator[VideoFrame]:
        """Yield the frames from the last key frame before `at`; none if there is no seeking."""
        import av

        with suppress(av.error.FFmpegError, OSError):
            self.file.seek(int(max(self.start + at, -FAR) * av.time_base))
            yield from _frames(self.file, self.ends)

    def shown(self, at: float, times: list[float]) -> dict[float, bytes]:
        """Return pictures of the frames shown at `times`, in order, as decoded from before `at`."""
        found: dict[float, bytes] = {}
        waiting = times[::-1]
        before: VideoFrame | None = None
        with suppress(TimeoutError):
            for frame in self.frames(at):
                while waiting and self._later(frame, waiting[-1]):
                    if before is None:  # it was sought in vain
                        return found
                    found[waiting.pop()] = self.view.jpeg(before)
                if not waiting:
                    return found
                before = frame
            found.update((at, self.view.jpeg(before)) for at in waiting if before)
        return found

    def _later(self, frame: VideoFrame, at: float) -> bool:
        return float(frame.time) > self.start + at + SLIP


def _pictures(search: _Search, times: list[float]) -> dict[float, bytes]:
    """Return the pictures at `times`: by seeking, or else by decoding everything."""
    found: dict[float, bytes] = {}
    for lead in LEADS:
        missing = [at for at in times if at not in found]
        for near in _near_each_other(missing):
            found.update(search.shown(near[0] - lead, near))
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


def _frames(file: InputContainer, ends: float) -> Iterator[VideoFrame]:
    """Yield frames with a time, without damaged ones; TimeoutError at the time `ends`."""
    import av

    for packet in file.demux(file.streams.video[0]):
        if time.monotonic() > ends:
            raise TimeoutError
        with suppress(av.error.FFmpegError):
            yield from (frame for frame in packet.decode() if frame.time is not None)


def _seconds(file: InputContainer) -> float:
    """Return the length of a file, or 0 if it does not say."""
    import av

    stream = file.streams.video[0]
    if stream.duration and stream.time_base:
        return max(0.0, float(stream.duration * stream.time_base))
    return max(0.0, (file.duration or 0) / av.time_base)


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
