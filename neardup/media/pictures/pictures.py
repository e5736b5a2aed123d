"""Decode a picture file as a small grey picture, in bounded memory, with Pillow.

    file ─▶ format, by content ─▶ limits ─▶ frames ─▶ on white, grey ─▶ 128 × 128 ─▶ upright

Of an animation, or a TIFF file of several pages, five frames are decoded: the first, the last, and
three between them.  The second picture of an MPO file, the layers of a PSD and the sizes of an ICO
are not frames.

JPEG files are decoded at an eighth, a quarter or half of their size if 96 pixels are left on each
side, which is several times as fast.  What the decoder adds at two edges, up to a pixel of this
small picture, is cut off.  The picture is shrunk first and turned (EXIF orientation) afterwards,
since both orders give the same means.

Whatever is wrong with a file raises `RefusedError` with one of REASONS or NOT_A_PICTURE.  Errors of
the program itself (PROGRAM_ERRORS) are raised as they are.

Memory: a file may have 250 million pixels, of which 100 million may be decoded.  That takes up to
0.8 GB (RGBA, and three grey pictures of its size); a process takes 35 MB for a JPEG photo of 12
million pixels, and 70 MB if it is progressive.  `bound_memory` lets a process take 2 GiB more than
it has at first, whatever a decoder tries.
"""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.media.pictures import originals
from neardup.media.pictures.shared_bytes import sketch_of
from neardup.reading.decoders import MEMORY, OUT_OF_MEMORY, UNREADABLE
from neardup.reading.folder_walk import digest_of
from neardup.runtime.program import PROGRAM_ERRORS, UsageError, escaped

if TYPE_CHECKING:
    from PIL import Image

