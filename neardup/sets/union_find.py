"""Disjoint sets with path halving (Tarjan 1975): which nodes are connected."""

import numpy as np


class Forest:
    """n nodes, of which none are connected at first.

    >>> forest = Forest(4)
    >>> forest.join(0, 2), forest.join(2, 3), forest.join(0, 3)
    (True, True, False)
    >>> forest.join_all(np.array([1, 2]), np.array([3, 3]))
    >>> forest.roots(np.arange(4)).tolist()
    [0, 0, 0, 0]
    """

    def __init__(self, size: int):
        self.parents = np.arange(size, dtype=np.int32 if size < 1 << 31 else np.int64)
        self._view = self.parents.data  # a memoryview, whose items are read faster

    def join(self, a: int, b: int) -> bool:
        """Connect two nodes; return False if they were connected already."""
        a, b = self.root(a), self.root(b)
        if a < b:
            self._view[b] = a
        else:
            self._view[a] = b
        return a != b

    def join_all(self, a: np.ndarray, b: np.ndarray) -> None:
        """Connect a[p] and b[p] for all p (int64)."""
        while len(a):
            a, b = self.roots(a), self.roots(b)
            np.minimum.at(self.parents, np.maximum(a, b), np.minimum(a, b))
            apart = a != b
            a, b = a[apart], b[apart]

    def roots(self, nodes: np.ndarray) -> np.ndarray:
        """Return the root of each node (int64)."""
        roots = self.parents[nodes]
        while not np.array_equal(higher := self.parents[roots], roots):
            roots = self.parents[nodes] = higher  # so that the next step is twice as long
        return roots

    def root(self, node: int) -> int:
        parents = self._view
        while (parent := parents[node]) != node:
            above = parents[parent]
            parents[node] = above
            node = above
        return node
