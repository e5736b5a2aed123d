"""Open video files, recognised by content (bare streams by name, too); refuse other files.

    file ─▶ first bytes ─▶ container, as PyAV recognises it ─▶ the video stream ─▶ limits

A file of another kind, such as a text, a picture, a zip or an mp3, is `NOT_A_VIDEO`; so is a GIF or
PNG with one frame, which is found later, by `decoding`.  An mp4 or mkv with sound only, or with a
cover picture only, has "no video stream".  Playlists, which name other files, are not opened: only
the file that the user names is opened.

Whatever is wrong with a file raises `RefusedError` with `NOT_A_VIDEO` or one of REASONS.  Errors of
the program itself (PROGRAM_ERRORS) are raised as they are.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from neardup.media.pictures import pictures
from neardup.media.pictures.pictures import DAMAGED, TOO_LARGE, RefusedError
from neardup.reading.decoders import MEMORY, OUT_OF_MEMORY, UNREADABLE
from neardup.runtime.program import PROGRAM_ERRORS, UsageError, escaped

if TYPE_CHECKING:
    from av.container import InputContainer

NOT_A_VIDEO = "not a video"  # this is not a failure
NO_VIDEO, NO_FRAMES = "no video stream", "no frames"
UNKNOWN_CODEC, ENCRYPTED = "codec unknown", "encrypted"
REASONS = (
    *(DAMAGED, TOO_LARGE, UNREADABLE, OUT_OF_MEMORY),
    *(NO_VIDEO, NO_FRAMES, UNKNOWN_CODEC, ENCRYPTED),
)  # and those of reading/decoders.py
MAX_PIXELS = 1 << 28  # maximum for a frame
HDR = {16, 18}  # transfer functions of FFmpeg: PQ (SMPTE 2084) and HLG
TRACKS = {"video": "pictures", "audio": "sound", "subtitle": "subtitles"}  # words for types
PLACE = ("location", "com.apple.quicktime.location")  # how names of metadata begin
# Containers that begin with a signature.
SIGNED = [
    *["mov", "matroska", "avi", "mpegts", "mpeg", "flv", "asf", "ogg", "gif", "apng", "mxf", "rm"],
    *["nut", "yuv4mpegpipe", "ivf", "wtv", "swf", "nsv", "nuv", "bink", "smk", "roq", "gxf"],
]
# A stream of frames without a container looks like many other files, so its name must match, too.
BARE = {
    "m4v": (".m4v", ".m4p"),
    "mpegvideo": (".mpg", ".mpeg", ".m1v", ".m2v", ".mpv"),
    "h261": (".h261",),
    "h263": (".h263",),
    "h264": (".h264", ".264", ".avc", ".jsv"),
    "hevc": (".hevc", ".h265", ".265"),
    "vvc": (".vvc", ".h266", ".266"),
    "obu": (".obu", ".av1"),
    "mjpeg": (".mjpeg", ".mjpg"),
    "dv": (".dv", ".dif"),
    "vc1": (".vc1",),
    "dirac": (".drc", ".vc2"),
    "flic": (".flc", ".fli"),
}
NAMES = {
    *[".mp4", ".m4v", ".mov", ".qt", ".3gp", ".3g2", ".mkv", ".webm", ".avi", ".divx", ".mpg"],
    *[".mpeg", ".vob", ".m2ts", ".flv", ".f4v", ".wmv", ".asf", ".ogv", ".mxf", ".rmvb", ".y4m"],
    *[".rm", ".nut", ".ivf", ".wtv"],
    *[suffix for suffixes in BARE.values() for suffix in suffixes],
}  # damaged videos if not recognised; .ts and .mts are left out: they may be TypeScript
SOUND = {
    *[".m4a", ".m4b", ".m4r", ".mka", ".ogg", ".oga", ".opus", ".spx", ".weba", ".wma", ".ra"]
}  # sound files, in containers that may hold videos as well
SIGNATURES = re.compile(
    rb"....(?:ftyp|moov|mdat|wide)|\x1aE\xdf\xa3|RIFF....AVI |FLV\x01|\0\0\x01\xba|\x30\x26\xb2\x75"
    rb"|\.RMF|\x06\x0e\x2b\x34",
    re.DOTALL,
)
PICTURES = re.compile(rb"....ftyp(?:hei[cxms]|hev[cx]|mif1|msf1|avi[fs])", re.DOTALL)
ENCRYPTED_SAMPLES = re.compile(rb"(?:encv|drmi)\0\0\0\0\0\0")  # of the video of an mp4 or mov
INDEX = 32 << 20  # bytes of a box that are searched
EBML, SEGMENT, HEAD = b"\x1aE\xdf\xa3", b"\x18S\x80g", 1 << 12  # of Matroska; bytes
UNKNOWN = 0xFFFFFFFF  # the length of an AVI that is still written
MISCOUNTED = 1 << 10  # bytes by which whole files are shorter, since programs count a header twice
BOX = re.compile(
    rb"....(?:ftyp|moov|mdat|free|skip|wide|moof|mfra|sidx|styp|uuid|meta|pnot|udta)", re.DOTALL
)
LENIENT = 19  # the version of PyAV from which names that are not UTF-8 are no error


def require_av() -> None:
    """Load PyAV; UsageError if it is not installed."""
    try:
        import av
    except ImportError as error:
        raise UsageError(f"videos need PyAV ({error}); type: pip install 'av>=12,<20'") from None
    av.logging.set_level(av.logging.PANIC)  # FFmpeg prints nothing


def decoder_versions() -> str:
    """Return the version of PyAV, whose decoders may affect the results."""
    import av

    return f"av {av.__version__}"


def av_version() -> int:
    import av

    return int(av.__version__.partition(".")[0])


def is_video(path: bytes) -> bool:
    """Return whether a file is a video, even a damaged one."""
    try:
        with opened(path):
            return True
    except RefusedError as error:
        return error.reason not in (NOT_A_VIDEO, UNREADABLE)


@contextmanager
def opened(path: bytes) -> Iterator[tuple[InputContainer, Any]]:
    """Context manager: open a video file; yield container and video stream, or raise RefusedError.

    Errors in the `with` block are raised as RefusedErrors, too.
    """
    try:
        with open(path, "rb") as file:
            first = file.read(32)
        suffix = suffix_of(path)
        with _recognised(path, first, suffix) as container:
            yield container, _video_stream(container, suffix)
    except (RefusedError, *PROGRAM_ERRORS):
        raise
    except Exception as error:  # decoders raise nearly anything
        reason, detail = reason_of(error)
        if reason == UNREADABLE and _can_be_read(path):
            reason = DAMAGED
        raise RefusedError(reason, detail) from None


def _can_be_read(path: bytes) -> bool:
    """Return whether all bytes of a file can be read; FFmpeg's own error may say otherwise."""
    try:
        with open(path, "rb") as file:
            while file.read(1 << 20):
                pass
    except OSError:
        return False
    return True


