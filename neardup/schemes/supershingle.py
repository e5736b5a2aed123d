"""Super-shingles: sets share a key when at least B of their S super-shingles are equal.

M min-hashes are cut into S super-shingles, each a hash of M/S of them, and two sets are taken for
similar when B super-shingles agree; of 84 in 6, it takes 2 (Broder, Glassman, Manasse, Zweig,
"Syntactic clustering of the Web", 1997).  So a key is a choice of B super-shingles, a mega-shingle:
C(S, B) choices, of which any will do.

    84:6:2     super-shingle   0      1      2      3      4      5        each of 14 minima
    set x                      7f3a…  01c4…  99d0…  e2b7…  5a5e…  c310…
    set y                      7f3a…  8b2f…  99d0…  4c61…  5a5e…  07aa…
    keys that both have        (0, 2), (0, 4) and (2, 4) of 15

Letters: M minima (84), S super-shingles (6), B to agree (2), s the resemblance; p = s^(M/S), the
probability that one agrees (0.229 at s = 0.9).

Promise: P(at least B of S), which for 84:6:2 is 0.415 at s = 0.9, 0.88 at 0.95 and 0.996 at 0.98:
a scheme for sets that are almost equal, with next to no false candidates below.  Fewer minima in a
super-shingle, or more super-shingles, find more; S:1 is MinHash banding.  Cost: M hashes a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from neardup.lines.keyed_lines import MAX_BANDS
from neardup.schemes import banding
from neardup.schemes.banding import at_least
from neardup.schemes.minhash import MAX_BANDS_ASKED
from neardup.schemes.scheme import Option, Request, Scheme, banded, shown
from neardup.sets.hashing import band_words, combine
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import NINE_TENTHS, Threshold

MAX_MINIMA = 1024
CHOSEN_AT_ONCE = 1 << 21  # words of super-shingles, when they are put together


@dataclass(frozen=True)
class Supers:
    """M minima in S super-shingles, of which B must agree.

    >>> Supers.parse("60:10:2")
    Supers(minima=60, number=10, agree=2)
    """

    minima: int = 84
    number: int = 6
    agree: int = 2

    @classmethod
    def parse(cls, text: str) -> Supers:
        """Read M:S:B; ValueError says what is wrong, and what to type instead."""
        parts = text.split(":")
        if len(parts) != 3 or not all(p.isascii() and p.isdigit() and len(p) < 9 for p in parts):
            raise ValueError(f"{text!r} is not M:S:B, such as 84:6:2")
        minima, number, agree = map(int, parts)
        if not 1 <= minima <= MAX_MINIMA:
            raise ValueError(f"{text}: M is {minima}, and not from 1 to {MAX_MINIMA} minima")
        if not 1 <= agree <= number <= minima:
            raise ValueError(f"{text} is outside 1 <= B <= S <= M")
        if minima % number:
            less = minima // number * number
            raise ValueError(
                f"{text}: {minima} minima are no {number} super-shingles of one size; "
                f"take {less}:{number}:{agree}"
            )
        if comb(number, agree) > MAX_BANDS:
            raise ValueError(
                f"{text} is more than {MAX_BANDS:,} keys a record, one for each {agree} of "
                f"{number} super-shingles; take fewer super-shingles"
            )
        return cls(minima, number, agree)

    def __str__(self) -> str:
        return f"{self.minima}:{self.number}:{self.agree}"

    @property
    def rows(self) -> int:
        """Minima in a super-shingle."""
        return self.minima // self.number

    @cached_property
    def choices(self) -> np.ndarray:
        """int64 (C(S, B), B), by the last super-shingle: the first bands need few of them."""
        choices = combinations(range(self.number), self.agree)
        return np.array(sorted(choices, key=lambda choice: choice[::-1]))


SUPERSHINGLES = Option(
    "--supershingles",
    "M:S:B",
    "with --scheme supershingle: M min-hashes in S super-shingles, of which B must agree; fewer "
    "min-hashes in each find more (default: 84:6:2)",
    Supers.parse,
    default="84:6:2",
    finds_more="--supershingles with a smaller M/S, more S or less B misses fewer",
)


@dataclass
class SuperShingle(Scheme):
    """`seed` (0 … 2^64-1) draws the hash functions.

    >>> round(SuperShingle().recall(0.9), 3)
    0.415
    """

    seed: int = 0
    resemblance: Threshold = NINE_TENTHS  # for which the promise holds
    supers: Supers = Supers()
    options: ClassVar[tuple[Option, ...]] = (SUPERSHINGLES,)

    @classmethod
    def of(cls, request: Request) -> SuperShingle:
        return cls(request.seed, request.least, request.value(SUPERSHINGLES))

    @property
    def promise(self) -> str:
        supers = self.supers
        return (
            f"{supers.agree} of {supers.number} super-shingles of {supers.rows} minima find a pair "
            f"at {self.resemblance} with probability {shown(self.recall(float(self.resemblance)))}"
        )

    def cost(self) -> list[str]:
        dissimilar = banding.DISSIMILAR
        here, at = self.recall(dissimilar), float(self.resemblance)
        what = f"--supershingles {self.supers}"
        return banding.dearer(what, here, at, dissimilar, MAX_BANDS_ASKED, "--scheme minhash")

    def recall(self, similarity: float) -> float:
        return at_least(self.supers.agree, self.supers.number, similarity**self.supers.rows)

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), comb(self.supers.number, self.supers.agree))

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        choices = self.supers.choices[low:high]
        asked, place = np.unique(choices, return_inverse=True)
        supers = band_words(sets, asked, self.supers.rows, self.seed)
        place = place.reshape(-1, self.supers.agree)
        words = np.empty((len(sets), len(choices)), dtype=np.uint64)
        step = max(1, CHOSEN_AT_ONCE // max(1, len(sets) * self.supers.agree))
        for i in range(0, len(choices), step):
            chosen = supers[:, place[i : i + step]]
            words[:, i : i + step] = combine(np.moveaxis(chosen, 2, 0), seed=0)
        return banded(words, np.arange(low, low + len(choices)))
