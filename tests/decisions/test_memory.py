"""A decision holds at most 28 bytes for each record in a pair, however many pairs there are.

Measured between a small file of edges and a large one, so that what is held of one batch, however
large either is, does not count.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator
from itertools import islice

import pytest

from neardup.lines.answer_lines import SAME_SET, format_edge, format_presence
from neardup.reading.blocks import NEW
from neardup.runtime.counters import Counters
from neardup.runtime.summary import LARGEST, REMOVED
from neardup.stages.pairs import decide_edges
from tests.support.drawn import settings_of

SMALL, LARGE = 2_000, 30_000
BYTES = 28
LINES_AT_ONCE = 100
NOISE = 1 << 16  # two bytes a record: what a batch holds beside, which hangs on its lines, and what
# else allocates in the meantime, such as the tracer of coverage


def tagged(i: int) -> bytes:
    return b"1%016xv%d" % (NEW + i, i)


def edges(count: int) -> Iterator[bytes]:
    """Yield a line for each of `count` records: chains of ten, stars of a hundred, and copies."""
    for i in range(count):
        start, rank = i - i % 100, i % 100
        if rank == 0:
            yield format_presence(tagged(i))
        elif start % 300 == 0:
            last = tagged(i - 1) if rank % 10 else tagged(start)
            yield format_edge(tagged(i), last, b"0.912345000000000000")
        else:
            yield format_edge(
                tagged(i), tagged(start), [SAME_SET, b"0.950000000000000000"][start % 200 > 0]
            )


def blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    lines = iter(lines)
    while block := b"".join(islice(lines, LINES_AT_ONCE)):
        yield block


def peak(count: int, flags: list[str]) -> tuple[int, Counters, int]:
    """Decide on `count` records; return the peak memory in bytes, counters and number of lines."""
    counters = Counters("decide")
    settings = settings_of(*flags)
    tracemalloc.start()
    try:
        lines = sum(1 for _ in decide_edges(blocks(edges(count)), settings, counters))
        return tracemalloc.get_traced_memory()[1], counters, lines
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        ["--output=removed"],
        ["--output=removed", "--rule=cluster"],
        ["--output=removed", "--against=x"],
    ],
    ids=" ".join,
)
def test_so_many_bytes_for_a_record(flags, monkeypatch):
    monkeypatch.setattr("neardup.decisions.edge_file.BATCH_BYTES", 1 << 12)
    monkeypatch.setattr("neardup.decisions.rules.AT_ONCE", 1 << 9)
    peak(SMALL, flags)  # once, so that what is loaded or cached for good is there
    small, _, _ = peak(SMALL, flags)
    large, counters, lines = peak(LARGE, flags)
    assert counters.counts[REMOVED] == lines
    assert LARGE / 2 < lines < LARGE
    assert counters.counts.get(LARGEST, 100) == 100  # of two collections nobody knows
    assert (large - small) / (LARGE - SMALL) > BYTES / 2
    assert large - small <= BYTES * (LARGE - SMALL) + NOISE


@pytest.mark.slow
def test_more_records_than_fit_are_decided_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a tenth of the memory that all take, the peak grows by less than four bytes a record."""
    monkeypatch.setattr("neardup.decisions.edge_file.BATCH_BYTES", 1 << 12)
    monkeypatch.setattr("neardup.decisions.rules.AT_ONCE", 1 << 9)
    monkeypatch.setattr("neardup.stages.external_group.READ_BYTES", 1 << 12)
    monkeypatch.setattr("neardup.stages.edge_groups.DISTINCT_AT_ONCE", 1 << 9)
    monkeypatch.setattr("neardup.reading.blocks.BLOCK_BYTES", 1 << 12)
    peaks = []
    for count in (SMALL, SMALL, LARGE // 2):
        monkeypatch.setattr("neardup.stages.edge_groups.HELD_BYTES", BYTES * count // 10)
        peaks.append(peak(count, ["--output=removed"]))
    (_, (small, *_), (large, counters, lines)) = peaks
    assert counters.counts[REMOVED] == lines > LARGE / 4
    assert counters.counts[LARGEST] == 100
    assert large - small <= 4 * (LARGE // 2 - SMALL)
