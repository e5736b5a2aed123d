"""From edges to a decision: which records are removed, or the clusters.

    keyed lines ~ shuffle ~ buckets → edges ~ sort ~ decision → records that go → the input's lines
                  reduce_buckets              decide_edges       ~ sort ~ keep_lines

`reduce_buckets` of `stages` writes edges where the output asks for a decision.

It needs little memory for any number of edges, see `decide_edges`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Callable

from neardup.decisions.decide import clusters, decided
from neardup.decisions.edge_file import EdgeFile
from neardup.lines.answer_lines import format_decided, removed_line
from neardup.options.settings import Settings
from neardup.reading.blocks import blocks_of
from neardup.runtime.counters import Counters
from neardup.runtime.errors import StageError
from neardup.verification import RECORDS
from neardup.verification.buckets import sort_lines


def decide_edges(
    blocks: Iterable[bytes],
    settings: Settings,
    counters: Counters,
    empty_file: Callable[[], IO[bytes]] = tempfile.TemporaryFile,
) -> Iterator[bytes]:
    """Edge lines in order of records → decided lines, in order of priority; or members of clusters,
    CLUSTER TAB ID, in order of ids.

    All edges go through one such stage, which writes them to an empty file and reads them as it
    needs them; that may be one in memory (io.BytesIO).  Else it holds 28 bytes for each record that
    is in a pair.
    """
    counters.promise = settings.promise
    tag = settings.tag
    assert tag
    with empty_file() as file:
        edges = EdgeFile(file, blocks, tag, counters)
        if settings.output.decides == RECORDS:
            rule, measure, collections = settings.rule.rule, settings.measure, settings.against
            for records, reasons in decided(edges, rule, measure, counters, collections):
                yield from map(
                    format_decided,
                    [record[tag.place] for record in records],
                    tag.ids_of(records),
                    tag.ids_of([reason.kept for reason in reasons]),
                    [reason.similarity for reason in reasons],
                )
        else:
            for first, record in clusters(edges, counters):
                yield b"%b\t%b\n" % (tag.id_of(first), tag.id_of(record))


def check_lines(read: int, written: int, removed: int) -> None:
    """StageError unless the lines that were read are those that stay, and those of `removed`."""
    if read - written != removed:
        raise StageError(
            f"of {read:,} lines {written:,} stay, and {removed:,} records were to go: did the "
            "input change? run it again"
        )


def decision(
    edges: Iterable[bytes], output: str, settings: Settings, counters: Counters
) -> Iterator[bytes]:
    """Blocks of edge lines in order → what `--output removed` or `clusters` prints; with `kept`,
    decided lines in order of places.  In blocks of lines.
    """
    lines = decide_edges(edges, settings, counters)
    yield from in_order(map(removed_line, lines) if output == "removed" else lines, counters)


def in_order(lines: Iterable[bytes], counters: Counters) -> Iterator[bytes]:
    """The same lines in byte order, in blocks."""
    with tempfile.TemporaryFile() as unsorted, tempfile.TemporaryFile() as result:
        unsorted.writelines(lines)
        sort_lines(unsorted, result, counters)
        result.seek(0)
        yield from blocks_of(result)
