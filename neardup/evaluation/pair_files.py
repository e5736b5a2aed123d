"""Pairs from files, beside the exact answer or a sample of the records.

A random sample of ids is drawn while records stream by.  An id is in or out by its hash (bottom-k
sampling), so all records of an id go the same way, however often it comes, and each set of N ids is
as likely as any other.  In memory: the records of 2N ids.

Exact intervals, for precision and recall: those of a binomial probability (Clopper, Pearson 1934).
Of n independent trials, each a hit with probability p, `hits` were hits.  The interval holds every
p under which neither so many hits nor so few would be a surprise of α/2 or less; so whatever p is,
it lies outside in at most a share α of all experiments.  No approximation: it holds for small n and
for p near 0 or 1.

The lower end solves Pr[X ≥ hits] = α/2.  With u = log p, the log of that tail is concave, and lies
below the line log C(n,hits) + hits·u (the union bound), so Newton's method started where the line
meets log α/2 climbs to the solution and never passes it.  There each term of the tail is smaller
than the one before it:

    Pr[X ≥ k] = Pr[X = k] · (1 + w·(n-k)/(k+1) + w²·(n-k)(n-k-1)/((k+1)(k+2)) + …),  w = p/(1-p)

Letters: n trials, k hits, p the probability of a hit.  Cost: up to 5 ms for n = 10^7, 0.1 ms for
n = 20.  The ends are right to 10 digits at n = 4000 and to 7 at n = 10^7, where lgamma ends.

The angle of two sets is estimated from how many bits of their vectors are equal.  Each of F bits is
equal with probability a = 1 - θ/π (Charikar 2002), so θ is about π·(1 - share).  How many are equal
is binomial: the exact interval of a gives one of θ, and one of the cosine.  To each side that of θ
is about 2·π·√(a·(1 - a) / F) wide, for 95 %.

Letters: F bits (384), of which 372 are equal: θ = 0.098, and the cosine 0.995.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from math import ceil, cos, exp, floor, lgamma, log, log1p, pi
from typing import NamedTuple

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


NEGLIGIBLE = 1e-17  # of a sum that is at least 1
PRECISION = 1e-13  # of p, relative; the last step of Newton's method is far below it


def clopper_pearson(hits: int, n: int, alpha: float) -> tuple[float, float]:
    """The interval (low, high) that misses p with probability at most `alpha`, half on each side.

    >>> [round(end, 4) for end in clopper_pearson(5, 10, alpha=0.05)]
    [0.1871, 0.8129]
    """
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} hits in {n} trials")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha = {alpha} is outside 0 < alpha < 1")
    return _low(hits, n, alpha / 2), 1 - _low(n - hits, n, alpha / 2)


def _low(k: int, n: int, tail: float) -> float:
    """The p with Pr[X ≥ k] = tail."""
    if k == 0:
        return 0.0
    log_ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    u = (log(tail) - log_ways) / k  # if k = n, this is the solution already
    step = 0.0 if k == n else 1.0
    while step > PRECISION:
        p = exp(u)
        terms = _terms(k, n, p / (1 - p))
        log_tail = log_ways + k * u + (n - k) * log1p(-p) + log(terms)
        step = (log(tail) - log_tail) * terms / k  # d log tail / du = k / terms
        u += step
    return exp(u)


def _terms(k: int, n: int, odds: float) -> float:
    """Pr[X ≥ k] / Pr[X = k]."""
    total, last, start, width = 1.0, 1.0, 0, 64
    while last > NEGLIGIBLE * total and start < n - k:
        i = np.arange(start, min(start + width, n - k))
        products = last * np.cumprod(odds * (n - k - i) / (k + 1 + i))
        total += float(products.sum())
        last = float(products[-1])
        start, width = start + width, 2 * width
    return total


MILLION = 10**6


def ratio(part: int, whole: int) -> str:
    """Six decimals, rounded down: 1.000000 is exactly 1.  Of nothing there is no share.

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


class Angle(NamedTuple):
    """In radians, and its cosine, with the ends of the interval of each."""

    angle: float
    smallest: float
    largest: float

    @property
    def cosines(self) -> tuple[float, float, float]:
        """That of the angle, the least and the most."""
        return cos(self.angle), cos(self.largest), cos(self.smallest)


def angle(equal: int, bits: int, alpha: float) -> Angle:
    """Of vectors with so many equal bits; the interval misses it with probability `alpha` or less.

    >>> [round(each, 3) for each in angle(372, 384, 0.05)]
    [0.098, 0.051, 0.169]
    >>> [round(each, 3) for each in angle(372, 384, 0.05).cosines]
    [0.995, 0.986, 0.999]
    """
    low, high = clopper_pearson(equal, bits, alpha)
    return Angle(pi * (1 - equal / bits), pi * (1 - high), pi * (1 - low))
