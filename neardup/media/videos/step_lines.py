"""Format and parse the lines between the steps that find pairs of videos (see `video_steps`).

    print      SHARE TAB 1 TAB ID TAB PRINT
    seeds      SHARE TAB 0 TAB A TAB B TAB STARTS      of frames that match; 0m: of mirrored ones
    copies     ID TAB COPY                             empty for the video itself
    clusters   TAB NUMBER, then  ID TAB FIRST          for videos that have copies
    shown      ID MINUTE TAB OTHER TAB STARTS          of frames of ID and of OTHER that match
    common     2 TAB ID TAB STARTS                     of its frequent frames; 3: of common ones;
                                                       then SHARE TAB 2 …

The first field is the key by which lines are sorted; the second one determines the order of lines
with one key.  A share is such as 3.16: number 3, from 0 on, of 16.  Prints and starts are numbers
in base 64.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.video_prints import VideoPrint, from_bytes, to_bytes
from neardup.runtime.program import WireError, shown

SEEDS, MIRRORED, PRINT = b"0", b"0m", b"1"  # second fields of a share's lines
MARKS = FREQUENT, COMMON = b"2", b"3"
FIELDS = {SEEDS: 5, MIRRORED: 5, PRINT: 4, FREQUENT: 4, COMMON: 4}
SHARE = re.compile(rb"(\d{1,4})\.(\d{1,4})")
LEVEL = 1

Indices = NDArray[np.int64]


def line(*fields: bytes) -> bytes:
    return b"\t".join(fields) + b"\n"


def fields_of(text: bytes, count: int, what: str) -> list[bytes]:
    """Split a line into `count` fields, without Hadoop's last tab; WireError for more or fewer."""
    fields = text.rstrip(b"\n").split(b"\t")
    if len(fields) == count + 1 and not fields[-1]:
        fields.pop()
    if len(fields) != count:
        raise WireError(f"expected {what}, got {shown(text)}")
    return fields


def first_field(text: bytes) -> bytes:
    """Return the field by which a line is sorted."""
    return text.partition(b"\t")[0]


def format_share(number: int, shares: int) -> bytes:
    """Format the key of a share.

    >>> format_share(3, 16), parse_share(b"3.16")
    (b'3.16', (3, 16))
    """
    return b"%d.%d" % (number, shares)


def parse_share(key: bytes) -> tuple[int, int]:
    """Return the number of a share, and how many there are; WireError for any other key."""
    match = SHARE.fullmatch(key)
    if not match or int(match[1]) >= int(match[2]):
        raise WireError(f"expected the lines that `step.py videos spread` prints, got {shown(key)}")
    return int(match[1]), int(match[2])


def row_of(text: bytes) -> list[bytes]:
    """Return the fields of a line of a share; WireError for any other line."""
    kind = text.partition(b"\t")[2].partition(b"\t")[0]
    return fields_of(text, FIELDS.get(kind, 0), "a print, seeds or common frames of a share")


def format_numbers(numbers: Indices) -> bytes:
    """Compress int64 numbers, and format them in base 64 as a field of a line.

    >>> parse_numbers(format_numbers(np.array([[1, 2], [3, 4]])), 2).tolist()
    [[1, 2], [3, 4]]
    """
    return b64encode(zlib.compress(numbers.astype("<i8").tobytes(), LEVEL))


def parse_numbers(field: bytes, columns: int) -> Indices:
    """Parse a field of `format_numbers`: int64 (n, columns); WireError for any other field."""
    try:
        numbers = np.frombuffer(zlib.decompress(b64decode(field, validate=True)), "<i8")
        return numbers.astype(np.int64).reshape(-1, columns)
    except (ValueError, zlib.error):
        raise WireError(f"expected numbers in base 64, got {shown(field)}") from None


def format_print(video: VideoPrint) -> bytes:
    return b64encode(to_bytes(video))


def parse_print(field: bytes) -> VideoPrint:
    """Parse a field of a line into a `VideoPrint`; WireError for any other field."""
    try:
        found = from_bytes(b64decode(field, validate=True))
    except Base64Error:
        found = None
    if not isinstance(found, VideoPrint):
        raise WireError(f"expected the print of a video, got {shown(field)}")
    return found
