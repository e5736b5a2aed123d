"""PPJoin with bitmaps: the fastest exact join of sets in memory, compiled where possible.

It adds to PPJoin (`prefix_joins`) a bitmap filter (`similarity.sketches`) in place of the suffix
filter: a parity bitmap of 256 bits for each set rules out nine in ten of the candidates that are
left, for a few instructions each.  It also joins by measures without a minimum resemblance: all
tokens of the larger set are then looked up, and a prefix of the smaller one is indexed.

    each record ─┬─ look up its probing prefix ── positional filter ── bitmaps ── merge
    by size      └─ add its indexing prefix to the index

Letters: x < y records, the smaller one first; n records, T tokens, D of them distinct.  In memory:
about 40 bytes for each token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from neardup.joins import filters
from neardup.joins.filters import Ordered
from neardup.joins.inverted_index import Joined
from neardup.joins.prefix_joins import candidates_of, overlapping
from neardup.runtime import kernels
from neardup.sets.bit_vectors import bits_apart
from neardup.sets.ragged import Ragged, spans
from neardup.similarity.measures import Jaccard, SetMeasure, Size, Threshold
from neardup.similarity.sketches import wide_bitmaps

LOG_BITS = 8  # of a bitmap
FILTERS = ("prefix", "positional", "bitmap")


class Demand(NamedTuple):
    """The demand of a measure: a minimum resemblance, or a minimum share of the smaller set."""

    threshold: Threshold
    of_smaller: bool

    @classmethod
    def of(cls, measure: SetMeasure) -> Demand:
        least = measure.resemblance
        return cls(measure.smaller_share, True) if least is None else cls(least, False)

    def overlap(self, x: Size, y: Size) -> Size:
        """Return the minimum overlap of a pair of sets of x and y tokens, x ≤ y."""
        if self.of_smaller:
            return self.threshold.smallest_partner(x)
        return filters.overlap_needed(self.threshold, x, y)

    def first_partner(self, records: Ordered) -> np.ndarray:
        """Return, for each record, the first one that is large enough to be its partner."""
        if self.of_smaller:
            return np.zeros(len(records), np.int64)
        return records.first_partner(self.threshold)

    def probing_prefix(self, sizes: np.ndarray) -> np.ndarray:
        return sizes if self.of_smaller else filters.probing_prefix(self.threshold, sizes)

    def indexing_prefix(self, sizes: np.ndarray) -> np.ndarray:
        return sizes - self.overlap(sizes, sizes) + 1


def bitmap_join(rows: Ragged, threshold: Threshold) -> Joined:
    """Return the pairs at or above the threshold by PPJoin with bitmaps.

    >>> rows = Ragged.from_rows([[*range(9)], [*range(10)], [*range(5, 15)]])
    >>> joined = bitmap_join(rows, Threshold.parse("0.9"))
    >>> joined.left.tolist(), joined.right.tolist(), joined.common.tolist()
    ([0], [1], [9])
    >>> joined.candidates
    {'all': 3, 'length': 3, 'prefix': 1, 'positional': 1, 'bitmap': 1, 'pairs': 1}
    """
    return join_by(Jaccard(threshold), rows)


def join_by(measure: SetMeasure, rows: Ragged) -> Joined:
    """Return the pairs of rows that reach the threshold of a measure of sets, without weights."""
    joined = join_up_to(None, measure, rows)
    assert joined
    return joined


def join_up_to(
    most: int | None,
    measure: SetMeasure,
    rows: Ragged,
    worth: Callable[[int], bool] = lambda collisions: True,
) -> Joined | None:
    """Return the pairs of rows that reach a measure's threshold; None if more than `most` do.

    It also returns None if `worth` is false for the estimated number of collisions; each takes
    nanoseconds.
    """
    records, demand = Ordered.of(rows), Demand.of(measure)
    if not worth(collisions(records, demand)):
        return None
    first = demand.first_partner(records)
    maps = wide_bitmaps(rows, LOG_BITS)[records.row]
    counts, found, total = dict.fromkeys(FILTERS, 0), [np.empty((0, 3), np.int64)], 0
    step = _compiled if kernels.COMPILED else _in_numpy
    for pairs in step(records, demand, first, maps, counts):
        x, y = records.sizes[pairs[:, 0]], records.sizes[pairs[:, 1]]
        found.append(pairs[measure.may_reach(pairs[:, 2], x, y)])
        total += len(found[-1])
        if most is not None and total > most:
            return None
    return Joined.of(records.row, np.concatenate(found), {**records.counts(first), **counts})


def collisions(records: Ordered, demand: Demand) -> int:
    """Estimate how often a join finds a token of one record in the index, whatever their sizes.

    >>> records = Ordered.of(Ragged.from_rows([[1, 2], [1, 3], [1, 4], [1, 5]]))
    >>> [collisions(records, Demand(Threshold.parse(t), False)) for t in ("0.9", "0.3")]
    [2, 10]
    """
    looked_up, indexed = (
        np.bincount(records.tokens[spans(records.offsets[:-1], prefix)].astype(np.int64))
        for prefix in (demand.probing_prefix(records.sizes), demand.indexing_prefix(records.sizes))
    )
    return int(looked_up[: len(indexed)] @ indexed) // 2


def _compiled(
    records: Ordered, demand: Demand, first: np.ndarray, maps: np.ndarray, counts: dict[str, int]
) -> Iterator[np.ndarray]:
    """Yield pairs (x, y, overlap), int64 (P, 3); add up what each filter leaves in `counts`."""
    tokens, distinct = records.tokens.astype(np.uint32), int(records.tokens.max(initial=0)) + 1
    prefixes = demand.probing_prefix(records.sizes), demand.indexing_prefix(records.sizes)
    indexed = tokens[spans(records.offsets[:-1], prefixes[1])]
    t = demand.threshold
    rule = t.num, t.den, int(demand.of_smaller)
    sets = tokens, records.offsets, *prefixes, first, maps, np.bincount(indexed, minlength=distinct)
    left = np.zeros(len(FILTERS), np.int64)
    yield from kernels.prefix_pairs(*sets, *rule, left)
    counts.update(zip(FILTERS, left.tolist()))


def _in_numpy(
    records: Ordered, demand: Demand, first: np.ndarray, maps: np.ndarray, counts: dict[str, int]
) -> Iterator[np.ndarray]:
    """Yield what `_compiled` does, in vector steps."""
    sizes = records.sizes
    prefixes = demand.indexing_prefix(sizes), demand.probing_prefix(sizes)
    for some in candidates_of(records, first, *prefixes):
        x, y = sizes[some.x], sizes[some.y]
        near = filters.most_common(x, y, *some[2:]) >= demand.overlap(x, y)
        left = [len(near), int(near.sum())]
        some, x, y = some.only(near), x[near], y[near]
        apart = bits_apart(maps[some.x], maps[some.y])
        some = some.only((x + y - apart) // 2 >= demand.overlap(x, y))
        for name, more in zip(FILTERS, [*left, len(some.x)]):
            counts[name] += more
        yield overlapping(records, some)
