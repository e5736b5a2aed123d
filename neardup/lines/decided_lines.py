"""Decided lines: a record that goes, where it stands, and because of whom; parse beside format.

    PLACE TAB ID TAB KEPT TAB SIMILARITY

PLACE is the record's place in the input (`reading.places`), as sixteen hexadecimal digits.  The
rest is what `--output removed` prints; the similarity is `-` where the two are no pair.
"""

from __future__ import annotations

import re

from neardup.process.errors import WireError, shown

_REMOVED = rb"[^\0\t\r\n]+\t[^\0\t\r\n]+\t(?:0\.[0-9]{6}|1\.000000|-)"
_LINE = re.compile(rb"([0-9a-f]{16})\t(%b)\t?\n?" % _REMOVED)
_PRINTED = re.compile(rb"(%b)\t?\n?" % _REMOVED)


def format_decided(place: bytes, id_: bytes, kept: bytes, similarity: bytes) -> bytes:
    """`place` as its digits."""
    return b"%b\t%b\t%b\t%b\n" % (place, id_, kept, similarity)


def parse_place(line: bytes) -> int:
    """The place on a decided line; WireError where it is none."""
    return int(_fields(line)[1], 16)


def parse_decided(line: bytes) -> tuple[int, bytes]:
    """(place, id) of a decided line; WireError where it is none."""
    found = _fields(line)
    return int(found[1], 16), found[2].partition(b"\t")[0]


def removed_line(line: bytes) -> bytes:
    """The same without the place.

    >>> removed_line(b"8000000000000001\\tb\\ta\\t0.900000\\n")
    b'b\\ta\\t0.900000\\n'
    """
    return _fields(line)[2] + b"\n"


def parse_removed(line: bytes) -> tuple[bytes, bytes, str]:
    """(id, kept, similarity) of a line that `removed_line` has made; WireError for any other.

    >>> parse_removed(b"b\\ta\\t0.900000\\n")
    (b'b', b'a', '0.900000')
    """
    found = _PRINTED.fullmatch(line)
    if not found:
        raise WireError(
            f"expected ID KEPT SIMILARITY, as --output removed writes them, got {shown(line)}"
        )
    id_, kept, similarity = found[1].split(b"\t")
    return id_, kept, similarity.decode()


def _fields(line: bytes) -> re.Match[bytes]:
    found = _LINE.fullmatch(line)
    if not found:
        raise WireError(f"expected PLACE ID KEPT SIMILARITY, got {shown(line)}")
    return found
