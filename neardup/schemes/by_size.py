"""Size groups: a pair is in the group of its smaller set; each group uses one kind of keys.

At t = 0.9, sets of 50 to 55 elements are a group.  Larger partners have at most 61, so they are in
the same group or in the next one, and a set has keys in at most two groups:

    sizes    … 45 ── 49 │ 50 ──── 55 │ 56 ───── 62 │ …
                         own group g   its larger partners: to 61

If |x| ≤ |y| and |x∩y| ≥ t·|x∪y|, then |x△y| ≤ (1-t)/(1+t)·(|x|+|y|), which is d = 6 here.  This
bound decides the cost of exact schemes.  All sizes of a group have the same d: sizes up to 8 allow
no difference, and form one group.  Each group may use any of these kinds of keys (ways):

    parts    equal in one of d+1 parts of the universe: exact, and d+1 keys
    tokens   one of the first tokens in common: exact, and (1-t)·n keys (the prefix filter)
    minhash  MinHash banding: the requested recall, and as many keys as bands
    all      every set is compared with every other: exact, and one key

The prefix filter: sets of n elements that share ⌈t·n⌉ of them share one of their first n-⌈t·n⌉+1,
in any order of all tokens (Chaudhuri, Ganti, Kaushik, ICDE 2006; Bayardo, Ma, Srikant, WWW 2007).
With the rare tokens first, few dissimilar sets have one in common.

A way makes the keys of bands low … high-1 for each row i in group[i], and returns their maximum
number by size.  It is `grouped` if the keys of two groups differ.  The keys of `tokens` and `all`
are in band 0.  The keys of part k are in band 1 + 2·k, or 2 + 2·k in every second group, so that
the two groups of a set have different bands.

Letters: t the resemblance of a pair, as num/den; d the maximum number of elements that differ.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Union

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS, MAX_BANDS
from neardup.runtime import kernels
from neardup.runtime.program import StageError
from neardup.schemes.scheme import Scheme
from neardup.sets.hashing import combine, mix, random_words
from neardup.sets.ragged import Ragged, chunks, distinct, first_of_run, spans
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import Threshold

SORTED_TOKENS = 1 << 16  # sorted at once, so that the number of a set fits in 16 bits
LARGEST = 1 << 26  # more elements than a line can have
MAX_DIFFER = (MAX_BANDS - 1) // 2
SLOTS_AT_ONCE = 1 << 20
RowKeys = tuple[np.ndarray, np.ndarray]  # row (int64) and key (uint64), one for each key


def prefix_sizes(sizes: np.ndarray, threshold: "Threshold | None") -> np.ndarray:
    """Return the prefix length for each set size (int64); without a threshold, the size itself.

    >>> prefix_sizes(np.array([1, 9, 10, 35]), Threshold.parse("0.9")).tolist()
    [1, 1, 2, 4]
    """
    if threshold is None:
        return sizes
    return sizes + 1 - threshold.smallest_partner(sizes)


def rarest(sets: Ragged, counts: "TokenCounts | None", take: np.ndarray) -> Ragged:
    """Return the `take[i]` rarest tokens of set i; without counts, those with the smallest hashes.

    >>> sets = Ragged.from_rows([[1, 2, 3], [1, 2], [1, 9]])
    >>> rarest(sets, TokenCounts.of_sets(sets), np.array([2, 1, 0])).row(0).tolist()
    [2, 3]
    """
    ranks = mix(sets.values)
    if counts is not None:  # ties: by the upper half of the hash, then the smaller token
        ranks >>= np.uint64(32)
        frequencies = np.minimum(counts.of(sets.values), (1 << 32) - 1).astype(np.uint64)
        ranks |= frequencies << np.uint64(32)
    chosen = np.zeros(len(sets.values), dtype=bool)
    for low, high in chunks(sets.sizes, SORTED_TOKENS):
        start, stop = sets.offsets[low], sets.offsets[high]
        sizes = sets.sizes[low:high]
        owner = np.repeat(np.arange(high - low), sizes).astype(np.uint16)
        order = np.argsort(ranks[start:stop], kind="stable")
        order = order[np.argsort(owner[order], kind="stable")]  # 16 bits: a radix sort
        first = sets.offsets[low:high] - start
        chosen[start + order[spans(first, take[low:high])]] = True
    return sets.where(chosen)


def first_tokens(
    sets: Ragged, threshold: "Threshold | None", counts: "TokenCounts | None"
) -> Ragged:
    """Return the prefix (rarest tokens) of each set, without tokens known to be in one record only.

    StageError if complete counts do not match the sets.
    """
    prefixes = rarest(sets, counts, prefix_sizes(sets.sizes, threshold))
    if counts is None or not counts.complete:
        return prefixes
    sizes, _ = distinct(sets.sizes)
    unknown = sizes[np.append(counts.sizes, -1)[np.searchsorted(counts.sizes, sizes)] != sizes]
    if len(unknown):
        raise StageError(
            f"--counts: made from other input, in which no record has {unknown[0]} shingles; make "
            "the counts of this input with step.py count"
        )
    return prefixes.where(counts.of(prefixes.values) > 1)


@dataclass(eq=False)
class Groups:
    """G size groups: the largest set size of each, and in how many elements its pairs may differ.

    highs: int64 (G,), ascending; differ: int64 (G,), the number of elements.

    >>> groups = groups_of(Threshold.parse("0.9"))
    >>> groups.highs[:5].tolist(), groups.differ[:5].tolist()
    ([8, 17, 26, 35, 44], [0, 1, 2, 3, 4])
    >>> groups.own(np.array([8, 9, 18])).tolist()
    [0, 1, 2]
    """

    threshold: Threshold
    highs: np.ndarray
    differ: np.ndarray

    def own(self, sizes: np.ndarray) -> np.ndarray:
        """Return the group of each size (int64)."""
        return np.searchsorted(self.highs, sizes)

    def memberships(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (row, group): each row in its group, and in the one before if pairs may be there.

        Both are int64, one entry for each membership.

        >>> groups = groups_of(Threshold.parse("0.9"))
        >>> [column.tolist() for column in groups.memberships(np.array([8, 9, 18]))]
        [[0, 1, 2, 2], [0, 1, 2, 1]]
        """
        own = self.own(sizes)
        before = self.highs[np.maximum(own - 1, 0)]
        larger = np.flatnonzero((own > 0) & (sizes <= self.threshold.largest_partner(before)))
        return np.append(np.arange(len(sizes)), larger), np.append(own, own[larger] - 1)


