"""Spans of a video: consecutive frames that look the same form one span.

    tick   a moment at which a frame is examined, ms since the start of the video
    span   [from, to) in ms, with the hashes of its first frame

A frame is shown for one tick, or until the next one if that is nearer.  It prolongs a span if it
differs in at most 6 bits from the span's first frame and follows it within two ticks.  Flat frames,
of a quality below 10, have no span: black and plain ones look like those of any other video.

Memory: 576 pictures of 64 × 64 bytes, and the hashes of the spans (768 bytes each).

A decoded frame is shrunk to 64 × 64 pixels of luma, upright, as it is displayed.  swscale takes the
mean of areas, and expands limited range (16 … 235) to full range (0 … 255).  The shape of pixels is
ignored, since every frame becomes a square.  Both fields of an interlaced frame are in the mean.
10 bits become 8; HDR curves are kept as they are; alpha is ignored.

A frame is turned and mirrored as the display matrix in the file demands, after it was shrunk.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.containers import av_version
from neardup.media.frames.frame_hashes import REACH, SIDE, VARIANTS, WORDS, hashes
from neardup.sets.bit_vectors import bits_apart

STILL = 20  # bits in which the frames of one still picture may differ
STILL_SECONDS, STILL_SHARE = 3.0, 0.7  # unmoved; of the seconds of a video that is one picture
SAME = 6  # bits in which the frames of a span may differ from its first frame
FLAT = 10  # a frame of lower quality (0 to 100) has no span
CLOSED = 260  # ms: in a shorter gap, the frame before it is still shown
BATCH = 480  # frames to hash together: two minutes at 4 ticks a second


def shown_ms(spans: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for how many ms the frame of each span is shown; spans: (n, 2), in order.

    Subtle: a frame that comes late for its tick leaves a gap before it.  At 12 frames a second and
    8 ticks, the gaps are a sixth of the time.

    >>> shown_ms(np.array([[0, 125], [167, 250], [250, 375], [900, 1025]])).tolist()
    [167, 83, 125, 125]
    """
    gaps = np.append(spans[1:, 0], spans[-1:, 1]) - spans[:, 1]
    return spans[:, 1] - spans[:, 0] + np.where((gaps > 0) & (gaps <= CLOSED), gaps, 0)


def one_picture(spans: NDArray[np.int64], hashes: NDArray[np.uint64]) -> bool:
    """Return whether one picture in which nothing moves is shown most of the time.

    spans: (n, 2), in order; hashes: (n, 4).  A fade or another picture may be the rest.

    >>> alike, other = np.zeros((1, 4), np.uint64), np.full((1, 4), 2**64 - 1, np.uint64)
    >>> spans = np.array([[0, 9000], [9000, 12000]])
    >>> one_picture(spans, np.vstack((alike, other))), one_picture(spans[1:] // 2, other)
    (True, False)
    """
    starts = np.flatnonzero(np.append(True, bits_apart(hashes[1:], hashes[:-1]) > SAME))
    if not len(spans):
        return False
    times = np.add.reduceat(spans[:, 1] - spans[:, 0], starts)
    unmoved = np.append(spans[starts[1:] - 1, 1], spans[-1, 1]) - spans[starts, 0]
    first = hashes[starts]
    alike = bits_apart(first, first[np.newaxis, unmoved.argmax()]) <= STILL
    still = alike & (unmoved >= 1000 * STILL_SECONDS)
    return bool(times[still].sum() > STILL_SHARE * times.sum())


def mostly_flat(spans: NDArray[np.int64], seconds: float) -> bool:
    """Return whether frames with something to see are shown for little of a video; spans: (n, 2).

    >>> mostly_flat(np.array([[0, 9000]]), 40.0), mostly_flat(np.array([[0, 9000]]), 20.0)
    (True, False)
    """
    return float(shown_ms(spans).sum()) < 1000 * (1 - STILL_SHARE) * seconds


