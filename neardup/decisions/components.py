"""Which records the edges connect, and how many that makes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neardup.decisions.edge_file import EdgeFile, Head
from neardup.sets.runs import distinct
from neardup.verification.forest import Forest

PORTION = 1 << 20


class Components:
    """The clusters of the records of an `EdgeFile`; four bytes are held for each record."""

    def __init__(self, edges: EdgeFile):
        self.forest = Forest(edges.count)
        self.old = edges.old
        self._of_crowd: dict[bytes, int] = {}  # a member of each

    @classmethod
    def of(cls, edges: EdgeFile) -> Components:
        components = cls(edges)
        for heads in edges.batches():
            for head in heads:
                components.connect(head)
        return components

    def connect(self, head: Head) -> None:
        """A record with its neighbours."""
        for near in head.edges:
            self.forest.join(head.number, near.number)
        for member in head.crowds:
            other = self._of_crowd.setdefault(member.crowd, head.number)
            if other != head.number:
                self.forest.join(head.number, other)

    def of_record(self, number: int) -> int:
        """One number for all records of its cluster."""
        return self.forest.root(number)

    def count(self) -> int:
        return sum(
            int(np.count_nonzero(self.forest.parents[low:high] == np.arange(low, high)))
            for low, high in self._portions()
        )

    def largest(self) -> int:
        """How many records the largest has."""
        of_all = self._roots()
        members = np.zeros(len(self.forest.parents), dtype=np.int32)
        for low, high in self._portions():
            roots, counts = distinct(of_all[low:high])
            members[roots] += counts.astype(np.int32)
        return int(members.max(initial=0))

    def would_go(self) -> int:
        """How many new records would go if one of each cluster stayed, and old ones."""
        with_old = len(np.unique(self._roots()[: self.old]))
        return len(self.forest.parents) - self.old - (self.count() - with_old)

    def _roots(self) -> np.ndarray:
        """Of each record.  The forest is its roots after that, and nothing else is held."""
        for low, high in self._portions():
            self.forest.roots(np.arange(low, high))
        return self.forest.parents

    def _portions(self) -> Iterator[tuple[int, int]]:
        """(low, high) of some numbers at a time."""
        count = len(self.forest.parents)
        return ((low, min(low + PORTION, count)) for low in range(0, count, PORTION))
