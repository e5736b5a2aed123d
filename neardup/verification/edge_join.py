"""Edges: what a decision needs of the pairs of each bucket.

Copies of a set are decided by the first of them, so a set has pairs only under the id that comes
first, and each of its copies one line that ties it to that.

A *crowd* is more than `CROWD` alike sets of one bucket: a thousand near-copies of one video make
half a million pairs, of which a decision asks for those with the few records that stay.  Its sets
are sent on as they are.  A forest tells which sets make a crowd: no two of different trees are
alike.  So crowds cost about n comparisons and n lines.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neardup.lines.edge_lines import (
    SAME_SET,
    Member,
    format_edge,
    format_member,
    format_presence,
)
from neardup.lines.keys import format_keys
from neardup.lines.set_text import encode_sets
from neardup.process.counters import Counters
from neardup.process.summary import COMPARISONS, CROWDED, USED
from neardup.schemes.scheme import Scheme
from neardup.sets.runs import later_in_run, pairs_in_runs, starts_of_runs
from neardup.similarity.measures import Measure, Verified, eighteen_decimals
from neardup.verification.buckets import Spool
from neardup.verification.link_join import LinkJoin
from neardup.verification.pair_join import Found, PairJoin
from neardup.verification.pile import Pile

CROWD = 64


class EdgeLines(PairJoin):
    """Writes edge lines instead of pairs."""

    compared, found = COMPARISONS, USED

    def __init__(self, scheme: Scheme, measure: Measure, counters: Counters):
        super().__init__(scheme, measure, counters)
        self._present: set[bytes] = set()  # records that have a line of their own by now

    def __call__(self, work: Pile | Spool) -> Iterator[bytes]:
        self._present.clear()
        return super().__call__(work)

    def _candidates(self, pile: Pile, left: np.ndarray, right: np.ndarray) -> int:
        """The number of comparisons: copies of a set share them."""
        return len(left)

    def _similarities(self, found: Verified) -> list[bytes]:
        return eighteen_decimals(found.part, found.whole)

    def _copy_lines(self, ids: list[bytes], similarity: bytes = SAME_SET) -> Iterator[bytes]:
        return super()._copy_lines(ids, SAME_SET)

    def _text(self, a: bytes, b: bytes, similarity: bytes) -> bytes:
        return format_edge(a, b, similarity) + self._presence(min(a, b))

    def _presence(self, record: bytes) -> bytes:
        if record in self._present:
            return b""
        self._present.add(record)
        return format_presence(record)


class LinkEdgeJoin(EdgeLines, LinkJoin):
    """Only the edges of a spanning forest: all that clusters need."""


class EdgeJoin(EdgeLines, LinkJoin):
    """Turns the keyed lines of whole buckets into edge lines and members of crowds."""

    _in_pieces = False

    def _lines(self, pile: Pile, first: np.ndarray, stop: np.ndarray) -> Iterator[bytes]:
        if self._in_pieces:
            self._connect(pile, first, stop)
            return
        large = (np.bincount(pile.buckets) > CROWD)[pile.buckets]
        yield from super()._lines(pile, first, np.where(large, first, stop))
        if large.any():
            self._connect(pile, first, np.where(large, stop, first))
            yield from self._trees(pile, np.flatnonzero(large))

    def _found(self, pile: Pile, first: np.ndarray, stop: np.ndarray) -> Found:
        return PairJoin._found(self, pile, first, stop)

    def _connect(self, pile: Pile, first: np.ndarray, stop: np.ndarray) -> None:
        for _ in self._edges(pile, first, stop):
            """Each is in the forest now."""

    def _trees(self, pile: Pile, some: np.ndarray) -> Iterator[bytes]:
        """Of these sets, the pairs in small trees, and large trees as crowds."""
        roots = self.forest.roots(pile.nodes[some])
        order = np.argsort(roots, kind="stable")
        some, roots = some[order], roots[order]
        sizes = np.diff(starts_of_runs(roots), append=len(roots))
        small = np.repeat(sizes <= CROWD, sizes)
        left, right = pairs_in_runs(later_in_run(sizes[sizes <= CROWD]))
        left, right = self._possible(pile, some[small][left], some[small][right])
        mine = self.smallest_key.first_at(pile, left, right)
        self.counters.add(self.compared, int(np.count_nonzero(mine)))
        found = self.measure.verified(pile.sets, left[mine], right[mine])
        yield from self._found_lines(pile, found)
        yield from self._members(pile, some[~small], roots[~small])

    def _members(
        self, pile: Pile, some: np.ndarray, roots: np.ndarray, copies: bool = False
    ) -> Iterator[bytes]:
        """`copies`: whether any may have copies that are not in the pile."""
        self.counters.add(CROWDED, len(some))
        texts = encode_sets(pile.sets.take(some))
        names = format_keys(pile.keys[some]).tolist()
        for i, text, key, root in zip(some.tolist(), texts, names, roots.tolist()):
            member = Member(b"%b.%d" % (key, root), copies or len(pile.ids[i]) > 1, text)
            yield format_member(pile.ids[i][0], member)

    def _join_distinct(self, spool: Spool) -> Iterator[bytes]:
        """Every tree of a bucket that is too large for memory is a crowd."""
        self._in_pieces = True
        yield from super()._join_distinct(spool)
        self._in_pieces = False
        roots = self.forest.roots(np.arange(len(self.forest.parents)))
        several = np.bincount(roots, minlength=len(roots))[roots] > 1
        done = 0
        for start in spool.starts():
            pile = Pile.of_lines(spool.piece(start))
            some = np.flatnonzero(several[done : done + len(pile)])
            yield from self._members(pile, some, roots[done + some], copies=True)
            done += len(pile)
