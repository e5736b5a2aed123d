"""Find seeds (matches of frames of two videos) on one machine, and keep them in files.

    prints ─▶ for each mask: keys, sorted ─▶ buckets ─▶ matches ─▶ files by pair of videos

A seed is two frames that match.  As a row it is two words, uint64 (2,):

    number of the frame of a << 1 | 1 if the match is mirrored,    number of the frame of b

where a is the video whose id is smaller.  All seeds of two videos are in one of PARTS files.

Where there are many rows, each process writes the keys of a mask to files, by ranges of keys, and
sorts one range after the other.

Memory: about 60 bytes for each of ROWS rows in each process, and the seeds of one part.  Letters: n
frames, V variants, m seeds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.joins.near_bits import near_pairs
from neardup.media.frames.frame_store import FrameStore
from neardup.media.frames.video_prints import matched, owns
from neardup.media.videos.frame_matches import (
    BITS,
    KEY_BITS,
    MASKS,
    Indices,
    Rows,
    counted,
    in_buckets,
    keys_by,
    video_numbers,
)
from neardup.reading.decoders import in_order
from neardup.sets.hashing import combine
from neardup.sets.ragged import chunks, first_of_run, grouped, spans, starts_of_runs

PARTS = 64
ROWS = 1 << 22  # rows that a process sorts at once
CHUNK = 1 << 19  # frames whose keys are made at once
GATHERED = 1 << 20  # rows whose fingerprints are in memory at once
ROW_BITS = 64 - KEY_BITS

Seeds = NDArray[np.uint64]


class SeedSearch(NamedTuple):
    """A search for seeds (matching frames): videos, maximum distance, and the output folder."""

    store: FrameStore
    folder: Path  # of the files of seeds
    distance: int
    old: int  # the first videos, which are not compared with each other
    chosen: NDArray[np.bool_]  # (videos,), which take part
    numbers: NDArray[np.uint64]  # (videos,), random

    @classmethod
    def of(
        cls,
        store: FrameStore,
        folder: Path,
        distance: int,
        old: int = 0,
        chosen: NDArray[np.bool_] | None = None,
    ) -> SeedSearch:
        every = np.ones(len(store), bool) if chosen is None else chosen
        ids = [id_.encode() for id_ in store.ids]
        folder.mkdir()
        return cls(store, folder, distance, old, every, video_numbers(ids))

    @property
    def rows(self) -> int:
        return self.store.frames * len(self.store.variants)

    @property
    def owns(self) -> int:
        return owns(self.store.variants)

    def video_of(self, rows: Indices) -> NDArray[np.int32]:
        return self.store.owner[rows % self.store.frames]

    def hashes_of(self, rows: Indices) -> NDArray[np.uint64]:
        """Return the fingerprints of rows, uint64 (m, 4); a row is variant * n + frame."""
        variants, frames = np.divmod(rows, self.store.frames)
        hashes = np.empty((len(rows), 4), np.uint64)
        for v in range(len(self.store.variants)):
            at = np.flatnonzero(variants == v)
            hashes[at] = self.store.hashes_of(v)[frames[at]]
        return hashes


def find_seeds(
    search: SeedSearch, exact: bool, jobs: int, done: Callable[[float], object] = lambda share: None
) -> None:
    """Find the matching frames of all pairs of videos, and write them to files.

    exact: find all matches instead of most of them; the time grows with the square of n.
    """
    store = search.store
    if not store.frames:
        return
    _ = store.owner, store.rank, store.spans, store.fresh  # before processes fork
    turns = [(x, y, turn) for x, y in matched(store.variants) for turn in range(jobs)]
    tasks = turns if exact else [(mask, 0, 0) for mask in range(MASKS)]

    def work(task: tuple[int, int, int]) -> None:
        if exact:
            _exact(search, *task, jobs)
        else:
            find_by_mask(search, task[0])

    for k, _ in enumerate(in_order(work, tasks, jobs), 1):
        done(k / len(tasks))


def _exact(search: SeedSearch, left: int, right: int, turn: int, turns: int) -> None:
    store, n = search.store, search.store.frames
    taken = np.flatnonzero(search.chosen[store.owner])
    of_left, of_right = (taken[store.is_fresh(taken, v)] for v in (left, right))
    own = np.ascontiguousarray(store.hashes_of(left)[of_left])
    other = None if left == right else np.ascontiguousarray(store.hashes_of(right)[of_right])
    for i, j in near_pairs(own, other, BITS, search.distance, turn, turns):
        _write(search, left * n + of_left[i], right * n + of_right[j])


def find_by_mask(search: SeedSearch, mask: int) -> None:
    """Find the matching frames whose keys by a mask are equal, and write them to files."""
    for packed in _keyed_rows(search, mask):
        starts = starts_of_runs(packed >> np.uint64(ROW_BITS))
        rows = (packed & np.uint64((1 << ROW_BITS) - 1)).astype(np.int64)
        sizes = np.diff(starts, append=len(rows))
        owns = counted(rows < search.owns * search.store.frames, starts)
        live = np.flatnonzero((sizes > 1) & (owns > 0))
        for first, last in chunks(sizes[live], GATHERED):
            part = live[first:last]
            _compare(search, mask, rows, starts[part], owns[part], sizes[part])


def _keyed_rows(search: SeedSearch, mask: int) -> Iterator[NDArray[np.uint64]]:
    """Yield key << 40 | row for the rows to compare, sorted, in ranges of about ROWS rows."""
    ranges = -(-search.rows // ROWS)
    if ranges == 1:
        packed = np.concatenate([np.empty(0, np.uint64), *_keyed_chunks(search, mask)])
        packed.sort()
        yield packed
        return
    bounds = np.arange(1, ranges, dtype=np.uint64) * np.uint64((1 << KEY_BITS) // ranges)
    with TemporaryDirectory(dir=search.folder) as folder:
        files = [Path(folder) / f"{k}" for k in range(ranges)]
        for chunk in _keyed_chunks(search, mask):
            chunk.sort()
            ends = np.searchsorted(chunk, bounds << np.uint64(ROW_BITS))
            for path, part in zip(files, np.split(chunk, ends)):
                with path.open("ab") as file:
                    file.write(part.tobytes())
        for path in files:
            packed = np.fromfile(path, np.uint64)
            path.unlink()
            packed.sort()
            yield packed


def _keyed_chunks(search: SeedSearch, mask: int) -> Iterator[NDArray[np.uint64]]:
    """Yield key << 40 | row for the fresh fingerprints (see `is_fresh`) of the chosen videos."""
    store, n = search.store, search.store.frames
    every = bool(search.chosen.all())
    for v in range(len(store.variants)):
        for first in range(0, n, CHUNK):
            part = slice(first, min(first + CHUNK, n))
            taken = store.is_fresh(part, v)
            if not every:
                taken &= search.chosen[store.owner[part]]
            packed = keys_by(store.hashes_of(v)[part], mask) << np.uint64(ROW_BITS)
            packed |= np.arange(v * n + part.start, v * n + part.stop, dtype=np.uint64)
            yield packed[taken]


def _compare(
    search: SeedSearch, mask: int, rows: Indices, starts: Indices, owns: Indices, sizes: Indices
) -> None:
    """Find the matches within buckets of rows, and write them to the files of seeds."""
    rows = rows[spans(starts, sizes)]
    videos = search.video_of(rows)
    several = np.flatnonzero(_with_two_videos(videos, np.cumsum(sizes) - sizes, search.old))
    at = spans((np.cumsum(sizes) - sizes)[several], sizes[several])
    rows, owns, sizes = rows[at], owns[several], sizes[several]
    hashes = search.hashes_of(rows)

    def take(at: Indices) -> Rows:
        variants, frames = np.divmod(rows[at], search.store.frames)
        videos, times = search.store.owner[frames], search.store.spans[frames, 0]
        return Rows(hashes[at], search.numbers[videos], times, variants, variants < search.owns)

    how = take, mask, search.distance
    found = in_buckets(hashes, search.video_of(rows), owns, sizes, *how)
    _write(search, rows[found.left], rows[found.right])


def _with_two_videos(videos: NDArray[np.int32], starts: Indices, old: int) -> NDArray[np.bool_]:
    """Mark the buckets with rows of at least two videos, at least one of which is new."""
    if not len(starts):
        return np.zeros(0, bool)
    highest = np.maximum.reduceat(videos, starts)
    return np.asarray((np.minimum.reduceat(videos, starts) < highest) & (highest >= old))


def _write(search: SeedSearch, left: Indices, right: Indices) -> None:
    """Append matching rows to files as pairs of frames; left: rows of own variants (see `owns`)."""
    store, n = search.store, search.store.frames
    mirrored = store.mirrored[right // n]
    a, b = left % n, right % n
    of_a, of_b = store.owner[a], store.owner[b]
    good = (of_a != of_b) & (np.maximum(of_a, of_b) >= search.old)
    a, b, mirrored = a[good], b[good], mirrored[good]
    swapped = store.rank[store.owner[a]] > store.rank[store.owner[b]]
    a, b = np.where(swapped, b, a), np.where(swapped, a, b)
    seeds = seed_rows(a, b, mirrored)
    columns = np.stack((store.owner[a], store.owner[b])).astype(np.uint64)
    parts = (combine(columns, seed=0) % np.uint64(PARTS)).astype(np.uint8)
    order = np.argsort(parts, kind="stable")
    ends = np.searchsorted(parts[order], np.arange(PARTS + 1))
    for part in np.flatnonzero(np.diff(ends)).tolist():
        with (search.folder / f"{part}.{os.getpid()}").open("ab") as file:
            file.write(seeds[order[ends[part] : ends[part + 1]]].tobytes())


def seeds_in(folder: Path, part: int) -> Seeds:
    """Return the distinct seeds (matches) in the files of a part, in order; merge these files."""
    whole = folder / f"{part}"
    if not whole.exists():
        pieces = sorted(folder.glob(f"{part}.*"))
        held = [np.fromfile(piece, np.uint64).reshape(-1, 2) for piece in pieces]
        distinct_seeds(held).tofile(whole)
        for piece in pieces:
            piece.unlink()
    return np.fromfile(whole, np.uint64).reshape(-1, 2)


def seed_rows(i: Indices, j: Indices, mirrored: NDArray[np.bool_]) -> Seeds:
    """Return seeds as rows, from frames of a and b that match."""
    return np.stack((i << 1 | mirrored, j), axis=1).astype(np.uint64)


def distinct_seeds(parts: Sequence[Seeds]) -> Seeds:
    """Return the distinct rows of all parts, in order."""
    seeds = np.concatenate([np.empty((0, 2), np.uint64), *parts])
    seeds = seeds[np.lexsort((seeds[:, 1], seeds[:, 0]))]
    return seeds[first_of_run(seeds[:, 0]) | first_of_run(seeds[:, 1])]


def by_videos(store: FrameStore, seeds: Seeds) -> Iterator[tuple[int, int, bool, Indices, Indices]]:
    """Yield (a, b, mirrored, frames of a, frames of b) for the matches of each pair of videos."""
    x, y = frames_in(seeds)
    mirrored = (seeds[:, 0] & np.uint64(1)).astype(np.int64)
    pairs = np.stack((store.owner[x], store.owner[y], mirrored), axis=1)
    for (a, b, mirror), part in grouped(pairs):
        yield a, b, bool(mirror), x[part], y[part]


def frames_in(seeds: Seeds) -> tuple[Indices, Indices]:
    """Return the frames of a and those of b of matches."""
    return (seeds[:, 0] >> np.uint64(1)).astype(np.int64), seeds[:, 1].astype(np.int64)
