"""Find pairs of similar frames of two videos, by hashing the bits that random masks choose.

Two frames match if an own variant of one (`video_prints.owns`) differs in at most D bits from any
variant of the other.  A match is a mirrored one if that variant is of the mirror image.

Each of b masks chooses r of the 256 bits; the *key* of a fingerprint by a mask is a hash of these
bits, and frames with an equal key are in one *bucket*.  Only they are compared.  A match of d bits
is found with probability 1 - (1 - C(256-d, r) / C(256, r))^b or more:

    bits that differ     8     16     20     24     28     31     36     40
    recall           1.000  1.000   .996   .970   .891   .792   .586   .424     b = 40, r = 24

A run has many frames, of which two suffice to find its line in time.

Some frames are in one bucket with very many others:

* calm frames, such as those of a speaker, look alike throughout a video.  At most CALM own frames
  of a video are kept in a large bucket: those with the smallest keys by the next mask, which are
  mostly the same frames in all copies.
* a frame that very many videos show.  A bucket of more than FULL videos is divided by the keys of
  the next mask.  In a part that is still larger, HUBS videos are compared with all others, instead
  of all with all.

The matches in a bucket depend on its frames alone, not on their order or on other buckets.

Letters: n frames, b masks (40) of r bits (24); D bits that may differ (40).
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Any, Callable, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.joins.near_bits import pairs_between
from neardup.schemes.bit_keys import Drawn
from neardup.sets.hashing import random_words
from neardup.sets.ragged import first_of_run, spans, starts_of_runs

BITS, MASKS, MASK_BITS = 256, 40, 24
KEY_BITS = 24
CALM, CALM_OTHERS = 8, 32  # maximum rows of a video in a bucket: of own variants, of others
FULL, HUBS = 256, 16  # videos
CACHED = 1 << 13  # fingerprints that fit in the processor's L2 cache
FACTOR = 0x9E3779B97F4A7C15

Indices = NDArray[np.int64]


class Rows(NamedTuple):
    """The m fingerprints of frames that are compared, in any order."""

    hashes: NDArray[np.uint64]  # (m, 4)
    videos: NDArray[np.uint64]  # (m,), a random number for each video: see `video_numbers`
    times: Indices  # (m,), when the frame begins, in milliseconds
    variants: Indices  # (m,)
    own: NDArray[np.bool_]  # (m,), whether the variant is first, or in OWN

    def take(self, index: Indices) -> Rows:
        return Rows._make(column[index] for column in self)


class Matches(NamedTuple):
    """Matching frames of different videos: the rows left[k] and right[k] of their fingerprints."""

    left: Indices  # with an own fingerprint
    right: Indices


@lru_cache(maxsize=1)
def _masks() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the random masks, uint64 (b, 4), and an odd factor for each of their words."""
    factors = random_words(0, MASKS * 4, stream=6) | np.uint64(1)
    return Drawn(BITS, MASKS, MASK_BITS, 0).masks, factors


def recall(bits: int) -> float:
    """Return the probability that a match of frames that differ in `bits` bits is found.

    >>> [round(recall(bits), 3) for bits in (8, 16, 20, 24, 28, 31)]
    [1.0, 1.0, 0.996, 0.97, 0.891, 0.792]
    """
    return Drawn(BITS, MASKS, MASK_BITS, 0).recall(BITS - bits)


def keys_by(hashes: NDArray[np.uint64], mask: int) -> NDArray[np.uint64]:
    """Return the key of each fingerprint (uint64 (n, 4)) by one mask: below 2^24, uint64 (n,)."""
    masks, factors = _masks()
    found = np.empty(len(hashes), np.uint64)
    for first in range(0, len(hashes), CACHED):
        part, total = hashes[first : first + CACHED], found[first : first + CACHED]
        total[:] = 0
        for word in range(masks.shape[1]):
            total += (part[:, word] & masks[mask, word]) * factors[4 * mask + word]
        total ^= total >> np.uint64(32)
        total *= np.uint64(FACTOR)
        total >>= np.uint64(64 - KEY_BITS)
    return found


