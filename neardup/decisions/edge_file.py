"""The file of edges that a decision reads, and the numbers of the records in it.

The number of a record is its rank by place in the input, old records first.  An edge is on a line
of the record that is later in the order of the decision.  Held in memory: eight bytes, the place,
for each record that is in a pair, and until all are read 16 more for each twin (--across).  More
records than it may hold are only counted: `stages.edge_groups` then divides the file.
"""

import sys
from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain, groupby
from operator import gt, lt
from typing import IO, NamedTuple

import numpy as np

from neardup.lines import answer_lines
from neardup.lines.tagged_ids import Tag
from neardup.reading.blocks import NEW
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, WireError

BATCH_BYTES = 1 << 16  # bytes of edges read at once
READ_BYTES = 1 << 12  # read at once for one record
READ_AGAIN = 8  # ids that are cached


class Near(NamedTuple):
    """An edge from a record to an earlier one; the fields describe the earlier one and the edge."""

    record: bytes
    number: int
    position: int  # where its id begins in the file
    similarity: int  # 0 … IDENTICAL
    same: bool = False  # both records have the same set; if they are twins, the similarity is 0


class Membership(NamedTuple):
    """A record's membership in a dense cluster, parsed from a line of the edge file."""

    cluster: bytes
    has_copies: bool
    set_text: bytes
    line: int  # the position where that line begins


class Head(NamedTuple):
    """A record, its edges to earlier records, and its memberships in dense clusters."""

    number: int
    record: bytes
    position: int
    edges: list[Near]
    clusters: list[Membership]


class Heads(NamedTuple):
    """A batch of n records with their E edges and memberships in dense clusters, as columns."""

    numbers: np.ndarray  # n numbers of records
    records: list[bytes]
    positions: np.ndarray
    bounds: np.ndarray  # of n+1: record i has edges bounds[i] … bounds[i+1]-1
    near: np.ndarray  # of E: the numbers of the earlier records; the rest as in `Near`
    near_records: list[bytes]
    near_positions: np.ndarray
    similarity: np.ndarray
    same: np.ndarray  # bool
    clusters: dict[bytes, list[Membership]]  # by record

    def one_by_one(self, chosen: list[int]) -> list[Head]:
        """Return the records with the chosen indices as `Head` objects."""
        columns = self.near, self.near_positions, self.similarity, self.same
        edges = [self.near_records, *(column.tolist() for column in columns)]
        columns_of_heads = self.numbers, self.positions, self.bounds
        numbers, positions, bounds = (column.tolist() for column in columns_of_heads)
        heads = []
        for i in chosen:
            near = list(map(Near, *(column[bounds[i] : bounds[i + 1]] for column in edges)))
            clusters = self.clusters.get(self.records[i], [])
            heads.append(Head(numbers[i], self.records[i], positions[i], near, clusters))
        return heads

    def alone(self) -> np.ndarray:
        """Return a mask (bool) of the records that are not in a dense cluster."""
        return np.array([record not in self.clusters for record in self.records], bool)

    def owners(self) -> np.ndarray:
        """Return, for each edge, the index of its later record (int64 (E,))."""
        return np.repeat(np.arange(len(self.records)), np.diff(self.bounds))


