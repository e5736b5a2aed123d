"""Divide the edges of a decision that does not fit into memory: each part is decided alone.

    edges ── nodes ── buckets, from the last to the first ── trees ── the first to the last ── parts

A decision on a record depends on its connected component alone: on the records that a chain of
edges, or of dense clusters, leads to.  So a part has some components, as a whole, with their lines
in order, and `decided` and `clusters` take it as they take all.

The components are those of a sweep over the nodes (Sibeyn; Dementiev, Sanders, Schultes, Sibeyn
2004): a node that is removed hands its other edges to its lowest neighbour.

    node       the mixed place of a record, or the hash of a dense cluster's name; uniform, 64 bits
    bucket     the nodes with the same first bits: b of them, so that a bucket fits into memory
    edge       two nodes; it is in the bucket of the higher one
    tree       nodes of a bucket that edges inside it connect, named by one of them
    lower      the lowest node in an earlier bucket that a tree has an edge to
    ask        (lower, tree): the tree is in the same part as that node
    part       the number of a part; for a tree without a lower node, a hash of its name

Each edge is read three times in its bucket, and handed down once or not at all; the nodes are
random, so that it is expected to be handed down about ln(buckets) times.  In memory: some 80 bytes
for each node of a bucket, and what a decision holds for each record of a part, of which the
largest component is the least.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from heapq import merge
from itertools import chain
from typing import IO

import numpy as np

from neardup.decisions.edge_file import EdgeFile
from neardup.lines.answer_lines import EDGE, MEMBER, parse_edge_lines
from neardup.lines.id_lines import hashes_of
from neardup.reading.blocks import blocks_of
from neardup.runtime.counters import Counters
from neardup.sets.hashing import mix
from neardup.sets.ragged import Forest
from neardup.stages.external_group import pieces_of, write_rows

HELD_BYTES = 256 << 20  # memory of a decision, unless the caller names another limit
RECORD_BYTES, NODE_BYTES = 28, 80  # memory for a record of a part, and for a node of a bucket
MAX_PARTS = 128
MAX_BITS = 6  # of a bucket's number: 64 buckets, each with six open files
DISTINCT_AT_ONCE = 1 << 20
WORD_BITS = 64
NONE = np.uint64((1 << WORD_BITS) - 1)


class _Buckets:
    """Rows of two words (uint64) in 2^bits files, by the first bits of the first word."""

    def __init__(self, stack: ExitStack, bits: int):
        self.shift = WORD_BITS - bits
        self.files = _temporary(stack, 1 << bits)

    def add(self, *columns: np.ndarray) -> None:
        rows = np.stack([column.astype(np.uint64) for column in columns], axis=1)
        write_rows(rows, self.files, self.shift)

    def of(self, bucket: int) -> Iterator[np.ndarray]:
        """Yield the two columns of a bucket's rows, in the order in which they were added."""
        return (rows.T for rows in pieces_of(self.files[bucket]))

    def first(self, bucket: int) -> np.uint64:
        return np.uint64(bucket << self.shift)


