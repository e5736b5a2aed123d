"""A decision inside this process, with limits that tests can make small.

The shuffle is Python's `sorted`, which orders bytes as `LC_ALL=C sort` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

from neardup.options.settings import Settings
from neardup.reading.blocks import Block, first_place
from neardup.runtime.counters import Counters
from neardup.stages.edge_groups import HELD_BYTES
from neardup.stages.pairs import decide_edges, map_records
from neardup.verification.buckets import BUCKET_BYTES, batches_of_lines
from tests.support.decision_oracle import Gone, Line, similarities
from tests.support.drawn import blocks_of, settings_of, without_ids


class Sizes(NamedTuple):
    """Limits of a decision: by default those of real runs; tests can make them small.

    Sets from which on a bucket is a dense cluster, records that are decided at once, bytes of a
    bucket that is spilled, of edges that are read at once, of a line; lines in a block; bytes that
    a decision holds."""

    dense: int = 64
    batch: int = 256
    bucket_bytes: int = BUCKET_BYTES
    edge_bytes: int = 1 << 16
    line_bytes: int = 1 << 12
    lines: int = 10**9
    held: int = HELD_BYTES


USUAL = Sizes()
SIZES = st.builds(
    Sizes,
    dense=st.sampled_from([1, 2, 3, 64]),
    batch=st.sampled_from([1, 2, 5, 256]),
    bucket_bytes=st.sampled_from([BUCKET_BYTES, BUCKET_BYTES, 400, 100]),  # to spill takes time
    edge_bytes=st.sampled_from([1, 40, 300, 1 << 16]),
    line_bytes=st.sampled_from([1, 7, 1 << 12]),
    lines=st.sampled_from([1, 3, 10**9]),
    held=st.sampled_from([300, 1000, HELD_BYTES, HELD_BYTES]),
)


class Decision(NamedTuple):
    """The lines that `decide_edges` returns, and the counts of the reducer and the decision."""

    lines: list[bytes]
    counts: dict[str, int]


def record_line(line: Line) -> bytes:
    return b" ".join([line.id, *(b"%d" % value for value in sorted(line.set))]) + b"\n"


def keyed_lines(lines: Sequence[Line], settings: Settings) -> list[bytes]:
    """Return a mapper's lines, sorted; it reads a file of old records, then one of new records."""
    collections = [(new, [line for line in lines if line.old != new]) for new in (False, True)]
    blocks = [
        Block("", 1, b"".join(map(record_line, some)), "", first_place(0, new=new))
        for new, some in collections
        if some
    ]
    pieces = map_records(blocks, settings, Counters("mapper"))
    return without_ids(b"".join(piece for _, piece in pieces).splitlines(keepends=True))


def reduced(
    lines: Sequence[Line], settings: Settings, counters: Counters, sizes: Sizes
) -> list[bytes]:
    """Return the reducer's lines, sorted."""
    join = settings.join(counters)
    join.mark = settings.mark
    blocks = blocks_of(keyed_lines(lines, settings), sizes.lines)
    works = batches_of_lines(blocks, counters, sizes.bucket_bytes)
    return sorted(line for work in works for some in join(work) for line in _lines(some))


def decide(
    lines: Sequence[Line], flags: Sequence[str], sizes: Sizes = USUAL, **more: Any
) -> Decision:
    """Run all stages on these records; return the decision.  more: further settings."""
    settings = settings_of(*flags)._replace(**more)
    counters = Counters("test")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.verification.edge_join.DENSE", sizes.dense)
        patch.setattr("neardup.decisions.decide.BATCH", sizes.batch)
        patch.setattr("neardup.decisions.edge_file.BATCH_BYTES", sizes.edge_bytes)
        patch.setattr("neardup.decisions.edge_file.READ_BYTES", sizes.line_bytes)
        patch.setattr("neardup.stages.edge_groups.HELD_BYTES", sizes.held)
        patch.setattr("neardup.reading.blocks.BLOCK_BYTES", sizes.edge_bytes)
        edges = blocks_of(by_record(reduced(lines, settings, counters, sizes)), sizes.lines)
        decided = b"".join(decide_edges(edges, settings, counters))
    return Decision(_lines(decided), counters.counts)


