"""The lines of a partition in byte order, however many: by the system's sort, in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator

from neardup.process.counters import Counters
from neardup.process.system_sort import system_sort
from neardup.reading.blocks import blocks_of

SORT_MEMORY = "128M"


def sorted_lines(blocks: Iterable[bytes], counters: Counters) -> Iterator[bytes]:
    """Blocks of whole lines → blocks of the same lines, in order."""
    with tempfile.TemporaryFile() as result:
        flags = ["-S", SORT_MEMORY]
        with system_sort(None, result, flags, counters.alive) as sink:
            assert sink
            for block in blocks:
                counters.alive()
                sink.write(block)
        result.seek(0)
        yield from blocks_of(result)