def suffix_of(path: bytes) -> str:
    """Return the extension of a file name in lower case, such as ".mp4", or "" if it has none."""
    return os.path.splitext(path)[1].lower().decode("latin-1")


def _recognised(path: bytes, first: bytes, suffix: str) -> InputContainer:
    import av

    if PICTURES.match(first):
        raise RefusedError(NOT_A_VIDEO, suffix or "no extension")
    bare = [name for name, suffixes in BARE.items() if suffix in suffixes]
    options = {"format_whitelist": ",".join([*SIGNED, *bare]), "protocol_whitelist": "file"}
    name = "file:" + os.fsdecode(path)  # subtle: a path such as "http:x" is not an address
    lenient: Any = {"metadata_errors": "replace"} if av_version() < LENIENT else {}
    try:
        return av.open(name, container_options=options, **lenient)
    except av.error.FFmpegError as error:
        if isinstance(error, av.error.InvalidDataError) or error.errno == errno.EINVAL:
            raise RefusedError(*_unrecognised(first, suffix, error)) from None
        raise


def _unrecognised(first: bytes, suffix: str, error: Any) -> tuple[str, str]:
    other = error.errno == errno.EINVAL and pictures.SIGNATURES.match(first)
    if SIGNATURES.match(first) or (suffix in NAMES and not other):
        return DAMAGED, "the file is empty" if not first else "PyAV does not recognise it"
    return NOT_A_VIDEO, suffix or "no extension"


def _video_stream(container: InputContainer, suffix: str) -> Any:
    """Return the video stream with the most pixels; default streams come before all others."""
    streams = [each for each in container.streams if each.type == "video" and not _is_cover(each)]
    if not streams:
        if suffix in SOUND:
            raise RefusedError(NOT_A_VIDEO, suffix)
        kinds = sorted({each.type for each in container.streams})
        raise RefusedError(NO_VIDEO, f"it has {', '.join(kinds) or 'no stream'}")
    known: list[Any] = [each for each in streams if each.codec_context is not None]
    if not known:
        raise RefusedError(UNKNOWN_CODEC, "PyAV has no decoder for it")
    stream = max(known, key=lambda each: (_has(each, "default"), _pixels(each)))
    if _pixels(stream) > MAX_PIXELS:
        size = f"{stream.codec_context.width} x {stream.codec_context.height}"
        raise RefusedError(TOO_LARGE, f"{size} pixels")
    return stream


