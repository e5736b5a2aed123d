"""Estimated Jaccard similarity, with an exact interval.

The exact interval of a share (Clopper, Pearson 1934), the same digits on every machine.

Of n independent trials k were hits.  The interval holds every p under which neither so many hits
nor so few would be a surprise of α/2 or less, so it misses p in at most a share α of all draws.  A
sample without replacement, as a sketch is one, lies nearer to its mean, and is missed more rarely.

    low    the largest p, in millionths, with Pr[X ≥ k] ≤ α/2
    high   1 - low(n - k)

Both are rounded outwards.  The tail is summed from its largest term, Pr[X = k], in decimals of 40
digits, which only add, multiply and divide.  Floats tell where to look, and decimals decide: no
machine's logarithm has a say.

Letters: n trials, k hits, p the probability of a hit, α one less the confidence.  Cost: a
millisecond for n = 256, some milliseconds for n = 10,000; each answer is kept.

Resemblance estimated from samples, where the sets themselves are too large to send.

What travels of a set is one row of numbers, and all that carries sets carries it as it is:

    below 2^52            the keys of the record, see `lines.keys`
    2^52 + S              one mark, which tells the size of the samples
    2^52 + 2^48 and above MIN_S of the set: its S smallest hashes, or all of them (`sketches`)

Of the S smallest hashes of x∪y, k are in both sets; the resemblance lies in the exact interval of
k out of S but for one pair in a thousand (CONFIDENCE).  A pair is one whose interval reaches the
threshold, so of those that are at it one in two thousand is left out.  Sets of fewer than S
elements have been sent as a whole: of two such sets the resemblance is known, and the interval is
one number.

Letters: S the size of the samples (256).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import lgamma, log, log1p

import numpy as np

from neardup.sets.ragged import Ragged, in_rows
from neardup.similarity.measures import Threshold, UnboundedMeasure, Verified
from neardup.similarity.sketches import SAMPLE_BITS, min_s, sample_of_min_s, whole_in_min_s

MILLION = 10**6
_DECIMALS = Context(prec=40, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_NEGLIGIBLE = Decimal("1e-32")  # of the largest term
_ONE = Decimal(1)


@lru_cache(maxsize=1 << 16)
def exact_interval(hits: int, n: int, alpha: Fraction) -> tuple[int, int]:
    """(low, high) in millionths; it misses p with probability at most `alpha`, half on each side.

    >>> exact_interval(5, 10, Fraction("0.05"))
    (187086, 812914)
    >>> exact_interval(10, 10, Fraction("0.05")), exact_interval(0, 0, Fraction("0.05"))
    ((691502, 1000000), (0, 1000000))
    """
    return _low(hits, n, alpha / 2), MILLION - _low(n - hits, n, alpha / 2)


def _low(k: int, n: int, tail: Fraction) -> int:
    if k == 0:
        return 0
    limit = _DECIMALS.divide(Decimal(tail.numerator), Decimal(tail.denominator))
    limit = _DECIMALS.divide(limit, _ways(k, n))
    low = _near(k, n, float(tail))
    while low and _tail(k, n, low) > limit:
        low -= 1
    while (low + 1) * n < k * MILLION and _tail(k, n, low + 1) <= limit:
        low += 1
    return low


def _near(k: int, n: int, tail: float) -> int:
    """What `_low` is by floats, which may be a millionth off; below k/n.

    At the mean, k/n, half of all draws and more are in the tail.
    """
    log_ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    low, high = 0, -(-k * MILLION // n)
    while high - low > 1:
        middle = (low + high) // 2
        p = middle / MILLION
        total = term = 1.0
        for i in range(n - k):
            term *= p / (1 - p) * (n - k - i) / (k + 1 + i)
            total += term
            if term < 1e-12:
                break
        log_tail = log_ways + k * log(p) + (n - k) * log1p(-p) + log(total)
        low, high = (middle, high) if log_tail <= log(tail) else (low, middle)
    return low


def _ways(k: int, n: int) -> Decimal:
    """How many ways there are to choose k of n."""
    ways, d = _ONE, _DECIMALS
    for i in range(min(k, n - k)):
        ways = d.divide(d.multiply(ways, Decimal(n - i)), Decimal(i + 1))
    return ways


def _tail(k: int, n: int, millionths: int) -> Decimal:
    """Pr[X ≥ k] / C(n, k), where p is below k/n, so that terms fall."""
    d = _DECIMALS
    p = d.divide(Decimal(millionths), Decimal(MILLION))
    q = d.subtract(_ONE, p)
    odds = d.divide(p, q)
    total = term = _ONE
    for i in range(n - k):
        term = d.divide(d.multiply(d.multiply(term, odds), Decimal(n - k - i)), Decimal(k + 1 + i))
        total = d.add(total, term)
        if term < _NEGLIGIBLE:
            break
    return d.multiply(d.multiply(_power(p, k), _power(q, n - k)), total)


def _power(base: Decimal, exponent: int) -> Decimal:
    """By squaring: `Decimal`'s own power may differ in the last digit between its versions."""
    result = _ONE
    while exponent:
        if exponent & 1:
            result = _DECIMALS.multiply(result, base)
        base = _DECIMALS.multiply(base, base)
        exponent >>= 1
    return result


