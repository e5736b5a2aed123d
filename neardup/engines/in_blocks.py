"""The stages of `round_stages` for engines that carry lines: each block is one, see `block_text`.

A task of Hadoop knows how many reducers there are; elsewhere all blocks are of one partition.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby

from neardup.options.settings import Settings
from neardup.process.counters import Counters
from neardup.process.errors import StageError
from neardup.reading.blocks import Block
from neardup.round_stages import send_keys, send_lines, share_keys
from neardup.rounds.block_text import format_blocks, parse_blocks
from neardup.rounds.key_filter import KeyFilter


def keys_in_blocks(
    blocks: Iterable[Block], settings: Settings, counters: Counters
) -> Iterator[bytes]:
    """The mapper of the first round."""
    reducers = _reducers()
    return format_blocks(send_keys(blocks, settings, counters, reducers), reducers)


def share_blocks(lines: Iterable[bytes], settings: Settings) -> Iterator[bytes]:
    """The reducer of the first round: the blocks of a partition are side by side."""
    before: set[tuple[int, int]] = set()
    for (part, of), group in groupby(parse_blocks(lines), key=lambda block: block[:2]):
        if (part, of) in before:
            raise StageError("these blocks are not in order; put LC_ALL=C sort in front")
        before.add((part, of))
        yield from share_keys((block for *_, block in group), settings, part, of)


def lines_in_blocks(
    blocks: Iterable[Block], settings: Settings, counters: Counters, shared: KeyFilter | None
) -> Iterator[bytes]:
    """The mapper of the second round, or of the only one."""
    reducers = _reducers()
    return format_blocks(send_lines(blocks, settings, counters, shared, reducers), reducers)


def _reducers() -> int:
    return max(1, int(os.environ.get("mapreduce_job_reduces", 1)))
