"""Decode the frames of a video file at ticks, such as four a second, with their times.

At each tick, 4 times a second, the first frame at or after it is taken, with its own time.  If that
frame comes more than a tick later, the frame before it is held: it is taken at each tick at which
it is still shown, with the time of the tick.

**Frames that nothing needs.**  No other frame depends on a non-reference frame of H.264, HEVC,
MPEG-4 and MPEG-2; the decoder skips such a frame unless it is at a tick.  Whether a frame is at a
tick is known before it is decoded, from the time stamps of the packets around it.

**Fast**: key frames only.  They are often 2 to 10 seconds apart, and another encoder puts them at
other times; a video may have one at its start only.  So only copies with the same key frames are
found, such as files that were cut or repacked but not encoded again, or files in which each shot
begins with a key frame.  Other copies are missed, and so are short clips.

**Damage**: packets that cannot be decoded are left out, and so are pictures that the decoder had to
make up; `Decoder.damaged` counts both.  After 200 of them in a row, decoding ends.

Memory: 24 packets, and the frames that the decoder keeps.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator
from math import floor
from typing import TYPE_CHECKING, Any, TypeVar

from neardup.media.frames.containers import PIXELS
from neardup.media.frames.video_clock import USUAL, FrameStamps, VideoClock

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer

Packet = Any  # of PyAV, which has made it generic in some versions

SKIPS = {"h264", "hevc", "mpeg4", "mpeg1video", "mpeg2video"}  # decoders that can skip frames
PARTS = {"mpegts", "mpeg"}  # containers where time stamps may start again
AROUND = 24  # packets: frames are reordered within so many of them
HOPELESS = 200  # packets in a row that cannot be decoded, after which decoding ends
NEAR = 1e-6  # seconds, by which times may be off
Shown = TypeVar("Shown")


class Decoder:
    """Decoder of a video stream at `ticks` frames a second, or of its key frames only (`fast`)."""

    def __init__(self, container: InputContainer, stream: Any, ticks: int, fast: bool = False):
        self._container, self._stream = container, stream
        self._fast, self._tick = fast, 1 / ticks
        self._context = stream.codec_context
        self._context.thread_count = 1
        self._context.options = {**self._context.options, "max_pixels": str(PIXELS)}
        self._unit = float(stream.time_base or 0)
        self.clock = VideoClock(frame_seconds(stream), container.format.name in PARTS)
        self.damaged = 0
        self.shown = self.packets = 0  # frames that were decoded, and packets that were read
        self._stamps = FrameStamps("avi" in container.format.name)
        self._in_row = 0  # damaged, since the last frame

    def at_ticks(self) -> Iterator[tuple[float, VideoFrame]]:
        """Yield (time in seconds, frame) for the frames at ticks, in ascending order."""
        if self._fast:
            return thinned(self.frames(), self._tick)
        return at_ticks(self.frames(), self._tick, self.clock)

    def frames(self) -> Iterator[tuple[float, VideoFrame]]:
        """Yield (time in seconds, frame) for each decoded frame that is not damaged."""
        packets = self._packets()
        for packet in self._keys(packets) if self._fast else self._chosen(packets):
            yield from self._decoded(packet)
            if self._in_row > HOPELESS:
                return
        yield from self._decoded(None)

    def _decoded(self, packet: Packet | None) -> Iterator[tuple[float, VideoFrame]]:
        import av

        try:
            frames = self._context.decode(packet)
        except MemoryError:
            raise
        except (av.error.FFmpegError, ValueError):  # of this packet
            self._count_damage()
            return
        for frame in frames:
            stamp = self._stamps.of(frame.pts, frame.dts)
            seconds = None if stamp is None else stamp * self._unit
            time = self.clock.time(seconds, (getattr(frame, "duration", 0) or 0) * self._unit)
            if frame.is_corrupt:
                self._count_damage()
            else:
                self._in_row = 0
                self.shown += 1
                yield time, frame

    def _packets(self) -> Iterator[Packet]:
        """Yield the packets of the stream; continue after damage if the container allows it."""
        import av

        before = -1
        while self.damaged > before:
            before = self.damaged
            try:
                for packet in self._container.demux(self._stream):
                    if packet.is_corrupt:  # as the container says: parts of it are missing
                        self._count_damage()
                    if packet.size:
                        self.packets += 1
                        yield packet
            except MemoryError:
                raise
            except (av.error.FFmpegError, ValueError):
                self._count_damage()
                if self._in_row > HOPELESS:
                    return

    def _count_damage(self) -> None:
        self.damaged += 1
        self._in_row += 1
        self.clock.distrust()

    def _keys(self, packets: Iterable[Packet]) -> Iterator[Packet]:
        self._context.skip_frame = "NONKEY"
        for packet in packets:
            if packet.is_keyframe:
                yield packet
            elif packet.pts is not None:
                self.clock.pass_by(packet.pts * self._unit)

    def _chosen(self, packets: Iterable[Packet]) -> Iterator[Packet]:
        """Yield the packets; before each, turn the skipping of frames on or off, if supported."""
        if self._context.name not in SKIPS:
            yield from packets
            return
        skipping = False
        for packet, before, after in with_neighbours(packets, self._unit):
            skip = self._may_skip(packet.pts, before, after)
            if skip is not skipping:
                self._context.skip_frame = "NONREF" if skip else "DEFAULT"
                skipping = skip
            yield packet

    def _may_skip(self, stamp: int | None, before: float | None, after: float | None) -> bool:
        zero = self.clock.zero
        if (
            zero is None
            or stamp is None
            or self._stamps.doubtful
            or before is None
            or after is None
        ):
            return False
        time = stamp * self._unit
        held = after - time > self._tick - NEAR
        return not held and _tick_before(time - zero, self._tick) == _tick_before(
            before - zero, self._tick
        )


def frame_seconds(stream: Any) -> float:
    """Return how many seconds a frame of a stream is shown on average, or USUAL if unknown."""
    rate = stream.average_rate or getattr(stream, "guessed_rate", None)
    return float(1 / rate) if rate else USUAL


def with_neighbours(
    packets: Iterable[Packet], unit: float
) -> Iterator[tuple[Packet, float | None, float | None]]:
    """Yield packets with the time stamps before and after their own, in seconds.

    An unknown time stamp is None.
    """
    waiting: deque[Packet] = deque()
    old: deque[int] = deque()
    stamps: list[int] = []  # in order, of packets that wait and of some before
    for packet in packets:
        waiting.append(packet)
        if packet.pts is not None:
            insort(stamps, packet.pts)
            old.append(packet.pts)
        if len(old) > 2 * AROUND:
            del stamps[bisect_left(stamps, old.popleft())]
        if len(waiting) > AROUND:
            yield (first := waiting.popleft()), *_around(stamps, first.pts, unit)
    for packet in waiting:
        yield packet, *_around(stamps, packet.pts, unit)


def _around(stamps: list[int], stamp: int | None, unit: float) -> tuple[float | None, float | None]:
    if stamp is None:
        return None, None
    k = bisect_left(stamps, stamp)
    before = stamps[k - 1] * unit if k else None
    return before, stamps[k + 1] * unit if k + 1 < len(stamps) else None


def at_ticks(
    frames: Iterable[tuple[float, Shown]], tick: float, clock: VideoClock
) -> Iterator[tuple[float, Shown]]:
    """Yield times and frames at ticks; `clock` provides the time at which the last frame ends.

    >>> clock = VideoClock(step=0.3)
    >>> frames = [(clock.time(stamp), stamp) for stamp in (0, 0.1, 0.3, 1.4)]
    >>> list(at_ticks(frames, 0.5, clock))
    [(0.0, 0), (0.5, 0.3), (1.4, 1.4), (1.5, 1.4)]
    """
    due = 0  # the number of the next tick
    last: tuple[Shown] | None = None
    for time, frame in frames:
        while last and due * tick <= time - tick + NEAR:
            yield due * tick, last[0]
            due += 1
        if time >= due * tick - NEAR:
            yield time, frame
            due = _tick_before(time, tick) + 1
        last = (frame,)
    while last and due * tick < clock.end() - NEAR:
        yield due * tick, last[0]
        due += 1


def thinned(frames: Iterable[tuple[float, Shown]], tick: float) -> Iterator[tuple[float, Shown]]:
    """Yield (time, frame) for the first frame at or after each tick; no frame is repeated."""
    due = 0
    for time, frame in frames:
        if time >= due * tick - NEAR:
            yield time, frame
            due = _tick_before(time, tick) + 1


def _tick_before(time: float, tick: float) -> int:
    return floor((time + NEAR) / tick)
