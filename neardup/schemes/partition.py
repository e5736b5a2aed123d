"""Partition: two similar sets are equal in one of d+1 parts of the universe.

Exact, and without any statistics: PartEnum (Arasu, Ganti, Kaushik, VLDB 2006; Deng, Li, Wen,
Feng, VLDB 2015).  Sizes are in groups, and in the group of the smaller set a pair differs in d
elements at most, which spoil d of d+1 parts; a key is what a set has in one part.

Letters: n a record's size (35), t the least resemblance (0.9), d = ⌊(1-t)/t·n⌋ (3) at the end of
its group: d+1 keys (4) in its own group, and some more where it may be the larger set of a pair of
the group before.  So sets up to 8 elements have one key.  At low t there are many keys, and parts
of a few elements, in which strangers are equal: see `neardup.schemes.exact`.
"""

from __future__ import annotations

import numpy as np

from neardup.schemes.by_size.groups import by_chance, groups_of
from neardup.schemes.by_size.scheme_by_size import BySize
from neardup.schemes.by_size.ways_to_meet import MOST_BANDS, All, Parts
from neardup.schemes.request import Request

TYPICAL = 100  # elements of a set, where nothing is known of the records


class Partition(BySize):
    """
    >>> from neardup.similarity.threshold import Threshold
    >>> from neardup.sets.ragged import Ragged
    >>> t = Threshold.parse("0.8")
    >>> sets = Ragged.from_rows([[1, 2, 3, 4, 5], [1, 2, 3, 4], [11, 12, 13, 14]])
    >>> keys = Partition.of(Request(t, t)).keys(sets)
    >>> keys = [set(keys.row(i).tolist()) for i in range(3)]
    >>> [len(row) for row in keys], len(keys[0] & keys[1]), len(keys[0] & keys[2])
    ([2, 2, 2], 1, 0)
    """

    keeps_recall = True

    @classmethod
    def of(cls, request: Request) -> Partition:
        assert request.resemblance is not None
        groups = groups_of(request.resemblance)
        # Where the bands do not suffice, parts would have so few elements that all meet anyway.
        too_many = groups.differ >= MOST_BANDS
        seed = request.key_seed("partition")
        ways = Parts(groups, seed), All(seed)
        return cls(groups, ways, np.where(too_many, 1, 0))

    @property
    def promise(self) -> str:
        return "exact: every pair is equal in one part of the universe"

    def cost(self) -> list[str]:
        group = self.groups.own(np.array([TYPICAL]))[0]
        chance = float(by_chance(self.groups)[group])
        if chance < 1:
            return []
        return [
            f"--scheme partition at a Jaccard similarity of {self.groups.threshold}: strangers of "
            f"{TYPICAL} elements share about {chance:,.0f} keys, so that nearly all are compared, "
            "again and again; --exact finds the same pairs for less"
        ]

    def recall(self, similarity: float) -> float:
        return float(similarity >= float(self.groups.threshold))
