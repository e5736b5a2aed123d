"""What a reducer reads: sorted keyed lines, or blocks of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import IO

from neardup.options.settings import Settings
from neardup.process.counters import Counters
from neardup.reading.blocks import blocks_of
from neardup.round_stages import reduce_blocks
from neardup.rounds.block_text import is_block, parse_blocks
from neardup.stages import reduce_buckets


def reduce_either(stream: IO[bytes], settings: Settings, counters: Counters) -> Iterator[bytes]:
    """The reducer: of sorted keyed lines, or of blocks of them."""
    first = next(blocks := blocks_of(stream), b"")
    if not is_block(first):
        yield from reduce_buckets(chain([first] if first else [], blocks), settings, counters)
        return
    lines = chain.from_iterable(block.splitlines(keepends=True) for block in chain([first], blocks))
    yield from reduce_blocks((block for *_, block in parse_blocks(lines)), settings, counters)
