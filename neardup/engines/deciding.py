"""The decision of an engine in one place: from edges to lines in order, by the system's sort.

It needs little memory for any number of edges, see `decision_stages`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator

from neardup.decision_stages import decide_edges
from neardup.lines.decided_lines import removed_line
from neardup.options.settings import Settings
from neardup.process.counters import Counters
from neardup.reading.blocks import blocks_of
from neardup.verification.buckets import sort_lines


def decision(
    edges: Iterable[bytes], output: str, settings: Settings, counters: Counters
) -> Iterator[bytes]:
    """Blocks of edge lines in order → what `--output removed` or `clusters` prints; with `kept`,
    decided lines in order of places.  In blocks of lines.
    """
    lines = decide_edges(edges, settings, counters)
    yield from in_order(map(removed_line, lines) if output == "removed" else lines, counters)


def removed_of(decided: Iterable[bytes], counters: Counters) -> Iterator[bytes]:
    """Decided lines → what `--output removed` prints, in blocks of lines."""
    yield from in_order(map(removed_line, decided), counters)


def in_order(lines: Iterable[bytes], counters: Counters) -> Iterator[bytes]:
    """The same lines in byte order, in blocks."""
    with tempfile.TemporaryFile() as unsorted, tempfile.TemporaryFile() as result:
        unsorted.writelines(lines)
        sort_lines(unsorted, result, counters)
        result.seek(0)
        yield from blocks_of(result)