def still(hashes: NDArray[np.uint64]) -> bool:
    """Return whether frames, hashes (n, 4), show one picture from start to end, or its grain."""
    return len(hashes) > 0 and bool((bits_apart(hashes, hashes[:1]) <= STILL).all())


class SpanMaker:
    """Makes the spans (frames in a row that look the same) of a video, from its frames in order.

    >>> maker = SpanMaker(tick_ms=250)
    >>> picture = (np.arange(4096.0).reshape(64, 64) ** 1.5 % 255).astype(np.uint8)
    >>> for time, frame in [(0, picture), (250, picture), (500, picture.T)]:
    ...     maker.add(time, frame)
    >>> maker.finish()[0].tolist()
    [[0, 500], [500, 750]]
    """

    def __init__(self, tick_ms: int) -> None:
        self._tick = tick_ms
        self._times: list[int] = []  # times of the pictures that are held
        self._pictures: list[NDArray[np.uint8]] = []
        self._done = 0  # held pictures that are only neighbours of the next ones
        self._spans: list[list[int]] = []
        self._hashes: list[NDArray[np.uint64]] = []
        self._first = 0  # the hash of the last span as a number
        self._shown = -1  # the last tick of the last span

    def add(self, time_ms: int, picture: NDArray[np.uint8]) -> None:
        """Add the next frame: its time in ms, and its picture, uint8 (64, 64), which is copied."""
        self._times.append(time_ms)
        self._pictures.append(np.array(picture))
        if len(self._times) == self._done + BATCH + REACH:
            self._hash(self._done + BATCH, self._done + BATCH + REACH)

    def finish(self) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Return the spans (n, 2), from and to in ms, and their hashes (n, V, 4)."""
        self._hash(len(self._times), len(self._times))
        spans = np.array(self._spans, np.int64).reshape(-1, 2)
        return spans, np.array(self._hashes, np.uint64).reshape(-1, len(VARIANTS), WORDS)

    def _hash(self, to: int, seen: int) -> None:
        """Make spans of the pictures before `to`; later pictures only help to find borders."""
        if to == self._done:
            return
        found, quality = hashes(np.stack(self._pictures[:seen]), slice(self._done, to))
        nexts = [*self._times[1:], self._times[-1] + self._tick]
        for k, (frame, good) in enumerate(zip(found, quality.tolist()), self._done):
            if good >= FLAT:
                end = min(self._times[k] + self._tick, nexts[k])
                self._prolong(self._times[k], end, frame)
        self._done = min(to, REACH)
        self._times = self._times[to - self._done :]
        self._pictures = self._pictures[to - self._done :]

    def _prolong(self, time: int, end: int, frame: NDArray[np.uint64]) -> None:
        """Extend the last span by a frame that looks the same and follows soon; else begin one."""
        own = int.from_bytes(frame[0].tobytes(), "big")
        near = self._spans and time < self._shown + 2 * self._tick
        if near and bin(own ^ self._first).count("1") <= SAME:
            self._spans[-1][1] = end
        else:
            self._spans.append([time, end])
            self._hashes.append(frame)
            self._first = own
        self._shown = time


if TYPE_CHECKING:
    from av import VideoFrame
    from av.video.reformatter import VideoReformatter

Turn = tuple[bool, bool, bool]  # rows and columns exchanged; then upside down; then mirrored
UPRIGHT: Turn = (False, False, False)


class Shrinker:
    """Shrinks the frames of one video to 64 × 64 pixels of luma."""

    def __init__(self) -> None:
        from av.video.reformatter import VideoReformatter

        # One for all frames of a size: its tables cost more than a frame.
        self._scaler, self._other = VideoReformatter(), VideoReformatter()

    def small(self, frame: VideoFrame) -> NDArray[np.uint8]:
        """Return a frame as luma, uint8 (64, 64)."""
        return turned(_plane(self._scaled(frame)), turn_of(frame))

    def whole(self, frame: VideoFrame) -> NDArray[np.uint8]:
        """Return a frame as luma at its full size, uint8 (height, width)."""
        return turned(_plane(self._scaled(frame, frame.width, frame.height)), turn_of(frame))

    def colour(self, frame: VideoFrame) -> float:
        """Return the mean saturation of a frame, 0 … 255; 255 if swscale cannot convert it."""
        try:
            small = scaled(frame, SIDE, SIDE, "rgb24").to_ndarray().astype(np.int16)
        except (ValueError, NotImplementedError):
            return 255.0
        return float(np.ptp(small, axis=2).mean())

    def _scaled(self, frame: VideoFrame, width: int = SIDE, height: int = SIDE) -> VideoFrame:
        scaler = self._scaler if width == SIDE else self._other
        size = (width, height, "gray")
        try:
            return scaled(frame, *size, interpolation="AREA", scaler=scaler)
        except (ValueError, NotImplementedError):  # swscale cannot convert some formats to grey
            colours = scaled(frame, None, None, "rgb24")
            return scaled(colours, *size, interpolation="AREA", scaler=scaler)


def scaled(
    frame: VideoFrame,
    width: int | None,
    height: int | None,
    format: str,
    interpolation: str | None = None,
    scaler: VideoReformatter | None = None,
) -> VideoFrame:
    """Return a frame of another size (None: the same) and pixel format, made by one thread.

    Since PyAV 17 swscale starts a thread for each core.  Every core has a process already, and if
    there is no memory for a thread, swscale waits for it for ever.
    """
    from av.video.reformatter import VideoReformatter

    one: Any = {"threads": 1} if av_version() >= 17 else {}
    scaler = scaler or VideoReformatter()
    return scaler.reformat(frame, width, height, format, interpolation=interpolation, **one)


def _plane(frame: VideoFrame) -> NDArray[np.uint8]:
    plane: Any = frame.planes[0]
    rows = np.frombuffer(plane, np.uint8)[: plane.line_size * frame.height]
    return rows.reshape(frame.height, -1)[:, : frame.width]


def turned(picture: NDArray[np.uint8], turn: Turn) -> NDArray[np.uint8]:
    """Return a picture with rows and columns exchanged, upside down, or mirrored, as `turn` says.

    >>> turned(np.array([[1, 2], [3, 4]], np.uint8), (True, False, True)).tolist()
    [[3, 1], [4, 2]]
    """
    exchanged, upside_down, mirrored = turn
    picture = picture.T if exchanged else picture
    picture = picture[::-1] if upside_down else picture
    return picture[:, ::-1] if mirrored else picture


def turn_of(frame: VideoFrame) -> Turn:
    """Return the turn and mirroring with which a frame is displayed."""
    matrix = _matrix(frame)
    if matrix is not None:
        return turn_by(matrix)
    angle = getattr(frame, "rotation", 0)  # PyAV names the angle since version 13
    return {90: (True, True, False), -90: (True, False, True), 180: (False, True, True)}.get(
        {270: -90, -180: 180, -270: 90}.get(angle, angle), UPRIGHT
    )


def turn_by(matrix: bytes) -> Turn:
    """Return the turn that a display matrix demands; matrix: nine int32, by rows.

    >>> turn_by(struct.pack("<9i", 0, 65536, 0, -65536, 0, 0, 0, 0, 1 << 30))  # clockwise
    (True, False, True)
    """
    a, b, _, c, d = struct.unpack_from("=5i", matrix)  # x' = a x + c y; y' = b x + d y
    if abs(b) + abs(c) > abs(a) + abs(d):
        return True, b < 0, c < 0
    return False, d < 0, a < 0


def _matrix(frame: Any) -> bytes | None:
    side = frame.side_data.get("DISPLAYMATRIX")
    data = b"" if side is None else bytes(side)
    return data if len(data) >= 36 else None
