"""Exact confidence intervals of a probability (Clopper, Pearson 1934), in floats or decimals.

k of n independent trials were hits, each with probability p.  The interval has every p for which
neither k hits or more nor k or fewer have a probability below α/2: it misses p in at most a share α
of all experiments, for any n and p.  Samples without replacement, such as sketches, miss p less
often.

In floats (`clopper_pearson`) the lower end solves Pr[X ≥ k] = α/2.  In u = log p, the log of that
tail is concave and below the line log C(n,k) + k·u, so Newton's method climbs to the solution from
where the line meets log α/2, and never passes it.  The terms of the tail fall:

    Pr[X ≥ k] = Pr[X = k] · (1 + w·(n-k)/(k+1) + w²·(n-k)(n-k-1)/((k+1)(k+2)) + …),  w = p/(1-p)

The ends are right to 10 digits at n = 4000, and to 7 at n = 10^7.

In millionths, rounded outwards (`exact_interval`), floats find the ends, and the same sum in
decimals of 40 digits corrects them.  Decimals only add, multiply and divide, so that the result is
the same on every machine.

Letters: n trials, k hits, p the probability of a hit, α = 1 - confidence.  Cost: 0.1 ms in floats,
and 5 ms for n = 10^7; in decimals 1 ms for n = 256, and some ms for n = 10,000.

`EstimatedJaccard` is a resemblance estimated from samples of sets that are too large to send.

One row of numbers is sent for each set, in place of the set:

    below 2^52            the keys of the record, see `lines.keys`
    2^52 + S              one mark, the size of the samples
    2^52 + 2^48 and above MIN_S of the set: its S smallest hashes, or all of them (`sketches`)

Of the S (256) smallest hashes of x∪y, k are in both sets; the resemblance is in the exact interval
of k out of S for all but one pair in a thousand (CONFIDENCE).  Pairs whose interval
reaches the threshold are written; one in two thousand of those at the threshold is missed.  Sets of
fewer than S elements are sent as a whole, and two such sets have an exact resemblance.
"""

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, floor, lgamma, log, log1p

import numpy as np

from neardup.sets.ragged import Ragged, in_rows
from neardup.similarity.measures import Threshold, UnboundedMeasure, Verified, rounded_millionths
from neardup.similarity.sketches import SAMPLE_BITS, min_s, sample_of_min_s