NOT_A_PICTURE = "not a picture"  # this is not a failure
DAMAGED, TOO_LARGE, NO_DECODER = "damaged", "too large", "no decoder"
REASONS = (DAMAGED, TOO_LARGE, NO_DECODER, UNREADABLE, OUT_OF_MEMORY)  # and those of decoders.py
MAX_PIXELS = 250_000_000  # of a file
MAX_DECODED_PIXELS = 100_000_000
MAX_FRAMES = 10_000  # of an animation
SAMPLES = 5  # frames that are compared
ANIMATED = {"GIF", "PNG", "WEBP", "AVIF", "HEIF", "TIFF", "FLI"}
MAX_SIDE, MIN_DECODED = 128, 96  # pixels a side: of the result; of a JPEG file as it is decoded
MAX_MEASURED_SIDE = 5000  # pixels a side, to compare copies
STRIP = 256  # rows that are copied at once
COLOURS, TINTS = 200, 8  # pixels a side, of which colours are taken; of the fact "tints"
LOSSLESS, SHOWN, DEEP = "lossless", "shown", "deep"  # what `_opened` adds to `info`
PNG = b"\x89PNG"
_NAMES = (
    "transparency, icc_profile, exif, duration, loop, dpi, gamma, interlace, sizes, bbox, blend"
)
_NAMES += ", depth_images, default_image, disposal"
NO_TEXTS = {*_NAMES.split(", "), LOSSLESS, SHOWN, DEEP}
FACTS = 19  # the version of what `measured` returns: must change with it
SECTOR = 512  # bytes
GAP = re.compile(rb"\0{512,}|\xff{512,}")  # in a JPEG file
MANY_EQUAL = 0.5  # share of neighbours that are equal, in drawings, of which a file may have gaps
PAPER = 208  # the least level of grainy white
FLAT = 0.8  # share of pixels equal to the next one, in a drawing; a dithered photo has fewer
CODECS = dict.fromkeys(("JPEG", "MPO", "HEIF"), 1)
CODECS.update(dict.fromkeys(("WEBP", "AVIF", "JPEG2000"), originals.WEB))
Size = tuple[int, int]
# Recognised by their first bytes.  EPS is not among them: Pillow runs a PostScript program for it.
FORMATS = [
    *["JPEG", "MPO", "PNG", "GIF", "WEBP", "AVIF", "HEIF", "TIFF", "BMP", "JPEG2000", "PPM"],
    *["ICO", "ICNS", "PSD", "QOI", "DDS", "BLP", "SGI", "XBM", "XPM", "FLI"],
]
# Recognised by their name too: their first bytes are often those of other files.
NAMED_FORMATS = {f".{name.lower()}": name for name in ("CUR", "DIB", "MSP", "PCX", "TGA")}
NAMED_FORMATS[".spi"] = "SPIDER"
NAMES = {
    *[".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".gif", ".webp", ".avif", ".heic"],
    *[".heif", ".tif", ".tiff", ".bmp", ".jp2", ".j2k", ".jpx", ".jxl", ".ppm", ".pgm", ".pbm"],
    *[".pnm", ".ico", ".icns", ".psd", ".qoi", ".dds", ".blp", ".sgi", ".xpm", ".fli", ".flc"],
    *NAMED_FORMATS,
}  # a file so named is a damaged picture if it is not recognised
SIGNATURES = re.compile(
    rb"\xff\xd8\xff|\x89PNG|GIF8[79]a|RIFF....WEBP|II\*\x00|MM\x00\*|8BPS\x00\x01|qoif", re.DOTALL
)
OTHER_DECODERS = {  # by format, as Pillow names it: first bytes, and how to get its decoder
    "HEIF": (rb"....ftyp(?:hei[cxms]|hev[cx]|mif1|msf1)", "pip install pillow-heif"),
    "AVIF": (rb"....ftypavi[fs]", "pip install --upgrade pillow"),
    "JXL": (rb"\xff\x0a|\0\0\0\x0cJXL ", "convert JPEG XL to another format"),
}
ORIENTATION, EXIF, TAKEN, CHANGED, GPS = 0x112, 0x8769, 0x9003, 0x132, 0x8825  # tags
SHOT = 0x9003, 0x9291, 0x829A, 0x9204  # date and its fraction, exposure and its bias
# A title, description, keyword or rating, or how a picture was generated: of EXIF, PNG and XMP.
TEXTS = {"Title", "Description", "parameters", "prompt", "workflow", *range(40091, 40096)}
TEXTS |= {270, 0x4746}
USER, COMMENTS = 0x9286, ("comment", "Comment")  # tag of EXIF, which begins with 8 bytes; others
BY_PROGRAMS = re.compile(
    rb"(?i)creat|made (?:by|with)|written|software|gimp|adobe|lav[cf]|jpeg|quality|optimi|compress"
    rb"|technolog|version|http|www"
)
IPTC, XMP = b"8BIM\x04\x04", b"<x:xmpmeta"
IN_XMP = {  # what a file holds: how this begins in XMP
    "text": rb"dc:(?:title|description|subject)|xmp:Rating\W{1,2}[1-5]|lr:hierarchical|xmp:Label"
    rb"|mwg-rs:Name|PersonDisplayName|PersonInImage|TagsList|LastKeyword|exif:UserComment"
    rb"|photoshop:(?:Headline|City|State|Country|Instructions)|Iptc4xmpCore:Location",
    "place": rb"exif:GPSLatitude",
    "edits": rb"\A(?!.*crs:AlreadyApplied\W{1,2}True).*crs:Has(?:Settings|Crop)\W{1,2}True",
    "panorama": rb"GPano:ProjectionType",
    "depth": rb"GDepth:|Semantic\W{1,2}Depth",
}
PATTERNS = {word: re.compile(pattern, re.DOTALL) for word, pattern in IN_XMP.items()}
MAX_XMP = 1 << 16  # bytes that are searched
COMPRESSION, DEFLATED, STRIPS = 259, (8, 32946), ((273, 279), (324, 325))  # tags, values
FILL_ORDER, AT_ONCE = 266, 1 << 14  # a tag, 2 for reversed bits; bytes, of 16 MB at most
LAYERS, DNG = 37724, 50706  # tags of TIFF: layers of Photoshop; the version of a raw file
# Files of cameras that look like TIFF, and of which Pillow decodes only a preview.
RAW = {
    *[".3fr", ".arw", ".cr2", ".dcr", ".dng", ".erf", ".fff", ".gpr", ".iiq", ".k25", ".kdc"],
    *[".mef", ".mos", ".nef", ".nrw", ".pef", ".rwl", ".sr2", ".srf", ".srw"],
}
# A video behind a picture, as cameras of telephones write it.
VIDEO = re.compile(rb"\0\0\0.ftyp(?:mp4|isom|iso\d|qt  |avc1|M4V|3gp)", re.DOTALL)
SOUND = b"WAVEfmt "  # behind it, of other cameras
SEARCHED = 64 << 20  # bytes of a file in which it is looked for
DATE = re.compile(r"(\d{4}):(\d\d):(\d\d) (\d\d:\d\d:\d\d)")


class Picture(NamedTuple):
    """A decoded picture, with the original width and height, and the date in its file."""

    grey: NDArray[np.uint8]  # (height, width), at most 128 each, upright
    width: int  # of the picture in the file, upright
    height: int
    date: str  # of EXIF, as "2024-05-31 18:00:00", or ""
    frames: int = 1  # in the file
    later: tuple[NDArray[np.uint8], ...] = ()  # of several frames: the samples after the first


class RefusedError(Exception):
    """Error for a file that cannot be used; `args` are a reason and a detail."""

    @property
    def reason(self) -> str:
        return str(self.args[0])


def decoded(path: bytes, animated: bool = False) -> Picture:
    """Return the picture in a file; RefusedError if there is none, or it cannot be decoded.

    animated: decode later frames, too
    """
    with _opened(path, "L", MIN_DECODED) as (image, size):
        grey, exif = _small(image)
        size = size[::-1] if exif.get(ORIENTATION, 1) in (5, 6, 7, 8) else size
        picture = Picture(grey, *size, _date(exif))
        count = int(getattr(image, "n_frames", 1)) if animated and image.format in ANIMATED else 1
        if count == 1:
            return picture
        if count > MAX_FRAMES:
            raise RefusedError(TOO_LARGE, f"{count:,} frames")
        later = []
        for k in range(1, SAMPLES):
            image.seek(round(k * (count - 1) / (SAMPLES - 1)))
            later.append(_small(image)[0])
        return picture._replace(frames=count, later=tuple(later))


@contextmanager
def _refusing() -> Iterator[None]:
    """Context manager: turn the exceptions of decoders into a RefusedError with the reason."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of odd but harmless files
            yield
    except RefusedError:
        raise
    except MemoryError:
        raise RefusedError(OUT_OF_MEMORY, f"needs more than {MEMORY >> 30} GiB") from None
    except Exception as error:  # decoders raise nearly anything
        if isinstance(error, PROGRAM_ERRORS) and not _of_parser(error):
            raise
        raise RefusedError(*_reason(error)) from None


def _of_parser(error: Exception) -> bool:
    """Return whether Pillow's parser of a format fails, such as by a TypeError for a wrong tag."""
    if isinstance(error, (ImportError, NameError)):
        return False
    names = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    return any(name.startswith("PIL.") and name.endswith("ImagePlugin") for name in names)


def is_picture(path: bytes) -> bool:
    """Return whether a file is a picture, possibly one that cannot be decoded."""
    try:
        decoded(path)
    except RefusedError as error:
        return bool(error.reason != NOT_A_PICTURE)
    return True


@contextmanager
def _opened(path: bytes, mode: str, least: int) -> Iterator[tuple[Image.Image, Size]]:
    """Context manager: open a picture, of JPEG with at least `least` pixels a side.

    Yield it and its full size, or raise RefusedError, also for errors in the `with` block.
    """
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS // 2  # Pillow itself refuses twice as many
    suffix = os.path.splitext(path)[1].lower().decode("latin-1")
    with _refusing(), open(path, "rb") as file:
        first = file.read(32)
        try:
            file.seek(0)
            whole = _without_texts(file) if first.startswith(PNG) else file
            image = Image.open(whole, formats=_formats(suffix))
        except UnidentifiedImageError:
            raise RefusedError(*_unrecognised(first, suffix)) from None
        width, height = image.size
        if image.format == "TIFF" and (suffix in RAW or DNG in getattr(image, "tag_v2", ())):
            raise RefusedError(NO_DECODER, "convert raw files to another format")
        image.info[LOSSLESS] = first[12:16] == b"VP8L"  # in a WebP file
        image.info[DEEP] = image.mode[0] in "IF" or ";16" in str(image.tile)
        if image.format in ("JPEG", "MPO"):
            drafted = image.draft(mode, (min(least, width), min(least, height)))
            image.info[SHOWN] = drafted and drafted[1]
        _check_size(image, (width, height))
        yield image, (width, height)


def _without_texts(file: IO[bytes]) -> IO[bytes]:
    """Return a PNG file, or a copy in memory without texts whose names have a meaning to Pillow.

    Pillow adds texts to `info`, before what it finds there itself.
    """
    kept, at, is_whole = [(0, 8)], 8, True
    while len(head := _bytes_at(file, at, 8 + 80)) >= 8:
        end = at + 12 + int.from_bytes(head[:4], "big")
        name = head[8:].partition(b"\0")[0].decode("latin-1")
        if head[4:8] in (b"tEXt", b"zTXt", b"iTXt") and name in NO_TEXTS:
            is_whole = False
        else:
            kept.append((at, end))
        at = end
    file.seek(0)
    if is_whole:
        return file
    return io.BytesIO(b"".join(_bytes_at(file, start, end - start) for start, end in kept))


def _bytes_at(file: IO[bytes], start: int, length: int) -> bytes:
    file.seek(start)
    return file.read(length)


def _check_size(image: Image.Image, size: Size) -> None:
    if image.width * image.height > MAX_DECODED_PIXELS:
        raise RefusedError(TOO_LARGE, f"{size[0]} x {size[1]} pixels")


def measured(path: bytes) -> originals.Facts:
    """Return facts that distinguish originals from copies; RefusedError if it cannot be decoded."""
    with _opened(path, "RGB", MAX_MEASURED_SIDE) as (image, _):
        with open(path, "rb") as file:
            data = file.read(SEARCHED)
            bad_strip = _has_bad_strip(image, file)
        more = ["video"] * bool(VIDEO.search(data, 32)) + ["sound"] * (SOUND in data)
        facts: originals.Facts = {**_measured(image), "file": digest_of(path).hex()}
        shown = facts["file"] if facts["frames"] > 1 else f"{_checksum(image):08x}"
        facts.update(shown=shown, sketch=sketch_of(path))
        jpeg = data.startswith(b"\xff\xd8") and facts["flat"] < MANY_EQUAL
        facts["damaged"] = bad_strip or (jpeg and _is_damaged(data))
        more += _in_xmp(data) + ["text"] * (IPTC in data)
        return {**facts, "holds": [*dict.fromkeys(facts["holds"] + more)]}


def _checksum(image: Image.Image) -> int:
    """Return a checksum of the pixels of a loaded image, as they are in its file."""
    checksum = 0
    for top in range(0, image.height, STRIP):
        strip = image.crop((0, top, image.width, min(top + STRIP, image.height)))
        pixels = strip.convert("RGBA") if image.mode == "P" else strip
        checksum = zlib.crc32(pixels.tobytes(), checksum)
    return checksum


def _measured(image: Image.Image) -> originals.Facts:
    """Return the facts of `originals.facts_of`, and further facts of the file and its colours.

    step: the mean quantisation of JPEG, of its low frequencies; colour: mean saturation;
    tints: colours, at 8 × 8 pixels; clipped: share of the largest values; flat: share of
    neighbours that are equal; dotted: a GIF in which few are; paper: share of white, grainy or
    not; frames: of an animation;
    repeats: rows and columns are like their neighbours;
    seen: the step of a JPEG file that it was made from; coding: 0 for lossless; digest, of grey;
    shot: when and how it was taken; damaged: its file has a gap, or a wrong checksum;
    look: the picture at 96 × 96 pixels, in grey; holds: what else the file has.
    """
    from PIL import Image

    upright = _upright(on_white(image), _exif(image).get(ORIENTATION, 1))
    grey = np.asarray(upright)
    small = upright.resize((originals.LOOK, originals.LOOK), Image.Resampling.BILINEAR)
    side = (min(image.width, COLOURS), min(image.height, COLOURS))
    colours = image.resize(side, Image.Resampling.NEAREST).convert("RGBA")
    values = np.asarray(colours.convert("RGB")).astype(np.int16)
    tints = colours.resize((TINTS, TINTS), Image.Resampling.BOX).convert("RGB")
    tints = _upright(tints, _exif(image).get(ORIENTATION, 1))
    several = int(getattr(image, "n_frames", 1)) > 1
    said: dict[Any, Any] = {**image.info, **_exif(image)}
    holds = {
        "16 bits": image.info[DEEP],
        "transparency": bool((np.asarray(colours.getchannel("A")) < 255).any()),
        "layers": LAYERS in getattr(image, "tag_v2", ()) or (image.format == "PSD" and several),
        "other picture": image.format == "MPO" and several,
        "sizes": len(image.info.get("sizes", ())) > 1,  # of an icon
        "depth": bool(image.info.get("depth_images")),
        "CMYK": image.mode == "CMYK",
        "profile": _has_profile(image),
        "place": bool(said.get(GPS)),
        "text": _has_text(said),
    }
    flat = (np.diff(grey, axis=1) == 0).mean()
    tables = getattr(image, "quantization", None) or {0: [0] * 64}
    steps = np.reshape(tables[0] if 0 in tables else next(iter(tables.values())), (8, 8))
    return {
        **originals.facts_of(grey),
        "seen": originals.seen_step(grey),
        "repeats": originals.repeats(grey),
        "look": b64encode(small.tobytes()).decode(),
        "digest": zlib.crc32(np.ascontiguousarray(grey).data),
        "palette": image.mode == "P" and not several,  # no animation
        "paper": float((grey >= PAPER).mean()),
        "frames": getattr(image, "n_frames", 1) if image.format in ANIMATED else 1,
        "flat": float(flat + (np.diff(grey, axis=0) == 0).mean()) / 2,
        "dotted": image.format == "GIF" and bool(flat < FLAT),
        "colour": float(np.ptp(values, axis=2).mean()),
        "tints": np.asarray(tints).ravel().tolist(),
        "clipped": float((values >= 0.97 * np.percentile(values, 99.9)).mean()),
        "step": float(np.mean([steps[at] for at in originals.WAVES])),
        "shot": _shot(said),
        "coding": 0 if image.info.get(LOSSLESS) else CODECS.get(image.format or "", 0),
        "holds": [word for word, there in holds.items() if there],
    }


def _is_damaged(data: bytes) -> bool:
    r"""Return whether the pixels of a JPEG file have a gap, as of sectors that were not written.

    A plain area gives as many zeros, but they hardly ever begin and end where sectors do.

    >>> head = b"\xff\xd8\xff\xe1\0\4ab\xff\xda".ljust(512, b"c")
    >>> [_is_damaged(head + b + bytes(512) + b"d\xff\xd9") for b in (b"", b"c")]
    [True, False]
    """
    start = 2
    while data[start : start + 1] == b"\xff" and data[start + 1 : start + 2] != b"\xda":
        start += 2 + int.from_bytes(data[start + 2 : start + 4], "big")
    sample = data[start::128]
    if not any(gap in sample for gap in (b"\0\0\0", b"\xff\xff\xff")):  # mostly, in little time
        return False
    end = data.find(b"\xff\xd9", start) % (len(data) + 1)
    return any(
        found.start() % SECTOR == found.end() % SECTOR == 0
        for found in GAP.finditer(data, start, end)
    )


def _has_bad_strip(image: Image.Image, file: IO[bytes]) -> bool:
    """Return whether a TIFF file has deflated pixels with another checksum than theirs.

    libtiff does not read the checksum of all.
    """
    tags: Any = getattr(image, "tag_v2", {})
    if tags.get(COMPRESSION) not in DEFLATED or tags.get(FILL_ORDER, 1) != 1:
        return False
    strips = (zip(tags.get(at, ()), tags.get(many, ())) for at, many in STRIPS)
    return any(not _inflates(file, at, many) for some in strips for at, many in some)


def _inflates(file: IO[bytes], at: int, many: int) -> bool:
    """Return whether so many bytes of a file are a whole stream of zlib, and what is after it.

    >>> _inflates(io.BytesIO(b"-" + zlib.compress(b"a")), 1, 99)
    True
    >>> _inflates(io.BytesIO(zlib.compress(b"a")), 0, 8)
    False
    """
    stream = zlib.decompressobj()
    file.seek(at)
    try:
        while not stream.eof and (data := file.read(min(many, AT_ONCE))):
            stream.decompress(data)
            many -= len(data)
    except zlib.error:
        return False
    return stream.eof


def _in_xmp(data: bytes) -> list[str]:
    """Return words for what a file has as XMP: a text, a place, edits, ….

    >>> _in_xmp(b"<x:xmpmeta xmp:Rating='5' crs:HasCrop='True' crs:AlreadyApplied='True'>")
    ['text']
    """
    start = data.find(XMP)
    xmp = data[start : start + MAX_XMP] if start >= 0 else b""
    xmp = xmp[: xmp.find(b"</x:xmpmeta")]
    return [word for word, pattern in PATTERNS.items() if pattern.search(xmp)]


def _has_text(said: dict[Any, Any]) -> bool:
    """Return whether a person, as it seems, has written something into a file.

    >>> _has_text({"comment": b"Ada at the lake"}), _has_text({"comment": b"Created with GIMP"})
    (True, False)
    """
    if any(str(said.get(name) or "").strip() for name in TEXTS):
        return True
    user, *others = (_bytes(said.get(name, b"")) for name in (USER, *COMMENTS))
    two_words = (of for of in others if len(of.split()) > 1)
    return bool(user[8:].strip(b"\0 ")) or any(not BY_PROGRAMS.search(of) for of in two_words)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def _has_profile(image: Image.Image) -> bool:
    """Return whether colours look otherwise without the profile of a file: it is not sRGB."""
    profile = _bytes(image.info.get("icc_profile") or b"")
    return bool(profile) and b"sRGB" not in profile.replace(b"\0", b"") and image.mode != "L"


def _small(image: Image.Image) -> tuple[NDArray[np.uint8], dict[int, Any]]:
    """Return the current frame as a small grey picture, upright, and its EXIF tags."""
    from PIL import Image

    _check_size(image, image.size)
    small = on_white(image)
    exif = _exif(image)  # subtle: some formats are turned when they are loaded, and say so then
    whole = 0, 0, *small.size
    shown = image.info.get(SHOWN) or whole
    if max(small.size) > MAX_SIDE or shown != whole:
        size = min(small.width, MAX_SIDE), min(small.height, MAX_SIDE)
        small = small.resize(size, Image.Resampling.BILINEAR, shown, reducing_gap=2.0)
    return np.asarray(_upright(small, exif.get(ORIENTATION, 1))), exif


def thumbnail(path: bytes, side: int) -> bytes:
    """Return a picture as an upright JPEG, at most `side` pixels a side, or raise RefusedError."""
    from PIL import Image, ImageOps

    with _opened(path, "RGB", side) as (image, _):
        upright = ImageOps.exif_transpose(image).convert("RGBA")
    upright.thumbnail((side, side))
    paper = Image.new("RGB", upright.size, "white")
    paper.paste(upright, mask=upright.getchannel("A"))
    file = io.BytesIO()
    paper.save(file, "JPEG", quality=80)
    return file.getvalue()


def on_white(image: Image.Image) -> Image.Image:
    """Return the first frame of an image in grey (mode L), with transparent parts on white.

    Its size is that of the file or, for JPEG, a part of it.
    """
    from PIL import Image

    image.load()
    if image.mode in ("F", "I", "I;16", "I;16B", "I;16L", "I;16N"):
        return Image.fromarray(_eight_bits(np.asarray(image)))
    if image.has_transparency_data:
        image = image if image.mode in ("LA", "RGBA") else image.convert("RGBA")
        white = Image.new("L", image.size, 255)
        white.paste(image.convert("L"), mask=image.getchannel("A"))
        return white
    if image.mode in ("L", "P", "1", "RGB", "RGBX", "YCbCr"):
        return image if image.mode == "L" else image.convert("L")
    if image.mode == "LAB":
        return image.getchannel("L")
    return image.convert("RGB").convert("L")  # such as CMYK


def _eight_bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Convert grey values of more than 8 bits, or fractions, to 0 … 255.

    16 bits are divided by 256, or by 257 if an older Pillow gives them as 32 bits; of larger
    integers and fractions, the least becomes 0 and the greatest 255.
    """
    if values.dtype.itemsize == 2:
        return (values >> 8).astype(np.uint8)
    finite = np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(finite.min()), float(finite.max())
    if values.dtype.kind == "i" and low >= 0 and high < 1 << 16:  # 16 bits, by older Pillows
        low, high = 0.0, 65535.0
    return ((finite - low) * (255 / max(high - low, 1e-30))).astype(np.uint8)


def _upright(image: Image.Image, orientation: Any) -> Image.Image:
    """Return a picture turned or mirrored according to its EXIF orientation, 1 … 8."""
    from PIL import Image

    to = Image.Transpose
    turns = [to.FLIP_LEFT_RIGHT, to.ROTATE_180, to.FLIP_TOP_BOTTOM, to.TRANSPOSE]
    turns += [to.ROTATE_270, to.TRANSVERSE, to.ROTATE_90]
    return image.transpose(turns[orientation - 2]) if orientation in range(2, 9) else image


def _exif(image: Image.Image) -> dict[int, Any]:
    """Return the EXIF tags of a picture, with those on how it was taken; {} if they are damaged."""
    try:
        exif = image.getexif()
        return {**exif, **exif.get_ifd(EXIF)}
    except (MemoryError, ImportError, NameError):
        raise
    except Exception:  # the picture may be whole
        return {}


def _date(exif: dict[int, Any]) -> str:
    """Return the date at which a picture was taken, or else changed; "" if its tags have no date.

    >>> _date({CHANGED: "2024:05:31 18:00:00"}), _date({TAKEN: "0000:00:00 00:00:00"})
    ('2024-05-31 18:00:00', '')
    """
    for tag in (TAKEN, CHANGED):
        found = DATE.match(str(exif.get(tag, "")))
        if found and int(found[1]):
            return "{}-{}-{} {}".format(*found.groups())
    return ""


def _shot(exif: dict[Any, Any]) -> list[str]:
    """Return the values of SHOT, "" for those that tags do not have: blanks, zeros or 0/0.

    A time may be written in any way; without one, a date is none, either.

    >>> _shot({TAKEN: "2024:05:31 18:00:00", 0x9291: "12 "}), _shot({TAKEN: "    :  :     :  :  "})
    (['2024 5 31 18 0 0', '12', '', ''], ['', '', '', ''])
    >>> _shot({TAKEN: "2024-05-31T18:00:00.12"})[0], _shot({TAKEN: "2024:05:31"})[0]
    ('2024 5 31 18 0 0', '')
    """
    taken, *others = (str(exif.get(tag, "")).strip("\0 ") for tag in SHOT)
    time = [*map(int, re.findall("[0-9]{1,4}", taken))][:6]
    known = [" ".join(map(str, time)) if len(time) == 6 and time[0] else ""]
    return known + ["" if value == "nan" else value for value in others]


def _formats(suffix: str) -> list[str]:
    """Return the names of the formats to try, without those that Pillow cannot open here."""
    from PIL import Image

    Image.init()
    named = NAMED_FORMATS.get(suffix)
    return [name for name in [*FORMATS, *([named] if named else [])] if name in Image.OPEN]


def _unrecognised(first: bytes, suffix: str) -> tuple[str, str]:
    from PIL import Image

    known = bool(SIGNATURES.match(first)) or suffix in NAMES
    for format_, (signature, remedy) in OTHER_DECODERS.items():
        if re.match(signature, first, re.DOTALL):
            if format_ not in Image.OPEN:
                return NO_DECODER, remedy
            known = True
    if known:
        return DAMAGED, "the file is empty" if not first else "Pillow does not recognise it"
    return NOT_A_PICTURE, suffix or "no extension"


def _reason(error: Exception) -> tuple[str, str]:
    """Return the category of an error, such as "damaged", and a one-line detail."""
    from PIL import Image

    text = escaped((str(error) or type(error).__name__).encode("utf-8", "replace"))
    if isinstance(error, OSError) and error.errno is not None:
        return UNREADABLE, error.strerror or text
    if isinstance(error, Image.DecompressionBombError):
        return TOO_LARGE, f"more than {MAX_PIXELS // 10**6} million pixels"
    return DAMAGED, text


def require_pillow() -> None:
    """Load Pillow, and pillow-heif if installed; UsageError if there is no Pillow."""
    try:
        from PIL import Image
    except ImportError as error:
        raise UsageError(
            f"pictures need Pillow ({error}); type: pip install 'pillow>=10.1'"
        ) from None
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        pass
    else:
        register_heif_opener()
    Image.init()  # before processes are forked


def decoder_versions() -> str:
    """Return the versions of the decoders and how they are used, which may affect the results."""
    import PIL

    heif = sys.modules.get("pillow_heif")
    versions = f"pillow {PIL.__version__}" + (f", heif {heif.__version__}" if heif else "")
    return f"{versions}, JPEG from {MIN_DECODED} pixels"
