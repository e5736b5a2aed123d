"""Sets as flat arrays: `Ragged` rows, runs of equal values, `Batch`es of records, union-find.

Rows of different lengths are two flat arrays (compressed sparse rows).  The tokens of records are
rows, and so are their keys: `shared` returns the common tokens, or keys, of two records.

A batch is some thousand records, the unit of work of every stage: numpy is fast only in bulk.

Letters: n rows, T values in all; row i is `values[offsets[i]:offsets[i+1]]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from neardup.runtime import kernels

SHORT = 16  # rows are sorted one by one from this mean size
LONG = 128  # pairs of rows are merged one by one above this mean size of a pair
PAIR_STEP = 1 << 20  # values merged in one vector step: about 8 MB each for a handful of arrays


def first_of_run(values: np.ndarray) -> np.ndarray:
    """Mark the first value of each run of equal values (bool)."""
    first = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first


def starts_of_runs(values: np.ndarray) -> np.ndarray:
    """Return where each run of equal values begins (int64).

    >>> starts_of_runs(np.array([7, 7, 5, 7])).tolist()
    [0, 2, 3]
    """
    return np.flatnonzero(first_of_run(values))


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values, ascending, and how often each occurs (int64)."""
    # For small values with many repeats, counting takes a tenth of the time of sorting.
    if values.dtype == np.uint64 and len(values) and int(values.max()) < len(values):
        members = np.bincount(values.astype(np.int64))
        found = np.flatnonzero(members)
        return found.astype(np.uint64), members[found]
    values = np.sort(values)
    starts = starts_of_runs(values)
    return values[starts], np.diff(starts, append=len(values))


def grouped(rows: np.ndarray) -> Iterator[tuple[list[int], np.ndarray]]:
    """Yield the distinct rows (int64 (n, k)) in order, each with the places where it occurs.

    >>> [(row, at.tolist()) for row, at in grouped(np.array([[1, 2], [0, 9], [1, 2]]))]
    [([0, 9], [1]), ([1, 2], [0, 2])]
    """
    order = np.lexsort(rows.T[::-1])
    inner = rows[order]
    new = np.append(True, (inner[1:] != inner[:-1]).any(axis=1))[: len(rows)]
    for part in np.split(order, np.flatnonzero(new)[1:]) if len(rows) else ():
        yield rows[part[0]].tolist(), part