MILLION = 10**6
_DECIMALS = Context(prec=40, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_NEGLIGIBLE = Decimal("1e-32")  # relative to the largest term
_ONE = Decimal(1)
NEGLIGIBLE = 1e-17  # in a sum that is at least 1
PRECISION = 1e-13  # relative, for p; the last step of Newton's method is far smaller


def clopper_pearson(hits: int, n: int, alpha: float) -> tuple[float, float]:
    """Return the confidence interval (low, high) of a hit's probability, with alpha/2 on each side.

    >>> [round(end, 4) for end in clopper_pearson(5, 10, alpha=0.05)]
    [0.1871, 0.8129]
    """
    if not 0 <= hits <= n:
        raise ValueError(f"hits = {hits} is outside 0 <= hits <= n = {n}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha = {alpha} is outside 0 < alpha < 1")
    return _low_float(hits, n, alpha / 2), 1 - _low_float(n - hits, n, alpha / 2)


def ratio(part: int, whole: int) -> str:
    """Format a ratio with six decimals, rounded down: 1.000000 is exactly 1; "-" if `whole` is 0.

    >>> ratio(9999999, 10000000), ratio(3, 3), ratio(0, 0)
    ('0.999999', '1.000000', '-')
    """
    return "{}.{:06}".format(*divmod(part * MILLION // whole, MILLION)) if whole else "-"


def interval(hits: int, n: int, confidence: float) -> str:
    """Format the Clopper-Pearson interval of a share, rounded outwards; "" if `n` is 0.

    >>> interval(788, 790, 0.95)
    '0.990885 to 0.999694 with confidence 0.95'
    """
    if not n:
        return ""
    low, high = clopper_pearson(hits, n, 1 - confidence)
    low, high = floor(low * MILLION) / MILLION, ceil(high * MILLION) / MILLION
    return f"{low:.6f} to {high:.6f} with confidence {confidence}"


def _low_float(k: int, n: int, tail: float) -> float:
    """Return the p of a binomial X with n trials for which Pr[X ≥ k] = tail; 0 if k = 0."""
    if k == 0:
        return 0.0
    log_ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    u = (log(tail) - log_ways) / k  # if k = n, this is already the solution
    step = 0.0 if k == n else 1.0
    while step > PRECISION:
        p = exp(u)
        terms = _terms(k, n, p / (1 - p))
        log_tail = log_ways + k * u + (n - k) * log1p(-p) + log(terms)
        step = (log(tail) - log_tail) * terms / k  # d log tail / du = k / terms
        u += step
    return exp(u)


def _terms(k: int, n: int, odds: float) -> float:
    """Return Pr[X ≥ k] / Pr[X = k], for binomial X with n trials and odds p/(1-p) of a hit."""
    total, last, start, width = 1.0, 1.0, 0, 64
    while last > NEGLIGIBLE * total and start < n - k:
        i = np.arange(start, min(start + width, n - k))
        products = last * np.cumprod(odds * (n - k - i) / (k + 1 + i))
        total += float(products.sum())
        last = float(products[-1])
        start, width = start + width, 2 * width
    return total


@lru_cache(maxsize=1 << 16)
def exact_interval(hits: int, n: int, alpha: Fraction) -> tuple[int, int]:
    """Return the 1 - alpha confidence interval of a hit's probability: (low, high) in millionths.

    >>> exact_interval(5, 10, Fraction("0.05")), exact_interval(10, 10, Fraction("0.05"))
    ((187086, 812914), (691502, 1000000))
    """
    return _low(hits, n, alpha / 2), MILLION - _low(n - hits, n, alpha / 2)


def _low(k: int, n: int, tail: Fraction) -> int:
    if k == 0:
        return 0
    limit = _DECIMALS.divide(Decimal(tail.numerator), Decimal(tail.denominator))
    limit = _DECIMALS.divide(limit, _ways(k, n))
    low = floor(_low_float(k, n, float(tail)) * MILLION)
    while low and _tail(k, n, low) > limit:
        low -= 1
    while (low + 1) * n < k * MILLION and _tail(k, n, low + 1) <= limit:
        low += 1
    return low


def _ways(k: int, n: int) -> Decimal:
    """Return the binomial coefficient C(n, k), to about 40 digits."""
    ways, d = _ONE, _DECIMALS
    for i in range(min(k, n - k)):
        ways = d.divide(d.multiply(ways, Decimal(n - i)), Decimal(i + 1))
    return ways


def _tail(k: int, n: int, millionths: int) -> Decimal:
    """Return Pr[X ≥ k] / C(n, k), for binomial X with n trials at p = `millionths`/10^6 < k/n."""
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
    """Return base^exponent by squaring; `Decimal`'s `**` may differ between Python versions."""
    result = _ONE
    while exponent:
        if exponent & 1:
            result = _DECIMALS.multiply(result, base)
        base = _DECIMALS.multiply(base, base)
        exponent >>= 1
    return result


DEFAULT_SIZE, MIN_SIZE, MAX_SIZE = 256, 16, 65536
CONFIDENCE = Fraction(999, 1000)
MARK = np.uint64(1 << 52)
FIRST_HASH = MARK + np.uint64(1 << SAMPLE_BITS)


def sample_size(text: str) -> int:
    """Parse the value of --verify; return the sample size, 0 for exact; ValueError if invalid.

    >>> [sample_size(text) for text in ("exact", "sketch", "sketch:1024")]
    [0, 256, 1024]
    """
    if text == "exact":
        return 0
    kind, colon, size = text.partition(":")
    if kind == "sketch" and not colon:
        return DEFAULT_SIZE
    number = int(size) if size.isascii() and size.isdigit() and len(size) <= 6 else 0
    if kind == "sketch" and MIN_SIZE <= number <= MAX_SIZE:
        return number
    raise ValueError(
        f"{text!r} is neither exact nor sketch:S, with S from {MIN_SIZE} to {MAX_SIZE}"
    )


def sampled(sets: Ragged, keys: Ragged, size: int, seed: int) -> Ragged:
    """Return the rows that are sent instead of the sets: keys, sample and sample size of each set.

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
    """Extract the sample MIN_S of each set from the rows that `sampled` made."""
    hashes = rows.where(rows.values >= FIRST_HASH)
    return Ragged(hashes.values - FIRST_HASH, hashes.offsets)


def keys_of(rows: Ragged, size: int, low: int, high: int) -> Ragged:
    """Return the keys low … high-1 in each row; none for rows made with another sample size."""
    marked = rows.where(rows.values == MARK + np.uint64(size)).sizes > 0
    mine = (rows.values >= np.uint64(low)) & (rows.values < np.uint64(high))
    return rows.where(mine & np.repeat(marked, rows.sizes))


@dataclass(eq=False)
class EstimatedJaccard(UnboundedMeasure):
    """The measure jaccard, estimated from samples of `size` hashes."""

    threshold: Threshold
    size: int

    def verified(self, sets: Ragged, left: np.ndarray, right: np.ndarray) -> Verified:
        """Return the pairs whose confidence interval ends at or above the threshold.

        Subtle: `part` and `whole` are the ends of the interval here, in millionths.
        """
        some, place = np.unique(np.concatenate((left, right)), return_inverse=True)
        samples = samples_of(sets.take(some))
        a, b = place.reshape(2, -1)
        both, all_, known = sample_of_min_s(samples, self.size, a, b)
        good = np.where(known, self.threshold.reached(both, all_), True)
        low, high = (np.zeros(len(left), dtype=np.int64) for _ in range(2))
        low[known] = high[known] = rounded_millionths(both[known], all_[known])
        for hits in np.unique(both[~known]).tolist():
            mine = ~known & (both == hits)
            low[mine], high[mine] = exact_interval(hits, self.size, 1 - CONFIDENCE)
        good &= known | self.threshold.reached(high, np.full(len(high), MILLION))
        return Verified(left[good], right[good], low[good], high[good])
