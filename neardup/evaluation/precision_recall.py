"""Precision and recall in words, with the exact interval of a share."""

from __future__ import annotations

from math import ceil, floor

from neardup.evaluation.intervals import clopper_pearson

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
