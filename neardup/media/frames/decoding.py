"""Decode the frames of a video file at ticks, such as four a second, with their times.

At each tick, 4 times a second, the first frame at or after it is taken, with its own time.  If that
frame comes more than a tick later, the frame before it is held: it is taken at each tick at which
it is still shown, with the time of the tick.

**Frames that nothing needs.**  No other frame depends on a non-reference frame of H.264, HEVC,
MPEG-4 and MPEG-2; the decoder skips such a frame unless it is at a tick.  Whether a frame is at a
tick is known before it is decoded, from the time stamps of the packets around it.

**Damage**: packets that cannot be decoded are left out, and so are pictures that the decoder had to
make up; `Decoder.damaged` counts both.  After 200 of them in a row, decoding ends.

**Sound** is decoded too: `Decoder.sound` returns how loud it is.

**Times** are seconds since the first frame that is shown, and never decrease:

    no time stamp           the frame follows the one before
    back by over 1 s        a new part begins: its first frame follows the last of the part before
    back by less            shown at once, with the time of the one before
    forward by over 10 s    a new part, too, in containers where time stamps may start again (MPEG
                            transport and program streams); a still that is held in all others
    forward by over 10 s    a new part, too, after some of a file was found to be damaged
    forward by over 1 h     a new part in all of them: no time stamp makes a file last for years

Memory: 24 packets, and the frames that the decoder keeps.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator
from math import floor
from typing import TYPE_CHECKING, Any, TypeVar

from neardup.media.frames.containers import MAX_PIXELS
from neardup.media.frames.sound_levels import Levels, SoundTrack

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer

Packet = Any  # of PyAV, which has made it generic in some versions

SKIPS = {"h264", "hevc", "mpeg4", "mpeg1video", "mpeg2video"}  # decoders that can skip frames
PARTS = {"mpegts", "mpeg"}  # containers where time stamps may start again
AROUND = 24  # packets: frames are reordered within so many of them
HOPELESS = 200  # packets in a row that cannot be decoded, after which decoding ends
NEAR = 1e-6  # seconds, by which times may be off
BACK, AHEAD, MAX_JUMP = 1.0, 10.0, 3600.0  # seconds
USUAL = 0.04  # a frame, in seconds, if the file does not say
Shown = TypeVar("Shown")


class Decoder:
    """Decoder of a video stream at `ticks` frames a second."""

    def __init__(self, container: InputContainer, stream: Any, ticks: int):
        self._container, self._stream = container, stream
        self._tick = 1 / ticks
        self._context = stream.codec_context
        self._context.thread_count = 1
        self._context.options = {**self._context.options, "max_pixels": str(MAX_PIXELS)}
        self._unit = float(stream.time_base or 0)
        self.clock = VideoClock(frame_seconds(stream), container.format.name in PARTS)
        self.damaged = 0
        self.shown = self.packets = 0  # frames that were decoded, and packets that were read
        self._stamps = FrameStamps("avi" in container.format.name)
        self._in_row = 0  # damaged, since the last frame
        self._sound = {each.index: SoundTrack(each) for each in container.streams.audio}
        self._zero: float | None = None  # the time stamp of the first frame

    def sound(self) -> dict[int, Levels | None]:
        """Return how loud each track of sound is, from the first frame to the end of the last one.

        None: it cannot be decoded.
        """
        where = self._zero or 0.0, self.clock.end()
        found = {track: of.levels(*where) for track, of in self._sound.items()}
        known = {
            track: bool(found[track].any()) or not of.packets for track, of in self._sound.items()
        }
        return {track: levels if known[track] else None for track, levels in found.items()}

    def at_ticks(self) -> Iterator[tuple[float, VideoFrame]]:
        """Yield (time in seconds, frame) for the frames at ticks, in ascending order."""
        return at_ticks(self.frames(), self._tick, self.clock)

    def frames(self) -> Iterator[tuple[float, VideoFrame]]:
        """Yield (time in seconds, frame) for each decoded frame that is not damaged."""
        for packet in self._chosen(self._packets()):
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
        except (av.error.FFmpegError, ValueError):  # this packet is damaged
            self._count_damage()
            return
        for frame in frames:
            stamp = self._stamps.of(frame.pts, frame.dts)
            seconds = None if stamp is None else stamp * self._unit
            time = self.clock.time(seconds, (getattr(frame, "duration", 0) or 0) * self._unit)
            self._zero = self.clock.zero if self._zero is None else self._zero
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
                for packet in self._container.demux(self._stream, *self._container.streams.audio):
                    if packet.stream.index in self._sound:
                        if packet.size:  # subtle: an empty one, at the end, closes the decoder
                            self._sound[packet.stream.index].add(packet)
                        continue
                    if packet.is_corrupt:  # the container reports that parts of it are missing
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
    stamps: list[int] = []  # ascending, of the packets that wait and of some earlier ones
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


def _tick_before(time: float, tick: float) -> int:
    return floor((time + NEAR) / tick)


# ---- times


class FrameStamps:
    """Chooses one of the two time stamps of each frame: when to show it (pts), or decode it (dts).

    Those of AVI are for decoding only, and some files have wrong ones for showing, which do not
    ascend.  A decoder returns frames in the order in which they are shown, with the dts of the
    packet that was decoded last, so that these ascend, too.

    >>> stamps = FrameStamps()
    >>> [stamps.of(pts, dts) for pts, dts in [(1, 2), (4, 3), (3, 4), (5, 5), (None, 6)]]
    [1, 4, 4, 5, 6]
    """

    def __init__(self, decoding_only: bool = False):
        """Begin a video; decoding_only: all its time stamps are for decoding, as in AVI."""
        self.doubtful = decoding_only  # whether presentation time stamps are wrong
        self._wrong = [1 if decoding_only else 0, 0]  # by kind: how many did not ascend
        self._last: list[int | None] = [None, None]

    def of(self, pts: int | None, dts: int | None) -> int | None:
        """Return the time stamp of the next frame, or None if it has none."""
        for kind, stamp in enumerate((pts, dts)):
            last = self._last[kind]
            if stamp is not None:
                self._wrong[kind] += last is not None and stamp <= last
                self._last[kind] = stamp
        self.doubtful = self._wrong[0] > self._wrong[1]
        return dts if pts is None or (self.doubtful and dts is not None) else pts


class VideoClock:
    """Turns the time stamps of frames into times in seconds, which start at 0 and never decrease.

    >>> clock = VideoClock(step=0.5)
    >>> [clock.time(stamp) for stamp in (7.0, 7.5, None, 7.5, 3.0, 3.5)]
    [0.0, 0.5, 1.0, 1.0, 1.5, 2.0]
    """

    def __init__(self, step: float = USUAL, parts: bool = False):
        """Expect frames of `step` seconds; parts: whether time stamps may start again."""
        self._step = step if 0 < step <= MAX_JUMP else USUAL
        self._ahead = AHEAD if parts else MAX_JUMP
        self._last: float | None = None
        self._duration = self._step  # of the last frame
        self.zero: float | None = None  # the time stamp that is time 0

    def time(self, stamp: float | None, duration: float = 0.0) -> float:
        """Return the time of the next frame, from its time stamp and its duration in seconds."""
        expected = 0.0 if self._last is None else self._last + self._duration
        time = self._from(stamp, expected)
        if self._last is not None:
            time = max(time, self._last)
        self._last = time
        self._duration = duration if 0 < duration <= MAX_JUMP else self._step
        return time

    def _from(self, stamp: float | None, expected: float) -> float:
        if stamp is None:
            return expected
        time = expected if self.zero is None else stamp - self.zero
        last = expected if self._last is None else self._last
        if self.zero is None or not last - BACK <= time <= last + self._ahead:
            self.zero = stamp - expected
            return expected
        return time

    def distrust(self) -> None:
        """Treat later jumps of over 10 s as wrong time stamps, not as long still pictures."""
        self._ahead = AHEAD

    def end(self) -> float:
        """Return the time at which the last frame ends, in seconds."""
        return 0.0 if self._last is None else self._last + self._duration
