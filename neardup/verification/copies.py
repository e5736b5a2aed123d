"""Copies in a large bucket, found while it is read: a million of one set cost one look each.

In byte order, a bucket's lines are in order of size and then of id: equal sets have one size, and
the first line of a set has the smallest of its ids.

What is held: the sets of one size, up to `KNOWN_BYTES`.  What is more passes with its copies, to be
sorted by set; then all copies of a set come behind its first line, and one is enough to hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from neardup.verification.buckets import Spool

KNOWN_BYTES = 8 << 20
SET_BYTES = 256  # what a set takes beside its line and itself
BY_SET = ["-u", "-t", "\t", "-k2,2", "-k4,4", "-k3"]  # and the first id of each set first
Copies = dict[bytes, list[bytes]]  # from the first line of a set, with its end, to later ids


def without_copies(spool: Spool, result: IO[bytes], by_set: bool = False) -> Iterator[Copies]:
    """Write the lines of a spool to `result` but for copies of sets known by then; and yield these.

    They come in order, those of a piece at a time.  `by_set`: the spool is in order of `BY_SET`,
    and all copies are found.
    """
    known: dict[bytes, bytes] = {}  # from a set to its first line
    room, before = KNOWN_BYTES, b""
    spool.file.seek(0)
    while lines := spool.file.readlines(spool.piece_bytes):
        copies: Copies = {}
        for line in lines:
            _, size, id_, set_ = line.split(b"\t")
            together = set_ if by_set else size
            if together != before:
                known.clear()
                room, before = KNOWN_BYTES, together
            first = known.get(set_)
            if first is not None:
                copies.setdefault(first, []).append(id_)
                continue
            result.write(line)
            if by_set or room > 0:
                room -= 2 * len(line) + SET_BYTES
                known[set_] = line
        yield copies
