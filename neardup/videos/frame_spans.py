"""Spans: frames that follow each other and look the same are one, with the time of all of them.

A frame continues a span if it comes next and its first variant differs from that of the span's
first frame in at most 6 of 256 bits.  Flat frames, such as black ones, are in no span: they have
too little in them to be told from others.

Memory: 240 frames, and the spans so far, some 300 bytes each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from neardup.sets.bit_vectors import bits_apart
from neardup.videos.frame_hashes import SIDE, VARIANTS, hashes

BATCH = 240  # frames that are hashed at once
SAME_BITS = 6
FLAT = 10  # of 100: frames of less quality are left out


class SpanMaker:
    """Makes the spans of one video from its frames, which come in the order of time.

    >>> maker = SpanMaker(250)
    >>> still = np.arange(4096).reshape(64, 64) ** 2 % 251
    >>> maker.add(np.array([0, 250, 500]), np.array([still] * 3, np.uint8))
    >>> maker.finish()[0].tolist()
    [[0, 750]]
    """

    def __init__(self, tick_ms: int):
        """Expect a frame for each tick of `tick_ms` milliseconds."""
        self._tick = tick_ms
        self._times: list[NDArray[np.int64]] = []  # that wait to be hashed
        self._pictures: list[NDArray[np.uint8]] = []
        self._spans: list[list[int]] = []
        self._hashes: list[NDArray[np.uint64]] = []

    def add(self, times_ms: NDArray[np.int64], pictures: NDArray[np.uint8]) -> None:
        """Add frames (n, 64, 64) that are shown from the given times on, in ascending order."""
        self._times.append(times_ms)
        self._pictures.append(pictures)
        if sum(map(len, self._times)) > BATCH:
            self._take(whole=False)

    def finish(self) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Return spans (m, 2) in milliseconds, and the hashes (m, V, 4) of their first frames."""
        self._take(whole=True)
        spans = np.array(self._spans, np.int64).reshape(-1, 2)
        return spans, np.array(self._hashes, np.uint64).reshape(-1, len(VARIANTS), 4)

    def _take(self, whole: bool) -> None:
        """Hash frames that wait, in batches of the same frames however they were added."""
        times = np.concatenate([np.empty(0, np.int64), *self._times])
        pictures = np.concatenate([np.empty((0, SIDE, SIDE), np.uint8), *self._pictures])
        while len(times) > BATCH or (whole and len(times)):
            following = times[1 : BATCH + 1]  # the time of the next frame is needed, too
            self._add_spans(times[:BATCH], following, pictures[:BATCH])
            times, pictures = times[BATCH:], pictures[BATCH:]
        self._times, self._pictures = [times], [pictures]

    def _add_spans(
        self,
        times: NDArray[np.int64],
        following: NDArray[np.int64],
        pictures: NDArray[np.uint8],
    ) -> None:
        words, quality = hashes(pictures)
        ends = times + self._tick
        gaps = following - times[: len(following)]
        near = gaps <= 2 * self._tick  # a later frame than that: some could not be decoded
        ends[: len(following)] = np.where(near, following, ends[: len(following)])
        for k in np.flatnonzero(quality >= FLAT).tolist():
            if self._goes_on(int(times[k]), words[k, 0]):
                self._spans[-1][1] = int(ends[k])
            elif ends[k] > times[k]:
                self._spans.append([int(times[k]), int(ends[k])])
                self._hashes.append(words[k])

    def _goes_on(self, time: int, first_variant: NDArray[np.uint64]) -> bool:
        if not self._spans or time > self._spans[-1][1]:
            return False
        last = self._hashes[-1][0]
        return bool(bits_apart(last[np.newaxis], first_variant[np.newaxis])[0] <= SAME_BITS)