def tracks_of(container: InputContainer, silent: Collection[int] = ()) -> dict[str, list[str]]:
    """Return facts: what a file "holds", and the languages that its sound and subtitles name.

    silent: the numbers of tracks that do not count.
    """
    holds: list[str] = []
    tracks = [each for each in container.streams if each.index not in silent]
    for kind, word in TRACKS.items():
        many = sum(each.type == kind and not _is_cover(each) for each in tracks)
        holds += [f"{word} {k}" if k > 1 else word for k in range(1, many + 1)]
    known = [each.codec_context for each in container.streams if each.codec_context is not None]
    holds += ["surround sound"] * any((getattr(of, "channels", 0) or 0) > 2 for of in known)
    holds += ["HDR"] * any(getattr(of, "color_trc", 0) in HDR for of in known)
    holds += ["attachments"] * any(each.type == "attachment" for each in tracks)
    holds += ["chapters"] * (
        len(container.chapters() if hasattr(container, "chapters") else ()) > 1
    )
    holds += ["place"] * any(name.lower().startswith(PLACE) for name in container.metadata)
    named = {"languages": "audio", "written": "subtitle"}
    return {"holds": holds, **{fact: _languages(tracks, kind) for fact, kind in named.items()}}


def _languages(tracks: Iterable[Any], kind: str) -> list[str]:
    """Return the languages of all tracks of a kind; none if a track does not name its own."""
    named = {of.metadata.get("language") or "und" for of in tracks if of.type == kind}
    return sorted(named) if "und" not in named else []


def is_cut(path: bytes) -> bool:
    """Return whether a Matroska, AVI, MP4 or MOV file ends before its contents, as it says."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(HEAD)
        if head.startswith(EBML):
            start, length = _element(head, len(EBML))
            at = head.find(SEGMENT, start + length)
            start, length = _element(head, at + len(SEGMENT)) if at == start + length else (0, 0)
            return start + length > size
        if head[:4] == b"RIFF":
            length = int.from_bytes(head[4:8], "little")
            return length < UNKNOWN and length > size + MISCOUNTED
        return any(end > size for _, _, end in _boxes(file))


def _element(head: bytes, at: int) -> tuple[int, int]:
    r"""Return where the content of an EBML element begins, and its length, 0 if unknown.

    >>> _element(b"\x40\x02ab", 0), _element(b"\x01" + b"\xff" * 7, 0)
    ((2, 2), (8, 0))
    """
    wide = 9 - head[at].bit_length() if at < len(head) else 1
    mask = (1 << 7 * wide) - 1
    length = int.from_bytes(head[at : at + wide], "big") & mask
    return at + wide, length if length < mask else 0


def _boxes(file: IO[bytes]) -> Iterator[tuple[bytes, int, int]]:
    """Yield the type, the start and the end of each box of an mp4 or mov, until one is none."""
    start, size = 0, os.fstat(file.fileno()).st_size
    while start <= size:
        file.seek(start)
        if len(head := file.read(16)) < 8 or not BOX.match(head):
            return
        length = int.from_bytes(head[:4], "big")
        if length == 1:  # the length is in the next 8 bytes
            length = int.from_bytes(head[8:], "big")
        if length < 8:
            return
        yield head[4:8], start, start + length
        start += length


def is_encrypted(path: bytes) -> bool:
    """Return whether a file that cannot be decoded is an mp4 or mov with an encrypted video."""
    with open(path, "rb") as file:
        for kind, start, _ in _boxes(file):
            if kind == b"moov":
                file.seek(start)
                return bool(ENCRYPTED_SAMPLES.search(file.read(INDEX)))
    return False


def _is_cover(stream: Any) -> bool:
    return _has(stream, "attached_pic") or _has(stream, "timed_thumbnails")


def _has(stream: Any, flag: str) -> bool:
    """Return whether a stream has a flag such as "default"; False if PyAV is older than 14.1."""
    flags = getattr(stream, "disposition", None)
    return flags is not None and bool(flags & getattr(type(flags), flag, 0))


def _pixels(stream: Any) -> int:
    return int((stream.codec_context.width or 0) * (stream.codec_context.height or 0))


def reason_of(error: BaseException) -> tuple[str, str]:
    """Return the category of an error, such as "damaged", and a one-line detail."""
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY, f"needs more than {MEMORY >> 30} GiB"
    if isinstance(error, OSError) and not _of_ffmpeg(error):
        return UNREADABLE, error.strerror or str(error)
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return DAMAGED, escaped(text.encode("utf-8", "replace"))


def _of_ffmpeg(error: BaseException) -> bool:
    """Return whether an error is about the content of a file, not about opening or reading it."""
    import av

    own = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.EIO, errno.EISDIR)
    return isinstance(error, av.error.FFmpegError) and error.errno not in own