class EdgeFile:
    """The edge lines of `count` records, of which `old` are old, read in order or by position."""

    def __init__(
        self,
        file: IO[bytes],
        blocks: Iterable[bytes],
        tag: Tag,
        counters: Counters,
        most: int = sys.maxsize,
    ):
        """Write `blocks` of whole lines to the empty `file`, which must remain open.

        most: the maximum number of records; if there are more, it does not `fit`
        StageError if the lines are not edges or not in order, or if two records have one place.
        """
        self.tag = tag
        self.file = file
        self.record_at = lru_cache(READ_AGAIN)(partial(self._read, end=b"\t"))  # by position
        places, twins = array("Q"), array("Q")  # of all records; of twins, each with its first one
        before, self.count = b"", 0
        for block in blocks:
            counters.alive()
            self.file.write(block)
            heads = [line.partition(b"\t")[0] for line in block.splitlines()]
            heads = [head for head, _ in groupby([before, *heads])][1:]
            if any(map(lt, heads, [before, *heads])):
                raise StageError("the edges are not in order; sort them first: LC_ALL=C sort")
            self.count += len(heads)
            before = heads[-1] if heads else before
            if self.count > most:
                places, twins = array("Q"), array("Q")
                continue
            if heads:
                try:
                    places.frombytes(tag.places(heads).tobytes())
                except WireError:
                    answer_lines.parse_edge_lines([block.partition(b"\n")[0]])  # a better error
                    raise
            if tag.apart:
                fields = (line.split(b"\t") for line in block.splitlines())
                two = [some[:2] for some in fields if some[2:3] == [answer_lines.TWIN]]
                twins.frombytes(tag.places(list(chain.from_iterable(two))).tobytes())
        self.file.flush()
        self.fits = self.count <= most
        if not self.fits:
            return
        self.places = np.frombuffer(places, np.uint64) if places else np.empty(0, np.uint64)
        self.places.sort()
        if (self.places[1:] == self.places[:-1]).any():
            raise StageError(
                "two records have the same place in the input: --keep differs from that of "
                "mapper.py, or several mappers have read standard input, each from line 1; give "
                "all files to one mapper.py by name"
            )
        self.lone = bool(twins) and self._drop_lone(np.array(twins, np.uint64).reshape(-1, 2))
        self.count = len(self.places)
        self.old = int(np.searchsorted(self.places, np.uint64(NEW)))  # old ones come first

    def _drop_lone(self, twins: np.ndarray) -> bool:
        """Leave out the twins of a record that is in no pair; return whether there are any.

        The first of such twins has no line of its own.
        """
        later, first = twins.T
        in_pairs = np.setdiff1d(self.places, later)
        lone = later[~np.isin(first, in_pairs)]
        self.places = np.setdiff1d(self.places, lone)
        return len(lone) > 0

    def batches(self) -> Iterator[Heads]:
        """Yield all records with their edges, in order, in batches."""
        position, rest = 0, b""
        while data := self._at(position + len(rest), BATCH_BYTES):
            lines = (rest + data).splitlines(keepends=True)
            end = len(lines) - (data[-1:] != b"\n")  # the last line may be incomplete
            # Keep the lines of a record together: more lines of the last one may follow.
            mark = lines[end - 1].partition(b"\t")[0] + b"\t"
            while end and lines[end - 1].startswith(mark):
                end -= 1
            yield self._heads(lines[:end], position)
            rest = b"".join(lines[end:])
            position += sum(map(len, lines[:end]))
        yield self._heads(rest.splitlines(keepends=True), position)

    def member_at(self, line: int) -> tuple[Near, bytes]:
        """Read the member line at position `line`; return the record and the text of its set."""
        (fields,) = answer_lines.parse_edge_lines([self._read(line, b"\n")])
        number = int(self.numbers(fields[:1])[0])
        return Near(fields[0], number, line, 0), answer_lines.member(fields).set_text

    def _read(self, position: int, end: bytes) -> bytes:
        """Return the bytes from a position up to the next `end`."""
        data = b""
        while end not in data:
            more = self._at(position + len(data), READ_BYTES)
            if not more:
                raise WireError("an edge line was cut short; run the reducers again")
            data += more
        return data.partition(end)[0]

    def _at(self, position: int, count: int) -> bytes:
        self.file.seek(position)
        return self.file.read(count)

    def _heads(self, lines: list[bytes], position: int) -> Heads:
        fields = answer_lines.parse_edge_lines(lines)
        starts = position + np.cumsum([0, *map(len, lines)])
        if self.lone:
            listed = np.flatnonzero(self._number([some[0] for some in fields])[1])
            fields, starts = [fields[i] for i in listed.tolist()], starts[listed]
        if any(map(gt, fields, fields[1:])):  # Hadoop sorts by the first fields alone
            order = sorted(range(len(fields)), key=fields.__getitem__)
            fields, starts = [fields[i] for i in order], starts[order]
        records = [some[0] for some in fields]
        first = [i for i, (a, b) in enumerate(zip(records, [b"", *records])) if a != b]
        heads = [records[i] for i in first]
        edges = [i for i, some in enumerate(fields) if len(some) == answer_lines.EDGE]
        near, texts = [fields[i][1] for i in edges], [fields[i][2] for i in edges]
        numbers = self.numbers(heads + near)
        numbers_of = {text: answer_lines.as_number(text) for text in set(texts)}
        clusters: dict[bytes, list[Membership]] = {}
        for some, start in zip(fields, starts.tolist()):
            if len(some) == answer_lines.MEMBER:
                member = Membership(*answer_lines.member(some), start)
                clusters.setdefault(some[0], []).append(member)
        return Heads(
            numbers[: len(heads)],
            heads,
            starts[first],
            np.searchsorted(edges, [*first, len(fields)]),
            numbers[len(heads) :],
            near,
            np.array([starts[i] + len(records[i]) + 1 for i in edges], np.int64),
            np.array([numbers_of[text] for text in texts], np.int64),
            np.array([text in (answer_lines.SAME_SET, answer_lines.TWIN) for text in texts], bool),
            clusters,
        )

    def numbers(self, records: list[bytes]) -> np.ndarray:
        """Return the number (rank by place) of each tagged id (int64); WireError if it has none."""
        numbers, known = self._number(records)
        if not known.all():
            raise WireError("an edge leads to a record that has no line; run the reducers again")
        return numbers

    def _number(self, records: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
        places = self.tag.places(records)
        numbers = np.searchsorted(self.places, places)
        if not self.count:
            return numbers, np.zeros(len(places), bool)
        return numbers, self.places[np.minimum(numbers, self.count - 1)] == places
