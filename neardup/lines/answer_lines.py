r"""Formatters and parsers for lines of pairs, edges and decided records, and for tagged ids.

Hadoop may add a tab to each line.

pairs       A TAB B TAB SIMILARITY
            six decimals, so that the order of lines is the order of similarities; for an estimate
            (--verify sketch) the ends of an interval, `~0.871123..0.953234`, which no program takes
            for a number.  Pairs of two collections (--against) have a fourth field, and directed
            ones a fifth: see `verification.record_pairs`

edges       LATER TAB EARLIER TAB 0.912345678901234567    a pair of records with tagged ids; 18
                                                decimals keep the order
            LATER TAB EARLIER TAB =             … with the same set
            RECORD TAB .                        this record is in a pair
            RECORD TAB CLUSTER TAB C TAB SET    … is in a dense cluster, whose pairs are left to the
                                                decision; C is 1 where others have the same set
            Each record of a pair begins a line: the sorted lines list all of them by priority

decided     PLACE TAB ID TAB KEPT TAB SIMILARITY
            a removed record and the one that it duplicates: `--output removed` prints all but
            PLACE, the place in the input (`reading.blocks`) in sixteen hexadecimal digits; the
            similarity is `-` where the two are not a pair

tagged ids  1 PLACE ID                          --keep first
            1 SIZE PLACE ID                     --keep longest
            1 ID \1 PLACE                       --keep smallest
            1 ID                                pairs
            └ 0 for an old record

Records are decided in the byte order of their tagged ids, old ones (--against) before all new ones.
PLACE has sixteen hexadecimal digits.  SIZE is 2^32-1 less the number of shingles, in eight.  A \1
in an id becomes \1 DEL, so that shorter ids still come first.
"""

import re
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS
from neardup.reading.blocks import NEW
from neardup.runtime.program import WireError, shown
from neardup.sets.ragged import Batch

_NUMBER = rb"(?:0\.[0-9]{6}|1\.000000)"
_PAIR = (
    rb"([^\0\t\r\n]+)\t([^\0\t\r\n]+)\t(%b|~%b\.\.%b)"
    rb"((?:\t(?:old|new)(?:\tcontain(?:s|ed))?)?)\t?\n?" % ((_NUMBER,) * 3)
)
SAME_SET = b"="
NO_PAIR = b"-"  # as the similarity of a removed record and the kept one
EDGE, MEMBER = 3, 4  # fields of their lines
_WITH_BITS = re.compile(rb"([^\t]+\t[^\t]+\t%b)\t[0-9]+\t?\n?" % _NUMBER)  # of `neardup images`
_SIMILARITY = rb"=|0\.[0-9]{18}|1\.0{18}"
_PRESENCE_OR_MEMBER = rb"[^\t]+\t(?:\.|[^\t]*\t[01]\t[^\t]*)[\t\n]*"
_REMOVED = rb"[^\0\t\r\n]+\t[^\0\t\r\n]+\t(?:0\.[0-9]{6}|1\.000000|-)"
_DECIDED = rb"([0-9a-f]{16})\t(%b)\t?\n?" % _REMOVED


def format_pair(a: bytes, b: bytes, similarity: bytes, directed: bool = False) -> bytes:
    """Return a pair line, with the ids in byte order unless the pair is directed."""
    if b < a and not directed:
        a, b = b, a
    return b"%b\t%b\t%b\n" % (a, b, similarity)


