"""Two phases: keys first, and then lines for shared keys only, in blocks.

    records → blocks of keys   ~ shuffle ~ shared keys
              send_keys                    share_keys
    records → blocks of lines  ~ shuffle ~ lines in order → pairs
              send_lines                   reduce_blocks

Most keys belong to one record, and sending their lines is wasted.  So the first phase sends the
keys alone, and the second the lines of candidate keys (`candidate_keys`).  A key has lines of all
its records or of none, so no pair is lost or printed twice.

Hadoop Streaming carries each block as a line of text (`key_blocks`).  Its tasks know the number of
reducers; elsewhere all blocks are of one partition.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from pathlib import Path
from typing import IO

import numpy as np

from neardup.options.settings import Settings
from neardup.reading.blocks import Block, blocks_of
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, UsageError
from neardup.runtime.summary import SHUFFLED
from neardup.stages import key_blocks
from neardup.stages.bloom_filter import MAPPED_BYTES, BloomFilter, filter_part, fingerprint, mapped
from neardup.stages.candidate_keys import candidate_keys, digests_of, partition_of, rows_of
from neardup.stages.pairs import keyed, map_records, reduce_buckets, sorted_lines

AGAIN = {"records": "records of the other round", "keys": "keys of the other round"}


def send_keys(
    blocks: Iterable[Block], settings: Settings, counters: Counters, partitions: int
) -> Iterator[tuple[int, bytes]]:
    """Yield (partition, block of keys) from blocks of records; each partition gets a block."""
    rows = (rows_of(keys) for _, keys in keyed(blocks, settings, counters))
    for part, block in key_blocks.blocks_of_keys(rows, partitions, _options(settings)):
        counters.add(SHUFFLED, len(block))
        yield part, block


def share_keys(
    blocks: Iterable[bytes],
    settings: Settings,
    partition: int,
    partitions: int,
    most: int | None = None,
) -> Iterator[bytes]:
    """Yield a partition's part of the shared keys, as lines, from its blocks of keys.

    All parts together have at most `most` bytes, or MAPPED_BYTES.
    """
    options = _options(settings)
    rows = rows_in(blocks, partition, partitions, options)
    shared = map(digests_of, candidate_keys(rows))
    yield from filter_part(shared, partition, partitions, options, most or MAPPED_BYTES)


def rows_in(
    blocks: Iterable[bytes], partition: int, partitions: int, options: bytes = b""
) -> Iterator[np.ndarray]:
    """Yield the rows of each block; StageError if it is damaged, or of another partition or
    other options."""
    for block in blocks:
        try:
            rows = key_blocks.unpack(block, options)
            if (partition_of(digests_of(rows[:, 0]), partitions) != partition).any():
                raise ValueError("of another partition")
        except ValueError:
            raise StageError(
                "expected blocks of keys, as step.py share map writes them: this is not one, or "
                "is damaged, or map had other options: give reduce the same"
            ) from None
        yield rows


def shared_keys(text: bytes | mmap.mmap, settings: Settings) -> BloomFilter | None:
    """Return the filter of all parts, or None without parts, which lets all keys pass.

    StageError where a part is missing, or of other options.
    """
    return BloomFilter.of(text, _options(settings))


def send_lines(
    blocks: Iterable[Block],
    settings: Settings,
    counters: Counters,
    shared: BloomFilter | None,
    partitions: int,
) -> Iterator[tuple[int, bytes]]:
    """Yield (partition, block of keyed lines) from blocks of records."""
    return key_blocks.gathered(map_records(blocks, settings, counters, partitions, shared))


def reduce_blocks(
    blocks: Iterable[bytes], settings: Settings, counters: Counters
) -> Iterator[bytes]:
    """Yield verified pair lines from the blocks of a partition, in any order."""
    return reduce_buckets(sorted_lines(blocks, counters), settings, counters)


def counted_again(counters: Counters) -> None:
    """Drop the counts that the first round would add a second time."""
    counts = dict(counters.counts)
    counters.forget()
    counters.add(SHUFFLED, counts.get(SHUFFLED, 0))
    for name, again in AGAIN.items():
        counters.add(again, counts.get(name, 0))


def check_rounds(counts: Mapping[str, int]) -> None:
    """Raise StageError unless both rounds have read the same records.

    A key that only the second one has seen got no lines.
    """
    (records, more), (keys, most) = (
        (counts.get(name, 0), counts.get(again, 0)) for name, again in AGAIN.items()
    )
    if set(AGAIN.values()) & counts.keys() and (records != more or keys != most):
        raise StageError(
            f"one round has read {records:,} records with {keys:,} keys, the other one {more:,} "
            f"with {most:,}: did the input change? run it again"
        )


def _options(settings: Settings) -> bytes:
    """Return the fingerprint of the options that keys depend on."""
    more = {"--against": str(settings.against), "fields": str(settings.form.fields)}
    return fingerprint({**settings.keys_of, **more, "version": settings.scheme.probe()})


def keys_in_blocks(
    blocks: Iterable[Block], settings: Settings, counters: Counters
) -> Iterator[bytes]:
    """The mapper of the first round."""
    reducers = _reducers()
    return key_blocks.format_blocks(send_keys(blocks, settings, counters, reducers), reducers)


def share_blocks(lines: Iterable[bytes], settings: Settings) -> Iterator[bytes]:
    """The reducer of the first round, whose input is grouped by partition."""
    before: set[tuple[int, int]] = set()
    for (part, of), group in groupby(key_blocks.parse_blocks(lines), key=lambda block: block[:2]):
        if (part, of) in before:
            raise StageError("these blocks are not in order; put LC_ALL=C sort in front")
        before.add((part, of))
        yield from share_keys((block for *_, block in group), settings, part, of)


def lines_in_blocks(
    blocks: Iterable[Block], settings: Settings, counters: Counters, shared: BloomFilter | None
) -> Iterator[bytes]:
    """The mapper of the second round, or of the only one."""
    reducers = _reducers()
    return key_blocks.format_blocks(
        send_lines(blocks, settings, counters, shared, reducers), reducers
    )


def _reducers() -> int:
    return max(1, int(os.environ.get("mapreduce_job_reduces", 1)))


def reduce_either(stream: IO[bytes], settings: Settings, counters: Counters) -> Iterator[bytes]:
    """The reducer, for sorted keyed lines or for blocks of them."""
    first = next(blocks := blocks_of(stream), b"")
    if not key_blocks.is_block(first):
        yield from reduce_buckets(chain([first] if first else [], blocks), settings, counters)
        return
    lines = chain.from_iterable(block.splitlines(keepends=True) for block in chain([first], blocks))
    yield from reduce_blocks(
        (block for *_, block in key_blocks.parse_blocks(lines)), settings, counters
    )


def read_shared_keys(path: str, settings: Settings) -> BloomFilter | None:
    """Read the filter from a file, or from a folder that Hadoop has written."""
    if not path:
        raise UsageError("--shared-keys: expected the name of a file, got ''")
    given = Path(path)
    files = [given]
    if given.is_dir():
        files = [file for file in sorted(given.iterdir()) if file.name.startswith("part-")]
    elif given.exists() and not given.is_file():  # a pipe, which cannot be mapped
        with given.open("rb") as pipe, tempfile.NamedTemporaryFile() as copy:
            copy.writelines(blocks_of(pipe))
            copy.flush()
            return shared_keys(mapped([Path(copy.name)]), settings)
    return shared_keys(mapped(files), settings)
