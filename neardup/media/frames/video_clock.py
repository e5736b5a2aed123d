"""Compute the times of frames from time stamps, which may be missing or wrong in a video file.

Times are seconds since the first frame that is shown, and never decrease.

    no time stamp           the frame follows the one before
    back by over 1 s        a new part begins: its first frame follows the last of the part before
    back by less            shown at once, with the time of the one before
    forward by over 10 s    a new part, too, in containers where time stamps may start again (MPEG
                            transport and program streams); a still that is held in all others
    forward by over 10 s    a new part, too, after some of a file was found to be damaged
    forward by over 1 h     a new part in all of them: no time stamp makes a file last for years
"""

from __future__ import annotations

BACK, AHEAD, LONGEST = 1.0, 10.0, 3600.0  # seconds
USUAL = 0.04  # a frame, in seconds, if the file does not say


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
        self.doubtful = decoding_only  # whether those for showing are wrong
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
        self._step = step if 0 < step <= LONGEST else USUAL
        self._ahead = AHEAD if parts else LONGEST
        self._last: float | None = None
        self._duration = self._step  # of the last frame
        self._passed = 0.0  # the end of the last frame that is not decoded
        self.zero: float | None = None  # the time stamp that is time 0

    def time(self, stamp: float | None, duration: float = 0.0) -> float:
        """Return the time of the next frame, from its time stamp and its duration in seconds."""
        expected = 0.0 if self._last is None else self._last + self._duration
        time = self._from(stamp, expected)
        if self._last is not None:
            time = max(time, self._last)
        self._last = time
        self._duration = duration if 0 < duration <= LONGEST else self._step
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

    def pass_by(self, stamp: float) -> None:
        """Extend the video to the end of a frame that is not decoded; `stamp`: its time stamp."""
        if self.zero is not None and self._last is not None:
            time = stamp - self.zero
            if self._last <= time <= max(self._last, self._passed) + self._ahead:
                self._passed = max(self._passed, time + self._step)

    def end(self) -> float:
        """Return the time at which the last frame ends, in seconds."""
        return 0.0 if self._last is None else max(self._last + self._duration, self._passed)
