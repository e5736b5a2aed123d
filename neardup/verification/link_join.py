"""Links: of each bucket only the pairs that a spanning forest needs.

A thousand copies of one video make 499,500 pairs, and 999 of them connect the thousand.  What
`LinkJoin` adds to `PairJoin`: a pair of sets that is already connected is neither verified nor
printed, so a bucket of n alike sets costs about n comparisons and not n²/2.

Its forest is Kruskal's (1956) over the verified pairs in order of (left, right).  An edge whose
smallest key is another one connects here without being printed: the bucket of that key comes
first in the order of keys, and prints edges enough to connect the two.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator

import numpy as np

from neardup.process.summary import COMPARISONS, USED
from neardup.sets.forest import Forest
from neardup.similarity.measures import Verified
from neardup.verification.buckets import Spool, sort_lines
from neardup.verification.copies import BY_SET, Copies, without_copies
from neardup.verification.pair_join import IDENTICAL, Found, PairJoin
from neardup.verification.pile import Pile


class LinkJoin(PairJoin):
    """Turns the keyed lines of whole buckets into the lines of a forest's edges."""

    compared, found = COMPARISONS, USED

    def _begin(self, sets: int) -> None:
        self.forest = Forest(sets)

    def _found(self, pile: Pile, first: np.ndarray, stop: np.ndarray) -> Found:
        for edges in self._edges(pile, first, stop):
            mine = self.smallest_key.first_at(pile, edges.left, edges.right)
            yield Verified(*(column[mine] for column in edges))

    def _edges(self, pile: Pile, first: np.ndarray, stop: np.ndarray) -> Found:
        """The edges of the forest, wherever they are printed."""
        for left, right in self._open(pile, first, stop):
            left, right = self._possible(pile, left, right)
            self.counters.add(self.compared, len(left))
            found = self.measure.verified(pile.sets, left, right)
            nodes = zip(pile.nodes[found.left].tolist(), pile.nodes[found.right].tolist())
            edge = np.array([self.forest.join(a, b) for a, b in nodes], dtype=bool)
            yield Verified(*(column[edge] for column in found))

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

    def _join_pieces(self, spool: Spool) -> Iterator[bytes]:
        """Equal sets first, since those of a bucket may be in any two of its pieces."""
        with (
            tempfile.TemporaryFile() as most_gone,
            tempfile.TemporaryFile() as by_set,
            tempfile.TemporaryFile() as distinct,
        ):
            yield from self._join_copies(without_copies(spool, most_gone))
            sort_lines(most_gone, by_set, self.counters, BY_SET)
            rest = Spool(by_set, spool.piece_bytes)
            yield from self._join_copies(without_copies(rest, distinct, by_set=True))
            yield from self._join_distinct(Spool(distinct, spool.piece_bytes))

    def _join_copies(self, found: Iterable[Copies]) -> Iterator[bytes]:
        """The lines of copies, where these have their turn: a block at a time."""
        turns: dict[bytes, bool] = {}
        for copies in found:
            self.counters.alive()
            asked = [first for first in copies if first not in turns]
            turns = {first: turns[first] for first in copies if first in turns}
            turns.update(zip(asked, self._turns([first[:-1] for first in asked])))
            yield b"".join(
                line
                for first, later in copies.items()
                if turns[first]
                for line in self._copy_lines([first.split(b"\t", 3)[2], *later])
            )

    def _join_distinct(self, spool: Spool) -> Iterator[bytes]:
        """The same, of distinct sets."""
        return super()._join_pieces(spool)

    def _turns(self, lines: list[bytes]) -> list[bool]:
        """Whether the copies of the set on each line have their turn in this bucket."""
        pile = Pile.of_lines(lines)
        turns = np.empty(len(lines), dtype=bool)
        in_pile = sorted(range(len(lines)), key=lines.__getitem__)
        turns[in_pile] = self.smallest_key.alone_before(pile, np.arange(len(pile)))
        return turns.tolist()

    def _copy_lines(self, ids: list[bytes], similarity: bytes = IDENTICAL) -> Iterator[bytes]:
        pairs = list(self._copies(ids))
        self.counters.add(self.found, len(pairs))
        return (self._text(a, b, similarity) for a, b in pairs)

    def _copies(self, ids: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
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
