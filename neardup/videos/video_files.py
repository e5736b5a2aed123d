"""From a video file to its print, or to the reason why it has none.

A damaged file has the print of what can be read, if that is at least a second.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from neardup.images.folder_walk import FoundFile, path_id
from neardup.images.results import Failure
from neardup.videos import frame_hashes
from neardup.videos.containers import (
    DAMAGED,
    NO_FRAMES,
    OUT_OF_MEMORY,
    OpenVideo,
    RefusedFileError,
    decoder_versions,
    opened,
)
from neardup.videos.decoding import TickReader
from neardup.videos.frame_spans import BATCH, FLAT, SpanMaker
from neardup.videos.video_prints import VideoPrint

KEY_FRAME_MS = 2000  # that a key frame stands for, unless the next one comes within twice that
LEAST_SECONDS = 1.0  # of a damaged file
VERSION = 1  # of what is read of a file: another number for any change


class Reading(NamedTuple):
    """How a video is read.

    ticks: frames looked at in a second, 1 to 30; fast: key frames only, some 20 times as fast for
    most files.  It misses copies with other key frames that move between them.
    """

    ticks: int = 4
    fast: bool = False

    def kind(self) -> str:
        """Return what a print depends on besides the file, as a text."""
        pace = "key frames" if self.fast else f"{self.ticks} ticks"
        return f"video {VERSION}.{frame_hashes.VERSION}.{FLAT}, {pace}, {decoder_versions()}"


def print_of(file: FoundFile, how: Reading) -> VideoPrint | Failure:
    """Decode a file and hash its frames."""
    import av

    try:
        with opened(file) as video:
            return _print(file, video, how)
    except RefusedFileError as refused:
        return Failure(*refused.args)
    except (MemoryError, av.error.MemoryError):
        return Failure(OUT_OF_MEMORY, "")
    except av.error.FFmpegError as error:
        return Failure(DAMAGED, error.strerror or str(error))


def _print(file: FoundFile, video: OpenVideo, how: Reading) -> VideoPrint | Failure:
    tick = KEY_FRAME_MS if how.fast else 1000 // how.ticks
    reader, maker = TickReader(video, tick, how.fast), SpanMaker(tick)
    times: list[int] = []
    pictures: list[Any] = []
    for time, picture in reader.frames():
        times.append(time)
        pictures.append(picture)
        if len(times) == BATCH:
            maker.add(np.array(times), np.stack(pictures))
            times, pictures = [], []
    if times:
        maker.add(np.array(times), np.stack(pictures))
    if reader.damaged and reader.seconds < LEAST_SECONDS:
        return Failure(DAMAGED, f"{reader.seconds:.1f} seconds can be read")
    if not reader.seconds:
        return Failure(NO_FRAMES, "")
    spans, hashes = maker.finish()
    facts = _facts(file, video, reader)
    return VideoPrint(path_id(file.path), facts, frame_hashes.VARIANTS, spans, hashes)


def _facts(file: FoundFile, video: OpenVideo, reader: TickReader) -> dict[str, Any]:
    """Return seconds, width and height as displayed, bytes, bitrate (bit/s), fps, codec, …"""
    context: Any = video.stream.codec_context
    shape = float(video.stream.sample_aspect_ratio or 1)
    sides = [max(1, round(context.width * shape)), context.height]
    width, height = sides[::-1] if reader.rotation % 180 else sides
    return {
        "seconds": round(reader.seconds, 3),
        "width": width,
        "height": height,
        "bytes": file.size,
        "bitrate": round(8 * file.size / reader.seconds),
        "fps": round(float(video.stream.average_rate or 0), 3),
        "codec": context.name,
        "container": video.container.format.name.split(",")[0],
        **({"damaged": True} if reader.damaged else {}),
    }
