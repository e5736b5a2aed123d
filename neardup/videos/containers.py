"""Open a video file with PyAV: recognised by content, with limits, and with reasons for refusal.

Only containers of videos are tried, and only the file itself is read: playlists, scripts and
pictures, which FFmpeg would read as well, are not videos.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.images.folder_walk import FoundFile
from neardup.runtime.program import UsageError

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.stream import VideoStream

NOT_A_VIDEO = "not a video"  # which is no failure
DAMAGED, TOO_LARGE, NO_DECODER = "damaged", "too large", "no decoder"
NO_STREAM, NO_FRAMES = "no video stream", "no frames"
UNREADABLE, OUT_OF_MEMORY = "cannot be read", "out of memory"
PIXELS = 1 << 26  # of a frame: twice those of 8K
CONTAINERS = (
    "mov,mp4,matroska,webm,avi,mpegts,mpeg,flv,asf,ogg,mxf,mpegvideo,h264,hevc,m4v,vc1,rm,wtv,nut,"
    "ivf,obu,dv,yuv4mpegpipe,nsv,gxf,swf,amv,bink,smk,roq,vivo,dhav,lxf,avs,avs2,avs3,cavsvideo"
)
SUFFIXES = {
    *(".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".vob", ".ts", ".m2ts"),
    *(".mts", ".flv", ".f4v", ".wmv", ".asf", ".ogv", ".3gp", ".3g2", ".mxf", ".rm", ".rmvb"),
    *(".divx", ".dv", ".ivf", ".h264", ".hevc", ".y4m", ".wtv"),
}  # a file so named is damaged if it is not recognised
SOUND = {".mp3", ".m4a", ".m4b", ".mka", ".ogg", ".oga", ".opus", ".wma", ".flac", ".wav", ".aac"}


class RefusedFileError(Exception):
    """Raised for a file that has no print; `args` are a reason and more about it."""


class OpenVideo(NamedTuple):
    """A container and its main video stream."""

    container: InputContainer
    stream: VideoStream


def require_av() -> None:
    """Load PyAV and silence it; UsageError if it is missing."""
    try:
        import av
    except ImportError as error:
        raise UsageError(
            f"videos need PyAV ({error}); type: pip install 'neardup[videos]'"
        ) from None
    av.logging.set_level(None)


def decoder_versions() -> str:
    """Return the version of the decoders, by which results may differ."""
    import av

    return f"av {av.__version__}"


@contextmanager
def opened(file: FoundFile) -> Iterator[OpenVideo]:
    """Context manager: open a file; RefusedFileError if it is no video, or cannot be used."""
    import av

    suffix = suffix_of(file)
    try:
        if not stat.S_ISREG(os.stat(file.path).st_mode):
            raise RefusedFileError(NOT_A_VIDEO, suffix)
        with open(file.path, "rb"):  # FFmpeg's message would not say why
            pass
        # Subtle: `file:`, so that a colon in a name does not make it an address.
        name = "file:" + os.fsdecode(file.path)
        options = {"format_whitelist": CONTAINERS, "protocol_whitelist": "file"}
        container = av.open(name, options=options, metadata_errors="replace")
    except av.error.InvalidDataError as error:
        if suffix in SUFFIXES:
            raise RefusedFileError(DAMAGED, error.strerror or "") from None
        raise RefusedFileError(NOT_A_VIDEO, suffix) from None
    except (av.error.MemoryError, MemoryError):
        raise RefusedFileError(OUT_OF_MEMORY, "") from None
    except OSError as error:
        raise RefusedFileError(UNREADABLE, error.strerror or str(error)) from None
    with container:
        yield OpenVideo(container, _main_stream(container, suffix))


def suffix_of(file: FoundFile) -> str:
    """Return the extension of a file's name in lower case, such as `.mp4`, or `no extension`."""
    suffix = os.path.splitext(os.fsdecode(file.path))[1].lower()
    return suffix or "no extension"


def _main_stream(container: InputContainer, suffix: str) -> VideoStream:
    """Return the first stream that is no cover picture; RefusedFileError if there is none."""
    cover = _attached_picture()
    streams = [each for each in container.streams.video if not int(each.disposition) & cover]
    if not streams:
        reason = (NOT_A_VIDEO, suffix) if suffix in SOUND else (NO_STREAM, "")
        raise RefusedFileError(*reason)
    stream = streams[0]
    context: Any = stream.codec_context
    if context is None:
        raise RefusedFileError(NO_DECODER, "")
    if context.width * context.height > PIXELS:
        raise RefusedFileError(TOO_LARGE, f"frames of {context.width} × {context.height} pixels")
    context.options = {"max_pixels": str(PIXELS)}
    context.thread_count = 1
    return stream


def _attached_picture() -> int:
    from av.stream import Disposition

    return int(Disposition.attached_pic)