DEFAULT_SIZE, LEAST_SIZE, MOST_SIZE = 256, 16, 65536
CONFIDENCE = Fraction(999, 1000)
MARK = np.uint64(1 << 52)
FIRST_HASH = MARK + np.uint64(1 << SAMPLE_BITS)


def sample_size(text: str) -> int:
    """Reads how pairs are verified: S, or 0 for exactly.

    >>> [sample_size(text) for text in ("exact", "sketch", "sketch:1024")]
    [0, 256, 1024]
    """
    if text == "exact":
        return 0
    kind, colon, size = text.partition(":")
    if kind == "sketch" and not colon:
        return DEFAULT_SIZE
    number = int(size) if size.isascii() and size.isdigit() and len(size) <= 6 else 0
    if kind == "sketch" and LEAST_SIZE <= number <= MOST_SIZE:
        return number
    raise ValueError(
        f"{text!r} is neither exact nor sketch:S, with S from {LEAST_SIZE} to {MOST_SIZE}"
    )


def sampled(sets: Ragged, keys: Ragged, size: int, seed: int) -> Ragged:
    """What travels of sets with these keys.

    >>> sets, keys = Ragged.from_rows([[1, 2, 3], [*range(99)]]), Ragged.from_rows([[7, 9], [7]])
    >>> sampled(sets, keys, size=16, seed=0).sizes.tolist()
    [6, 18]
    """
    sample = min_s(sets, size, seed)
    rows = np.concatenate(
        [np.repeat(np.arange(len(sets)), part.sizes) for part in (keys, sample)]
        + [np.arange(len(sets))]
    )
    marks = np.full(len(sets), MARK + np.uint64(size))
    values = np.concatenate((keys.values, sample.values + FIRST_HASH, marks))
    order = in_rows(values, rows)
    offsets = keys.offsets + sample.offsets + np.arange(len(sets) + 1)
    return Ragged(values[order], offsets)


def samples_of(rows: Ragged) -> Ragged:
    """MIN_S of sets that travel as these rows."""
    hashes = rows.where(rows.values >= FIRST_HASH)
    return Ragged(hashes.values - FIRST_HASH, hashes.offsets)


def keys_of(rows: Ragged, size: int, low: int, high: int) -> Ragged:
    """The keys from `low` to below `high` in these rows; none in one without the mark of `size`."""
    marked = rows.where(rows.values == MARK + np.uint64(size)).sizes > 0
    mine = (rows.values >= np.uint64(low)) & (rows.values < np.uint64(high))
    return rows.where(mine & np.repeat(marked, rows.sizes))


@dataclass(eq=False)
class EstimatedJaccard(UnboundedMeasure):
    """Pairs whose interval reaches the threshold; of samples of so many hashes."""

    threshold: Threshold
    size: int

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        """Subtle: `part` and `whole` are the ends of the interval here, in millionths."""
        some, place = np.unique(np.concatenate((left, right)), return_inverse=True)
        samples = samples_of(sets.take(some))
        a, b = place.reshape(2, -1)
        known = whole_in_min_s(samples, self.size, a, b)
        both, all_ = sample_of_min_s(samples, self.size, a, b)
        good = np.where(known, self.threshold.reached(both, all_), True)
        low, high = (np.zeros(len(left), dtype=np.int64) for _ in range(2))
        low[known] = high[known] = _rounded(both[known], all_[known])
        for hits in np.unique(both[~known]).tolist():
            mine = ~known & (both == hits)
            low[mine], high[mine] = exact_interval(hits, self.size, 1 - CONFIDENCE)
        good &= known | self.threshold.reached(high, np.full(len(high), MILLION))
        return Verified(left[good], right[good], low[good], high[good])


def _rounded(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part/whole in millionths, half-even, as exact similarities are shown."""
    quotient, remainder = np.divmod(part * MILLION, whole)
    twice = 2 * remainder
    return quotient + ((twice > whole) | ((twice == whole) & (quotient % 2 == 1)))
