"""Which records the edges connect, and how many that makes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neardup.decisions.edge_file import EdgeFile, Heads
from neardup.sets.forest import Forest

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
            components.connect(heads)
        return components

    def connect(self, heads: Heads) -> None:
        """Records with their neighbours."""
        self.forest.join_all(heads.numbers[heads.owners()], heads.near)
        for number, record in zip(heads.numbers.tolist(), heads.records) if heads.crowds else ():
            for member in heads.crowds.get(record, []):
                self.forest.join(number, self._of_crowd.setdefault(member.crowd, number))

    def of_record(self, number: int) -> int:
        """One number for all records of its cluster."""
        return self.forest.root(number)

    def of_records(self, numbers: np.ndarray) -> np.ndarray:
        """The same of many (int64 arrays)."""
        return self.forest.roots(numbers)

    def count(self) -> int:
        return self._roots_from(0)

    def largest(self) -> int:
        """How many records the largest has."""
        sizes = np.zeros_like(self.forest.parents)
        for numbers in self._pieces(0):
            np.add.at(sizes, self.forest.roots(numbers), 1)
        return int(sizes.max(initial=0))

    def would_go(self) -> int:
        """How many new records would go if one of each cluster stayed, and old ones."""
        # The root of a cluster is its first record: one that has an old record has an old root.
        return len(self.forest.parents) - self.old - self._roots_from(self.old)

    def _roots_from(self, number: int) -> int:
        """How many records from this one on are the root of a cluster."""
        roots = (self.forest.roots(numbers) == numbers for numbers in self._pieces(number))
        return sum(int(np.count_nonzero(some)) for some in roots)

    def _pieces(self, number: int) -> Iterator[np.ndarray]:
        """The numbers of all records from this one on, some at a time."""
        count = len(self.forest.parents)
        for low in range(number, count, AT_ONCE):
            yield np.arange(low, min(low + AT_ONCE, count))
