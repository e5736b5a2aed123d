"""Pairs of records and pairs from files, and the rows of tables about them."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor

import numpy as np

from neardup.lines.answer_lines import exact_pair, format_pair
from neardup.reading.blocks import read_files
from neardup.runtime.counters import Counters
from neardup.runtime.errors import StageError, WireError
from neardup.sets.ragged import Batch
from neardup.similarity.intervals import clopper_pearson
from neardup.similarity.measures import Measure, six_decimals

MAX_LINE = 64 << 20  # of two ids
MILLION = 10**6


def pair_lines(
    records: Batch, measure: Measure, left: np.ndarray, right: np.ndarray, counters: Counters
) -> Iterator[bytes]:
    r"""The lines of the pairs of rows (int64 arrays) that reach the threshold.

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


def ratio(part: int, whole: int) -> str:
    """Six decimals, rounded down: 1.000000 is exactly 1; "-" if the whole is 0.

    >>> ratio(9999999, 10000000), ratio(3, 3), ratio(0, 0)
    ('0.999999', '1.000000', '-')
    """
    return "{}.{:06}".format(*divmod(part * MILLION // whole, MILLION)) if whole else "-"


def interval(hits: int, n: int, confidence: float) -> str:
    """The Clopper-Pearson interval of the probability of a hit, rounded outwards.

    >>> interval(788, 790, 0.95)
    '0.990885 to 0.999694 with confidence 0.95'
    >>> interval(0, 0, 0.95)
    ''
    """
    if not n:
        return ""
    low, high = clopper_pearson(hits, n, 1 - confidence)
    low, high = floor(low * MILLION) / MILLION, ceil(high * MILLION) / MILLION
    return f"{low:.6f} to {high:.6f} with confidence {confidence}"


def row(name: str, value: int | str, note: str = "") -> str:
    """A line of a table.

    >>> row("true pairs", 1790, "in the file")
    'true pairs                             1,790  in the file'
    """
    shown = value if isinstance(value, str) else f"{value:,}"
    return f"{name:33} {shown:>10}  {note}".rstrip()
