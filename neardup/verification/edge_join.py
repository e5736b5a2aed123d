"""Joins that find fewer edges than all pairs: spanning forests, and dense clusters.

A thousand copies of one video make 499,500 pairs, and 999 of them connect the thousand.
`LinkJoin` adds to `PairJoin`: a pair of sets that is already connected is neither verified nor
written, so a bucket of n similar sets costs about n comparisons and not n²/2.

Its forest is Kruskal's (1956) over the verified pairs in order of (left, right).  An edge whose
owner key is another key connects two sets here without being written: the bucket of the owner key
is earlier in the order of keys, and its edges connect the two.

`EdgeJoin` writes all pairs, which a decision needs, except those in dense clusters.  A *dense
cluster* is a tree of more than `DENSE` similar sets in one bucket.  Of its pairs, a decision needs
only those with the few records that are kept.  So its sets are written instead of its pairs, at
about n comparisons and n lines.  No two sets of different trees are similar.

A set that --not-pairs mentions is in no tree: each of its edges is written, so that no edge is left
out for a path through a pair that is kept out.
"""

import tempfile
from collections.abc import Iterable, Iterator

import numpy as np

from neardup.lines.answer_lines import Member, format_member
from neardup.lines.keyed_lines import encode_sets, format_keys
from neardup.runtime.summary import DENSE_MEMBERS
from neardup.sets.ragged import Forest, later_in_run, pairs_in_runs, starts_of_runs
from neardup.similarity.measures import Verified
from neardup.verification.bucket_batch import BucketBatch
from neardup.verification.buckets import BY_SET, Copies, SpilledBucket, sort_lines, without_copies
from neardup.verification.pair_join import Found, PairJoin

DENSE = 64


