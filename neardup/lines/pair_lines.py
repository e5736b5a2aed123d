"""Pair lines, `A TAB B TAB SIMILARITY`: parse beside format.

The similarity has six decimals, so that the order of lines is the order of similarities.
"""

from __future__ import annotations

import re

from neardup.process.errors import WireError, shown

_SIMILARITY = re.compile(rb"[01]\.[0-9]{6}")


def format_pair(a: bytes, b: bytes, similarity: bytes, directed: bool = False) -> bytes:
    """`a TAB b TAB similarity` and a line end; in byte order, unless the pair is directed."""
    if b < a and not directed:
        a, b = b, a
    return b"%b\t%b\t%b\n" % (a, b, similarity)


def parse_pair(line: bytes) -> tuple[bytes, bytes, bytes]:
    """(a, b, similarity) of a pair line; the tab that Hadoop may add behind it is cut off."""
    fields = line.rstrip(b"\n").split(b"\t")
    if len(fields) == 4 and not fields[3]:
        fields.pop()
    if len(fields) != 3 or not all(fields) or not _SIMILARITY.fullmatch(fields[2]):
        raise WireError(f"expected A B SIMILARITY, got {shown(line)}")
    return fields[0], fields[1], fields[2]
