"""Runs: stretches in which two videos show the same pictures, with the times in both.

A line in time is b = rate · a + offset: the moment `a` of one video is the moment `b` of the other.
A run is a stretch of such a line on which frames match.  Two videos may have several runs, each on
a line of its own, for example if one video is spliced from parts of the other.

Units: seconds, as floats.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

SAME_SPEED = 0.005  # how far the rate of a run may be from 1


class Run(NamedTuple):
    """A stretch in which two videos, a and b, show the same pictures."""

    seconds: float  # of a, on which frames match; gaps are not counted
    a_from: float
    a_to: float
    b_from: float
    b_to: float
    rate: float  # seconds of b for one second of a
    frames: int  # of a that match

    def swapped(self) -> Run:
        """Return the run with a and b exchanged; `seconds` are then those of b.

        >>> Run(10.0, 0.0, 10.0, 5.0, 25.0, 2.0, 40).swapped()
        Run(seconds=20.0, a_from=5.0, a_to=25.0, b_from=0.0, b_to=10.0, rate=0.5, frames=40)
        """
        times = (self.b_from, self.b_to, self.a_from, self.a_to)
        return Run(self.seconds * self.rate, *times, 1 / self.rate, self.frames)


class VideoPair(NamedTuple):
    """Two videos with matching stretches; a and b are their positions in the input.

    Subtle: a is the one whose id is smaller in byte order (the first, if they are equal), and not
    the one with the smaller position.  So runs do not depend on the order of the input.
    """

    a: int
    b: int
    mirrored: bool  # b shows the mirror image of a
    runs: tuple[Run, ...]  # in the order of a_from
    seconds: float  # of all runs
    share: float  # of the shorter one's seconds with frames that vote, 0 to 1
    share_a: float  # of a's seconds with frames that vote, 0 to 1; `share` is this one or the next
    share_b: float
    one_picture: bool = False  # most of the runs show a still: no evidence for a copy
    ends: tuple[float, float] = (inf, inf)  # of a and b, in whole tenths: no line is of later times

    @property
    def share_of_longer(self) -> float:
        return self.share_b if self.share == self.share_a else self.share_a


class CommonStretch(NamedTuple):
    """A stretch that is in many videos of different content, such as an opening."""

    seconds: float  # the median length of its places
    places: tuple[tuple[int, float, float], ...]  # number of the video, from, to; in order
