"""A search in two phases: send the keys first, then lines for shared keys only, in blocks.

    records → blocks of keys   ~ shuffle ~ shared keys
              send_keys                    share_keys
    records → blocks of lines  ~ shuffle ~ lines in order → pairs
              send_lines                   reduce_blocks

Most keys belong to one record, and sending their lines is wasted.  So the first phase sends the
keys alone, and the second the lines of candidate keys (`candidate_keys`).  A key has lines of all
its records or of none, so no pair is lost or printed twice.

A block of keys has rows as in `candidate_keys`, uint64 (n, 2), ascending by key.  A block of lines
is a mebibyte of lines for one partition.  So a shuffle moves thousands of items instead of
millions.  Hadoop Streaming carries each block as a line of text (`format_blocks`):

    PARTITION TAB CHECKSUM TAB BLOCK

In a block, bytes that would end the line are escaped.  PARTITION is p, its number, how many there
are, and letters that make Hadoop's default partitioner send it to the reducer of this number.  The
tasks of Hadoop know the number of reducers; elsewhere all blocks are of one partition.
"""

from __future__ import annotations

import mmap
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, reduce
from itertools import chain, groupby
from pathlib import Path
from typing import IO
from zlib import crc32

import numpy as np

from neardup.lines.id_lines import hashes_of
from neardup.lines.keyed_lines import KEY_BITS
from neardup.options.settings import Settings
from neardup.reading.blocks import Block, blocks_of
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, check_file_name, shown
from neardup.runtime.summary import SHUFFLED
from neardup.stages import candidate_keys
from neardup.stages.candidate_keys import BloomFilter
from neardup.stages.external_group import NO_ROWS, by_key
from neardup.stages.pairs import id_keys, keyed, map_records, new_ids, reduce_buckets, sorted_lines

