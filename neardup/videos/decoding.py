"""The frames of a video at ticks, small and grey, with their times; damaged parts are left out.

    packets ─▶ frames, with times from the first one on ─▶ the frame that is shown at each tick
                                                        ─▶ 64 × 64 luma, upright

Times count from the first frame, whatever the file says, and never decrease.  A frame that is held,
as in a slide show, is shown at many ticks.  Where no tick falls on a frame on which no other
depends, it is not decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neardup.videos.containers import OpenVideo
from neardup.videos.frame_hashes import SIDE

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

HELD = 600.0  # seconds: a frame is shown no longer, whatever the times say
BAD_PACKETS = 100  # one after the other, at which reading ends
USUAL_FPS = 25.0
FULL_RANGE = 2  # of AVColorRange


@dataclass
class TickReader:
    """Reads the frames of an open video at ticks, `tick_ms` milliseconds apart.

    fast: key frames only, each at its own time.  Afterwards, `seconds` is the time at which the
    last frame ends, `damaged` says whether something could not be decoded, and `rotation` is that
    of the first frame, in degrees.
    """

    video: OpenVideo
    tick_ms: int
    fast: bool = False
    seconds: float = 0.0
    damaged: bool = False
    rotation: int = 0

    def frames(self) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield milliseconds and the frame that is shown then, uint8 (64, 64)."""
        small = SmallFrames()
        if self.fast:
            self.video.stream.codec_context.skip_frame = "NONKEY"
            for time, frame in self._timed():
                yield round(1000 * time), self._upright(small.of(frame))
            return
        due, shown = 0, None
        for time, frame in self._timed():
            end = 1000 * time
            if shown:
                yield from self._ticks(due, end, shown, small)
            due = max(due, -(-round(end) // self.tick_ms) * self.tick_ms)
            shown = end, frame
        if shown:
            yield from self._ticks(due, 1000 * self.seconds, shown, small)

    def _ticks(
        self, due: int, end: float, shown: tuple[float, VideoFrame], small: SmallFrames
    ) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield a frame at each tick from `due` on, before `end`."""
        start, frame = shown
        end = min(end, start + 1000 * HELD)
        if due < end - 0.5:  # times are rounded to milliseconds
            picture = self._upright(small.of(frame))
            for tick in range(due, -int(-(end - 0.5) // 1), self.tick_ms):
                yield tick, picture

    def _upright(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return np.rot90(picture, self.rotation // 90)

    def _timed(self) -> Iterator[tuple[float, VideoFrame]]:
        """Yield frames with their seconds since the first one, which never decrease."""
        fps = float(self.video.stream.average_rate or self.video.stream.guessed_rate or USUAL_FPS)
        step = 1 / min(max(fps, 1), 240)
        first, before = None, -step
        for frame in self._decoded():
            time = None if frame.time is None else float(frame.time)
            if first is None:
                first = time or 0.0
                self.rotation = int(getattr(frame, "rotation", 0) or 0) % 360
            since = before + step if time is None else max(time - first, before, 0.0)
            yield since, frame
            before = since
            self.seconds = since + self._duration(frame, step)

    @staticmethod
    def _duration(frame: VideoFrame, step: float) -> float:
        ticks = getattr(frame, "duration", 0)
        seconds = float(ticks * frame.time_base) if ticks and frame.time_base else step
        return min(max(seconds, 0.0), HELD)

    def _decoded(self) -> Iterator[VideoFrame]:
        """Yield the frames of all packets that can be decoded."""
        import av

        container, stream = self.video
        bad = 0
        packets = container.demux(stream)
        while bad < BAD_PACKETS:
            try:
                packet = next(packets, None)
                if packet is None:
                    return
                self._choose(packet)
                frames: list[Any] = packet.decode()
            except (av.error.InvalidDataError, av.error.ExternalError, av.error.EOFError):
                self.damaged = True
                bad += 1
                continue
            bad = 0 if frames else bad
            yield from frames

    def _choose(self, packet: Any) -> None:
        """Let the decoder leave out the frame of a packet if nothing needs it."""
        if self.fast:
            return
        context: Any = self.video.stream.codec_context
        context.skip_frame = "DEFAULT" if self._needed(packet) else "NONREF"

    def _needed(self, packet: Any) -> bool:
        """Return whether a tick may fall on the frame of a packet."""
        start = self.video.stream.start_time
        if packet.pts is None or not packet.duration or start is None or not packet.time_base:
            return True
        tick = self.tick_ms / 1000
        begin = float((packet.pts - start) * packet.time_base)
        end = begin + 1.5 * float(packet.duration * packet.time_base)
        return begin < tick or (begin - tick / 50) // tick != (end + tick / 50) // tick


class SmallFrames:
    """Shrinks frames to 64 × 64 bytes of luma, 0 black … 255 white, by means of areas."""

    def __init__(self) -> None:
        from av.video.reformatter import VideoReformatter

        self._reformatter = VideoReformatter()
        self._last: tuple[VideoFrame, NDArray[np.uint8]] | None = None

    def of(self, frame: VideoFrame) -> NDArray[np.uint8]:
        """Return a frame as uint8 (64, 64)."""
        if self._last and self._last[0] is frame:
            return self._last[1]
        grey = self._reformatter.reformat(
            frame, SIDE, SIDE, "gray", interpolation="AREA", dst_color_range=FULL_RANGE
        )
        plane: Any = grey.planes[0]
        rows = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
        self._last = frame, rows[:SIDE, :SIDE].copy()
        return self._last[1]
