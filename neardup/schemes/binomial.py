"""At least B of S independent parts agree, each with probability p: a sum of binomial terms.

    P = Σ C(S, k) · p^k · (1-p)^(S-k)   for k = B … S

It is stable at both ends: below one half it is this sum, of which no term is negative, and above
it is 1 minus the sum of the others.  Only p = 1 gives 1.
"""

from __future__ import annotations

from math import comb, fsum

from neardup.schemes.banding import NEARLY_ONE


def at_least(needed: int, parts: int, chance: float) -> float:
    """The probability that `needed` or more of so many parts agree.

    >>> at_least(2, 6, 0.5) == 57 / 64, at_least(2, 6, 1), at_least(2, 6, 0)
    (True, 1.0, 0.0)
    """
    if chance == 1:
        return 1.0
    terms = [comb(parts, k) * chance**k * (1 - chance) ** (parts - k) for k in range(parts + 1)]
    reached = fsum(terms[needed:])
    return reached if reached < 0.5 else min(1 - fsum(terms[:needed]), NEARLY_ONE)