def by_record(edges: list[bytes]) -> list[bytes]:
    """Return edges sorted by the first field alone, as on Hadoop, and reversed within a record."""
    return sorted(sorted(edges, reverse=True), key=lambda line: line.partition(b"\t")[0])


def decided_line(lines: Sequence[Line], gone: Gone) -> bytes:
    """Return the line of a removed record."""
    line, kept = lines[gone.place], lines[gone.kept]
    old = sum(line.old for line in lines)
    place = first_place(0, gone.place if line.old else gone.place - old, not line.old)
    return b"%016x\t%b\t%b\t%b\n" % (place, line.id, kept.id, gone.similarity.encode())


def pairs_of(
    lines: list[Line], threshold: str, between: bool = False
) -> dict[tuple[int, int], str]:
    """Return each pair's similarity in both directions; if `between`, only of old-new pairs."""
    pairs = similarities(lines, Fraction(threshold))
    return {
        (i, j): similarity
        for (i, j), similarity in pairs.items()
        if not between or lines[i].old != lines[j].old
    }


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


# Graphs of records: each shape is a list of sets, of shingles of its own.


def path(base: int, count: int) -> list[frozenset[int]]:
    """Return a chain of sets: neighbours have similarity 9/11, other pairs less than 0.7."""
    return [frozenset(range(base + i, base + i + 10)) for i in range(count)]


def star(base: int, count: int) -> list[frozenset[int]]:
    """Return a centre, and sets that have similarity 9/10 with it and 8/10 with each other."""
    centre = frozenset(range(base, base + 10))
    return [centre, *(centre - {base + i} for i in range(count - 1))]


def clique(base: int, count: int) -> list[frozenset[int]]:
    """Return sets of which every two have a resemblance of 9/11."""
    return [frozenset([*range(base, base + 9), base + 10 + i]) for i in range(count)]


def ties(base: int, count: int) -> list[frozenset[int]]:
    """Return the first `count` of four sets; the last one is equally similar to the first two."""
    middle = range(base + 6, base + 15)
    ends = [range(base, base + 15), range(base + 6, base + 21)]
    return [frozenset(x) for x in (ends[0], ends[1], middle, *[range(base + 3, base + 18)])][:count]


def copies(base: int, count: int) -> list[frozenset[int]]:
    return [frozenset(range(base, base + 3))] * count


def nested(base: int, count: int) -> list[frozenset[int]]:
    """Return sets of many sizes, of which most are in a larger one."""
    ends = [(0, 20), (0, 10), (2, 10), (2, 11), (5, 25), (0, 3), (0, 19)]
    return [frozenset(range(base + low, base + high)) for low, high in ends[:count]]


SHAPES = (path, star, clique, ties, copies)


@st.composite
def records(
    draw: st.DrawFn, unique: bool = False, old: bool = False, shapes: Sequence[Any] = SHAPES
) -> list[Line]:
    """Draw records in any order: a chain whose ends are not a pair, other shapes, and copies.

    `unique`: each has an id of its own; `old`: the first ones, some or none, are old.
    """
    drawn = draw(st.lists(st.tuples(st.sampled_from(shapes), st.integers(1, 7)), max_size=4))
    sets = [
        set_
        for i, (shape, count) in enumerate([(path, 4), *drawn])
        for set_ in shape(100 * i, count)
    ]
    sets += draw(st.lists(st.sampled_from(sets), max_size=5))
    sets = draw(st.permutations(sets))
    some = [b"a", b"b", b"v\1", b"v\1\x7f", b"v\x7f", b"v", "é".encode()]
    ids = [b"%b%d" % (draw(st.sampled_from(some)), i) for i in range(len(sets))]
    if not unique:
        ids = [draw(st.sampled_from([id_, *some])) for id_ in ids]
    olds = draw(st.integers(0, len(sets))) if old else 0
    return [Line(id_, set_, i < olds) for i, (id_, set_) in enumerate(zip(ids, sets))]
