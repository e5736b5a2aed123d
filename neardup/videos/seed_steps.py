"""Find seeds in steps: frames of two videos that match, from blocks of fingerprints.

    prints ─ blocks ─▶ sort ─ seeds ─▶ SEEDS

A block has the fingerprints with some of the keys of one mask (`frame_matches`), so that frames
with an equal key meet.  Memory: the blocks of one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np

from neardup.runtime.program import WireError, shown
from neardup.sets.ragged import grouped
from neardup.videos.frame_matches import (
    KEY_BITS,
    MASKS,
    Rows,
    keys_by,
    matches_in,
    video_numbers,
)
from neardup.videos.frame_store import fresh_variants
from neardup.videos.step_lines import (
    ROW,
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
from neardup.videos.video_join import JoinOptions
from neardup.videos.video_prints import MIRROR, VideoPrint, from_line, owns

SHARES = 16  # parts into which the keys of a mask are divided
ROWS = 1 << 18  # that `blocks` holds


def blocks(lines: Iterable[bytes], shares: int = SHARES, seed: int = 0) -> Iterator[bytes]:
    """Read prints; yield lines, each with fingerprints whose keys by a mask are in one range."""
    held: list[FrameBlock] = []
    rows = 0
    for text in lines:
        for part in _parts(from_line(text)):
            held.append(part)
            rows += len(part.rows)
            if rows >= ROWS:
                yield from _block_lines(joined(held), shares, seed)
                held, rows = [], 0
    if held:
        yield from _block_lines(joined(held), shares, seed)


def _parts(video: VideoPrint) -> Iterator[FrameBlock]:
    """Yield for each variant the fingerprints that no earlier variant of the same frame has."""
    fresh = fresh_variants(video.hashes)
    for v in range(len(video.variants)):
        kept = np.flatnonzero(fresh >> np.uint32(v) & np.uint32(1))
        rows = np.zeros(len(kept), ROW)
        rows["hash"], rows["span"], rows["variant"] = video.hashes[kept, v], video.spans[kept], v
        yield FrameBlock([video.id], video.variants, rows)


def _block_lines(block: FrameBlock, shares: int, seed: int) -> Iterator[bytes]:
    hashes = np.ascontiguousarray(block.rows["hash"])
    for mask in range(MASKS):
        keys = keys_by(hashes, mask, seed)
        block.rows["key"] = keys
        share = keys * np.uint64(shares) >> np.uint64(KEY_BITS)
        for number in np.unique(share).tolist():
            rows = block.rows[share == number]
            videos, rows["video"] = np.unique(rows["video"], return_inverse=True)
            ids = [block.ids[k] for k in videos.tolist()]
            part = format_block(FrameBlock(ids, block.variants, rows))
            yield line(f"{mask}.{number}".encode(), part, b"")


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
    hashes, spans, videos = (np.ascontiguousarray(block.rows[x]) for x in ("hash", "span", "video"))
    variants = block.rows["variant"].astype(np.int64)
    own = variants < owns(block.variants)
    rows = Rows(hashes, video_numbers(ids)[videos], spans[:, 0], variants, own)
    keys = block.rows["key"].astype(np.int64)
    i, j = matches_in(rows, keys, mask, options.distance, options.seed)
    is_mirror = np.array([name.endswith(MIRROR) for name in block.variants])
    mirrored = is_mirror[variants[j]]
    _, rank = np.unique(ids, return_inverse=True)
    swapped = rank[videos[i]] > rank[videos[j]]
    i, j = np.where(swapped, j, i), np.where(swapped, i, j)
    groups = np.stack((videos[i], videos[j], mirrored), axis=1).astype(np.int64)
    for (a, b, mirror), part in grouped(groups):
        matching = np.unique(np.hstack((spans[i[part]], spans[j[part]])), axis=0)
        other = MirroredPair(ids[b], bool(mirror))
        yield line(ids[a], format_pair(other), format_numbers(matching))
