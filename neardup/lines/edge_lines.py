r"""Edge lines, from the reducer to the decision: parse beside format.

    LATER TAB EARLIER TAB 0.912345      a pair of records with tagged ids, see `tagged_ids`
    LATER TAB EARLIER TAB =             … with one and the same set
    RECORD TAB .                        this record is in a pair
    RECORD TAB CROWD TAB C TAB SET      … is one of a crowd, whose pairs are left to the decision;
                                        C is 1 where others have the same set

Every record that is in a pair begins a line, so that the lines in order have all of them in order
of priority.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from neardup.process.errors import WireError, shown

SAME_SET = b"="
_SIMILARITY = re.compile(rb"=|0\.[0-9]{6}|1\.000000")


class Edge(NamedTuple):
    earlier: bytes
    similarity: bytes  # six decimals, or SAME_SET


class Member(NamedTuple):
    crowd: bytes
    has_copies: bool
    set_text: bytes  # see `lines.set_text`


def format_edge(a: bytes, b: bytes, similarity: bytes) -> bytes:
    """A line for two tagged ids; the larger one is of the later record."""
    return b"%b\t%b\t%b\n" % (max(a, b), min(a, b), similarity)


def format_presence(record: bytes) -> bytes:
    return b"%b\t.\n" % record


def format_member(record: bytes, member: Member) -> bytes:
    return b"%b\t%b\t%d\t%b\n" % (record, *member)


def parse_edge_line(line: bytes) -> tuple[bytes, Edge | Member | None]:
    """(record, what the line tells of it); WireError for any other line.

    >>> parse_edge_line(b"b\\ta\\t=\\n"), parse_edge_line(b"a\\t.\\n")
    ((b'b', Edge(earlier=b'a', similarity=b'=')), (b'a', None))
    """
    fields = line.rstrip(b"\t\n").split(b"\t")  # Hadoop may add a tab behind a line
    record = fields[0]
    if len(fields) == 3 and record and _SIMILARITY.fullmatch(fields[2]):
        return record, Edge(fields[1], fields[2])
    if len(fields) == 2 and record and fields[1] == b".":
        return record, None
    if len(fields) == 4 and record and fields[2] in (b"0", b"1"):
        return record, Member(fields[1], fields[2] == b"1", fields[3])
    if len(fields) >= 3 and fields[2].startswith(b"~"):
        raise WireError(
            f"a pair of --verify sketch is an estimate, and a decision needs exact ones; leave "
            f"--verify out: {shown(line)}"
        )
    raise WireError(f"expected an edge, as reducer.py writes them, got {shown(line)}")
