r"""Links between records, while their clusters grow together round by round: parse beside format.

    NODE TAB NEIGHBOUR      two tagged ids, as --output clusters has them: 1 ID \1 PLACE

No such id begins another one, since only its own PLACE stands behind a bare \1.  So the order of
lines is the order of nodes and then of neighbours, whether whole lines or two fields are sorted.
"""

from __future__ import annotations

import re

from neardup.process.errors import WireError, shown

_RECORD = rb"[01][^\t\n\x01]*(?:\x01\x7f[^\t\n\x01]*)*\x01[0-9a-f]{16}"  # see `tagged_ids`
_LINK = re.compile(rb"(%b)\t(%b)\t?\n?" % (_RECORD, _RECORD))  # Hadoop may add a tab behind a line


def format_link(node: bytes, neighbour: bytes) -> bytes:
    return b"%b\t%b\n" % (node, neighbour)


def parse_link(line: bytes) -> tuple[bytes, bytes]:
    r"""(node, neighbour); WireError for any other line, and for a link of a record to itself.

    >>> parse_link(b"1b\x01000000000000002a\t1a\x01000000000000002b\n")
    (b'1b\x01000000000000002a', b'1a\x01000000000000002b')
    """
    found = _LINK.fullmatch(line)
    if not found or found[1] == found[2]:
        raise WireError(
            f"expected NODE NEIGHBOUR, as connect.py makes them of edges of --output clusters, "
            f"got {shown(line)}"
        )
    return found[1], found[2]
