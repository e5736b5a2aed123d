"""Find the records of an index that are similar to given records, the most similar first.

keys of a batch ── postings of a segment ── candidate pairs ── sizes and bitmaps ── sets ── verified

Pairs that share a key are found.  How likely that is at the index's threshold and above, its scheme
promises; below it, what is found is a sample.

Memory: a batch of records; some PAIRS candidate pairs; the similar ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from heapq import nsmallest
from typing import NamedTuple

import numpy as np

from neardup.sets.ragged import Batch, Ragged, spans
from neardup.similarity.measures import Measure
from neardup.similarity.sketches import bitmaps, may_reach
from neardup.stages.segment import OLD, Segment

PAIRS = 1 << 18  # candidate pairs that are verified together, 8 bytes each


class Similar(NamedTuple):
    """A record of an index, and its similarity to the record that was looked up."""

    id: bytes
    similarity: Fraction


def similar_to_each(
    segments: Sequence[Segment], batch: Batch, keys: Ragged, measure: Measure, top: int | None
) -> list[list[Similar]]:
    """Return, for each record of a batch, up to `top` similar records of the index, best first.

    keys: those of each record; only records that share one of them are compared.  Ties are in the
    byte order of ids.  With a directed measure, the record that is looked up comes first: its
    containment is the share of it that is in the similar one.
    """

    def best_first(item: tuple[tuple[int, int], Similar]) -> tuple[Fraction, bytes]:
        return -item[1].similarity, item[1].id

    found: list[dict[tuple[int, int], Similar]] = [{} for _ in batch.ids]
    for number, segment in enumerate(segments):
        for rows, records in candidates(segment, keys):
            for row, record, similar in verified(segment, batch, rows, records, measure):
                found[row][number, record] = similar
            for row in np.unique(rows).tolist():
                if top is not None and len(found[row]) > top:
                    found[row] = dict(nsmallest(top, found[row].items(), key=best_first))
    return [[one for _, one in sorted(each.items(), key=best_first)] for each in found]


def candidates(segment: Segment, keys: Ragged) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield candidate pairs that share a key: row numbers of `keys`, and record numbers (int64).

    Within an array that is yielded, each pair is there once.
    """
    owner = np.repeat(np.arange(len(keys)), keys.sizes)
    order = np.argsort(keys.values, kind="stable")
    values, owner = keys.values[order], owner[order].astype(np.uint64)
    held: list[np.ndarray] = []
    for shared, holders in segment.find(np.unique(values)):
        low, high = (np.searchsorted(values, shared, side) for side in ("left", "right"))
        counts = high - low
        rows = owner[spans(low, counts)]
        held.append(rows << np.uint64(32) | np.repeat(holders, counts).astype(np.uint64))
        if sum(map(len, held)) >= PAIRS:
            yield _distinct(held)
            held = []
    if held:
        yield _distinct(held)


def _distinct(pieces: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.unique(np.concatenate(pieces))
    return (pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(2**32 - 1)).astype(
        np.int64
    )


def verified(
    segment: Segment, batch: Batch, rows: np.ndarray, records: np.ndarray, measure: Measure
) -> Iterator[tuple[int, int, Similar]]:
    """Yield (row, record number, `Similar`) for each candidate pair at or above the threshold."""
    distinct, place = np.unique(records, return_inverse=True)
    sketches = segment[distinct]
    some, row = np.unique(rows, return_inverse=True)
    asked = batch.sets.take(some)
    sizes = np.concatenate((asked.sizes, (sketches[:, 0] & ~OLD).astype(np.int64)))
    maps = np.concatenate((bitmaps(asked), sketches[:, 1:]))
    near = np.flatnonzero(may_reach(measure, maps, sizes, row, len(some) + place))
    near = near[np.argsort(place[near], kind="stable")]
    rows, place = rows[near], place[near]
    wanted = np.unique(place)
    for before, old in segment.batches(distinct[wanted]):
        numbers = wanted[before : before + len(old.ids)]
        here = slice(*np.searchsorted(place, [numbers[0], numbers[-1] + 1]).tolist())
        left, right = rows[here], np.searchsorted(numbers, place[here])
        yield from _similar(batch, old, left, right, measure, distinct[numbers])


def _similar(
    batch: Batch,
    old: Batch,
    left: np.ndarray,
    right: np.ndarray,
    measure: Measure,
    numbers: np.ndarray,
) -> Iterator[tuple[int, int, Similar]]:
    some, row = np.unique(left, return_inverse=True)
    sets = Ragged.end_to_end([batch.sets.take(some), old.sets])
    found = measure.verified(sets, row, len(some) + right)
    pairs: Iterable[tuple[int, ...]] = zip(
        *(column.tolist() for column in (found.left, found.right, found.part, found.whole))
    )
    for x, y, part, whole in pairs:
        if x > y:
            if measure.directed:
                continue
            x, y = y, x  # the measure puts the old record first
        record = y - len(some)
        similar = Similar(old.ids[record], Fraction(part, whole))
        yield int(some[x]), int(numbers[record]), similar
