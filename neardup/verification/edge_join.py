"""Joins that write edges: a spanning forest of each bucket, or the edges of a decision.

A thousand copies of one video make 499,500 pairs, and 999 of them connect the thousand.  What
`LinkJoin` adds to `PairJoin`: a pair of sets that is already connected is neither verified nor
printed, so a bucket of n alike sets costs about n comparisons and not n²/2.

Its forest is Kruskal's (1956) over the verified pairs in order of (left, right).  An edge whose
smallest key is another one connects here without being printed: the bucket of that key comes
first in the order of keys, and prints edges enough to connect the two.

Edges: what a decision needs of the pairs of each bucket.

Copies of a set are decided by the first of them, so a set has pairs only under the id that comes
first, and each of its copies one line that ties it to that.

A *crowd* is more than `CROWD` alike sets of one bucket: a thousand near-copies of one video make
half a million pairs, of which a decision asks for those with the few records that stay.  Its sets
are sent on as they are.  A forest tells which sets make a crowd: no two of different trees are
alike.  So crowds cost about n comparisons and n lines.

Edges of two collections, old records and new ones: what a decision about the new ones needs.

Old records always stay, so no two of them are compared, and the new copies of an old set go because
of it.  Ids come tagged, old ones before new ones; see `lines.tagged_ids`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator

import numpy as np

from neardup.lines.answer_lines import SAME_SET, Member, format_edge, format_member, format_presence
from neardup.lines.keyed_lines import encode_sets, format_keys
from neardup.lines.tagged_ids import is_old
from neardup.runtime.counters import Counters
from neardup.runtime.summary import COMPARISONS, CROWDED, USED
from neardup.schemes.scheme import Scheme
from neardup.sets.ragged import later_in_run, pairs_in_runs, starts_of_runs
from neardup.sets.union_find import Forest
from neardup.similarity.measures import Measure, Verified, eighteen_decimals
from neardup.verification.bucket_batch import BucketBatch
from neardup.verification.buckets import BY_SET, Copies, SpilledBucket, sort_lines, without_copies
from neardup.verification.pair_join import IDENTICAL, Found, PairJoin


class LinkJoin(PairJoin):
    """Turns the keyed lines of whole buckets into the lines of a forest's edges."""

    compared, found = COMPARISONS, USED

    def _begin(self, sets: int) -> None:
        self.forest = Forest(sets)

    def _found(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> Found:
        for edges in self._edges(batch, first, stop):
            mine = self.owner_key.first_at(batch, edges.left, edges.right)
            yield Verified(*(column[mine] for column in edges))

    def _edges(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> Found:
        """The edges of the forest, wherever they are printed."""
        for left, right in self._open(batch, first, stop):
            left, right = self._possible(batch, left, right)
            self.counters.add(self.compared, len(left))
            found = self.measure.verified(batch.sets, left, right)
            nodes = zip(batch.nodes[found.left].tolist(), batch.nodes[found.right].tolist())
            edge = np.array([self.forest.join(a, b) for a, b in nodes], dtype=bool)
            yield Verified(*(column[edge] for column in found))

    def _open(
        self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs in order of (left, right), but for those that are connected already.

        The lefts of each bucket are taken 1, 2, 4, 8 … at a time.  The first one usually connects
        nearly everything, and taking more at once then costs little and saves steps.
        """
        everyone = np.arange(len(batch))
        rank = everyone - np.searchsorted(batch.buckets, batch.buckets)
        turn = np.frexp(rank + 1)[1]  # 1, 2, 2, 3, 3, 3, 3, 4, …
        for number in range(1, int(turn.max(initial=0)) + 1):
            left = np.flatnonzero(turn == number)
            roots = self.forest.roots(batch.nodes)
            inside = _in_largest_tree(batch.buckets, roots)
            # Of the largest tree's sets, only pairs with sets outside it are open.
            outside = np.flatnonzero(~inside)
            pool = np.concatenate((everyone, outside))
            low, high = (
                np.where(inside[left], len(batch) + np.searchsorted(outside, end[left]), end[left])
                for end in (first, stop)
            )
            for a, b in batch.pairs(left, low, high, pool):
                roots = self.forest.roots(batch.nodes)
                still = roots[a] != roots[b]
                yield a[still], b[still]

    def _join_pieces(self, spilled: SpilledBucket) -> Iterator[bytes]:
        """Equal sets first, since those of a bucket may be in any two of its pieces."""
        with (
            tempfile.TemporaryFile() as most_gone,
            tempfile.TemporaryFile() as by_set,
            tempfile.TemporaryFile() as distinct,
        ):
            yield from self._join_copies(without_copies(spilled, most_gone))
            sort_lines(most_gone, by_set, self.counters, BY_SET)
            rest = SpilledBucket(by_set, spilled.piece_bytes)
            yield from self._join_copies(without_copies(rest, distinct, by_set=True))
            yield from self._join_distinct(SpilledBucket(distinct, spilled.piece_bytes))

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

    def _join_distinct(self, spilled: SpilledBucket) -> Iterator[bytes]:
        """The same, of distinct sets."""
        return super()._join_pieces(spilled)

    def _turns(self, lines: list[bytes]) -> list[bool]:
        """Whether the copies of the set on each line have their turn in this bucket."""
        batch = BucketBatch.of_lines(lines)
        turns = np.empty(len(lines), dtype=bool)
        in_pile = sorted(range(len(lines)), key=lines.__getitem__)
        turns[in_pile] = self.owner_key.alone_before(batch, np.arange(len(batch)))
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


CROWD = 64


class EdgeLines(PairJoin):
    """Writes edge lines instead of pairs."""

    compared, found = COMPARISONS, USED

    def __init__(self, scheme: Scheme, measure: Measure, counters: Counters):
        super().__init__(scheme, measure, counters)
        self._present: set[bytes] = set()  # records that have a line of their own by now

    def __call__(self, work: BucketBatch | SpilledBucket) -> Iterator[bytes]:
        self._present.clear()
        return super().__call__(work)

    def _candidates(self, batch: BucketBatch, left: np.ndarray, right: np.ndarray) -> int:
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

    def _lines(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> Iterator[bytes]:
        if self._in_pieces:
            self._connect(batch, first, stop)
            return
        large = (np.bincount(batch.buckets) > CROWD)[batch.buckets]
        yield from super()._lines(batch, first, np.where(large, first, stop))
        if large.any():
            self._connect(batch, first, np.where(large, stop, first))
            yield from self._trees(batch, np.flatnonzero(large))

    def _found(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> Found:
        return PairJoin._found(self, batch, first, stop)

    def _connect(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> None:
        for _ in self._edges(batch, first, stop):
            """Each is in the forest now."""

    def _trees(self, batch: BucketBatch, some: np.ndarray) -> Iterator[bytes]:
        """Of these sets, the pairs in small trees, and large trees as crowds."""
        roots = self.forest.roots(batch.nodes[some])
        order = np.argsort(roots, kind="stable")
        some, roots = some[order], roots[order]
        sizes = np.diff(starts_of_runs(roots), append=len(roots))
        small = np.repeat(sizes <= CROWD, sizes)
        left, right = pairs_in_runs(later_in_run(sizes[sizes <= CROWD]))
        left, right = self._possible(batch, some[small][left], some[small][right])
        mine = self.owner_key.first_at(batch, left, right)
        self.counters.add(self.compared, int(np.count_nonzero(mine)))
        found = self.measure.verified(batch.sets, left[mine], right[mine])
        yield from self._found_lines(batch, found)
        yield from self._members(batch, some[~small], roots[~small])

    def _members(
        self, batch: BucketBatch, some: np.ndarray, roots: np.ndarray, copies: bool = False
    ) -> Iterator[bytes]:
        """`copies`: whether any may have copies that are not in the batch."""
        self.counters.add(CROWDED, len(some))
        texts = encode_sets(batch.sets.take(some))
        names = format_keys(batch.keys[some]).tolist()
        for i, text, key, root in zip(some.tolist(), texts, names, roots.tolist()):
            member = Member(b"%b.%d" % (key, root), copies or len(batch.ids[i]) > 1, text)
            yield format_member(batch.ids[i][0], member)

    def _join_distinct(self, spilled: SpilledBucket) -> Iterator[bytes]:
        """Every tree of a bucket that is too large for memory is a crowd."""
        self._in_pieces = True
        yield from super()._join_distinct(spilled)
        self._in_pieces = False
        roots = self.forest.roots(np.arange(len(self.forest.parents)))
        several = np.bincount(roots, minlength=len(roots))[roots] > 1
        done = 0
        for start in spilled.starts():
            batch = BucketBatch.of_lines(spilled.piece(start))
            some = np.flatnonzero(several[done : done + len(batch)])
            yield from self._members(batch, some, roots[done + some], copies=True)
            done += len(batch)


def edges_across(scheme: Scheme, measure: Measure, counters: Counters, between: bool) -> EdgeLines:
    """The join for it; with `between`, two new records are no pair."""
    join = EdgesBetweenJoin if between else EdgesAcrossJoin
    return join(scheme, measure, counters)


class EdgesAcrossJoin(EdgeJoin):
    """Edges of which at least one record is new."""

    def _possible(
        self, batch: BucketBatch, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        wanted = ~(batch.has_old[left] & batch.has_old[right])
        return super()._possible(batch, left[wanted], right[wanted])

    def _copies(self, ids: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        return [(ids[0], id_) for id_ in ids[1:] if not is_old(id_)]


class EdgesBetweenJoin(EdgeLines):
    """Edges of an old record and a new one; of an old set, only its first record has any."""

    def _possible(
        self, batch: BucketBatch, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        wanted = batch.has_old[left] & batch.has_new[right]
        wanted |= batch.has_new[left] & batch.has_old[right]
        return super()._possible(batch, left[wanted], right[wanted])

    def _copies(self, ids: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        return [(ids[0], id_) for id_ in ids[1:] if is_old(ids[0]) and not is_old(id_)]

    def _matches(self, ids: list[bytes], others: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        both = (ids, others), (others, ids)
        return [(a[0], b) for a, some in both if is_old(a[0]) for b in some if not is_old(b)]
