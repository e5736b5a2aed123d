"""Auto: by size, the cheaper of partition and MinHash at the recall that was asked for.

Exact recall costs small sets less than MinHash does, and long ones more: at t = 0.9 a set of 35
elements has 4 parts, and some 15 bands, while one of 300 has 34 parts.  A size group has parts
where these are fewer keys, and strangers are seldom equal in one.  MinHash keys are the same in all
groups that have them.

Letters: as in `neardup.schemes.partition` and `neardup.schemes.minhash`.  Promise: that of
MinHash, or better.
"""

from __future__ import annotations

import numpy as np

from neardup.schemes import banding
from neardup.schemes.by_size.groups import by_chance, groups_of
from neardup.schemes.by_size.scheme_by_size import BySize
from neardup.schemes.by_size.ways_to_meet import MOST_BANDS, Minima, Parts
from neardup.schemes.minhash import MinHash
from neardup.schemes.request import Request

MOST_BY_CHANCE = 1e-3


class Auto(BySize):
    """Partition for some sizes, MinHash for the others: `choice` says which."""

    options = banding.OPTIONS
    keeps_recall = True

    @classmethod
    def of(cls, request: Request) -> Auto:
        assert request.resemblance is not None
        groups = groups_of(request.resemblance)
        minhash = MinHash.of(request)
        keys = 2 * (groups.differ + 1)  # in two groups
        parts = (keys <= minhash.bands) & (by_chance(groups) <= MOST_BY_CHANCE)
        ways = Parts(groups, request.key_seed("auto")), Minima(minhash)
        return cls(groups, ways, np.where(parts & (groups.differ < MOST_BANDS), 0, 1))

    @property
    def minhash(self) -> MinHash:
        return next(way.minhash for way in self.ways if isinstance(way, Minima))

    @property
    def promise(self) -> str:
        long = np.flatnonzero(self.choice == 1)
        if not len(long):
            return "exact: every pair is equal in one part of the universe"
        if not long[0]:
            return self.minhash.promise
        short = self.groups.highs[long[0] - 1]
        return f"exact for a set of up to {short} in a pair, and else {self.minhash.promise}"

    def cost(self) -> list[str]:
        return self.minhash.cost()

    def recall(self, similarity: float) -> float:
        if similarity < float(self.groups.threshold):
            return 0.0
        return self.minhash.recall(similarity)