@lru_cache
def groups_of(threshold: Threshold) -> Groups:
    """Return the size groups for pairs of at least this resemblance."""
    highs, differ = [], []
    size = 1
    while size <= LARGEST:
        high = max(size * threshold.den // threshold.num, _last_alike(threshold, size))
        high = min(_last_alike(threshold, high), LARGEST)
        highs.append(high)
        differ.append(min(_most_apart(threshold, high), LARGEST))
        size = high + 1
    return Groups(threshold, np.array(highs), np.array(differ))


def _most_apart(t: Threshold, size: int) -> int:
    """Return d, the maximum number of elements that differ if the smaller set has `size`."""
    return (t.den - t.num) * (size + size * t.den // t.num) // (t.den + t.num)


def _last_alike(t: Threshold, size: int) -> int:
    """Return the largest size that has the same d (see `_most_apart`) as `size`."""
    if t.num == t.den:
        return LARGEST
    more = -(-(_most_apart(t, size) + 1) * (t.den + t.num) // (t.den - t.num))  # |x| + |y| for d+1
    return (more * t.num - 1) // (t.num + t.den)


def by_chance(groups: Groups) -> np.ndarray:
    """Estimate, for each group, the number of parts that are empty in both of two dissimilar sets.

    >>> ["%.0e" % chance for chance in by_chance(groups_of(Threshold.parse("0.9")))[:3]]
    ['0e+00', '2e-04', '2e-05']
    """
    smallest = np.concatenate(([1], groups.highs[:-1] + 1))
    parts = groups.differ + 1
    return np.where(parts > 1, parts * np.exp(-2 * smallest / parts), 0.0)


@dataclass(eq=False)
class Parts:
    """A kind of keys: the content of each part of a set, the first level of PartEnum.

    (Arasu, Ganti, Kaushik, VLDB 2006; Deng, Li, Wen, Feng, VLDB 2015.)  A hash cuts the universe
    into d+1 parts.  At most d elements differ, so two sets are equal in at least one part, which
    may be empty.  A key is the sum of a set's hashes in one part.
    """

    groups: Groups
    seed: int
    name = "parts"
    grouped = True

    def key_counts(self, sizes: np.ndarray, group: np.ndarray) -> np.ndarray:
        return self.groups.differ[group] + 1

    def keys(self, sets: Ragged, group: np.ndarray, low: int, high: int) -> RowKeys:
        odd = group % 2
        parts = self.groups.differ[group] + 1
        first = np.maximum((low - odd) // 2, 0)  # … last-1: the parts of bands low … high-1
        last = np.maximum(np.minimum((high - odd) // 2, parts), first)
        found = [(np.empty(0, np.int64), np.empty(0, np.uint64))]
        for a, b in chunks(sets.sizes + last - first, SLOTS_AT_ONCE):
            some = sets.take(np.arange(a, b))
            row, key = self._slots(some, group[a:b], parts[a:b], first[a:b], last[a:b])
            found.append((row + a, key))
        rows, keys = zip(*found)
        return np.concatenate(rows), np.concatenate(keys)

    def _slots(
        self,
        sets: Ragged,
        group: np.ndarray,
        parts: np.ndarray,
        first: np.ndarray,
        last: np.ndarray,
    ) -> RowKeys:
        """Return the keys of the parts `first[i]` … `last[i] - 1` of each row i."""
        slots, seed = last - first, random_words(self.seed, 1, stream=4)
        if kernels.COMPILED:
            sums = kernels.part_sums(sets.values, sets.offsets, int(seed[0]), parts, first, last)
        else:
            sums = _part_sums(sets, mix(sets.values ^ seed), parts, first, last)
        content = sums.astype(np.uint64)
        row, part = np.repeat(np.arange(len(sets)), slots), spans(first, slots)
        words = np.stack((group[row].astype(np.uint64), part.astype(np.uint64), mix(content)))
        band = (1 + 2 * part + group[row] % 2).astype(np.uint64)
        key = combine(words, seed=0) >> np.uint64(64 - HASH_BITS) | band << np.uint64(HASH_BITS)
        return row, key


def _part_sums(
    sets: Ragged, hashes: np.ndarray, parts: np.ndarray, first: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """Sum the lower halves of the hashes in each part `first[i]` … `last[i] - 1` of row i."""
    row = np.repeat(np.arange(len(sets)), sets.sizes)
    part = (hashes >> np.uint64(32)) * parts[row].astype(np.uint64) >> np.uint64(32)
    part = part.astype(np.int64)
    inside = np.flatnonzero((part >= first[row]) & (part < last[row]))
    row, slots = row[inside], last - first
    starts = np.cumsum(slots) - slots
    # A sum of 32-bit hashes is exact as a float; and equal sets add up in the same order.
    return np.bincount(
        starts[row] + part[inside] - first[row],
        weights=(hashes[inside] & np.uint64(0xFFFFFFFF)).astype(np.float64),
        minlength=int(slots.sum()),
    )


@dataclass(eq=False)
class InAllGroups:
    """A kind of keys: the keys of one scheme (`Prefix`, `MinHash`), the same in all size groups."""

    scheme: Scheme
    name: str
    grouped = False

    def key_counts(self, sizes: np.ndarray, group: np.ndarray) -> np.ndarray:
        return self.scheme.key_counts(sizes)

    def keys(self, sets: Ragged, group: np.ndarray, low: int, high: int) -> RowKeys:
        keys = self.scheme.keys(sets, low, high)
        return np.repeat(np.arange(len(sets)), keys.sizes), keys.values


@dataclass(eq=False)
class All:
    """A kind of keys: one key for each size group; all pairs in the group are candidates."""

    seed: int
    name = "all"
    grouped = True

    def key_counts(self, sizes: np.ndarray, group: np.ndarray) -> np.ndarray:
        return np.ones(len(sizes), dtype=np.int64)

    def keys(self, sets: Ragged, group: np.ndarray, low: int, high: int) -> RowKeys:
        row = np.arange(len(sets) if low <= 0 < high else 0)
        key = combine(group[np.newaxis, row].astype(np.uint64), seed=self.seed)
        return row, key >> np.uint64(64 - HASH_BITS)


Way = Union[Parts, InAllGroups, All]


@dataclass(eq=False)
class BySize(Scheme):
    """A scheme with one way of making keys for each size group g: `ways[choice[g]]`."""

    groups: Groups
    ways: tuple[Way, ...]
    choice: np.ndarray
    one_a_band: ClassVar[bool] = False

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        found = [(np.empty(0, np.int64), np.empty(0, np.uint64))]
        for way, rows, group in self._looked_for(sets.sizes):
            row, key = way.keys(sets.take(rows), group, low, high)
            found.append((rows[row], key))
        rows, keys = map(np.concatenate, zip(*found))
        order = np.argsort(rows, kind="stable")
        return Ragged.from_unsorted(keys[order], np.bincount(rows, minlength=len(sets)))

    def recall(self, similarity: float) -> float:
        return float(similarity >= float(self.groups.threshold))

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        counts = np.zeros(len(sizes), dtype=np.int64)
        for way, rows, group in self._looked_for(sizes):
            np.add.at(counts, rows, way.key_counts(sizes[rows], group))  # a row may be repeated
        return counts

    def _looked_for(self, sizes: np.ndarray) -> list[tuple[Way, np.ndarray, np.ndarray]]:
        """Return [(way, rows, groups)]: each way in use, its rows, and the group of each row."""
        rows, group = self.groups.memberships(sizes)
        way = self.choice[group]
        found = []
        for number in distinct(way)[0].tolist():
            mine = np.flatnonzero(way == number)
            if not self.ways[number].grouped:  # both groups have the same keys
                mine = mine[np.argsort(rows[mine], kind="stable")]
                mine = mine[first_of_run(rows[mine])]
            found.append((self.ways[number], rows[mine], group[mine]))
        return found