def video_numbers(ids: list[bytes]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each id, the same in each run and on each machine."""
    digests = [blake2b(id_, digest_size=8).digest() for id_ in ids]
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def in_buckets(
    hashes: NDArray[np.uint64],
    videos: NDArray[Any],
    owns: Indices,
    sizes: Indices,
    take: Callable[[Indices], Rows],
    mask: int,
    distance: int,
) -> Matches:
    """Return the matches within buckets of sizes[k] rows that follow each other.

    mask: the number of the mask by which all these buckets were made.  A match is returned at the
    first mask by which its keys are equal, and also at later ones if calm frames were left out.

    In each bucket, the owns[k] rows with own fingerprints are the first.  `take` returns the rows
    with these numbers, which are needed for large buckets only.
    """
    starts = np.cumsum(sizes) - sizes
    small = (owns <= CALM) & (sizes <= CALM_OTHERS)  # so that all their rows are compared
    i, j = small_buckets(hashes, starts[small], owns[small], sizes[small], distance)
    apart = videos[i] != videos[j]
    i, j = i[apart], j[apart]
    new = first_shared(hashes[i], hashes[j], mask)
    large = spans(starts[~small], sizes[~small])
    buckets = np.repeat(np.arange(len(sizes))[~small], sizes[~small])
    more = large_buckets(take(large), buckets, mask, distance)
    return Matches(np.append(i[new], large[more.left]), np.append(j[new], large[more.right]))


def small_buckets(
    hashes: NDArray[np.uint64], starts: Indices, owns: Indices, sizes: Indices, distance: int
) -> tuple[Indices, Indices]:
    """Return pairs (row of an own variant, any row) in one bucket, at most `distance` bits apart.

    The rows of a bucket follow each other, from its start, and those with their own fingerprint are
    the first: `owns` of `sizes` rows.
    """
    ranges = np.stack((starts, starts + owns, starts, starts + sizes), axis=1)
    ranges = np.ascontiguousarray(ranges[(owns > 0) & (sizes > 1)])
    found = [*zip(*pairs_between(hashes, hashes, ranges, distance, True))]
    left, right = found or ((), ())
    none = np.empty(0, np.int64)
    return np.concatenate((none, *left)), np.concatenate((none, *right))


def first_shared(x: NDArray[np.uint64], y: NDArray[np.uint64], mask: int) -> NDArray[np.bool_]:
    """Mark the pairs x[k], y[k] whose keys differ for all masks before `mask`: bool (n,)."""
    new = np.ones(len(x), bool)
    for before in range(mask):
        at = np.flatnonzero(new)
        new[at] = keys_by(x[at], before) != keys_by(y[at], before)
    return new


def large_buckets(rows: Rows, buckets: Indices, mask: int, distance: int) -> Matches:
    """Return the matches found within large buckets, where not all pairs of rows are compared."""
    second = keys_by(rows.hashes, (mask + 1) % MASKS)
    # First leave out calm frames, then divide what is still full.
    kept, calm = _without_calm(rows, buckets, second)
    rows, second, calm = rows.take(kept), second[kept], calm[kept]
    parts, hubs = _divided(rows.videos, buckets[kept], second)
    # `small_buckets` needs the rows that are compared with all others first in each part.
    own = rows.own & hubs
    order = np.lexsort((rows.variants, rows.times, rows.videos, ~own, parts))
    starts = starts_of_runs(parts[order])
    sizes = np.diff(starts, append=len(order))
    found = small_buckets(rows.hashes[order], starts, counted(own[order], starts), sizes, distance)
    i, j = (order[side] for side in found)
    new = rows.videos[i] != rows.videos[j]
    i, j = i[new], j[new]
    # At an earlier mask that they share, a calm frame may have been left out: keep its matches.
    new = calm[i] | calm[j] | first_shared(rows.hashes[i], rows.hashes[j], mask)
    return Matches(kept[i[new]], kept[j[new]])


def _without_calm(
    rows: Rows, buckets: Indices, second: NDArray[np.uint64]
) -> tuple[Indices, NDArray[np.bool_]]:
    """Limit the rows per video and bucket: return the rows to keep; mark rows of limited videos."""
    # A group is the own rows, or the other ones, of one video in one bucket.  Within it, the order
    # is that of the next mask's keys, so that copies of a video keep the same frames.
    other = ~rows.own
    order = np.lexsort((rows.variants, rows.times, second, other, rows.videos, buckets))
    new = first_of_run(buckets[order]) | first_of_run(rows.videos[order])
    new |= first_of_run(other[order])
    starts = np.flatnonzero(new)
    sizes = np.diff(starts, append=len(order))
    # The first rows of each group are kept; all rows of a group that loses some are calm.
    place = np.arange(len(order)) - np.repeat(starts, sizes)
    most = np.where(other[order], CALM_OTHERS, CALM)
    calm = np.empty(len(order), bool)
    calm[order] = np.repeat(sizes, sizes) > most
    return order[place < most], calm


def _divided(
    videos: NDArray[np.uint64], buckets: Indices, second: NDArray[np.uint64]
) -> tuple[Indices, NDArray[np.bool_]]:
    """Divide large buckets: return each row's part, and marks of hubs.

    Buckets of more than FULL videos are divided.  A hub is compared with all other rows of its
    part.  A part is full if it still has more than FULL videos; the hubs are then the rows of only
    HUBS of them.
    """
    _, many = _video_places(videos, buckets)
    parts = _pair_numbers(buckets, np.where(many > FULL, second.astype(np.int64), 0))
    place, many = _video_places(videos, parts)
    return parts, (many <= FULL) | (place < HUBS)


def _video_places(videos: NDArray[np.uint64], buckets: Indices) -> tuple[Indices, Indices]:
    """Return the place of each row's video among the videos of its bucket, and their number."""
    # The rows of a bucket follow each other, ordered by video; number the videos from 1 on.
    order = np.lexsort((videos, buckets))
    starts = starts_of_runs(buckets[order])
    new = first_of_run(videos[order])
    new[starts] = True
    number = np.cumsum(new)
    sizes = np.diff(starts, append=len(order))
    # A place is the number less that of the bucket's first video; then undo the order.
    place, many = np.empty((2, len(order)), np.int64)
    place[order] = number - np.repeat(number[starts], sizes)
    many[order] = np.repeat(counted(new, starts), sizes)
    return place, many


def _pair_numbers(x: Indices, y: Indices) -> Indices:
    """Return a number for each pair (x[i], y[i]), equal for equal pairs."""
    order = np.lexsort((y, x))
    new = first_of_run(x[order]) | first_of_run(y[order])
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(new)
    return numbers


def counted(marks: NDArray[np.bool_], starts: Indices) -> Indices:
    """Return how many marks are set in each run that begins at `starts`.

    >>> counted(np.array([True, True, False]), np.array([0, 1])).tolist()
    [1, 1]
    """
    total = np.append(0, np.cumsum(marks))
    return np.asarray(np.diff(total[np.append(starts, len(marks))]), np.int64)
