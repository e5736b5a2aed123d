"""The exact interval of a share (Clopper, Pearson 1934), the same digits on every machine.

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
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import lgamma, log, log1p

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
