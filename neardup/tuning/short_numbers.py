"""Numbers as tables show them."""

from __future__ import annotations


def number(value: float) -> str:
    """With three digits that count.

    >>> number(63096.66), number(2.345), number(0)
    ('63,100', '2.35', '0')
    """
    digits = float(f"{value:.3g}")
    return f"{digits:,.0f}" if digits >= 100 or digits == int(digits) else f"{digits:g}"


def short(value: float) -> str:
    """The same in little room.

    >>> short(27_012_345), short(381.5), short(5.04e9)
    ('27M', '382', '5.04G')
    """
    for unit, letter in (10**9, "G"), (10**6, "M"), (10**4, "k"):
        if value >= unit * 0.9995:
            scale = 1000 if letter == "k" else unit
            return f"{float(f'{value / scale:.3g}'):g}{letter}"
    return number(value)
