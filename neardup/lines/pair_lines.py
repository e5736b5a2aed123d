"""Pair lines, `A TAB B TAB SIMILARITY`: parse beside format.

Of two collections (--against) they have a fourth field, and a fifth where pairs have a direction;
see `verification.across_join`.

The similarity has six decimals, so that the order of lines is the order of similarities.  Where it
is estimated (--verify sketch), the ends of an interval stand there instead: `~0.871123..0.953234`.
No program takes that for a number: `exact_pair` refuses it.
"""

from __future__ import annotations

import re

from neardup.process.errors import WireError, shown

_NUMBER = rb"(?:0\.[0-9]{6}|1\.000000)"
# Hadoop may add a tab behind a line.
_PAIR = re.compile(
    rb"([^\0\t\r\n]+)\t([^\0\t\r\n]+)\t(%b|~%b\.\.%b)"
    rb"((?:\t(?:old|new)(?:\tcontain(?:s|ed))?)?)\t?\n?" % ((_NUMBER,) * 3)
)
_ESTIMATE = b"~"


def format_pair(a: bytes, b: bytes, similarity: bytes, directed: bool = False) -> bytes:
    """`a TAB b TAB similarity` and a line end; in byte order, unless the pair is directed."""
    if b < a and not directed:
        a, b = b, a
    return b"%b\t%b\t%b\n" % (a, b, similarity)


def parse_pair(line: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """(a, b, similarity, the rest) of a pair line; WireError for any other.

    Either id may be the smaller one, as containment has pairs of both directions.
    """
    found = _PAIR.fullmatch(line)
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
