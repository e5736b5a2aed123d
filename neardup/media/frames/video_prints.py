"""The print of a video: the fingerprints of its frames, with the times at which each is shown.

A *tick* is a moment at which a frame is looked at (4 a second).  Frames that follow each other and
look the same are one *span*.  A span has V fingerprints: that of the frame, and those of variants
such as its mirror image, in the order of `variants`.

As a line, a print is a JSON object, with spans in milliseconds and fingerprints in hex:

    {"id": "a.mp4", "facts": {"seconds": 60.0, …}, "variants": ["whole", "mirror"],
     "frames": ["0 250 0123… 89ab…", …]}

As bytes, for the cache, temporary files and lines of steps, a print is a JSON line of everything
but its numbers, and then the compressed numbers.  A hash is stored as its difference (exclusive or)
from that of the frame before, which has fewer ones.

    {"id": …, "facts": …, "variants": …, "spans": n}
    zlib (level 1): spans (n, 2), differences, int64; hashes (n, V, 4), differences, uint64

Size: 5 MB for an hour with 24 variants, half of what it is uncompressed.

Letters: n spans, V variants.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from math import floor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.media.pictures.keep_rules import number
from neardup.runtime.program import WireError
from neardup.sets.ragged import chunks

MAX_SECONDS = 1e9  # seconds
WORDS = 4  # of 64 bits, of a fingerprint
HEX_DIGITS = 64
MAX_VARIANTS = 32  # one bit of a uint32 for each
ID = re.compile(rb"[^\0\t\r\n]+")
REGIONS = ("upper", "lower")
DIGEST = "digest"  # the fact that is a hash of the file
OWN = ("whole", "tight", *REGIONS, "uncut")  # each is compared with the same variant
MIRROR = " mirror"  # how the names of mirrored variants end
AT_ONCE = 1 << 12  # spans that are compressed together
LEVEL = 1  # hashes are nearly random, so that a higher one costs time and gains nothing


class VideoPrint(NamedTuple):
    """The fingerprints of a video: V for each of n spans (frames in a row that look the same)."""

    id: str
    facts: dict[str, Any]  # seconds, width, height, bytes, …: of the file
    variants: tuple[str, ...]
    spans: NDArray[np.int64]  # (n, 2), milliseconds: from, and to (not included); in order
    hashes: NDArray[np.uint64]  # (n, V, 4)


def length_of(video: VideoPrint) -> float:
    """Return a video's length in seconds, from its facts or else from the end of its last span."""
    last = float(video.spans[-1, 1]) / 1000 if len(video.spans) else 0.0
    return number(video.facts, "seconds") or last


def end_of(seconds: float) -> float:
    """Return the last whole tenth of a second in a video of so many seconds.

    >>> end_of(5.08), end_of(12.3)
    (5.0, 12.3)
    """
    return floor(min(max(seconds, 0.0), MAX_SECONDS) * 10 + 1e-6) / 10


def owns(variants: tuple[str, ...]) -> int:
    """Return the number of own variants: the first one, and those in OWN that follow it directly.

    >>> owns(("whole", "upper", "centre95", "whole mirror"))
    2
    """
    return next((v for v, name in enumerate(variants) if v and name not in OWN), len(variants))


