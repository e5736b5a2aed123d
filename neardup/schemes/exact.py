"""Exact: every pair, and by size the cheapest of the ways to find them all.

Partition costs a set of n elements some (1-t)/t·n keys; the prefix filter costs (1-t)·n, or fewer
where tokens are in one record only, but strangers meet at frequent tokens; and a few large sets are
best all compared with each other, by a single key.  Which is cheapest depends on the data, and
`by_size.costs` tells it from the token counts.  Without these, parts are taken where strangers
hardly meet in them, and else tokens.

Letters: as in `neardup.schemes.partition` and `neardup.schemes.prefix`.  Promise: recall 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neardup.schemes.auto import MOST_BY_CHANCE
from neardup.schemes.by_size.costs import ALL, PARTS, TOKENS, Costs, estimate
from neardup.schemes.by_size.groups import by_chance, groups_of
from neardup.schemes.by_size.scheme_by_size import BySize
from neardup.schemes.by_size.ways_to_meet import MOST_BANDS, All, Parts, Tokens
from neardup.schemes.request import Request


@dataclass(frozen=True, eq=False)
class Exact(BySize):
    """costs: what the ways were chosen by; None without counts."""

    costs: Costs | None = None
    counting = True
    keeps_recall = True

    @classmethod
    def of(cls, request: Request) -> Exact:
        assert request.resemblance is not None
        groups = groups_of(request.resemblance)
        seed = request.key_seed("exact")
        tokens = Tokens(request.resemblance, request.counts, seed)
        ways = Parts(groups, seed), tokens, All(seed)
        possible = groups.differ < MOST_BANDS
        if request.counts is None or not len(request.counts.sample):
            choice = np.where(possible & (by_chance(groups) <= MOST_BY_CHANCE), PARTS, TOKENS)
            return cls(groups, ways, choice)
        costs = estimate(groups, tokens, request.counts)
        seconds = np.where(possible | (np.arange(3) != PARTS)[:, np.newaxis], costs.seconds, np.inf)
        # Machines may differ in the last digits: what is as good as equal goes to the first way.
        rounded = np.round(np.log(np.maximum(seconds, 1e-9)), 3)
        return cls(groups, ways, np.argmin(rounded, axis=0), costs)

    @property
    def promise(self) -> str:
        return "exact: every pair shares a part, a rare token or its size"

    def recall(self, similarity: float) -> float:
        return float(similarity >= float(self.groups.threshold))

    def cost(self) -> list[str]:
        """What it is going to cost, in words: a line for each run of sizes that meet alike."""
        if self.costs is None:
            return []
        used = np.flatnonzero(self.costs.keys[ALL] > 0)
        lines, start = [], 0
        for i, group in enumerate(used):
            last = i + 1 == len(used)
            if last or self.choice[used[i + 1]] != self.choice[group]:
                run, way = used[start : i + 1], self.choice[group]
                low = int(self.groups.highs[run[0] - 1]) + 1 if run[0] else 1
                keys, pairs = self.costs.keys[way, run].sum(), self.costs.pairs[way, run].sum()
                lines.append(
                    f"sizes {low:,} to {self.groups.highs[group]:,} by {self.ways[way].name}: "
                    f"about {keys:,.0f} keys, {pairs:,.0f} candidate pairs"
                )
                start = i + 1
        return lines
