"""`sound_levels` measures what the sound of a video is, in any coding of its samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

av: Any = pytest.importorskip("av")

from neardup.media.frames.sound_levels import (  # noqa: E402
    SoundStretch,
    is_other,
    power_of,
    sounding,
)

RATE = 16000


def test_a_little_sound_in_long_silence_is_sound() -> None:
    """A recording of a screen, with three seconds of speech in 90: the only copy that has them."""
    levels = np.full(900, 1, np.uint8)
    levels[100:130] = 150
    assert sounding(levels) == 3
    levels[100:130] = 30  # noise of less than -80 dB
    assert sounding(levels) == 0


@pytest.mark.parametrize("form", ["s16", "s16p", "fltp"])
def test_sound_that_two_channels_cancel_is_sound(form: str) -> None:
    """One microphone is wired the wrong way round: the mean of the two channels is silence."""
    wave = np.random.default_rng(1).normal(0, 0.1, RATE)
    both = np.stack([wave, -wave])
    both = both.astype(np.float32) if form == "fltp" else (both * 32767).astype(np.int16)
    packed = both if form.endswith("p") else both.T.reshape(1, -1)
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(packed), form, "stereo")
    assert power_of(frame).shape == (RATE,)
    assert -40 < 10 * np.log10(power_of(frame).mean()) < -20  # dB; one channel alone: -20


@pytest.mark.parametrize("muted", [True, False])
def test_a_minute_of_other_sound_in_a_long_film_is_found(muted: bool) -> None:
    """Words that were replaced, or muted: the share of the windows is small, but they are lost."""
    beats = np.random.default_rng(1).integers(60, 180, (2, 6000), np.uint8)
    one, other = np.repeat(beats, 4, axis=1)  # 40 minutes
    whole = [SoundStretch(0.0, 2400.0, 0.0, 1.0)]
    changed = one.copy()
    changed[9000:9100] = other[9000:9100]  # 10 s are fewer than two windows
    assert not is_other([one], [changed], whole)
    changed[9000:9600] = 1 if muted else other[9000:9600]
    assert is_other([one], [changed], whole)
    assert not is_other([one], [other, one], whole)
