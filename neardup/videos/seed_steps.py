"""Find seeds in steps: frames of two videos that match, from blocks of fingerprints.

    prints ─ blocks ─▶ sort ─ seeds ─▶ SEEDS

A block has the fingerprints with some of the keys of one mask (`frame_matches`), so that frames
with an equal key meet.  Memory: the blocks of one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neardup.runtime.program import WireError, shown
from neardup.videos.frame_matches import (
    KEY_BITS,
    MASKS,
    Rows,
    grouped,
    keys_by,
    matches_in,
    video_numbers,
)
from neardup.videos.frame_store import fresh_variants
from neardup.videos.step_lines import (
    FrameBlock,
    MirroredPair,
    fields_of,
    first_field,
    format_block,
    format_numbers,
    format_pair,
    joined,
    line,
    parse_block,
)
from neardup.videos.video_join import JoinOptions, seconds_of
from neardup.videos.video_prints import MIRROR, VideoPrint, from_line, owns

SHARES = 16  # parts into which the keys of a mask are divided
ROWS = 1 << 18  # that `blocks` holds

Indices = NDArray[np.int64]


def blocks(lines: Iterable[bytes], shares: int = SHARES, seed: int = 0) -> Iterator[bytes]:
    """Read prints; yield lines, each with fingerprints whose keys by a mask are in one range."""
    held: list[FrameBlock] = []
    rows = 0
    for text in lines:
        for part in _parts(from_line(text)):
            held.append(part)
            rows += len(part.keys)
            if rows >= ROWS:
                yield from _block_lines(joined(held), shares, seed)
                held, rows = [], 0
    if held:
        yield from _block_lines(joined(held), shares, seed)


def _parts(video: VideoPrint) -> Iterator[FrameBlock]:
    """Yield for each variant the fingerprints that no earlier variant of the same frame has."""
    fresh, seconds = fresh_variants(video.hashes), seconds_of(video.spans)
    for v in range(len(video.variants)):
        kept = np.flatnonzero(fresh >> np.uint32(v) & np.uint32(1))
        zeros = np.zeros(len(kept), np.uint32)
        rows = video.hashes[kept, v], zeros, zeros, video.spans[kept]
        yield FrameBlock(
            [video.id], [seconds], video.variants, *rows, np.full(len(kept), v, np.uint8)
        )


def _block_lines(block: FrameBlock, shares: int, seed: int) -> Iterator[bytes]:
    for mask in range(MASKS):
        keys = keys_by(block.hashes, mask, seed)
        share = (keys * np.uint64(shares) >> np.uint64(KEY_BITS)).astype(np.int64)
        keyed = block._replace(keys=keys.astype(np.uint32))
        for number in np.unique(share).tolist():
            some = _rows(keyed, np.flatnonzero(share == number))
            yield line(f"{mask}.{number}".encode(), format_block(some), b"")


def _rows(block: FrameBlock, rows: Indices) -> FrameBlock:
    """Return a block with only the given rows, and only the videos of these rows."""
    videos, places = np.unique(block.videos[rows], return_inverse=True)
    ids, seconds = ([some[k] for k in videos.tolist()] for some in (block.ids, block.seconds))
    columns: list[NDArray[Any]] = [column[rows] for column in block[3:]]
    columns[2] = places.reshape(-1).astype(np.uint32)
    return FrameBlock(ids, seconds, block.variants, *columns)


def seeds(lines: Iterable[bytes], options: JoinOptions) -> Iterator[bytes]:
    """Read sorted blocks; yield the seeds, a line for each block key and pair (a, b, mirrored)."""
    for key, group in groupby(lines, first_field):
        mask = _mask(key)
        texts = (fields_of(text, 2, "a block of fingerprints")[1] for text in group)
        block = joined([parse_block(text) for text in texts])
        if len(block.ids) > 1:
            yield from _seeds_of(block, mask, options)


def _mask(key: bytes) -> int:
    """Return the number of the mask in the first field of a block; WireError for other fields."""
    mask, _, share = key.partition(b".")
    if not (mask.isdigit() and share.isdigit() and len(mask) < 3 and int(mask) < MASKS):
        raise WireError(
            f"expected the blocks that `step.py videos blocks` prints, got {shown(key)}"
        )
    return int(mask)


def _seeds_of(block: FrameBlock, mask: int, options: JoinOptions) -> Iterator[bytes]:
    ids = [id_.encode() for id_ in block.ids]
    numbers = video_numbers(ids)[block.videos]
    variants = block.variant.astype(np.int64)
    own = variants < owns(block.variants)
    rows = Rows(block.hashes, numbers, block.spans[:, 0], variants, own)
    found = matches_in(rows, block.keys.astype(np.int64), mask, options.distance, options.seed)
    rank = np.empty(len(ids), np.int64)
    rank[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    is_mirror = np.array([name.endswith(MIRROR) for name in block.variants])
    i, j, mirrored = found.left, found.right, is_mirror[block.variant[found.right]]
    swapped = rank[block.videos[i]] > rank[block.videos[j]]
    i, j = np.where(swapped, j, i), np.where(swapped, i, j)
    groups = np.stack((block.videos[i], block.videos[j], mirrored), axis=1).astype(np.int64)
    for (a, b, mirror), part in grouped(groups):
        spans = np.unique(np.hstack((block.spans[i[part]], block.spans[j[part]])), axis=0)
        other, seconds = MirroredPair(ids[b], bool(mirror)), repr(block.seconds[b]).encode()
        yield line(ids[a], format_pair(other), seconds, format_numbers(spans))
