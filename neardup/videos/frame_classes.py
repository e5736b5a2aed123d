"""Videos as lines of shingles: similar frames form one class, and each class has its shingles.

    prints ─▶ segments: frames that follow each other and look alike
           ─▶ segments of two videos that match ─▶ connected ones are one class

    ID SHINGLE SHINGLE …       one shingle for each quarter of a second in which a class is shown

The k-th quarter of a second of a class is the shingle  class · 2^20 + k.  So the Jaccard similarity
of two videos is the time of classes in both, divided by the time of classes in at least one; the
order of the frames is ignored.  Copies have nearly 1, and a clip has its share of the longer video.

Unlike `video_join`, this ignores times, and no measure of `neardup videos` uses it: it is for
programs that read shingles.

Memory: as `video_join`, and 16 bytes for each frame.  Letters: n frames of all videos.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from neardup.sets.bit_vectors import bits_apart
from neardup.sets.ragged import Forest, distinct
from neardup.videos.frame_store import FrameStore
from neardup.videos.seed_files import PARTS, SeedSearch, find_seeds, seeds_in

DISTANCE = 31  # bits in which matching frames of two videos differ at most
ALIKE = 24  # bits in which the frames of a segment differ at most from its first one
ENOUGH = 4  # matching frames that link two segments; or half of the shorter segment
QUARTER = 250  # milliseconds that a shingle stands for
PLACE_BITS = 20  # 2^20 quarters of a second are three days

Indices = NDArray[np.int64]


def shingle_lines(store: FrameStore, jobs: int, seed: int = 0) -> Iterator[bytes]:
    """Yield the line of shingles of each video, in order; a video without frames has no line."""
    segments = segments_of(store)
    classes = _classes(store, segments, jobs, seed)[segments]
    for video, id_ in enumerate(store.ids):
        part = store.frames_of(video)
        shingles = _shingles(classes[part], store.spans[part])
        if len(shingles):
            yield f"{id_} {' '.join(map(str, shingles.tolist()))}\n".encode()


def segments_of(store: FrameStore) -> Indices:
    """Return the number of each frame's segment (frames in a row that look alike): int64 (n,)."""
    new = np.zeros(store.frames, bool)
    for video in range(len(store)):
        part = store.frames_of(video)
        new[part] = _starts(store.hashes[0][part])
    return np.cumsum(new) - 1


def _starts(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Mark the first frame of each run of similar frames; hashes: uint64 (n, 4), by time.

    >>> _starts(np.array([[0] * 4, [1] * 4, [2**40 - 1] * 4], np.uint64)).tolist()
    [True, False, True]
    """
    marks = np.zeros(len(hashes), bool)
    first = 0
    while first < len(hashes):
        marks[first] = True
        others = np.flatnonzero(bits_apart(hashes[first:], hashes[[first]]) > ALIKE)
        first = first + int(others[0]) if len(others) else len(hashes)
    return marks


def _classes(store: FrameStore, segments: Indices, jobs: int, seed: int) -> Indices:
    """Return the class of each segment: the smallest number of the segments connected with it."""
    count = int(segments[-1]) + 1 if len(segments) else 0
    sizes = np.bincount(segments, minlength=count)
    forest = Forest(count)
    with tempfile.TemporaryDirectory(prefix="classes.", dir=store.folder) as folder:
        search = SeedSearch.of(store, Path(folder, "seeds"), DISTANCE, seed)
        find_seeds(search, False, jobs)
        for part in range(PARTS):
            seeds = seeds_in(search.folder, part)
            i, j = (seeds[:, 0] >> np.uint64(1)).astype(np.int64), seeds[:, 1].astype(np.int64)
            forest.join_all(*_linked(i, j, segments, sizes))
    return forest.roots(np.arange(count)).astype(np.int64)


def _linked(i: Indices, j: Indices, segments: Indices, sizes: Indices) -> tuple[Indices, Indices]:
    """Return the pairs of segments in which enough frames match; frame i[k] matches frame j[k]."""
    shift = np.uint64(32)
    x, y = segments[i].astype(np.uint64), segments[j].astype(np.uint64)
    counts = []
    for frames in (i, j):
        # A frame that matches several frames of the other segment counts once.
        order = np.lexsort((frames, y, x))
        pairs, some = (x << shift | y)[order], frames[order]
        new = np.append(True, (pairs[1:] != pairs[:-1]) | (some[1:] != some[:-1]))[: len(pairs)]
        each, count = distinct(pairs[new])
        counts.append(count)
    left, right = (each >> shift).astype(np.int64), (each & np.uint64(2**32 - 1)).astype(np.int64)
    shorter = np.minimum(sizes[left], sizes[right])
    good = np.minimum(*counts) >= np.minimum((shorter + 1) // 2, ENOUGH)
    return left[good], right[good]


def _shingles(classes: Indices, spans: Indices) -> Indices:
    """Return the shingles of one video, from the classes (n,) and spans (n, 2) of its frames.

    >>> _shingles(np.array([2, 5, 2]), np.array([[0, 250], [250, 500], [500, 800]])) >> PLACE_BITS
    array([2, 2, 5])
    """
    shown, place = np.unique(classes, return_inverse=True)
    lengths = np.bincount(place, spans[:, 1] - spans[:, 0], minlength=len(shown))
    quarters = np.maximum(1, np.rint(lengths / QUARTER)).astype(np.int64)
    starts = np.repeat(np.cumsum(quarters) - quarters, quarters)
    return np.repeat(shown << PLACE_BITS, quarters) + np.arange(len(starts)) - starts