def matched(variants: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the pairs (own variant, any variant) to compare; a region only with the same region.

    >>> matched(("whole", "upper", "centre95", "upper mirror"))
    [(0, 0), (0, 2), (1, 1), (1, 3)]
    """
    plain = [name[: -len(MIRROR)] if name.endswith(MIRROR) else name for name in variants]
    kinds = [name if name in REGIONS else "" for name in plain]
    pairs = ((v, w) for v in range(owns(variants)) for w in range(v, len(variants)))
    return [(v, w) for v, w in pairs if kinds[v] == kinds[w]]


def compared(variants: tuple[str, ...], mirrored: bool) -> list[tuple[int, int]]:
    """Return the pairs of variants (numbers) to compare for two frames on a line in time.

    The first variant is compared with all but regions, and each other own variant with itself.

    >>> compared(("whole", "upper", "centre95", "upper mirror"), False)
    [(0, 0), (1, 1), (0, 2), (2, 0)]
    >>> compared(("whole", "upper", "centre95", "upper mirror"), True)
    [(1, 3), (3, 1)]
    """
    pairs = []
    for v, name in enumerate(variants):
        if name.endswith(MIRROR) == mirrored:
            like = name[: -len(MIRROR)] if mirrored else name
            own = variants.index(like) if v and like in OWN and like in variants else 0
            for left in {own, 0} if like not in REGIONS else {own}:
                pairs += [(left, v)] if left == v else [(left, v), (v, left)]
    return pairs


def checked(
    id_: object,
    facts: object,
    variants: Sequence[object],
    spans: NDArray[np.int64],
    hashes: NDArray[np.uint64],
) -> VideoPrint:
    """Return the print with these values, read from a file; ValueError if they are invalid.

    spans: (n, 2); hashes: of any shape.
    """
    json.dumps([facts, *variants], ensure_ascii=False).encode()  # half a surrogate is a ValueError
    names = tuple(str(name) for name in variants if isinstance(name, str))
    whole = len(names) == len(variants) and 0 < len(names) <= MAX_VARIANTS
    ordered = (spans[:, 0] < spans[:, 1]).all() and (np.diff(spans[:, 0]) > 0).all()
    if not (
        whole
        and ordered
        and isinstance(facts, dict)
        and isinstance(id_, str)
        and ID.fullmatch(id_.encode())
    ):
        raise ValueError
    return VideoPrint(id_, facts, names, spans, hashes.reshape(len(spans), len(names), WORDS))


def to_line(video: VideoPrint) -> bytes:
    r"""Format a video print as a JSON line.

    >>> hashes = np.arange(4, dtype=np.uint64).reshape(1, 1, 4)
    >>> line = to_line(VideoPrint("a", {}, ("whole",), np.array([[0, 250]]), hashes))
    >>> line[:70]
    b'{"id":"a","facts":{},"variants":["whole"],"frames":["0 250 00000000000'
    >>> from_line(line).hashes.tolist()
    [[[0, 1, 2, 3]]]
    """
    words = video.hashes.astype(">u8").tobytes().hex()
    digits = [words[k : k + HEX_DIGITS] for k in range(0, len(words), HEX_DIGITS)]
    many = len(video.variants)
    frames = [
        " ".join([f"{start} {end}", *digits[k * many : (k + 1) * many]])
        for k, (start, end) in enumerate(video.spans.tolist())
    ]
    fields = {"id": video.id, "facts": video.facts, "variants": video.variants, "frames": frames}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def from_line(line: bytes) -> VideoPrint:
    """Parse a JSON line into a video print; WireError for any other line.

    >>> from_line(b'{"id": "a"}')
    Traceback (most recent call last):
    neardup.runtime.program.WireError: expected the print of a video, got '{"id": "a"}'
    """
    try:
        fields = json.loads(line)
        lists = isinstance(fields, dict) and (fields["frames"], fields["variants"])
        if lists and all(isinstance(each, list) for each in lists):
            rows = [str(frame).split(" ") for frame in fields["frames"]]
            spans = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2)
            digits = [digits for row in rows for digits in row[2:]]
            hashes = np.frombuffer(bytes.fromhex("".join(digits)), ">u8").astype(np.uint64)
            if all(len(each) == HEX_DIGITS for each in digits):
                return checked(fields["id"], fields["facts"], fields["variants"], spans, hashes)
    except (ValueError, KeyError, OverflowError, RecursionError):
        pass  # reported below
    start = line[:60].decode("utf-8", "replace").rstrip()
    raise WireError(f"expected the print of a video, got {start!r}") from None


def to_bytes(result: VideoPrint) -> bytes:
    """Return a video print as bytes."""
    fields = {"id": result.id, "facts": result.facts, "variants": result.variants}
    head = json.dumps({**fields, "spans": len(result.spans)}).encode()
    spans = np.diff(result.spans, axis=0, prepend=0).astype("<i8")
    packer = zlib.compressobj(LEVEL)
    parts = [head, b"\n", packer.compress(spans.tobytes())]
    for first, last in chunks(np.ones(len(spans), np.int64), AT_ONCE):  # hours are many megabytes
        hashes = result.hashes[first:last].astype("<u8")
        hashes[first == 0 :] ^= result.hashes[first - (first > 0) : last - 1]
        parts.append(packer.compress(hashes.tobytes()))
    return b"".join((*parts, packer.flush()))


def from_bytes(value: bytes) -> VideoPrint | None:
    """Return the video print in `value`, or None if it is damaged."""
    head, _, packed = value.partition(b"\n")
    try:
        return _print(json.loads(head), zlib.decompress(packed))
    except (ValueError, TypeError, KeyError, zlib.error, OverflowError, RecursionError):
        return None


def _print(fields: dict[str, object], numbers: bytes) -> VideoPrint:
    """Make a print from fields and packed numbers; ValueError or KeyError if they are invalid."""
    n, variants = int(str(fields["spans"])), fields["variants"]
    if not isinstance(variants, list):
        raise ValueError("variants")
    spans = np.frombuffer(numbers, "<i8", 2 * n).reshape(n, 2)
    shape = n, len(variants), WORDS
    hashes = np.frombuffer(numbers, "<u8", offset=16 * n).reshape(shape).astype(np.uint64)
    full: NDArray[np.uint64] = np.bitwise_xor.accumulate(hashes, axis=0)
    times = spans.astype(np.int64).cumsum(axis=0)
    return checked(fields["id"], fields["facts"], variants, times, full)
