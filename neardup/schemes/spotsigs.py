"""SpotSigs: every pair at the threshold shares a rare token among sets of like size.

Sizes are cut into the smallest partitions such that a pair lies in one of them or in two neighbours
(Theobald, Siddharth, Paepcke, "SpotSigs: robust and efficient near duplicate detection in large web
collections", 2008).  A pair shares one of the first n - ⌈t·n⌉ + 1 tokens, its prefix, with the
rarest first if they were counted (`exact.Prefix`).  A key is a partition and a token of the prefix.
A set has those of its own partition and, if it can be the larger set of a pair, of the one before.

    t = 0.9    partitions   1   2   3 … 18   19 20   21 22   23 24   25 26   27 28   29 30 31 …
    size 22    3 tokens     in partition 21 22 and, for partners of size 20, in 19 20

Letters: t (0.9); n, a set's size (100: 11 tokens, 22 keys).  Made for spots, the chains of words
that begin at a stop word, it suits any sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS
from neardup.schemes.by_size import prefix_sizes, rarest
from neardup.schemes.exact import Prefix
from neardup.schemes.scheme import Scheme
from neardup.sets.hashing import combine, mix, random_words
from neardup.sets.ragged import Ragged, first_of_run, spans
from neardup.similarity.measures import NINE_TENTHS, Threshold


@dataclass(eq=False)
class SpotSigs(Prefix):
    """First tokens within partitions of sizes as keys, all of band 0.

    >>> sets = Ragged.from_rows([[*range(20)], [*range(22)], [*range(18)], [*range(50, 72)]])
    >>> keys = SpotSigs().keys(sets)
    >>> keys.sizes.tolist()
    [6, 6, 4, 6]
    >>> [len({*keys.row(i).tolist()} & {*keys.row(1).tolist()}) > 0 for i in (0, 2, 3)]
    [True, False, False]
    """

    resemblance: Threshold = NINE_TENTHS
    measures: ClassVar[tuple[str, ...]] = Scheme.measures
    suits_shingle: ClassVar[str | None] = "spot:2:1"
    name: ClassVar[str] = "spotsigs"

    @property
    def promise(self) -> str:
        return f"every pair at {self.resemblance} or above is found"

    def probe(self) -> str:
        return Scheme.probe(self)  # its counts refuse nothing

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        own, before = self._partitions(sizes)
        return prefix_sizes(sizes, self.resemblance) * np.where(before < own, 2, 1)

    def _keys(self, sets: Ragged) -> Ragged:
        prefixes = rarest(sets, self.counts, prefix_sizes(sets.sizes, self.resemblance))
        tokens = mix(prefixes.values ^ random_words(self.seed, 1, stream=1))
        own, before = self._partitions(sets.sizes)
        rows = np.repeat(np.arange(len(sets)), 2)
        partitions = np.column_stack((own, before)).ravel()
        distinct = first_of_run(rows) | first_of_run(partitions)
        rows, partitions = rows[distinct], partitions[distinct]
        sizes = prefixes.sizes[rows]
        columns = (
            tokens[spans(prefixes.offsets[rows], sizes)],
            np.repeat(mix(partitions.astype(np.uint64)), sizes),
        )
        words = combine(np.stack(columns), seed=0) >> np.uint64(64 - HASH_BITS)
        return Ragged.from_unsorted(words, self.key_counts(sets.sizes))

    def _partitions(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first size of a size's partition, and of its smallest partner's."""
        smallest = self.resemblance.smallest_partner(sizes)
        return first_sizes(self.resemblance, sizes), first_sizes(self.resemblance, smallest)


def first_sizes(threshold: Threshold, sizes: np.ndarray) -> np.ndarray:
    """Return the smallest size in the partition of each size (int64).

    >>> first_sizes(NINE_TENTHS, np.array([1, 18, 19, 20, 21, 22, 23, 1000])).tolist()
    [1, 18, 19, 19, 21, 21, 23, 984]
    """
    starts = _starts(threshold, 1 << int(sizes.max(initial=1)).bit_length())
    place = np.searchsorted(starts, sizes, side="right") - 1
    return np.where(sizes < starts[0], sizes, starts[place])


@lru_cache
def _starts(threshold: Threshold, most: int) -> np.ndarray:
    """Return the first sizes, up to `most`, of partitions with several sizes.

    A partition from m to n is followed by one that ends at the largest partner of m - 1.
    """
    num, den = threshold.num, threshold.den
    start = most if num == den else min(most, -(-(num + den) // (den - num)))
    starts = [start]
    while start < most:
        start = (start - 1) * den // num + 1
        starts.append(start)
    return np.array(starts, dtype=np.int64)