def in_rows(values: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Return the order (int64) that sorts values (uint64) by row (`owner`: int64), then value."""
    order = np.argsort(values)
    # A stable sort of 16-bit numbers is a radix sort.
    narrow = owner[order].astype(np.min_scalar_type(int(owner.max(initial=0))))
    return order[np.argsort(narrow, kind="stable")]


def spans(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return starts[i] … starts[i] + sizes[i] - 1 for all i, concatenated (int64).

    >>> spans(np.array([10, 40]), np.array([3, 2])).tolist()
    [10, 11, 12, 40, 41]
    """
    shift = starts - (np.cumsum(sizes) - sizes)
    return np.arange(sizes.sum()) + np.repeat(shift, sizes)


def later_in_run(members: np.ndarray) -> np.ndarray:
    """Return the number of later elements in each element's run: 1, 0, 0 for runs of 2 and 1."""
    ends = np.cumsum(members)
    return np.repeat(ends, members) - np.arange(members.sum()) - 1


def pairs_in_runs(later: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs (left, right), int64: each index i with each of the next later[i] indices."""
    everyone = np.arange(len(later))
    return np.repeat(everyone, later), spans(everyone + 1, later)


@dataclass(eq=False)
class Ragged:
    """n rows of uint64 values, each row ascending and without repeats.

    values: uint64 (T,); offsets: int64 (n+1,), from 0 to T; weights: int64 (T,), above 0, or None
    if each value has weight 1.

    >>> rows = Ragged.from_rows([[1, 5, 9], [5], [5, 9]])
    >>> rows.sizes.tolist(), rows.row(2).tolist()
    ([3, 1, 2], [5, 9])
    """

    values: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray | None = None
    # Of the rows, once `similarity.sketches` has made them; `replace` does not take them over.
    sketches: tuple[np.ndarray, np.ndarray] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    @classmethod
    def from_rows(cls, rows: list[list[int]]) -> Ragged:
        """Make rows from lists that may be unsorted and have repeats."""
        flat = np.array([value for row in rows for value in row], dtype=np.uint64)
        return cls.from_unsorted(flat, np.array([len(row) for row in rows], dtype=np.int64))

    @classmethod
    def of_sizes(cls, values: np.ndarray, sizes: np.ndarray) -> Ragged:
        """Make rows from values that ascend in each row, given the row sizes (int64 (n,))."""
        return cls(values, _offsets(sizes))

    @classmethod
    def from_unsorted(cls, values: np.ndarray, sizes: np.ndarray) -> Ragged:
        """Make sorted rows without repeats from values (uint64) laid end to end; sizes: int64."""
        if kernels.COMPILED:
            values, sizes = kernels.sort_rows(values, sizes)
            return cls(values, _offsets(sizes))
        bits = int(values.max(initial=0)).bit_length() + len(sizes).bit_length()
        if bits > 64:
            return _from_long_words(values, sizes)
        # A row number and a value fit in one word: one sort is enough.
        word = np.uint32 if bits <= 32 else np.uint64
        shift = 8 * word(0).itemsize - len(sizes).bit_length()
        rows = np.arange(len(sizes), dtype=word) << word(shift)
        packed = np.repeat(rows, sizes)
        packed |= values.astype(word)
        packed.sort()
        packed = packed[first_of_run(packed)]
        offsets = np.append(np.searchsorted(packed, rows), len(packed))
        packed &= word((1 << shift) - 1)
        return cls(packed.astype(np.uint64), offsets)

    @classmethod
    def summed(cls, values: np.ndarray, sizes: np.ndarray, weights: np.ndarray) -> Ragged:
        """Make rows as `from_unsorted` does; weights (int64) of equal values of a row add up."""
        if not len(values):
            return cls.from_unsorted(values, sizes)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        order = in_rows(values, owner)
        values, owner = values[order], owner[order]
        first = np.flatnonzero(first_of_run(values) | first_of_run(owner))
        offsets = _offsets(np.bincount(owner[first], minlength=len(sizes)))
        return cls(values[first], offsets, np.add.reduceat(weights[order], first))

    @classmethod
    def end_to_end(cls, parts: list[Ragged]) -> Ragged:
        values = [np.empty(0, np.uint64), *(part.values for part in parts)]
        sizes = [np.empty(0, np.int64), *(part.sizes for part in parts)]
        weights = None
        if any(part.weights is not None for part in parts):
            weights = np.concatenate([part.weighed() for part in parts])
        return cls(np.concatenate(values), _offsets(np.concatenate(sizes)), weights)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> np.ndarray:
        sizes = np.diff(self.offsets)
        sizes.flags.writeable = False
        return sizes

    def row(self, index: int) -> np.ndarray:
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def take(self, index: np.ndarray) -> Ragged:
        """Return the rows at `index` (int64 array), in that order."""
        starts, sizes = self.offsets[index], self.sizes[index]
        weights = None if self.weights is None else _taken(self.weights, starts, sizes)
        return Ragged(_taken(self.values, starts, sizes), _offsets(sizes), weights)

    def where(self, chosen: np.ndarray) -> Ragged:
        """Return the rows with only the values where `chosen` (bool, (T,)) is True."""
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(chosen)))
        weights = None if self.weights is None else self.weights[chosen]
        return Ragged(self.values[chosen], ends[self.offsets], weights)

    def beside(self, more: Ragged) -> Ragged:
        return Ragged.end_to_end([self, more])

    def weighed(self) -> np.ndarray:
        """Return the weight of each value (int64)."""
        return np.ones(len(self.values), np.int64) if self.weights is None else self.weights

    def bare(self) -> Ragged:
        """Return the rows without weights."""
        return Ragged(self.values, self.offsets)


def _taken(values: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return values[starts[i] : starts[i] + sizes[i]] for all i, concatenated."""
    if kernels.COMPILED:
        return kernels.take_rows(values, starts, sizes)
    taken: np.ndarray = values[spans(starts, sizes)]
    return taken


def _from_long_words(values: np.ndarray, sizes: np.ndarray) -> Ragged:
    """Make rows as `from_unsorted` does, from values too large to pack with a row number."""
    offsets = _offsets(sizes)
    if len(values) < SHORT * len(sizes):
        values = values[in_rows(values, np.repeat(np.arange(len(sizes)), sizes))]
    else:
        values = values.copy()
        for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
            values[start:end].sort()
    first = first_of_run(values)
    first[offsets[:-1][sizes > 0]] = True
    return Ragged(values, offsets).where(first)


def shared(rows: Ragged, left: np.ndarray, right: np.ndarray) -> Ragged:
    """Return P rows: the common values of the rows left[p] and right[p] (int64 (P,)).

    >>> rows = Ragged.from_rows([[1, 5, 9], [5], [5, 9]])
    >>> shared(rows, np.array([0, 1]), np.array([2, 2])).sizes.tolist()
    [2, 1]
    """
    steps = chunks(rows.sizes[left] + rows.sizes[right], PAIR_STEP)
    return Ragged.end_to_end(
        [_shared_step(rows.take(left[low:high]), rows.take(right[low:high])) for low, high in steps]
    )


def shared_sizes(rows: Ragged, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the number of common values of the rows left[p] and right[p] (int64 (P,))."""
    if kernels.COMPILED:
        return kernels.shared_sizes(rows.values, rows.offsets, left, right)
    return shared(rows, left, right).sizes


def chunks(weights: np.ndarray, limit: int) -> list[tuple[int, int]]:
    """Divide the indices of `weights` into ranges of total weight ≤ `limit`, or of one element.

    >>> chunks(np.array([2, 2, 2, 9, 1]), 4)
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    ends = np.cumsum(weights)
    ranges, low, done = [], 0, 0
    while low < len(weights):
        high = max(low + 1, int(np.searchsorted(ends, done + limit, side="right")))
        ranges.append((low, high))
        low, done = high, int(ends[high - 1])
    return ranges


def _shared_step(left: Ragged, right: Ragged) -> Ragged:
    """Return the common values of row i of `left` and row i of `right`, for all i.

    With the row number above the value in a word, both sides are ascending runs, which a stable
    sort merges in linear time.
    """
    shift = 64 - len(left).bit_length()
    top = max((int(side.values.max()) for side in (left, right) if len(side.values)), default=0)
    if top >> shift:
        long = len(left.values) + len(right.values) > LONG * len(left)
        return (_shared_one_by_one if long else _shared_step_of_ranks)(left, right)
    row = np.arange(len(left), dtype=np.uint64) << np.uint64(shift)
    both = np.concatenate([side.values | np.repeat(row, side.sizes) for side in (left, right)])
    both.sort(kind="stable")
    common = both[:-1][both[1:] == both[:-1]]
    sizes = np.bincount((common >> np.uint64(shift)).astype(np.int64), minlength=len(left))
    return Ragged(common & np.uint64((1 << shift) - 1), _offsets(sizes))


def _shared_one_by_one(left: Ragged, right: Ragged) -> Ragged:
    """Compute `_shared_step` one row at a time, for long rows of very large values."""
    common = []
    for i in range(len(left)):
        both = np.concatenate((left.row(i), right.row(i)))
        both.sort(kind="stable")
        common.append(both[:-1][both[1:] == both[:-1]])
    return Ragged(np.concatenate(common), _offsets(np.array([len(row) for row in common])))


def _shared_step_of_ranks(left: Ragged, right: Ragged) -> Ragged:
    """Compute `_shared_step` from the ranks of values, for short rows of very large values."""
    values, ranks = np.unique(np.concatenate((left.values, right.values)), return_inverse=True)
    ranks = ranks.astype(np.uint64)
    cut = len(left.values)
    common = _shared_step(Ragged(ranks[:cut], left.offsets), Ragged(ranks[cut:], right.offsets))
    return Ragged(values[common.values.astype(np.int64)], common.offsets)


def _offsets(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))


@dataclass(eq=False)
class Batch:
    """A batch of records: record ids[i] has the tokens sets.row(i), at least one."""

    ids: list[bytes]
    sets: Ragged
    without_shingles: tuple[int, ...] = ()  # line numbers, in the block, of empty sets
    # uint64 (n,): the line number of each record, in its block or as `reading.blocks` counts.
    places: np.ndarray = field(default_factory=partial(np.empty, 0, np.uint64))
    # uint64 (n, R), or (0, 0): values of R fields, for `lines.tagged_ids`.
    ranks: np.ndarray = field(default_factory=partial(np.empty, (0, 0), np.uint64))
    halved: int = 0  # texts with half a surrogate pair
    repeating: int = 0  # texts that are mostly repeats of a few shingles
    without_value: int = 0  # records left out, without a value of --within or --across
    left_ids: tuple[bytes, ...] = ()  # of those, and of records without shingles

    @classmethod
    def end_to_end(cls, parts: Iterable[Batch]) -> Batch:
        """Concatenate batches into one."""
        held = list(parts)
        ids = [id_ for part in held for id_ in part.ids]
        places = np.concatenate([np.empty(0, np.uint64), *(part.places for part in held)])
        ranks = [part.ranks for part in held if len(part.ranks)] or [np.empty((0, 0), np.uint64)]
        sets = Ragged.end_to_end([part.sets for part in held])
        return cls(ids, sets, places=places, ranks=np.concatenate(ranks))

    def take(self, index: np.ndarray) -> Batch:
        """Return the records at `index` (int64 array), in that order."""
        places, ranks = (c[index] if len(c) else c for c in (self.places, self.ranks))
        ids = [self.ids[i] for i in index.tolist()]
        return Batch(ids, self.sets.take(index), places=places, ranks=ranks)


class Forest:
    """A union-find structure (Tarjan 1975) of n nodes, which are unconnected at first.

    >>> forest = Forest(4)
    >>> forest.join(0, 2), forest.join(2, 3), forest.join(0, 3)
    (True, True, False)
    >>> forest.join_all(np.array([1, 2]), np.array([3, 3]))
    >>> forest.roots(np.arange(4)).tolist()
    [0, 0, 0, 0]
    """

    def __init__(self, size: int):
        self.parents = np.arange(size, dtype=np.int32 if size < 1 << 31 else np.int64)
        self._view = self.parents.data  # a memoryview: its items are read faster

    def join(self, a: int, b: int) -> bool:
        """Connect two nodes; return False if they were connected already."""
        a, b = self.root(a), self.root(b)
        if a < b:
            self._view[b] = a
        else:
            self._view[a] = b
        return a != b

    def join_all(self, a: np.ndarray, b: np.ndarray) -> None:
        """Connect the nodes a[p] and b[p] for each p (int64 arrays)."""
        while len(a):
            a, b = self.roots(a), self.roots(b)
            np.minimum.at(self.parents, np.maximum(a, b), np.minimum(a, b))
            apart = a != b
            a, b = a[apart], b[apart]

    def roots(self, nodes: np.ndarray) -> np.ndarray:
        """Return the root of each given node: int32, or int64 in a forest of 2^31 nodes or more."""
        roots = self.parents[nodes]
        while not np.array_equal(higher := self.parents[roots], roots):
            roots = self.parents[nodes] = higher  # so that the next step is twice as long
        return roots

    def root(self, node: int) -> int:
        parents = self._view
        while (parent := parents[node]) != node:
            above = parents[parent]
            parents[node] = above
            node = above
        return node
