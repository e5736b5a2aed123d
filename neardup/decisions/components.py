"""Which records the edges connect, and how many that makes."""

from __future__ import annotations

import numpy as np

from neardup.decisions.edge_file import EdgeFile, Head
from neardup.sets.runs import distinct
from neardup.verification.forest import Forest

AT_ONCE = 1 << 16


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
        return int(np.count_nonzero(self._sizes(len(self.forest.parents))))

    def largest(self) -> int:
        """How many records the largest has."""
        return int(self._sizes(len(self.forest.parents)).max(initial=0))

    def would_go(self) -> int:
        """How many new records would go if one of each cluster stayed, and old ones."""
        with_old = int(np.count_nonzero(self._sizes(self.old)))
        return len(self.forest.parents) - self.old - (self.count() - with_old)

    def _sizes(self, records: int) -> np.ndarray:
        """Of each component, by its root, how many of the first so many records it has (int32)."""
        sizes = np.zeros(len(self.forest.parents), dtype=np.int32)
        for low in range(0, records, AT_ONCE):
            roots = self.forest.roots(np.arange(low, min(low + AT_ONCE, records)))
            some, members = distinct(roots)
            sizes[some] += members
        return sizes
