"""A random sample of ids, drawn while records stream by.

An id is in or out by its hash (bottom-k sampling), so all records of an id go the same way, however
often it comes, and each set of N ids is as likely as any other.  In memory: the records of 2N ids.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from neardup.evaluation.exact_options import gathered
from neardup.sets.batch import Batch


class IdSample:
    """The records of those `size` ids whose hashes are the smallest.

    >>> sample = IdSample(size=2, seed=0)
    >>> from neardup.sets.ragged import Ragged
    >>> sample.add(Batch([b"a", b"b", b"c", b"a"], Ragged.from_rows([[1], [2], [3], [4]])))
    >>> sample.records().ids, sample.whole
    ([b'a', b'b', b'a'], False)
    """

    def __init__(self, size: int, seed: int):
        self.size = size
        self.whole = True  # whether it has all ids
        self._secret = seed.to_bytes(8, "little")
        self._bound = (1 << 64) - 1  # no larger hash can be among the smallest
        self._enough = 2 * size  # records to hold before those that are too many go
        self._hashes = np.empty(0, np.uint64)
        self._held: list[Batch] = []

    def add(self, batch: Batch) -> None:
        digests = [blake2b(id_, digest_size=8, key=self._secret).digest() for id_ in batch.ids]
        hashes = np.frombuffer(b"".join(digests), dtype="<u8")
        mine = np.flatnonzero(hashes <= self._bound)
        self._hashes = np.append(self._hashes, hashes[mine])
        self._held.append(batch.take(mine))
        if len(self._hashes) > self._enough:
            self._choose()

    def records(self) -> Batch:
        self._choose()
        return gathered(self._held)

    def _choose(self) -> None:
        distinct = np.unique(self._hashes)
        if len(distinct) > self.size:
            self._bound, self.whole = int(distinct[self.size - 1]), False
        mine = np.flatnonzero(self._hashes <= self._bound)
        self._held, self._hashes = [gathered(self._held).take(mine)], self._hashes[mine]
        self._enough = 2 * max(self.size, len(mine))
