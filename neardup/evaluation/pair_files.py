"""Pair lines: from verified pairs of rows, and back from files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neardup.lines.pair_lines import exact_pair, format_pair
from neardup.process.counters import Counters
from neardup.process.errors import StageError, WireError
from neardup.reading.blocks import read_files
from neardup.sets.batch import Batch
from neardup.similarity.measures import Measure, six_decimals

MAX_LINE = 64 << 20  # of two ids


def pair_lines(
    records: Batch, measure: Measure, left: np.ndarray, right: np.ndarray, counters: Counters
) -> Iterator[bytes]:
    r"""The lines of those pairs of rows (int64 arrays) that reach the threshold.

    As in the job, an id is never paired with itself, and one that stands for several records may
    form the same pair several times.

    >>> from neardup.similarity.measures import Jaccard
    >>> from neardup.similarity.threshold import NINE_TENTHS
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
