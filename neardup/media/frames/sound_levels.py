"""Measure how loud the sound of a video is, ten times a second, and compare two such tracks.

A copy of a sound has its pauses and beats where the original has them, whatever its coding, bit
rate, volume or number of channels.  Another narration, language or music has them elsewhere.

    levels    one byte for each tenth of a second, from 1 (-100 dB of the loudest possible sound)
              in steps of half a decibel; 0 where nothing was heard
    loud      the level that a twentieth of the tenths exceed, of those that are not silent

Two tracks are compared in windows of 16 seconds, each at the offset, of up to a second, at which
they agree best.  Copies in other codings, with 14 dB less or 12 dB more, correlate by 0.9 and more,
different sounds mostly by less than 0.6.  Two windows in a row by less than 0.5 are enough, in a
film of any length.  Windows where neither changes, such as silence or a hum, tell nothing.

Cost: 3 to 5 ms for a second of AAC, a twentieth of what its pictures cost.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Levels = NDArray[np.uint8]
Floats = NDArray[np.float64]
PER_SECOND = 10  # levels
HALF_DECIBELS, FLOOR = 2, 100.0  # steps of a decibel; decibels below the loudest sound
SILENT = 40  # the level of -80 dB: what is less loud is silence
BELOW_LOUD = 60  # steps, 30 dB: what is less loud may be noise, which some codings leave out
QUIETEST = 80  # steps, 40 dB below the loud level: all that is less counts as equal
WINDOW, SHORTEST = 160, 20  # levels that are compared
MAX_LAG = 10  # levels
CHANGING = 3.0  # steps, standard deviation of a window that tells something
ALIKE, USUAL, MOST_OTHER = 0.75, 0.85, 0.1  # correlations: least, median; share below the least
APART = 0.5  # the correlation below which two windows in a row are another sound
CANCELLED = 1 / 16  # how much of the sound of single channels counts, which mono may cancel
LONGEST = PER_SECOND << 18  # levels of a track: time stamps beyond are wrong


class SoundStretch(NamedTuple):
    """Where two videos show the same."""

    start: float  # seconds of the first
    end: float
    there: float  # the second of the other one that shows what the first shows at `start`
    rate: float  # seconds of the other one for one of the first


class SoundTrack:
    """Levels of a track of sound, from the packets of its file."""

    def __init__(self, stream: Any):
        self._context = stream.codec_context
        self._energy = np.zeros(0)
        self._samples = np.zeros(0)  # of each tenth of a second
        self._start: int | None = None  # the tenth of a second of the first level
        self._next = 0.0  # the time after the last sample
        self._unit = float(stream.time_base or 0)
        self.packets = 0  # that were read

    def add(self, packet: Any) -> None:
        """Decode a packet; nothing is known of the time of one that cannot be decoded."""
        import av

        self.packets += 1
        if self._context is None:  # there is no decoder
            return
        try:
            heard = [
                (frame, power_of(frame))
                for frame in self._context.decode(packet)
                if frame.samples and frame.sample_rate
            ]
        except MemoryError:
            raise
        except (av.error.FFmpegError, ValueError):  # ValueError: samples that numpy does not have
            return
        for frame, power in heard:
            self._hear(frame, power)

    def _hear(self, frame: Any, power: Floats) -> None:
        stamp = frame.dts if frame.pts is None else frame.pts
        first = self._next if stamp is None else stamp * float(frame.time_base or self._unit)
        seconds = first + np.arange(len(power)) / frame.sample_rate
        self._next = first + len(power) / frame.sample_rate
        tenths = np.floor(seconds * PER_SECOND + 1e-6).astype(np.int64)
        self._start = int(tenths[0]) if self._start is None else self._start
        low, high = int(tenths[0]) - self._start, int(tenths[-1]) + 1 - self._start
        before = max(-low, 0)  # the first time stamp was wrong, as one below 0 is in MPEG streams
        if high > LONGEST or (before and before + len(self._energy) > LONGEST):
            return
        low, high, self._start = low + before, high + before, self._start - before
        after = high if high > before + len(self._energy) else 0  # twice as many: few copies
        if before or after:
            self._energy, self._samples = (
                np.pad(old, (before, after)) for old in (self._energy, self._samples)
            )
        self._samples[low:high] += np.bincount(tenths - tenths[0])
        self._energy[low:high] += np.bincount(tenths - tenths[0], power)

    def levels(self, zero: float, seconds: float) -> Levels:
        """Return the levels from a time stamp, in seconds, on, for so many seconds."""
        found = np.zeros(round(seconds * PER_SECOND), np.uint8)
        known = np.flatnonzero(self._samples)
        mean = self._energy[known] / self._samples[known]
        steps = HALF_DECIBELS * (10 * np.log10(mean + 1e-12) + FLOOR)
        at = known + (self._start or 0) - round(zero * PER_SECOND)
        inside = (at >= 0) & (at < len(found))
        found[at[inside]] = np.clip(np.rint(steps[inside]), 1, 255)
        return found


def power_of(frame: Any) -> Floats:
    """Return the power of each sample of a frame of sound, in mono; 1 for the loudest possible.

    A sixteenth of the power of single channels is added: opposite channels are no silence.
    """
    values = frame.to_ndarray()
    if not frame.format.is_planar:
        values = values.reshape(-1, len(frame.layout.channels)).T
    if values.dtype.kind in "iu":
        values = values / 2.0 ** (8 * values.dtype.itemsize - 1) - (values.dtype.kind == "u")
    values = np.nan_to_num(np.asarray(values, np.float64))
    return np.asarray(values.mean(axis=0) ** 2 + CANCELLED * (values**2).mean(axis=0))


def sounding(levels: Levels) -> int:
    """Return in how many seconds a track has sound; 0 if it is silent.

    >>> sounding(np.array([150] * 15 + [9] * 15, np.uint8)), sounding(np.full(9, 9, np.uint8))
    (2, 0)
    """
    if not (loud := _loud(levels)):
        return 0
    whole = np.concatenate((levels, np.zeros(-len(levels) % PER_SECOND, np.uint8)))
    return int((whole.reshape(-1, PER_SECOND).max(axis=1) >= loud - BELOW_LOUD).sum())


def _loud(levels: Levels) -> float:
    heard = levels[levels >= SILENT]
    return float(np.quantile(heard, 0.95)) if len(heard) else 0.0


def packed(levels: Levels) -> str:
    return b64encode(levels.tobytes()).decode()


def unpacked(text: str) -> Levels:
    return np.frombuffer(b64decode(text), np.uint8)


def is_other(
    removed: Sequence[Levels], kept: Sequence[Levels], stretches: Iterable[SoundStretch]
) -> bool:
    """Return whether a track of a removed video is none of the kept one, where both show the same.

    >>> beats = np.random.default_rng(1).integers(60, 180, (2, 300), np.uint8)
    >>> one, other = np.repeat(beats, 4, axis=1)
    >>> whole = [SoundStretch(0.0, 120.0, 0.0, 1.0)]
    >>> is_other([one], [other], whole), is_other([one], [other, one - 20], whole)
    (True, False)
    """
    where = list(stretches)
    return any(all(_differ(of, each, where) for each in kept) for of in removed) if kept else False


def _differ(a: Levels, b: Levels, stretches: Sequence[SoundStretch]) -> bool:
    one, other = _steps(a), _steps(b)
    found = np.array([of for each in stretches for of in _windows(one, other, each)])
    if not len(found):
        return False
    apart = found < APART
    often = (found < ALIKE).mean() > MOST_OTHER or np.median(found) < USUAL
    return bool(often or (apart[1:] & apart[:-1]).any())


def _steps(levels: Levels) -> Floats:
    """Return levels below the loud one, smoothed over three tenths; NaN where nothing is known."""
    steps = np.where(levels > 0, np.maximum(levels - _loud(levels), -QUIETEST), np.nan)
    around = np.concatenate((steps[:1], steps, steps[-1:]))
    return np.asarray((around[:-2] + 2 * around[1:-1] + around[2:]) / 4)


def _windows(one: Floats, other: Floats, where: SoundStretch) -> list[float]:
    """Return the correlations of two tracks in the windows of a stretch in which one changes."""
    start, end, there, rate = where
    first, last = (min(max(round(t * PER_SECOND), 0), len(one)) for t in (start, end))
    lags = np.arange(-MAX_LAG, MAX_LAG + 1)[:, np.newaxis]
    found = []
    for low in range(first, max(last - SHORTEST, first) + 1, WINDOW):
        at = np.arange(low, min(low + WINDOW, last))
        to = np.rint((there + (at / PER_SECOND - start) * rate) * PER_SECOND).astype(int)
        found += _correlation(one, at, other, to + lags)
    return found


def _correlation(
    one: Floats, at: NDArray[np.int64], other: Floats, to: NDArray[np.int64]
) -> list[float]:
    """Return the largest correlation of one[at] with a row of other[to], unless they are steady."""
    found = []
    for row in to:
        there = (row >= 0) & (row < len(other))
        x, y = one[at[there]], other[row[there]]
        known = ~(np.isnan(x) | np.isnan(y))
        if np.count_nonzero(known) < max(SHORTEST, len(at) // 2):
            continue
        x, y = (of[known] - of[known].mean() for of in (x, y))
        if max(x.std(), y.std()) < CHANGING:
            return []
        found.append(float(x @ y / max(((x @ x) * (y @ y)) ** 0.5, 1e-9)))
    return [max(found)] if found else []
