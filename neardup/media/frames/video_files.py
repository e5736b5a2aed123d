"""The print of a video file: hashes and times of its frames, at 4 or 8 ticks a second.

    file ─▶ containers ─▶ decoding ─▶ frame_spans ─▶ VideoPrint

A file that cannot be read gives a `Failure` with `NOT_A_VIDEO` or one of `containers.REASONS`.  The
readable part of a damaged file is used if it lasts a second; its facts have "damaged": true.

Facts: seconds (of frames, to the end of the last one); width and height, in pixels, upright; bytes;
bitrate, in bit/s, of the whole file; fps; codec; container; holds, languages (of sound) and written
(in subtitles), of its tracks that are not silent; sound, the share of the seconds that have any;
heard, the levels of each of these tracks (`sound_levels`), "" for an unknown coding; created, if it
says when; mean, of its pictures; digest of the file, if one picture, or flat
ones, are shown most of the time.

Cost on one core, relative to PyAV's decoding of all frames, 720 lines at 25 frames a second:
H.264 0.65 times as much (17 times real time), HEVC 0.65 (14), VP9, where no frame is skipped, 1.08
(9).

Memory: 24 packets, the frames that the decoder keeps, and `SpanMaker`'s; 90 MB for an hour of
160 × 96 pixels.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames import frame_hashes
from neardup.media.frames.containers import (
    ENCRYPTED,
    NO_FRAMES,
    NOT_A_VIDEO,
    decoder_versions,
    is_cut,
    is_encrypted,
    opened,
    reason_of,
    suffix_of,
    tracks_of,
)
from neardup.media.frames.decoding import Decoder
from neardup.media.frames.frame_spans import (
    Shrinker,
    SpanMaker,
    mostly_flat,
    one_picture,
    still,
    turn_of,
)
from neardup.media.frames.sound_levels import Levels, packed, sounding
from neardup.media.frames.video_prints import DIGEST, VideoPrint
from neardup.media.pictures import originals
from neardup.media.pictures.pictures import DAMAGED, TOO_LARGE, RefusedError
from neardup.reading.decoders import Failure
from neardup.reading.folder_walk import FoundFile, digest_of, path_id
from neardup.runtime.program import PROGRAM_ERRORS

VERSION = 10  # of times, pictures and facts: must change if they do
SAMPLES = 32  # frames that are measured, to tell an original from its copies
MICROSECONDS = 1_000_000
CODECS = {
    "libdav1d": "av1",
    "libaom-av1": "av1",
    "libvpx-vp9": "vp9",
    "libvpx": "vp8",
}  # by decoder
STILLS = ("gif", "apng")  # formats of pictures that may be videos
SHORT, DENSE = 60.0, 2  # a file of at most so many seconds has so many times the ticks
READABLE = 1.0  # a damaged file with fewer readable seconds has no print


class Reading(NamedTuple):
    """The options for reading a video."""

    ticks: int = 4  # times per second that a frame is examined; doubled for a short file

    def kind(self) -> str:
        """Return a cache key: a text with everything that a print depends on except the video."""
        versions = f"frames {VERSION}, hash {frame_hashes.VERSION}, facts {originals.VERSION}"
        return f"{versions}, ticks {self.ticks}, {decoder_versions()}"


def print_of(file: FoundFile, how: Reading) -> VideoPrint | Failure:
    """Decode and hash a video file; return a Failure if that is impossible."""
    try:
        with opened(file.path) as (container, stream):
            return _print(file, how, container, stream)
    except RefusedError as error:
        return Failure(*error.args)


def _print(file: FoundFile, how: Reading, container: Any, stream: Any) -> VideoPrint:
    ticks = how.ticks * (DENSE if _is_short(container, stream) else 1)
    decoder = Decoder(container, stream, ticks)
    frames = _Frames(1000 // ticks)
    try:
        for time, frame in decoder.at_ticks():
            frames.add(time, frame)
    except (MemoryError, *PROGRAM_ERRORS):
        raise
    except Exception as error:  # decoders raise nearly anything
        decoder.damaged += 1
        why = reason_of(error)[1]
    else:
        why = f"{decoder.damaged} packets cannot be decoded"
    seconds = decoder.clock.end()
    if (decoder.damaged or not decoder.shown) and is_encrypted(file.path):
        raise RefusedError(ENCRYPTED, "its frames cannot be decoded without a key")
    if not decoder.shown or (decoder.damaged and seconds < READABLE):
        raise RefusedError(*_nothing(stream, decoder.damaged, why))
    if container.format.name in STILLS and decoder.packets < 2:
        raise RefusedError(NOT_A_VIDEO, suffix_of(file.path) or "no extension")
    facts = _facts(file, container, stream, seconds, frames.size, decoder.sound())
    facts.update(originals.average(frames.samples), mean=frames.mean())
    if decoder.damaged or is_cut(file.path):
        facts["damaged"] = True
    spans, hashes = frames.spans.finish()
    if one_picture(spans, hashes[:, 0]) or still(hashes[:, 0]) or mostly_flat(spans, seconds):
        facts[DIGEST] = digest_of(file.path).hex()
    return VideoPrint(path_id(file.path), facts, frame_hashes.VARIANTS, spans, hashes)


def _is_short(container: Any, stream: Any) -> bool:
    """Return whether a header states at most SHORT seconds, or no length at all."""
    seconds = (stream.duration or 0) * float(stream.time_base or 0)
    if not seconds:  # subtle: in Matroska, a late start is in the length
        seconds = ((container.duration or 0) - (container.start_time or 0)) / MICROSECONDS
    return bool(seconds <= SHORT)


def _nothing(stream: Any, damaged: int, why: str) -> tuple[str, str]:
    """Return why nothing or too little was decoded: a reason and a detail."""
    context = stream.codec_context
    if not context.width and context.pix_fmt:  # subtle: FFmpeg forgets a size that it refuses
        return TOO_LARGE, "larger than FFmpeg decodes"
    return (DAMAGED, why) if damaged else (NO_FRAMES, "the stream is empty")


class _Frames:
    """Shrinks frames for a SpanMaker, and measures some of them."""

    def __init__(self, tick_ms: int):
        self.spans = SpanMaker(tick_ms)
        self.size = (0, 0)  # width and height of the first frame, upright
        self._shrinker = Shrinker()
        self._last: Any = None
        self._small: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.samples: list[originals.Facts] = []  # of frames, at most SAMPLES
        self._sum = np.zeros((64, 64))  # of the pictures at all ticks
        self._ticks, self._every = 0, 1000 // tick_ms  # ticks so far, and between samples

    def add(self, time: float, frame: Any) -> None:
        if frame is not self._last:  # otherwise the previous frame is still shown
            self._last, self._small = frame, self._shrinker.small(frame)
            if self._ticks >= self._every * len(self.samples):
                self._sample(frame)
            if self.size == (0, 0):
                exchanged = turn_of(frame)[0]
                self.size = (frame.width, frame.height)[:: -1 if exchanged else 1]
        self._ticks += 1
        self._sum += self._small
        self.spans.add(round(time * 1000), self._small)

    def mean(self) -> str:
        """Return the mean picture, 64 × 64 levels, in base 64."""
        return b64encode(np.rint(self._sum / self._ticks).astype(np.uint8).tobytes()).decode()

    def _sample(self, frame: Any) -> None:
        """Measure a frame; take half as many as before when there are enough."""
        facts = originals.facts_of(self._shrinker.whole(frame))
        self.samples.append({**facts, "colour": self._shrinker.colour(frame)} if facts else {})
        if len(self.samples) == SAMPLES:
            self.samples, self._every = self.samples[::2], 2 * self._every


def _facts(
    file: FoundFile,
    container: Any,
    stream: Any,
    seconds: float,
    size: tuple[int, int],
    sound: dict[int, Levels | None],
) -> dict[str, Any]:
    lasts = {k: seconds if of is None else sounding(of) for k, of in sound.items()}
    silent = [track for track, of in lasts.items() if not of]
    rate = stream.average_rate or getattr(stream, "guessed_rate", None)
    names = container.format.name.split(",")
    suffix = suffix_of(file.path)[1:]
    return {
        "seconds": round(seconds, 3),
        "width": size[0],
        "height": size[1],
        "bytes": file.size,
        "bitrate": round(8 * file.size / seconds) if seconds else 0,
        "fps": round(float(rate or 0), 3),
        "codec": CODECS.get(stream.codec_context.name, stream.codec_context.name),
        "container": suffix if suffix in names else names[0],
        **tracks_of(container, silent),
        "sound": round(min(1.0, max(lasts.values(), default=0) / max(seconds, 1.0)), 3),
        "heard": [
            "" if of is None else packed(of) for track, of in sound.items() if track not in silent
        ],
        "created": "creation_time" in container.metadata,
    }