def parse_pair(line: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Return (id, id, similarity, further fields) of a pair line; WireError for any other line.

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
    """Return the text of an interval, given in millionths.

    >>> format_interval(871123, 1000000)
    b'~0.871123..1.000000'
    """
    return b"~%d.%06d..%d.%06d" % (*divmod(low, 10**6), *divmod(high, 10**6))


def format_estimate(a: bytes, b: bytes, low: int, high: int, estimate: int) -> bytes:
    r"""Return a line of `similar`: two ids, an interval, and the estimate.

    >>> format_estimate(b"a", b"b", 871123, 1000000, 950000)
    b'a\tb\t~0.871123..1.000000\t0.950000\n'
    """
    interval = format_interval(low, high)
    return b"%b\t%b\t%b\t%d.%06d\n" % (a, b, interval, *divmod(estimate, 10**6))


def is_estimate(similarity: bytes) -> bool:
    return similarity.startswith(b"~")


def _refuse_estimate(fields: list[bytes], line: bytes) -> None:
    if len(fields) > 2 and is_estimate(fields[2]):
        raise WireError(
            "expected exact pairs, got an estimate of --verify sketch or `similar`; run the job "
            f"without --verify: {shown(line)}"
        )


def exact_pair(line: bytes) -> tuple[bytes, bytes, bytes]:
    r"""Return (id, id, similarity) of a pair line; WireError for other lines and for estimates.

    The number of bits that differ, which `neardup images` adds to a line, is left out:

    >>> exact_pair(b"a\tb\t0.976562\t6\n")
    (b'a', b'b', b'0.976562')
    """
    _refuse_estimate(line.split(b"\t"), line)
    with_bits = _WITH_BITS.fullmatch(line)
    return parse_pair(with_bits[1] if with_bits else line)[:3]


class Member(NamedTuple):
    cluster: bytes
    has_copies: bool
    set_text: bytes  # see `lines.keyed_lines`


def format_edge(a: bytes, b: bytes, similarity: bytes) -> bytes:
    """Return the edge line of two tagged ids, with the larger id (the later record) first."""
    return b"%b\t%b\t%b\n" % (max(a, b), min(a, b), similarity)


def format_presence(record: bytes) -> bytes:
    return b"%b\t.\n" % record


def format_member(record: bytes, member: Member) -> bytes:
    return b"%b\t%b\t%d\t%b\n" % (record, *member)


def parse_edge_lines(lines: list[bytes]) -> list[list[bytes]]:
    r"""Return the fields of each edge line, see `EDGE` and `MEMBER`; WireError for other lines.

    >>> parse_edge_lines([b"b\ta\t=\n", b"a\t.\n"])
    [[b'b', b'a', b'='], [b'a', b'.']]
    """
    fields = [line.rstrip(b"\t\n").split(b"\t") for line in lines]  # Hadoop may add a tab behind
    similarities = {some[2] for some in fields if len(some) == EDGE}
    known = set(filter(re.compile(_SIMILARITY).fullmatch, similarities))
    for some, line in zip(fields, lines):
        is_edge = len(some) == EDGE and some[2] in known and some[0]
        if not is_edge and not re.fullmatch(_PRESENCE_OR_MEMBER, line):
            _refuse_estimate(some, line)
            raise WireError(f"expected an edge, as reducer.py writes it, got {shown(line)}")
    return fields


def member(fields: list[bytes]) -> Member:
    _, cluster, has_copies, set_text = fields
    return Member(cluster, has_copies == b"1", set_text)


def format_decided(place: bytes, id_: bytes, kept: bytes, similarity: bytes) -> bytes:
    """Return a decided line; `place` is in hexadecimal digits."""
    return b"%b\t%b\t%b\t%b\n" % (place, id_, kept, similarity)


def parse_decided(line: bytes) -> tuple[int, bytes]:
    """Return (place, id) of a decided line; WireError for any other line."""
    found = _decided(line)
    return int(found[1], 16), found[2].partition(b"\t")[0]


def removed_line(line: bytes) -> bytes:
    """Return a decided line without the place: a line of --output removed.

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
    """Return (id, kept, similarity) of a line of --output removed; WireError for any other line."""
    if not re.fullmatch(rb"%b\t?\n?" % _REMOVED, line):
        raise WireError(
            f"expected ID KEPT SIMILARITY, as --output removed writes them, got {shown(line)}"
        )
    id_, kept, similarity = line.split(b"\t")[:3]
    return id_, kept, similarity.rstrip(b"\n").decode()


OLD = b"0"
_MOST = (1 << 32) - 1
_PLACED = re.compile(rb"(?:0[0-7]|1[89a-f])[0-9a-f]{15}")  # places from NEW on are of new records
_END, _ESCAPED = b"\1", b"\1\x7f"


class Tag(NamedTuple):
    """A kind of tagged id: its format after the old/new digit, and where PLACE and ID are in it."""

    help: str
    form: bytes
    place: slice
    id: slice
    escaped: bool = False

    def tagged(self, batch: Batch) -> Batch:
        """Return a batch whose ids are tagged."""
        ids = [id_.replace(_END, _ESCAPED) for id_ in batch.ids] if self.escaped else batch.ids
        rest = (_MOST - batch.sets.sizes).tolist()
        form = b"%(new)d" + self.form
        tagged = [
            form % {b"new": place >= NEW, b"place": place, b"id": id_, b"rest": rest_}
            for place, id_, rest_ in zip(batch.places.tolist(), ids, rest)
        ]
        return Batch(tagged, batch.sets, places=batch.places)

    def id_of(self, tagged: bytes) -> bytes:
        """Return a tagged id without its tag.

        >>> PRIORITIES["first"].id_of(b"18000000000000007v1")
        b'v1'
        """
        id_ = tagged[self.id]
        return id_.replace(_ESCAPED, _END) if self.escaped else id_

    def ids_of(self, tagged: list[bytes]) -> list[bytes]:
        return list(map(self.id_of, tagged)) if self.escaped else [id_[self.id] for id_ in tagged]

    def places(self, tagged: list[bytes]) -> np.ndarray:
        """Return the places in tagged ids (uint64); WireError for ids tagged by other options."""
        parts = [id_[:1] + id_[self.place] for id_ in tagged]
        if not all(map(_PLACED.fullmatch, parts)):
            wrong = next(id_ for id_, part in zip(tagged, parts) if not _PLACED.fullmatch(part))
            raise WireError(
                "expected a record with its place, as reducer.py writes it when given the "
                f"same --output and --keep, got {shown(wrong)}"
            )
        places = bytes.fromhex(b"".join([part[1:] for part in parts]).decode())
        return np.frombuffer(places, dtype=">u8").astype(np.uint64)


_FIRST = "the one that comes first in the input"
_LONGEST = "the one with the most shingles (ties go to the first)"
_SMALLEST = "the one with the smallest id, compared byte by byte"
PRIORITIES = {
    "first": Tag(_FIRST, b"%(place)016x%(id)b", slice(1, 17), slice(17, None)),
    "longest": Tag(_LONGEST, b"%(rest)08x%(place)016x%(id)b", slice(9, 25), slice(25, None)),
    "smallest": Tag(_SMALLEST, b"%(id)b\1%(place)016x", slice(-16, None), slice(1, -17), True),
}
COLLECTION = Tag("the collection of the record", b"%(id)b", slice(0, 0), slice(1, None))


def mark_of(decides: str, keep: str, against: bool, between: bool) -> int:
    """Return the 40-bit mark of these options, to be XORed into keys on lines; 0 for plain pairs.

    A reducer with other options finds no key that is its own.  `decides`: as in
    `verification.Output`; `keep`: "" where no records are decided on.
    """
    way = decides, keep, against, between
    digest = blake2b(repr(way).encode(), digest_size=HASH_BITS // 8).digest()
    return int.from_bytes(digest, "big") if any(way) else 0


def is_old(tagged: bytes) -> bool:
    """Return whether a tagged id is that of an old record; WireError for an id without a tag."""
    if tagged[:1] not in (OLD, b"1"):
        raise WireError(
            f"expected a record of one of two collections, as mapper.py writes it when given "
            f"the same --output and --against, got {shown(tagged)}"
        )
    return tagged[:1] == OLD