def parts(edges: EdgeFile, memory: int, counters: Counters) -> Iterator[Iterator[bytes]]:
    """Yield the parts of a file of edges, each as blocks of lines; `memory`: bytes for each."""
    number = min(MAX_PARTS, 2 * RECORD_BYTES * edges.count // memory + 1)
    with ExitStack() as stack:
        files = _temporary(stack, number)
        part_of, before, part = _parts(stack, edges, number, memory, counters), b"", 0
        for block in _blocks(edges, counters):
            for line in block.splitlines(keepends=True):
                record = line.partition(b"\t")[0]
                if record != before:
                    before, part = record, next(part_of)
                files[part].write(line)
        for file in files:
            file.seek(0)
            yield blocks_of(file)
            file.close()


def _parts(
    outer: ExitStack, edges: EdgeFile, number: int, memory: int, counters: Counters
) -> Iterator[int]:
    """Return the part, one of `number`, of each record, in order; files are closed by `outer`."""
    bits = min(MAX_BITS, (NODE_BYTES * edges.count // memory).bit_length() + 1)
    ordinal_shift = np.uint64(WORD_BITS - edges.count.bit_length())
    found = _Buckets(outer, bits)
    with ExitStack() as stack:
        joined, records, trees, asks, answers = (_Buckets(stack, bits) for _ in range(5))
        done = 0
        for heads, *ends in _nodes(edges, counters):
            joined.add(np.maximum(*ends), np.minimum(*ends))
            records.add(heads, np.arange(done, done + len(heads)))
            done += len(heads)
        for bucket in reversed(range(1 << bits)):
            counters.alive()
            _sweep(bucket, joined, records, trees, asks)
        for bucket in range(1 << bits):
            counters.alive()
            nodes, names = np.hstack([*trees.of(bucket), np.empty((2, 0), np.uint64)])
            part = names % np.uint64(number)
            for name, answer in answers.of(bucket):
                part[np.searchsorted(nodes, name)] = answer
            part = part[np.searchsorted(nodes, names)]
            for lower, name in asks.of(bucket):
                answers.add(name, part[np.searchsorted(nodes, lower)])
            for node, ordinal in records.of(bucket):
                found.add(ordinal << ordinal_shift, part[np.searchsorted(nodes, node)])
    in_order = (
        part[np.argsort(ordinal)].tolist()
        for bucket in range(1 << bits)
        for ordinal, part in [np.hstack([*found.of(bucket), np.empty((2, 0), np.uint64)])]
    )
    return chain.from_iterable(in_order)


def _sweep(
    bucket: int, joined: _Buckets, records: _Buckets, trees: _Buckets, asks: _Buckets
) -> None:
    """Make the trees of a bucket; hand its edges to earlier ones down."""
    first = joined.first(bucket)
    ends = ((a, b[b >= first]) for a, b in joined.of(bucket))
    rows = chain(records.of(bucket), asks.of(bucket))  # for clusters, there are no lines of records
    nodes = _distinct(chain(chain.from_iterable(ends), (node for node, _ in rows)))
    forest = Forest(len(nodes))
    for a, b in joined.of(bucket):
        inside = b >= first
        forest.join_all(np.searchsorted(nodes, a[inside]), np.searchsorted(nodes, b[inside]))
    roots = forest.roots(np.arange(len(nodes)))
    lower = np.full(len(nodes), NONE)

    def outside() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for a, b in joined.of(bucket):
            out = b < first
            yield roots[np.searchsorted(nodes, a[out])], b[out]

    for tree, b in outside():
        np.minimum.at(lower, tree, b)
    for tree, b in outside():
        a = lower[tree]
        order = np.lexsort((a, b))
        a, b = a[order], b[order]
        new = (a != b) & ((np.diff(a, prepend=NONE) != 0) | (np.diff(b, prepend=NONE) != 0))
        joined.add(b[new], a[new])
    trees.add(nodes, nodes[roots])
    linked = np.flatnonzero(lower != NONE)
    asks.add(lower[linked], nodes[linked])


def _nodes(
    edges: EdgeFile, counters: Counters
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield, for a block of lines, the nodes of its new records, and of the ends of its edges."""
    before = b""
    for block in _blocks(edges, counters):
        fields = parse_edge_lines(block.splitlines(keepends=True))
        records = [some[0] for some in fields]
        node = mix(edges.tag.places(records))
        new = [i for i, (a, b) in enumerate(zip(records, [before, *records])) if a != b]
        before = records[-1]
        near = [i for i, some in enumerate(fields) if len(some) == EDGE]
        members = [i for i, some in enumerate(fields) if len(some) == MEMBER]
        ends = mix(edges.tag.places([fields[i][1] for i in near]))
        names = hashes_of(fields[i][1] for i in members)
        yield node[new], node[[*near, *members]], np.concatenate((ends, names))


def _temporary(stack: ExitStack, count: int) -> list[IO[bytes]]:
    return [stack.enter_context(tempfile.TemporaryFile()) for _ in range(count)]


def _blocks(edges: EdgeFile, counters: Counters) -> Iterator[bytes]:
    edges.file.seek(0)
    for block in blocks_of(edges.file):
        counters.alive()
        yield block


def _distinct(pieces: Iterable[np.ndarray]) -> np.ndarray:
    """Return the distinct values of arrays (uint64), in order."""
    known, held, size = np.empty(0, np.uint64), list[np.ndarray](), 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > max(len(known), DISTINCT_AT_ONCE):
            known, held, size = np.unique(np.concatenate((known, *held))), [], 0
    return np.unique(np.concatenate((known, *held)))


def in_order(parts: Iterable[Iterable[tuple[bytes, bytes]]]) -> Iterator[bytes]:
    """Yield the lines of parts by their keys; each part yields (key, line) in order of keys."""
    with ExitStack() as stack:
        files = list[IO[bytes]]()
        for part in parts:
            files += _temporary(stack, 1)
            files[-1].writelines(b"%b\t%b" % both for both in part)
            files[-1].seek(0)
        for line in merge(*files, key=_key):
            yield line.partition(b"\t")[2]


def _key(line: bytes) -> bytes:
    return line.partition(b"\t")[0]
