"""The stages of `round_stages` for engines that carry lines: each block is one, see `block_text`.

A task of Hadoop knows how many reducers there are; elsewhere all blocks are of one partition.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import IO

from neardup.options.settings import Settings
from neardup.process.counters import Counters
from neardup.process.errors import StageError, UsageError
from neardup.reading.blocks import Block, blocks_of
from neardup.round_stages import reduce_blocks, send_keys, send_lines, share_keys, shared_keys
from neardup.rounds.block_text import format_blocks, is_block, parse_blocks
from neardup.rounds.key_filter import KeyFilter
from neardup.stages import reduce_buckets


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


def read_shared_keys(path: str, settings: Settings) -> KeyFilter | None:
    """From a file, or a folder of such as Hadoop writes it."""
    if not path:
        raise UsageError("--shared-keys: expected the name of a file, got ''")
    files = [Path(path)]
    if files[0].is_dir():
        files = [file for file in sorted(files[0].iterdir()) if file.name.startswith("part-")]
    return shared_keys(chain.from_iterable(map(_lines, files)), settings)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def lines_in_blocks(
    blocks: Iterable[Block], settings: Settings, counters: Counters, shared: KeyFilter | None
) -> Iterator[bytes]:
    """The mapper of the second round, or of the only one."""
    reducers = _reducers()
    return format_blocks(send_lines(blocks, settings, counters, shared, reducers), reducers)


def reduce_either(stream: IO[bytes], settings: Settings, counters: Counters) -> Iterator[bytes]:
    """The reducer: of sorted keyed lines, or of blocks of them."""
    first = next(blocks := blocks_of(stream), b"")
    if not is_block(first):
        yield from reduce_buckets(chain([first] if first else [], blocks), settings, counters)
        return
    lines = chain.from_iterable(block.splitlines(keepends=True) for block in chain([first], blocks))
    yield from reduce_blocks((block for *_, block in parse_blocks(lines)), settings, counters)


def _reducers() -> int:
    return max(1, int(os.environ.get("mapreduce_job_reduces", 1)))
