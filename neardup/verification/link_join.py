"""Links: of each bucket only the pairs that a spanning forest needs.

A thousand copies of one video make 499,500 pairs, and 999 of them connect the thousand.  What
`LinkJoin` adds to `PairJoin`: a pair of sets that is already connected is neither verified nor
printed, so a bucket of n alike sets costs about n comparisons and not n²/2.

Its forest is Kruskal's (1956) over the verified pairs in order of (left, right).  An edge whose
smallest key is another one connects here without being printed: the bucket of that key comes
first in the order of keys, and prints edges enough to connect the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from neardup.similarity.measures import Verified
from neardup.verification.forest import Forest
from neardup.verification.pair_join import Found, PairJoin
from neardup.verification.pile import Pile


class LinkJoin(PairJoin):
    """Turns the keyed lines of whole buckets into the lines of a forest's edges."""

    def _begin(self, sets: int) -> None:
        self.forest = Forest(sets)

    def _found(self, pile: Pile, first: np.ndarray, stop: np.ndarray) -> Found:
        for left, right in self._open(pile, first, stop):
            left, right = self._possible(pile, left, right)
            self.counters.add("candidate pairs", len(left))
            left, right, part, whole = self.measure.verified(pile.sets, left, right)
            nodes = zip(pile.nodes[left].tolist(), pile.nodes[right].tolist())
            edge = np.array([self.forest.join(a, b) for a, b in nodes], dtype=bool)
            edge[edge] = self.smallest_key.first_at(pile, left[edge], right[edge])
            yield Verified(left[edge], right[edge], part[edge], whole[edge])

    def _open(
        self, pile: Pile, first: np.ndarray, stop: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs in order of (left, right), but for those that are connected already.

        The lefts of each bucket are taken 1, 2, 4, 8 … at a time.  The first one usually connects
        nearly everything, and taking more at once then costs little and saves steps.
        """
        everyone = np.arange(len(pile))
        rank = everyone - np.searchsorted(pile.buckets, pile.buckets)
        turn = np.frexp(rank + 1)[1]  # 1, 2, 2, 3, 3, 3, 3, 4, …
        for number in range(1, int(turn.max(initial=0)) + 1):
            left = np.flatnonzero(turn == number)
            roots = self.forest.roots(pile.nodes)
            inside = _in_largest_tree(pile.buckets, roots)
            # Of the largest tree's sets, only pairs with sets outside it are open.
            outside = np.flatnonzero(~inside)
            pool = np.concatenate((everyone, outside))
            low, high = (
                np.where(inside[left], len(pile) + np.searchsorted(outside, end[left]), end[left])
                for end in (first, stop)
            )
            for a, b in pile.pairs(left, low, high, pool):
                roots = self.forest.roots(pile.nodes)
                still = roots[a] != roots[b]
                yield a[still], b[still]

    def _copies(self, ids: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        self.counters.add("candidate pairs", len(ids) - 1)
        return [(ids[0], id_) for id_ in ids[1:]]

    def _matches(self, ids: list[bytes], others: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        return [(ids[0], others[0])]


def _in_largest_tree(buckets: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Which sets belong to the largest tree of their bucket.

    >>> _in_largest_tree(np.array([0, 0, 0, 1]), np.array([7, 8, 8, 9])).tolist()
    [False, True, True, True]
    """
    _, tree, sizes = np.unique(roots, return_inverse=True, return_counts=True)
    score = sizes[tree] * len(roots) + tree  # the number breaks ties
    best = np.zeros(int(buckets.max()) + 1, dtype=np.int64)
    np.maximum.at(best, buckets, score)
    return score == best[buckets]
