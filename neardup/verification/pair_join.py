"""The reducer's join: from the records of many buckets to the pairs that reach the threshold.

What it adds to the nested loop of `neardup.joins`: equal sets are compared once; the length filter
is a window over the sets in order of size; a pair is verified in one bucket only, that of the
smallest key both sets have, which the sets themselves tell; and all of it in vector steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product

import numpy as np

from neardup.lines.pair_lines import format_pair
from neardup.process.counters import Counters
from neardup.process.errors import StageError
from neardup.process.summary import CANDIDATES, PAIRS, REPEATED
from neardup.schemes.scheme import Scheme
from neardup.similarity.bitmaps import may_reach
from neardup.similarity.measures import Measure, Verified, six_decimals
from neardup.verification.buckets import Spool
from neardup.verification.pile import Pile
from neardup.verification.smallest_key import SmallestKey

IDENTICAL = b"1.000000"
SAMPLE = 16
Found = Iterator[Verified]


class PairJoin:
    """Turns whole buckets into the lines of all pairs."""

    compared, found = CANDIDATES, PAIRS  # the names of what it counts

    def __init__(self, scheme: Scheme, measure: Measure, counters: Counters):
        self.smallest_key = SmallestKey(scheme)
        self.measure = measure
        self.counters = counters
        self._crowded = False

    def __call__(self, work: Pile | Spool) -> Iterator[bytes]:
        """`work`: many buckets, or one large bucket in a file."""
        if isinstance(work, Spool):
            yield from self._join_pieces(work)
        elif len(work):
            self._begin(len(work))
            yield from self._join(work)

    def _begin(self, sets: int) -> None:
        """A new piece of work, of so many sets in all."""

    def _join(self, pile: Pile) -> Iterator[bytes]:
        self._check(pile)
        several = np.flatnonzero(
            [len(ids) > 1 or bool(again) for ids, again in zip(pile.ids, pile.repeats)]
        )
        # The copies of a set have their turn in the bucket of its smallest key.
        several = several[self.smallest_key.alone_before(pile, several)]
        self.counters.add(REPEATED, 0)
        for i in several.tolist():
            for id_ in pile.repeats[i]:
                self._again(id_)
            yield from self._copy_lines(pile.ids[i], self._with_itself(pile, i))
        first, stop = pile.windows(self.measure)
        yield from self._lines(pile, first, stop)

    def _join_pieces(self, spool: Spool) -> Iterator[bytes]:
        """Each piece by itself, and with every later one that the sizes allow."""
        starts, counts = list(spool.starts()), []
        for start in starts:
            self.counters.alive()
            counts.append(len(Pile.of_lines(spool.piece(start))))
        nodes = np.cumsum([0, *counts]).tolist()
        self._begin(nodes[-1])
        for i, start in enumerate(starts):
            piece = Pile.of_lines(spool.piece(start), nodes[i])
            yield from self._join(piece)
            for j in range(i + 1, len(starts)):
                self.counters.alive()
                later = Pile.of_lines(spool.piece(starts[j]), nodes[j])
                if later.sizes[0] > self.measure.largest_partner(piece.sizes[-1:])[0]:
                    break
                both = piece.beside(later)
                _, stop = both.windows(self.measure)
                stop[len(piece) :] = 0  # the later piece has a turn of its own
                first = np.full(len(both), len(piece))
                yield from self._lines(both, first, stop)

    def _check(self, pile: Pile) -> None:
        """Whether the keys on the lines are those of their sets: a sample tells."""
        some = np.arange(0, len(pile), SAMPLE)
        if self.smallest_key.owned(pile, some).all():
            return
        for way in self.smallest_key.ways_of(pile, some):
            raise StageError(
                f"these lines are of mapper.py {way}; give reducer.py the same --output, --keep, "
                "--against and --between"
            )
        raise StageError(
            "these keys do not come from the options given here: mapper and reducer need the "
            "same --scheme and all that belongs to it, --measure, --threshold, --seed, "
            "--counts, --verify"
        )

    def _lines(self, pile: Pile, first: np.ndarray, stop: np.ndarray) -> Iterator[bytes]:
        # In buckets of two or three, bitmaps cost more than the comparisons that they save.
        self._crowded = int(np.maximum(stop - first, 0).sum()) > len(pile)
        for found in self._found(pile, first, stop):
            yield from self._found_lines(pile, found)

    def _found_lines(self, pile: Pile, found: Verified) -> Iterator[bytes]:
        similarities = self._similarities(found)
        for i, j, similarity in zip(found.left.tolist(), found.right.tolist(), similarities):
            for a, b in self._matches(pile.ids[i], pile.ids[j]):
                if a == b:
                    self._again(a)
                else:
                    yield self._line(a, b, similarity)

    def _similarities(self, found: Verified) -> list[bytes]:
        return six_decimals(found.part, found.whole)

    def _with_itself(self, pile: Pile, i: int) -> bytes:
        """How similar two records are that have set i both."""
        return IDENTICAL

    def _copy_lines(self, ids: list[bytes], similarity: bytes = IDENTICAL) -> Iterator[bytes]:
        """The lines of records with one and the same set."""
        for a, b in self._copies(ids):
            yield self._line(a, b, similarity)
            if self.measure.directed:
                yield self._line(b, a, similarity)

    def _found(self, pile: Pile, first: np.ndarray, stop: np.ndarray) -> Found:
        """The pairs of set i and sets first[i] ≤ j < stop[i] that are printed here."""
        everyone = np.arange(len(pile))
        for left, right in pile.pairs(everyone, first, stop, everyone):
            left, right = self._possible(pile, left, right)
            mine = self.smallest_key.first_at(pile, left, right)
            left, right = left[mine], right[mine]
            self.counters.add(self.compared, self._candidates(pile, left, right))
            yield self.measure.verified(pile.sets, left, right)

    def _candidates(self, pile: Pile, left: np.ndarray, right: np.ndarray) -> int:
        """The number of pairs of records that have these sets."""
        return int(np.dot(pile.records[left], pile.records[right]))

    def _possible(
        self, pile: Pile, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Those that may reach the threshold, as far as bitmaps tell."""
        if not self._crowded:
            return left, right
        possible = may_reach(self.measure, pile.bitmaps, pile.sizes, left, right)
        return left[possible], right[possible]

    def _line(self, a: bytes, b: bytes, similarity: bytes) -> bytes:
        self.counters.add(self.found, 1)
        return self._text(a, b, similarity)

    def _text(self, a: bytes, b: bytes, similarity: bytes) -> bytes:
        """What is printed of a pair."""
        return format_pair(a, b, similarity, self.measure.directed)

    def _again(self, id_: bytes) -> None:
        """A record with the id of another one; the two are no pair."""
        self.counters.repeated_id(id_)

    def _copies(self, ids: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        """The pairs of them that are printed."""
        self.counters.add(CANDIDATES, len(ids) * (len(ids) - 1) // 2)
        return combinations(ids, 2)

    def _matches(self, ids: list[bytes], others: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        """The pairs of records with two matching sets."""
        return product(ids, others)
