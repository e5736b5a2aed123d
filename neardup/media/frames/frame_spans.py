"""Spans of a video: consecutive frames that look the same form one span.

    tick   a moment at which a frame is examined, ms since the start of the video
    span   [from, to) in ms, with the hashes of its first frame

A frame is shown for one tick, or until the next one if that is nearer.  It prolongs a span if it
differs in at most 6 bits from the span's first frame and follows it within two ticks.  Flat frames,
of a quality below 10, have no span: black and plain ones look like those of any other video.

Memory: 576 pictures of 64 × 64 bytes, and the hashes of the spans (768 bytes each).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.frame_hashes import REACH, VARIANTS, WORDS, hashes
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
