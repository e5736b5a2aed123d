"""Pairs from files, beside the exact answer or a sample of the records.

A random sample of ids, drawn while records stream by.

An id is in or out by its hash (bottom-k sampling), so all records of an id go the same way, however
often it comes, and each set of N ids is as likely as any other.  In memory: the records of 2N ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b

import numpy as np

from neardup.evaluation.exact_options import RUN, AskedRun, gathered
from neardup.lines.answer_lines import exact_pair, format_pair
from neardup.reading.blocks import read_files
from neardup.runtime.counters import Counters
from neardup.runtime.errors import StageError, WireError, shown
from neardup.runtime.summary import BAD
from neardup.sets.ragged import Batch
from neardup.similarity.measures import Measure, six_decimals

MAX_LINE = 64 << 20  # of two ids


def pair_lines(
    records: Batch, measure: Measure, left: np.ndarray, right: np.ndarray, counters: Counters
) -> Iterator[bytes]:
    r"""The lines of those pairs of rows (int64 arrays) that reach the threshold.

    As in the job, an id is never paired with itself, and one that stands for several records may
    form the same pair several times.

    >>> from neardup.similarity.measures import Jaccard
    >>> from neardup.similarity.measures import NINE_TENTHS
    >>> from neardup.sets.ragged import Ragged
    >>> records = Batch([b"b", b"a", b"c"], Ragged.from_rows([[1, 2], [1, 2], [3]]))
    >>> left, right = np.array([0, 0]), np.array([1, 2])
    >>> list(pair_lines(records, Jaccard(NINE_TENTHS), left, right, Counters("")))
    [b'a\tb\t1.000000\n']
    """
    found = measure.verified(records.sets, left, right)
    similarities = six_decimals(found.part, found.whole)
    for i, j, similarity in zip(found.left.tolist(), found.right.tolist(), similarities):
        a, b = records.ids[i], records.ids[j]
        if a == b:
            counters.repeated_id(a)
        else:
            yield format_pair(a, b, similarity, measure.directed)


def read_pairs(file: str) -> Iterator[tuple[bytes, bytes, bytes]]:
    """(a, b, similarity) of each line of a file, plain or packed; StageError for a damaged one."""
    for block in read_files([file], MAX_LINE):
        for number, line in enumerate(block.data.splitlines(), block.line):
            if not line:
                continue
            try:
                yield exact_pair(line)
            except WireError as error:
                raise StageError(f"{block.place}{number}: {error}") from None


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


def missing(id_: bytes, counts: Mapping[str, int], run: AskedRun | None) -> str:
    """`counts` are those of the records and bad lines.

    >>> print(missing(b"a", {"records": 1, "bad lines: no shingles": 5}, None).partition(";")[0])
    none of 1 record is 'a', and 5 lines are bad
    """
    bad = sum(count for name, count in counts.items() if name.startswith(BAD))
    records = counts["records"]
    read = f"none of {records:,} record{'s' * (records != 1)} is {shown(id_)}, and "
    read += f"{bad:,} line{' is' if bad == 1 else 's are'} bad"
    if run and run.indexes:
        return f"{read}; an index has no records to show: name what {run.indexes[0]} was made of"
    if run:
        return f"{read}; have the files changed since the run of {run.name}?"
    return (
        f"{read}; why needs the options of the run, --input, --shingle and others: name them, or "
        f"{RUN} PAIRS if the run had -o PAIRS"
    )
