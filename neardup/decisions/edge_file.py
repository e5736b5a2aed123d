"""The edges of a decision on disk, and numbers for the records in them.

What is held is a place for each record that is in a pair, eight bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import IO, NamedTuple

import numpy as np

from neardup.lines.edge_lines import Edge, Member, parse_edge_line
from neardup.lines.tagged_ids import Tag
from neardup.process.counters import Counters
from neardup.process.errors import StageError, WireError
from neardup.reading.places import NEW

BATCH_BYTES = 1 << 16
READ_BYTES = 1 << 12  # of one record


class Near(NamedTuple):
    """The earlier record of an edge: its number, id, where that is in the file, the similarity."""

    number: int
    record: bytes
    position: int
    similarity: bytes  # or SAME_SET


class Membership(NamedTuple):
    crowd: bytes
    has_copies: bool
    set_text: bytes
    line: int  # where in the file its line begins


class Head(NamedTuple):
    """A record, its edges to earlier ones, and the crowds that it is a member of."""

    number: int
    record: bytes
    position: int
    edges: list[Near]
    crowds: list[Membership]


class EdgeFile:
    """Edge lines, to be gone through in order of records; `count` records begin a line."""

    def __init__(self, file: IO[bytes], blocks: Iterable[bytes], tag: Tag, counters: Counters):
        """Put `blocks` of whole lines into an empty file, which stays open as long as this is used.

        StageError where the lines are not in order, or no edges.
        """
        self.tag = tag
        self.file = file
        places = array("Q")
        before = b""
        for block in blocks:
            counters.alive()
            self.file.write(block)
            heads = [line.partition(b"\t")[0] for line in block.splitlines()]
            heads = [head for head, _ in groupby([before, *heads])][1:]
            if any(b < a for a, b in zip([before, *heads], heads)):
                raise StageError("the edges are not in order; put LC_ALL=C sort in front")
            if heads:
                try:
                    places.frombytes(tag.places(heads).tobytes())
                except WireError:
                    parse_edge_line(block.partition(b"\n")[0])  # may tell better what this is
                    raise
                before = heads[-1]
        self.file.flush()
        self.places = np.frombuffer(places, np.uint64) if places else np.empty(0, np.uint64)
        self.places.sort()
        if (self.places[1:] == self.places[:-1]).any():
            raise StageError(
                "two records have one place in the input: --keep is another one than mapper.py "
                "had, or several mappers have read standard input, and each calls its first line "
                "the first; name the files to one mapper.py"
            )

    @property
    def count(self) -> int:
        return len(self.places)

    @property
    def old(self) -> int:
        """How many records are old; they have the first numbers."""
        return int(np.searchsorted(self.places, np.uint64(NEW)))

    def batches(self) -> Iterator[list[Head]]:
        """All records in order, some at a time."""
        position, rest = 0, b""
        while data := self._at(position + len(rest), BATCH_BYTES):
            data = rest + data
            cut = data.rfind(b"\n") + 1
            # The lines of a record stay together: its last ones here may not be its last.
            last = data[data.rfind(b"\n", 0, max(0, cut - 1)) + 1 : cut].partition(b"\t")[0]
            cut = _start_of(data, last, cut)
            yield self._heads(data[:cut], position)
            position += cut
            rest = data[cut:]
        yield self._heads(rest, position)

    def record_at(self, position: int) -> bytes:
        """The tagged id that begins there."""
        return self._read(position, b"\t")

    def member_at(self, line: int) -> tuple[Near, bytes]:
        """The record and the set of the member whose line begins there."""
        record, told = parse_edge_line(self._read(line, b"\n"))
        assert isinstance(told, Member)
        return Near(self._numbers([record])[0], record, line, b""), told.set_text

    def _read(self, position: int, end: bytes) -> bytes:
        """From there to before the first `end`."""
        data = b""
        while end not in data:
            more = self._at(position + len(data), READ_BYTES)
            if not more:
                raise WireError("a line of an edge was cut short")
            data += more
        return data.partition(end)[0]

    def _at(self, position: int, count: int) -> bytes:
        """So many bytes of the file, which may be one in memory."""
        self.file.seek(position)
        return self.file.read(count)

    def _heads(self, block: bytes, position: int) -> list[Head]:
        lines = block.splitlines(keepends=True)
        parsed = [parse_edge_line(line) for line in lines]
        heads = [head for head, _ in parsed]
        others = [told.earlier for _, told in parsed if isinstance(told, Edge)]
        numbers = self._numbers(heads + others)
        near = iter(numbers[len(heads) :])
        found: list[Head] = []
        last = -1
        for line, (record, told), number in zip(lines, parsed, numbers):
            if number != last:
                head = Head(number, record, position, [], [])
                found.append(head)
                last = number
            if isinstance(told, Edge):
                other = position + len(record) + 1
                head.edges.append(Near(next(near), told.earlier, other, told.similarity))
            elif told:
                head.crowds.append(Membership(told.crowd, told.has_copies, told.set_text, position))
            position += len(line)
        return found

    def _numbers(self, records: list[bytes]) -> list[int]:
        """The number of each record: its rank by place."""
        places = self.tag.places(records)
        numbers = np.searchsorted(self.places, places)
        if len(places) and not (self.places[np.minimum(numbers, self.count - 1)] == places).all():
            raise WireError("an edge leads to a record that has no line; run the reducers again")
        return numbers.tolist()


def _start_of(data: bytes, record: bytes, end: int) -> int:
    """Where the lines of this record begin, which are the last ones before `end`.

    >>> _start_of(b"a\\tx\\nb\\t.\\nb\\ta\\t=\\n", b"b", 14)
    4
    """
    mark = record + b"\t"
    while end:
        start = data.rfind(b"\n", 0, end - 1) + 1
        if not data.startswith(mark, start):
            break
        end = start
    return end