class LinkJoin(PairJoin):
    """The join that finds a spanning forest of each bucket."""

    def _begin(self, sets: int, in_pieces: bool) -> None:
        self.forest, self._in_pieces = Forest(sets), in_pieces

    def _found(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> Found:
        for edges in self._edges(batch, first, stop):
            mine = self._first_at(batch, edges.left, edges.right)
            yield Verified(*(column[mine] for column in edges))

    def _edges(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> Found:
        """Yield the edges of the forest, including those that are written in other buckets."""
        for left, right in self._open(batch, first, stop):
            left, right = self._possible(batch, left, right)
            self.counters.add(self.pairs.compared, len(left))
            found = self.measure.verified(batch.sets, left, right)
            nodes = zip(batch.nodes[found.left].tolist(), batch.nodes[found.right].tolist())
            touched = self.pairs.touched(batch)
            free = touched[found.left] | touched[found.right]
            edge = np.array([own or self.forest.join(*ab) for own, ab in zip(free, nodes)], bool)
            yield Verified(*(column[edge] for column in found))

    def _open(
        self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs of sets that are not connected yet; in a bucket, in order of (left, right).

        The left sets of a bucket are taken 1, 2, 4, 8 … at a time: the first one usually connects
        nearly all sets, and then larger steps cost little and are fewer.
        """
        everyone = np.arange(len(batch))
        rank = everyone - np.searchsorted(batch.buckets, batch.buckets)
        turn = np.frexp(rank + 1)[1]  # 1, 2, 2, 3, 3, 3, 3, 4, …
        for number in range(1, int(turn.max(initial=0)) + 1):
            left = np.flatnonzero(turn == number)
            roots = self.forest.roots(batch.nodes)
            inside = _in_largest_tree(batch.buckets, roots)
            # The sets of the largest tree have open pairs only with sets outside it.
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

    def _is_one_tree(self, *ends: int) -> bool:
        roots = self.forest.roots(np.concatenate((np.arange(*ends[:2]), np.arange(*ends[2:]))))
        return bool((roots == roots[0]).all())

    def _spilled(self, spilled: SpilledBucket) -> Iterator[bytes]:
        # Equal sets first, since two equal sets may be in any two pieces of a bucket.
        with (
            tempfile.TemporaryFile() as most_gone,
            tempfile.TemporaryFile() as by_set,
            tempfile.TemporaryFile() as distinct,
        ):
            kind_of = self.pairs.kind_of
            yield from self._copies(without_copies(spilled, most_gone, kind_of))
            sort_lines(most_gone, by_set, self.counters, BY_SET)
            rest = SpilledBucket(by_set, spilled.piece_bytes)
            yield from self._copies(without_copies(rest, distinct, kind_of, by_set=True))
            yield from self._distinct(SpilledBucket(distinct, spilled.piece_bytes))

    def _copies(self, found: Iterable[Copies]) -> Iterator[bytes]:
        """Yield lines for records with equal sets, each set in the bucket of its smallest key."""
        written: dict[bytes, bool] = {}  # by set
        for copies in found:
            self.counters.alive()
            sets = {_set_of(first): first[:-1] for first in copies}
            new = sorted(first for set_, first in sets.items() if set_ not in written)
            written = {set_: written[set_] for set_ in sets if set_ in written}
            batch = BucketBatch.of_lines(new)
            every = np.arange(len(batch))
            here = self._first_at(batch, every, every).tolist()
            written.update(zip(map(_set_of, new), here))
            lines = [
                self.lines.format(a, b, self.lines.equal)
                for first, later in copies.items()
                if written[_set_of(first)]
                for a, b in self.pairs.copies([first.split(b"\t", 3)[2], *later])
            ]
            self.counters.add(self.pairs.found, len(lines))
            yield b"".join(lines)

    def _distinct(self, spilled: SpilledBucket) -> Iterator[bytes]:
        """Join a large bucket whose sets are distinct."""
        return super()._spilled(spilled)


def _set_of(line: bytes) -> bytes:
    return line.rstrip(b"\n").rpartition(b"\t")[2]


def _in_largest_tree(buckets: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Mark the sets in the largest tree of their bucket (bool).

    >>> _in_largest_tree(np.array([0, 0, 0, 1]), np.array([7, 8, 8, 9])).tolist()
    [False, True, True, True]
    """
    _, tree, sizes = np.unique(roots, return_inverse=True, return_counts=True)
    score = sizes[tree] * len(roots) + tree  # the number breaks ties
    best = np.zeros(int(buckets.max()) + 1, dtype=np.int64)
    np.maximum.at(best, buckets, score)
    return score == best[buckets]


class EdgeJoin(LinkJoin):
    """The join that finds all pairs, except in dense clusters, whose members it writes instead."""

    _found = PairJoin._found

    def _written(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> Iterator[bytes]:
        if self._in_pieces:
            yield from self._connect(batch, first, stop)
            return
        large = (np.bincount(batch.buckets) > DENSE)[batch.buckets]
        yield from super()._written(batch, first, np.where(large, first, stop))
        if large.any():
            yield from self._connect(batch, first, np.where(large, stop, first))
            yield from self._trees(batch, np.flatnonzero(large))

    def _connect(self, batch: BucketBatch, first: np.ndarray, stop: np.ndarray) -> Iterator[bytes]:
        """Make the forest; yield the lines of its edges at sets that are in no tree."""
        touched = self.pairs.touched(batch)
        for found in self._edges(batch, first, stop):
            own = touched[found.left] | touched[found.right]
            left, right = found.left[own], found.right[own]
            own[own] = self._first_at(batch, left, right)
            yield from self._lines_of(batch, Verified(*(column[own] for column in found)))

    def _trees(self, batch: BucketBatch, some: np.ndarray) -> Iterator[bytes]:
        """Yield lines for pairs in small trees, and for members of large trees (dense clusters)."""
        roots = self.forest.roots(batch.nodes[some])
        order = np.argsort(roots, kind="stable")
        some, roots = some[order], roots[order]
        sizes = np.diff(starts_of_runs(roots), append=len(roots))
        small = np.repeat(sizes <= DENSE, sizes)
        left, right = pairs_in_runs(later_in_run(sizes[sizes <= DENSE]))
        found = self._similar(batch, some[small][left], some[small][right])
        yield from self._lines_of(batch, found)
        yield from self._members(batch, some[~small], roots[~small])

    def _members(
        self, batch: BucketBatch, some: np.ndarray, roots: np.ndarray, copies: bool = False
    ) -> Iterator[bytes]:
        self.counters.add(DENSE_MEMBERS, len(some))
        texts = encode_sets(batch.sets.take(some))
        names = format_keys(batch.keys[some]).tolist()
        for i, text, key, root in zip(some.tolist(), texts, names, roots.tolist()):
            member = Member(b"%b.%d" % (key, root), copies or len(batch.ids[i]) > 1, text)
            yield format_member(batch.ids[i][0], member)

    def _distinct(self, spilled: SpilledBucket) -> Iterator[bytes]:
        # Every tree of a bucket that is too large for memory is a dense cluster.
        yield from super()._distinct(spilled)
        roots = self.forest.roots(np.arange(len(self.forest.parents)))
        several = np.bincount(roots, minlength=len(roots))[roots] > 1
        done = 0
        for start in spilled.starts():
            batch = self._piece(spilled, start)
            some = np.flatnonzero(several[done : done + len(batch)])
            yield from self._members(batch, some, roots[done + some], copies=True)
            done += len(batch)