LETTERS = 3
BLOCK_BYTES = 1 << 20  # bytes of lines
HELD_BYTES = 32 << 20  # bytes of lines, of all partitions together
BLOCK_ROWS = 1 << 16
HELD_ROWS = 1 << 21  # rows of all partitions together, at about 60 bytes each
_ESCAPES = ((b"\x1b", b"\x1b0"), (b"\n", b"\x1b1"), (b"\r", b"\x1b2"))
_NAME = re.compile(rb"p([0-9]+)/([0-9]+)[a-z]{3}")
# The bytes of a row that are not always 0.
_COLUMNS = np.r_[8 - -(-KEY_BITS // 8) : 8, 16 - candidate_keys.HASH_BITS // 8 : 16]
_CHECKSUM = 4
AGAIN = {"records": "records of the other round", "keys": "keys of the other round"}


def send_keys(
    blocks: Iterable[Block], settings: Settings, counters: Counters, partitions: int
) -> Iterator[tuple[int, bytes]]:
    """Yield (partition, block of keys) from blocks of records, at least one for each partition."""
    rows = _rows(blocks, settings, counters)
    for part, block in blocks_of_keys(rows, partitions, key_options(settings)):
        counters.add(SHUFFLED, len(block))
        yield part, block


def _rows(blocks: Iterable[Block], settings: Settings, counters: Counters) -> Iterator[np.ndarray]:
    """Yield the rows of keys, and a row for the id of each new line if ids are listed."""
    left: list[bytes] = []

    def of_ids(ids: list[bytes]) -> np.ndarray:
        own = id_keys(hashes_of([*ids, *left]))
        left.clear()
        # Of no record, so that an id that is repeated is a candidate key for itself.
        return np.column_stack((own, np.full(len(own), candidate_keys.SHARED)))

    for batch, keys in keyed(blocks, settings, counters, left.extend):
        yield candidate_keys.rows_of(keys)
        if settings.lists_ids:
            yield of_ids(new_ids(batch))
    if settings.lists_ids:
        yield of_ids([])


def share_keys(
    blocks: Iterable[bytes],
    settings: Settings,
    partition: int,
    partitions: int,
    most: int = candidate_keys.MAPPED_BYTES,
) -> Iterator[bytes]:
    """Yield a partition's part of the shared keys, as lines, from its blocks of keys.

    most: maximum number of bytes of all parts together
    """
    options = key_options(settings)
    rows = rows_in(blocks, partition, partitions, options)
    shared = map(candidate_keys.digests_of, candidate_keys.candidate_keys(rows))
    yield from candidate_keys.filter_part(shared, partition, partitions, options, most)


def rows_in(
    blocks: Iterable[bytes], partition: int, partitions: int, options: bytes = b""
) -> Iterator[np.ndarray]:
    """Yield each block's rows; StageError if it is damaged, or of another partition or options."""
    for block in blocks:
        try:
            rows = unpack(block, options)
            digests = candidate_keys.digests_of(rows[:, 0])
            if (candidate_keys.partition_of(digests, partitions) != partition).any():
                raise ValueError("of another partition")
        except ValueError:
            raise StageError(
                "expected blocks of keys from step.py share map, got something else or a damaged "
                "block; run share map again, and share reduce with the same options"
            ) from None
        yield rows


def shared_keys(text: bytes | mmap.mmap, settings: Settings) -> BloomFilter | None:
    """Return the filter of shared keys in `text`, or None if the text is empty."""
    return BloomFilter.of(text, key_options(settings))


def send_lines(
    blocks: Iterable[Block],
    settings: Settings,
    counters: Counters,
    shared: BloomFilter | None,
    partitions: int,
) -> Iterator[tuple[int, bytes]]:
    return gathered(map_records(blocks, settings, counters, partitions, shared))


def reduce_blocks(
    blocks: Iterable[bytes], settings: Settings, counters: Counters
) -> Iterator[bytes]:
    """Yield verified pair or edge lines from a partition's blocks of lines, given in any order."""
    return reduce_buckets(sorted_lines(blocks, counters), settings, counters)


def counted_again(counters: Counters) -> None:
    """Drop all counts except the shuffled bytes and those for `check_rounds`; rename the latter."""
    counts = dict(counters.counts)
    counters.forget()
    counters.add(SHUFFLED, counts.get(SHUFFLED, 0))
    for name, again in AGAIN.items():
        counters.add(again, counts.get(name, 0))


def check_rounds(counts: Mapping[str, int]) -> None:
    """Raise StageError if two rounds read different numbers of records or keys."""
    (records, more), (keys, most) = (
        (counts.get(name, 0), counts.get(again, 0)) for name, again in AGAIN.items()
    )
    if set(AGAIN.values()) & counts.keys() and (records != more or keys != most):
        raise StageError(
            f"one round has read {records:,} records with {keys:,} keys, the other one {more:,} "
            f"with {most:,}: did the input change? run the job again"
        )


def key_options(settings: Settings) -> bytes:
    """Return a fingerprint of the options on which keys depend."""
    more = {"--against": str(settings.against), "fields": str(settings.form.fields)}
    more["values"] = str(settings.form.values)
    more["ids"] = str(settings.lists_ids)
    return candidate_keys.fingerprint({**settings.keys_of, **more, "version": settings.probe()})


def keys_in_blocks(
    blocks: Iterable[Block], settings: Settings, counters: Counters
) -> Iterator[bytes]:
    """Run the mapper of the first round: yield a line for each block of keys."""
    reducers = reducers_of_job()
    return format_blocks(send_keys(blocks, settings, counters, reducers), reducers)


def share_blocks(lines: Iterable[bytes], settings: Settings) -> Iterator[bytes]:
    """Run the reducer of the first round: yield shared keys, from lines grouped by partition."""
    for part, of, blocks in parts_of(lines):
        yield from share_keys(blocks, settings, part, of)


def parts_of(lines: Iterable[bytes]) -> Iterator[tuple[int, int, Iterator[bytes]]]:
    """Yield (partition, partitions, its blocks) from lines; StageError unless they are in order."""
    before: set[tuple[int, int]] = set()
    for (part, of), group in groupby(parse_blocks(lines), key=lambda block: block[:2]):
        if (part, of) in before:
            raise StageError("the blocks are not in order; sort them first: LC_ALL=C sort")
        before.add((part, of))
        yield part, of, (block for *_, block in group)


def lines_in_blocks(
    blocks: Iterable[Block], settings: Settings, counters: Counters, shared: BloomFilter | None
) -> Iterator[bytes]:
    """Run the mapper of the second or only round: yield a line for each block of keyed lines."""
    reducers = reducers_of_job()
    return format_blocks(send_lines(blocks, settings, counters, shared, reducers), reducers)


def reducers_of_job() -> int:
    return max(1, int(os.environ.get("mapreduce_job_reduces", 1)))


def reduce_either(stream: IO[bytes], settings: Settings, counters: Counters) -> Iterator[bytes]:
    """Yield verified pair or edge lines from sorted keyed lines, or from blocks of keyed lines."""
    first = next(blocks := blocks_of(stream), b"")
    if not first.startswith(b"p"):  # keyed lines begin with a hexadecimal digit
        yield from reduce_buckets(chain([first] if first else [], blocks), settings, counters)
        return
    lines = chain.from_iterable(block.splitlines(keepends=True) for block in chain([first], blocks))
    yield from reduce_blocks((block for *_, block in parse_blocks(lines)), settings, counters)


def read_filter(path: str, options: bytes, flag: str) -> BloomFilter | None:
    """Read a filter of keys, made with `options`, from the file or Hadoop folder of a flag."""
    check_file_name(flag, path)
    given = Path(path)
    files = [given]
    if given.is_dir():
        files = [file for file in sorted(given.iterdir()) if file.name.startswith("part-")]
    elif given.exists() and not given.is_file():  # a pipe, which cannot be mapped
        with given.open("rb") as pipe, tempfile.NamedTemporaryFile() as copy:
            copy.writelines(blocks_of(pipe))
            copy.flush()
            return BloomFilter.of(candidate_keys.mapped([Path(copy.name)]), options)
    return BloomFilter.of(candidate_keys.mapped(files), options)


def format_blocks(blocks: Iterable[tuple[int, bytes]], partitions: int) -> Iterator[bytes]:
    r"""Format each (partition, block) as a line of text.

    >>> list(format_blocks([(0, b"x\ny\n")], 1))
    [b'p0/1aaa\t1e769ce1\tx\x1b1y\x1b1\n']
    """
    for part, block in blocks:
        name = _name(part, partitions)
        checksum = crc32(block, crc32(name))
        for byte, escape in _ESCAPES:
            block = block.replace(byte, escape)
        yield b"%b\t%08x\t%b\n" % (name, checksum, block)


def parse_blocks(lines: Iterable[bytes]) -> Iterator[tuple[int, int, bytes]]:
    r"""Parse lines of `format_blocks` to (partition, partitions, block); StageError if malformed.

    >>> list(parse_blocks([b"p0/1aaa\t1e769ce1\tx\x1b1y\x1b1\n"]))
    [(0, 1, b'x\ny\n')]
    """
    for line in lines:
        name, checksum, block = (line.rstrip(b"\n").split(b"\t", 2) + [b"", b""])[:3]
        found = _NAME.fullmatch(name)
        if not found:
            raise StageError(
                f"expected a block, as mapper.py --blocks writes it, got {shown(line)}"
            )
        for byte, escape in reversed(_ESCAPES):
            block = block.replace(escape, byte)
        if checksum != b"%08x" % crc32(block, crc32(name)):
            raise StageError(f"damaged block: {shown(line)}; run the mapper again")
        yield int(found[1]), int(found[2]), block


@cache
def _name(part: int, partitions: int) -> bytes:
    """Return a key for blocks that Hadoop's default partitioner sends to reducer `part`."""
    start = b"p%d/%d" % (part, partitions)
    letters = np.indices((26,) * LETTERS).reshape(LETTERS, -1).T + ord("a")
    hashes = java_hash(start) * 31**LETTERS + letters @ 31 ** np.arange(LETTERS)[::-1]
    fit = np.flatnonzero((hashes & 0x7FFFFFFF) % partitions == part)
    return start + bytes(letters[fit[0] if len(fit) else 0].tolist())


def java_hash(text: bytes) -> int:
    """Return the hash by which Hadoop partitions an ASCII key.

    >>> java_hash(b"p0/1aaa") % 4
    2
    """
    return reduce(lambda hash_, byte: (31 * hash_ + byte) & 0xFFFFFFFF, text, 1)


def gathered(pieces: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    r"""Join the pieces of each partition into blocks of about a mebibyte; yield (partition, lines).

    >>> list(gathered([(0, b"a\n"), (1, b"b\n"), (0, b"c\n")]))
    [(0, b'a\nc\n'), (1, b'b\n')]
    """
    held: dict[int, list[bytes]] = defaultdict(list)
    sizes: dict[int, int] = defaultdict(int)
    total = 0
    for part, lines in pieces:
        held[part].append(lines)
        sizes[part] += len(lines)
        total += len(lines)
        full = list(held) if total > HELD_BYTES else [part] * (sizes[part] > BLOCK_BYTES)
        for some in full:
            total -= sizes.pop(some)
            yield some, b"".join(held.pop(some))
    for part, rest in held.items():
        yield part, b"".join(rest)


def pack(rows: np.ndarray, options: bytes = b"") -> bytes:
    r"""Return rows as bytes: all first bytes of keys, then all second bytes …, which compress well.

    A checksum of them, and of the options that keys depend on, follows.

    >>> pack(np.array([[1, 7], [258, 7]], np.uint64))[10:-4]
    b'\x00\x01\x01\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x07'
    """
    columns = rows.astype(">u8").view(np.uint8)
    data = columns[:, _COLUMNS].T.tobytes()
    return data + crc32(data, crc32(options)).to_bytes(_CHECKSUM, "big")


def unpack(block: bytes, options: bytes = b"") -> np.ndarray:
    """Return the rows of a block; ValueError if it is damaged or was packed with other options."""
    data, checksum = block[:-_CHECKSUM], block[-_CHECKSUM:]
    if crc32(data, crc32(options)) != int.from_bytes(checksum, "big"):
        raise ValueError("damaged")
    columns = np.frombuffer(data, np.uint8).reshape(len(_COLUMNS), -1)
    words = np.zeros((columns.shape[1], 16), np.uint8)
    words[:, _COLUMNS] = columns.T
    return words.view(">u8").astype(np.uint64)


def blocks_of_keys(
    pieces: Iterable[np.ndarray], partitions: int, options: bytes = b""
) -> Iterator[tuple[int, bytes]]:
    """Yield (partition, block) from pieces of rows; all rows of a record must be in one piece.

    Each partition gets at least one block, perhaps empty, so that a lost partition is noticed.
    """
    held, count = [NO_ROWS], 0
    for rows in pieces:
        held.append(rows)
        count += len(rows)
        if count > HELD_ROWS:
            yield from _in_blocks(np.concatenate(held), partitions, options)
            held, count = [NO_ROWS], 0
    yield from _in_blocks(np.concatenate(held), partitions, options)


def _in_blocks(rows: np.ndarray, partitions: int, options: bytes) -> Iterator[tuple[int, bytes]]:
    rows = candidate_keys.at_most_twice(by_key(rows))
    part = candidate_keys.partition_of(candidate_keys.digests_of(rows[:, 0]), partitions)
    part = part.astype(np.min_scalar_type(partitions))  # short numbers are sorted faster
    order = np.argsort(part, kind="stable")
    rows, part = rows[order], part[order]
    bounds = np.searchsorted(part, np.arange(partitions + 1)).tolist()
    for number, (low, high) in enumerate(zip(bounds, bounds[1:])):
        for start in range(low, max(high, low + 1), BLOCK_ROWS):
            yield number, pack(rows[start : min(high, start + BLOCK_ROWS)], options)
