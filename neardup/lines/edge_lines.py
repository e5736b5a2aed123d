r"""Edge lines, from the reducer to the decision: parse beside format.

    LATER TAB EARLIER TAB 0.912345678901234567    a pair of records with tagged ids, see
                                        `tagged_ids`; similarities of 18 decimals keep their order
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
EDGE, MEMBER = 3, 4  # how many fields their lines have
_SIMILARITY = re.compile(rb"=|0\.[0-9]{18}|1\.0{18}")


class Edge(NamedTuple):
    earlier: bytes
    similarity: bytes  # 18 decimals, or SAME_SET


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
    (fields,) = parse_edge_lines([line])
    record = fields[0]
    if len(fields) == EDGE:
        return record, Edge(fields[1], fields[2])
    if len(fields) == MEMBER:
        return record, member(fields)
    return record, None


def parse_edge_lines(lines: list[bytes]) -> list[list[bytes]]:
    """The fields of each line: two of a presence, else as many as `EDGE` and `MEMBER` say."""
    fields = [line.rstrip(b"\t\n").split(b"\t") for line in lines]  # Hadoop may add a tab behind
    similarities = {some[2] for some in fields if len(some) == EDGE}
    known = set(filter(_SIMILARITY.fullmatch, similarities))
    for some, line in zip(fields, lines):
        if len(some) != EDGE or some[2] not in known or not some[0]:
            _check_other(some, line)
    return fields


def member(fields: list[bytes]) -> Member:
    _, crowd, has_copies, set_text = fields
    return Member(crowd, has_copies == b"1", set_text)


def _check_other(fields: list[bytes], line: bytes) -> None:
    """WireError where this is no presence and no member of a crowd."""
    if fields[0] and (
        (len(fields) == 2 and fields[1] == b".")
        or (len(fields) == MEMBER and fields[2] in (b"0", b"1"))
    ):
        return
    if len(fields) >= 3 and fields[2].startswith(b"~"):
        raise WireError(
            f"a pair of --verify sketch is an estimate, and a decision needs exact ones; leave "
            f"--verify out: {shown(line)}"
        )
    raise WireError(f"expected an edge, as reducer.py writes them, got {shown(line)}")
