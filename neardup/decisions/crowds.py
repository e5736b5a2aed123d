"""The pairs of crowds, as far as a decision asks for them.

A crowd is many alike sets of one bucket (`verification.edge_join`), which has n²/2 pairs; and a
record is decided by those with the few that stay.  So the members come in order of priority, a
batch at a time, and are compared with those that stay so far, and within the batch with those that
may stay.  What stays on disk is read when it is needed.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, partial
from operator import attrgetter

import numpy as np

from neardup.decisions.edge_file import EdgeFile, Head, as_number
from neardup.decisions.rule import Rule
from neardup.lines.set_text import decode_sets
from neardup.lines.tagged_ids import is_old
from neardup.process.counters import Counters
from neardup.process.summary import COMPARISONS, USED
from neardup.sets.ragged import Ragged, chunks
from neardup.similarity.measures import Measure, eighteen_decimals

BATCH = 256
TOKENS_AT_ONCE = 1 << 22


class Crowds:
    """Of each crowd, who stays, and who has gone and has copies, by the places of their lines."""

    def __init__(self, edges: EdgeFile, measure: Measure, counters: Counters):
        self.edges = edges
        self.measure = measure
        self.counters = counters
        self._staying: dict[bytes, array[int]] = defaultdict(partial(array, "q"))
        self._gone: dict[bytes, array[int]] = defaultdict(partial(array, "q"))

    def with_edges(self, heads: list[Head], rule: Rule) -> None:
        """Add to a batch's members the edges to those that stay, and between those that may."""
        members = list(filter(_in_crowd, heads))
        if not members:
            return
        self._compare((head, line) for head in members for line in _lines(head, self._staying))
        open_ = [head for head in members if rule.may_stay(head)]
        # One that stays may be a better reason for the copies of those that went before it.
        self._compare((head, line) for head in open_ for line in _lines(head, self._gone))
        self._compare(_among(members, {head.number for head in open_}))

    def decided(self, heads: list[Head], rule: Rule) -> None:
        """Remember of a batch whom later members may be compared with."""
        for head in filter(_in_crowd, heads):
            stays = rule.stays(head.number)
            if stays or any(member.has_copies for member in head.crowds):
                kind = self._staying if stays else self._gone
                for member in head.crowds:
                    kind[member.crowd].append(head.crowds[0].line)

    def _compare(self, candidates: Iterable[tuple[Head, int]]) -> None:
        """Add an edge where a record is a pair with the earlier one whose line begins there."""
        earlier = cache(self.edges.member_at)
        pairs = [(head, *earlier(line)) for head, line in candidates if not is_old(head.record)]
        texts = [(head.crowds[0].set_text, text) for head, _, text in pairs]
        weights = np.array([len(a) + len(b) for a, b in texts], dtype=np.int64)
        for low, high in chunks(weights, TOKENS_AT_ONCE):
            self.counters.alive()
            for p, similarity in self._verified(texts[low:high]):
                head, near, _ = pairs[low + p]
                head.edges.append(near._replace(similarity=as_number(similarity)))

    def _verified(self, texts: list[tuple[bytes, bytes]]) -> Iterator[tuple[int, bytes]]:
        numbers: dict[bytes, int] = {}
        rows = [numbers.setdefault(text, len(numbers)) for pair in texts for text in pair]
        left, right = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        sets: Ragged = decode_sets(list(numbers))
        place = {pair: p for p, pair in enumerate(zip(left.tolist(), right.tolist()))}
        self.counters.add(COMPARISONS, len(left))
        found = self.measure.verified(sets, left, right)
        self.counters.add(USED, len(found.left))
        pairs = zip(found.left.tolist(), found.right.tolist())
        for pair, similarity in zip(pairs, eighteen_decimals(found.part, found.whole)):
            yield place[pair], similarity


_in_crowd = attrgetter("crowds")


def _lines(head: Head, known: dict[bytes, array[int]]) -> set[int]:
    return {line for member in head.crowds for line in known.get(member.crowd, ())}


def _among(members: list[Head], open_: set[int]) -> Iterator[tuple[Head, int]]:
    """The pairs within a batch that have one who may stay: the later record, the earlier's line."""
    crowds: dict[bytes, list[Head]] = defaultdict(list)
    for head in members:
        earlier = (other for member in head.crowds for other in crowds[member.crowd])
        lines = {
            other.crowds[0].line
            for other in earlier
            if other.number in open_ or head.number in open_
        }
        for member in head.crowds:
            crowds[member.crowd].append(head)
        yield from ((head, line) for line in lines)
