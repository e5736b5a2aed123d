"""Format and parse the lines between the steps that find pairs of videos (see `video_steps`).

    block      MASK.SHARE TAB BLOCK TAB           fingerprints with some of a mask's keys
    seeds      A TAB 1 B MIRROR TAB SEEDS
    print      ID TAB 0 TAB PRINT
    common     ID TAB 0+ TAB STARTS                of its frames that are common
    request    B TAB 1 A MIRROR TAB SEEDS TAB PRINT TAB STARTS        PRINT and STARTS of A
    copies     ID TAB COPY                         empty for the video itself
    clusters   TAB NUMBER, then  ID TAB CLUSTER    for videos that have copies
    shown      ID PART TAB OTHER TAB STARTS        pairs of starts, of seeds

The first field is the key by which lines are sorted; the second one determines the order of lines
with one key.  Blocks, seeds, prints and starts are numbers in base 64.

Letters: n rows of a block, m seeds.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.runtime.program import WireError, shown
from neardup.videos.stored_prints import from_bytes, to_bytes
from neardup.videos.video_prints import ID, VideoPrint, check_variants

PRINT, COMMON, OTHER = b"0", b"0+", b"1 "  # how second fields begin
LEVEL, CHECKSUM = 1, 4
PAIR = re.compile(OTHER + rb"(%b) ([01])" % ID.pattern)
ROW = np.dtype(
    [
        ("hash", "<u8", 4),
        ("key", "<u4"),
        ("video", "<u4"),  # a place in the ids
        ("span", "<i8", 2),  # milliseconds
        ("variant", "u1"),  # a place in the variants
    ]
)

Indices = NDArray[np.int64]


class FrameBlock(NamedTuple):
    """Fingerprints of frames with their keys by one mask."""

    ids: list[str]
    variants: tuple[str, ...]  # the names
    rows: NDArray[np.void]  # of ROW


class MirroredPair(NamedTuple):
    """Second field of lines of seeds and requests: the other video, and whether one is mirrored."""

    other: bytes
    mirrored: bool


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


def format_pair(pair: MirroredPair) -> bytes:
    """Format the other video of a pair, and whether one is mirrored, as a line's second field.

    >>> format_pair(MirroredPair(b"a b.mp4", True)), parse_pair(b"1 a b.mp4 1")
    (b'1 a b.mp4 1', MirroredPair(other=b'a b.mp4', mirrored=True))
    """
    return OTHER + pair.other + (b" 1" if pair.mirrored else b" 0")


def parse_pair(field: bytes) -> MirroredPair:
    """Parse the second field of a line of seeds or of a request; WireError for any other field."""
    match = PAIR.fullmatch(field)
    if not match:
        raise WireError(f"expected a video and 0 or 1, got {shown(field)}")
    return MirroredPair(match[1], match[2] == b"1")


def format_block(block: FrameBlock) -> bytes:
    """Format a `FrameBlock`, behind its checksum, as a field of a line."""
    head = json.dumps({"ids": block.ids, "variants": block.variants})
    data = head.encode() + b"\n" + block.rows.tobytes()
    return b64encode(zlib.crc32(data).to_bytes(CHECKSUM, "big") + data)


def parse_block(field: bytes) -> FrameBlock:
    """Parse a field of a line into a `FrameBlock`; WireError for any other field."""
    try:
        data = b64decode(field, validate=True)
        head, _, packed = data[CHECKSUM:].partition(b"\n")
        names, rows = json.loads(head), np.frombuffer(packed, ROW)
        whole = zlib.crc32(data[CHECKSUM:]) == int.from_bytes(data[:CHECKSUM], "big")
    except (ValueError, RecursionError):
        whole = False
    if whole and isinstance(names, dict):
        block = FrameBlock(names.get("ids", ()), names.get("variants", ()), rows)
        if _has_names(block.ids, rows["video"]) and _has_names(block.variants, rows["variant"]):
            return block._replace(variants=tuple(block.variants))
    raise WireError(f"expected a block of fingerprints, got {shown(field)}")


def _has_names(names: object, places: NDArray[np.unsignedinteger[Any]]) -> bool:
    """Return whether `names` is a list of strings, with one at each of these places."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return False
    return int(places.max(initial=0)) < len(names)


def joined(blocks: Sequence[FrameBlock]) -> FrameBlock:
    """Return the rows of several blocks as one block; StageError if their variants differ."""
    numbers: dict[str, int] = {}
    parts = []
    for block in blocks:
        check_variants(block.ids[0], block.variants, blocks[0].ids[0], blocks[0].variants)
        places = [numbers.setdefault(id_, len(numbers)) for id_ in block.ids]
        parts.append(block.rows.copy())
        parts[-1]["video"] = np.array(places)[block.rows["video"]]
    return FrameBlock([*numbers], blocks[0].variants, np.concatenate(parts))


def first_field(text: bytes) -> bytes:
    """Return the field by which a line is sorted."""
    return text.partition(b"\t")[0]
