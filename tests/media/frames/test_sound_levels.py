"""`sound_levels` measures what the sound of a video is, in any coding of its samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

av: Any = pytest.importorskip("av")

from neardup.media.frames.sound_levels import power_of, sounding  # noqa: E402

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
