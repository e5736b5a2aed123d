r"""Lines of pairs, edges and decided records: parse beside format.  Hadoop may add a tab to each.

pairs       A TAB B TAB SIMILARITY
            six decimals, so that the order of lines is the order of similarities; an estimate
            (--verify sketch) has the ends of an interval there, `~0.871123..0.953234`, which no
            program takes for a number.  Pairs of two collections (--against) have a fourth field,
            and a fifth where they have a direction, see `verification.record_pairs`

edges       LATER TAB EARLIER TAB 0.912345678901234567    a pair of records with tagged ids, see
                                                `tagged_ids`; 18 decimals keep the order
            LATER TAB EARLIER TAB =             … with one and the same set
            RECORD TAB .                        this record is in a pair
            RECORD TAB CLUSTER TAB C TAB SET    … is in a dense cluster, whose pairs are left to the
                                                decision; C is 1 where others have the same set
            Every record that is in a pair begins a line, so that the sorted lines have all of them
            in order of priority

decided     PLACE TAB ID TAB KEPT TAB SIMILARITY
            a removed record, and the one that it duplicates: `--output removed` prints all but
            PLACE, the place in the input (`reading.blocks`) in sixteen hexadecimal digits; the
            similarity is `-` where the two are not a pair
"""

from __future__ import annotations

import re
from typing import NamedTuple

from neardup.runtime.errors import WireError, shown

_NUMBER = rb"(?:0\.[0-9]{6}|1\.000000)"
_PAIR = (
    rb"([^\0\t\r\n]+)\t([^\0\t\r\n]+)\t(%b|~%b\.\.%b)"
    rb"((?:\t(?:old|new)(?:\tcontain(?:s|ed))?)?)\t?\n?" % ((_NUMBER,) * 3)
)
_ESTIMATE = b"~"
SAME_SET = b"="
EDGE, MEMBER = 3, 4  # how many fields their lines have
_SIMILARITY = rb"=|0\.[0-9]{18}|1\.0{18}"
_REMOVED = rb"[^\0\t\r\n]+\t[^\0\t\r\n]+\t(?:0\.[0-9]{6}|1\.000000|-)"
_DECIDED = rb"([0-9a-f]{16})\t(%b)\t?\n?" % _REMOVED


def format_pair(a: bytes, b: bytes, similarity: bytes, directed: bool = False) -> bytes:
    """`a TAB b TAB similarity` and a line end; in byte order, unless the pair is directed."""
    if b < a and not directed:
        a, b = b, a
    return b"%b\t%b\t%b\n" % (a, b, similarity)


def parse_pair(line: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """(a, b, similarity, the rest) of a pair line; WireError for any other.

    Either id may be the smaller one, as containment has pairs of both directions.
    """
    found = re.fullmatch(_PAIR, line)
    try:
        same = found and found[1] == found[2] and not found[4].startswith(b"\told")
        if not found or same or not (line.isascii() or line.decode("utf-8")):
            raise ValueError
    except ValueError:
        message = f"expected A B SIMILARITY, as reducer.py writes them, got {shown(line)}"
        raise WireError(message) from None
    return found[1], found[2], found[3], found[4]


def format_interval(low: int, high: int) -> bytes:
    """The ends of an interval, in millionths, in the place of a similarity.

    >>> format_interval(871123, 1000000)
    b'~0.871123..1.000000'
    """
    return b"%b%d.%06d..%d.%06d" % (_ESTIMATE, *divmod(low, 10**6), *divmod(high, 10**6))


def format_estimate(a: bytes, b: bytes, low: int, high: int, estimate: int) -> bytes:
    r"""A line of `similar`, which has the estimate behind the interval.

    >>> format_estimate(b"a", b"b", 871123, 1000000, 950000)
    b'a\tb\t~0.871123..1.000000\t0.950000\n'
    """
    interval = format_interval(low, high)
    return b"%b\t%b\t%b\t%d.%06d\n" % (a, b, interval, *divmod(estimate, 10**6))


def is_estimate(similarity: bytes) -> bool:
    return similarity.startswith(_ESTIMATE)


def exact_pair(line: bytes) -> tuple[bytes, bytes, bytes]:
    """(a, b, similarity) of a pair line; WireError for any other, and for an estimate."""
    fields = line.split(b"\t")
    if len(fields) > 2 and is_estimate(fields[2]):
        raise WireError(
            f"an estimate, as --verify sketch and `similar` write it, and exact pairs are asked "
            f"for; run the job without --verify: {shown(line)}"
        )
    return parse_pair(line)[:3]


class Edge(NamedTuple):
    earlier: bytes
    similarity: bytes  # 18 decimals, or SAME_SET


class Member(NamedTuple):
    cluster: bytes
    has_copies: bool
    set_text: bytes  # see `lines.keyed_lines`


def format_edge(a: bytes, b: bytes, similarity: bytes) -> bytes:
    """Return a line for two tagged ids; the larger one is of the later record."""
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
    known = set(filter(re.compile(_SIMILARITY).fullmatch, similarities))
    for some, line in zip(fields, lines):
        if len(some) != EDGE or some[2] not in known or not some[0]:
            _check_other(some, line)
    return fields


def member(fields: list[bytes]) -> Member:
    _, cluster, has_copies, set_text = fields
    return Member(cluster, has_copies == b"1", set_text)


def _check_other(fields: list[bytes], line: bytes) -> None:
    """WireError where this is no presence and no member of a dense cluster."""
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


def format_decided(place: bytes, id_: bytes, kept: bytes, similarity: bytes) -> bytes:
    """`place` as its digits."""
    return b"%b\t%b\t%b\t%b\n" % (place, id_, kept, similarity)


def parse_decided(line: bytes) -> tuple[int, bytes]:
    """(place, id) of a decided line; WireError for any other."""
    found = _decided(line)
    return int(found[1], 16), found[2].partition(b"\t")[0]


def removed_line(line: bytes) -> bytes:
    """The same without the place.

    >>> removed_line(b"8000000000000001\\tb\\ta\\t0.900000\\n")
    b'b\\ta\\t0.900000\\n'
    """
    return _decided(line)[2] + b"\n"


def _decided(line: bytes) -> re.Match[bytes]:
    found = re.fullmatch(_DECIDED, line)
    if not found:
        raise WireError(f"expected PLACE ID KEPT SIMILARITY, got {shown(line)}")
    return found


def parse_removed(line: bytes) -> tuple[bytes, bytes, str]:
    """(id, kept, similarity) of a line that `removed_line` returned; WireError for any other.

    >>> parse_removed(b"b\\ta\\t0.900000\\n")
    (b'b', b'a', '0.900000')
    """
    if not re.fullmatch(rb"%b\t?\n?" % _REMOVED, line):
        raise WireError(
            f"expected ID KEPT SIMILARITY, as --output removed writes them, got {shown(line)}"
        )
    id_, kept, similarity = line.split(b"\t")[:3]
    return id_, kept, similarity.rstrip(b"\n").decode()
