"""MinHash banding, super-shingles, and a scheme that sends samples of sets (--verify sketch).

The minimum of a random hash over a set is equal for two sets with probability s, their resemblance
(Broder 1997).

*Banding*.  A signature of b·r minima is cut into b bands of r rows; a key is the band's number and
a hash of its r minima (Indyk, Motwani 1998).  Two sets share a key with probability
1 - (1 - s^r)^b.  For weighted sets (--weights) s is Σ min / Σ max of the weights, and the minima
are those of bags, or of consistent weighted sampling (`sets.weighted_sets`).

*Super-shingles*.  M minima are cut into S super-shingles, each a hash of M/S of them, and two sets
are treated as similar if B super-shingles agree (Broder, Glassman, Manasse, Zweig, "Syntactic
clustering of the Web", 1997).  A key is a choice of B super-shingles, one of C(S, B).

    84:6:2     super-shingle   0      1      2      3      4      5        each of 14 minima
    set x                      7f3a…  01c4…  99d0…  e2b7…  5a5e…  c310…
    set y                      7f3a…  8b2f…  99d0…  4c61…  5a5e…  07aa…
    keys that both have        (0, 2), (0, 4) and (2, 4) of 15

With 84:6:2 a pair is found with probability 0.415 at s = 0.9, 0.88 at 0.95 and 0.996 at 0.98: for
sets that are almost equal, with few false candidates.  Cost: M hashes a token.

Letters: b bands (15), r rows (7); M minima (84), S super-shingles (6), B to agree (2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS, MAX_BANDS
from neardup.runtime.flags import Flag, flags
from neardup.schemes import banding, scheme
from neardup.schemes.scheme import Request, Scheme
from neardup.sets.hashing import band_words, combine
from neardup.sets.ragged import Ragged
from neardup.sets.weighted_sets import bags, weighted_band_words
from neardup.similarity.intervals import CONFIDENCE, DEFAULT_SIZE, keys_of, sampled
from neardup.similarity.measures import NINE_TENTHS, Threshold
from neardup.similarity.weighted_measures import TokenWeights

MAX_BANDS_ASKED = 16
MAX_MINIMA = 1024
CHOSEN_AT_ONCE = 1 << 21  # words of super-shingles that are combined in one step


@dataclass(eq=False)
class MinHash(Scheme):
    """The scheme minhash: `bands` bands of `rows` min-hashes; `seed` (0 … 2^64-1) draws the hashes.

    >>> sets = Ragged.from_rows([[1, 2, 3], [1, 2, 3], [7, 8]])
    >>> keys = MinHash(bands=2, rows=3, seed=0).keys(sets)
    >>> [int(key) >> 40 for key in keys.row(0)]
    [0, 1]
    >>> bool((keys.row(0) == keys.row(1)).all()), bool((keys.row(0) == keys.row(2)).any())
    (True, False)
    """

    bands: int
    rows: int
    seed: int = 0
    resemblance: Threshold = NINE_TENTHS  # for which the promise holds
    weights: TokenWeights | None = None
    options: ClassVar[tuple[Flag, ...]] = (*banding.OPTIONS, scheme.WEIGHTS)
    finds_more: ClassVar[str] = banding.FINDS_MORE
    keeps_recall: ClassVar[bool] = True

    @classmethod
    def of(cls, request: Request) -> MinHash:
        bands, rows = banding.asked_for(request, float(request.least), MAX_BANDS_ASKED)
        weights, seed = scheme.weighing(request)
        if weights is not None and request.measure == "cosine":
            raise ValueError(
                f"--weights {request.value(scheme.WEIGHTS)} with --measure cosine: pairs with a "
                "high cosine may have any weighted Jaccard similarity; use --scheme projection"
            )
        return cls(bands, rows, seed, request.least, weights)

    @property
    def promise(self) -> str:
        return (
            f"{self.bands} bands of {self.rows} rows find a pair at {self.resemblance} "
            f"with probability {scheme.shown(self.recall(float(self.resemblance)))}"
        )

    def cost(self) -> list[str]:
        here = self.recall(banding.DISSIMILAR)
        if here < banding.DISSIMILAR:
            return []
        what, at = f"{self.bands} bands of {self.rows} rows", float(self.resemblance)
        if self.rows == 1 and self.bands > MAX_BANDS_ASKED:
            return [
                f"{what}, as many as {self.resemblance} needs: every record is sent {self.bands} "
                f"times, and {scheme.shown(here)} of all pairs of similarity "
                f"{banding.DISSIMILAR} are compared; --exact misses no pair, and reports its cost"
            ]
        return banding.dearer(what, here, at, banding.DISSIMILAR, MAX_BANDS_ASKED)

    def recall(self, similarity: float) -> float:
        return banding.recall(similarity, self.bands, self.rows)

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), self.bands)

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        bands = np.arange(low, min(high, self.bands))
        if self.weights is None or self.weights.are_counts:
            units = sets if self.weights is None else bags(sets)
            words = band_words(units, bands, self.rows, self.seed)
        else:
            weights = self.weights.of(sets)
            words = weighted_band_words(sets, weights, bands, self.bands, self.rows, self.seed)
        return scheme.banded(words, bands)


@dataclass(frozen=True)
class Supers:
    """The parameters of super-shingles: M minima, S super-shingles, B of which must agree.

    >>> Supers.parse("60:10:2")
    Supers(minima=60, number=10, agree=2)
    """

    minima: int = 84
    number: int = 6
    agree: int = 2

    @classmethod
    def parse(cls, text: str) -> Supers:
        """Parse `M:S:B`; ValueError if malformed or if the numbers do not fit."""
        parts = text.split(":")
        if len(parts) != 3 or not all(p.isascii() and p.isdigit() and len(p) < 9 for p in parts):
            raise ValueError(f"{text!r} is not M:S:B, such as 84:6:2")
        minima, number, agree = map(int, parts)
        if not 1 <= agree <= number <= minima <= MAX_MINIMA:
            raise ValueError(f"{text} is outside 1 <= B <= S <= M <= {MAX_MINIMA}")
        if minima % number:
            less = minima // number * number
            raise ValueError(
                f"{text}: {minima} min-hashes cannot be split evenly into {number} "
                f"super-shingles; take {less}:{number}:{agree}"
            )
        if comb(number, agree) > MAX_BANDS:
            raise ValueError(
                f"{text} makes more than {MAX_BANDS:,} keys a record, one for each {agree} of "
                f"{number} super-shingles; take fewer super-shingles"
            )
        return cls(minima, number, agree)

    def __str__(self) -> str:
        return f"{self.minima}:{self.number}:{self.agree}"

    @property
    def rows(self) -> int:
        return self.minima // self.number

    @cached_property
    def choices(self) -> np.ndarray:
        """Combinations of B super-shingles in colexicographic order: int64 (C(S, B), B)."""
        choices = combinations(range(self.number), self.agree)
        return np.array(sorted(choices, key=lambda choice: choice[::-1]))


(SUPERSHINGLES,) = flags(
    """
    --supershingles M:S:B  with --scheme supershingle: M min-hashes in S super-shingles, of which B
                    must agree; fewer min-hashes in each find more [84:6:2]
    """,
    supershingles=Supers.parse,
)


@dataclass
class SuperShingle(Scheme):
    """The scheme supershingle: each combination of `supers.agree` super-shingles is a key.

    `seed` (0 … 2^64-1) draws the hash functions.

    >>> round(SuperShingle().recall(0.9), 3)
    0.415
    """

    seed: int = 0
    resemblance: Threshold = NINE_TENTHS  # for which the promise holds
    supers: Supers = Supers()
    options: ClassVar[tuple[Flag, ...]] = (SUPERSHINGLES,)
    finds_more: ClassVar[str] = (
        "--supershingles with a smaller M/S, a larger S or a smaller B misses fewer"
    )

    @classmethod
    def of(cls, request: Request) -> SuperShingle:
        return cls(request.seed, request.least, request.value(SUPERSHINGLES))

    @property
    def promise(self) -> str:
        supers = self.supers
        chance = scheme.shown(self.recall(float(self.resemblance)))
        return (
            f"{supers.agree} of {supers.number} super-shingles of {supers.rows} minima find a pair "
            f"at {self.resemblance} with probability {chance}"
        )

    def cost(self) -> list[str]:
        dissimilar = banding.DISSIMILAR
        here, at = self.recall(dissimilar), float(self.resemblance)
        what = f"--supershingles {self.supers}"
        return banding.dearer(what, here, at, dissimilar, MAX_BANDS_ASKED, "--scheme minhash")

    def recall(self, similarity: float) -> float:
        return banding.at_least(self.supers.agree, self.supers.number, similarity**self.supers.rows)

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
        return scheme.banded(words, np.arange(low, low + len(choices)))


@dataclass(eq=False)
class Sketched(Scheme):
    """A scheme that sends the keys of `inner` and a sample of up to `size` hashes for each set.

    Reducers get the keys of the whole set with its sample (`similarity.intervals`), whose hash
    `seed` draws.

    >>> from neardup.similarity.measures import NINE_TENTHS
    >>> scheme = Sketched.of(Request(NINE_TENTHS, NINE_TENTHS))
    >>> sets = Ragged.from_rows([[*range(1000)], [*range(5)]])
    >>> rows = scheme.travelling(sets)
    >>> rows.sizes.tolist()
    [272, 21]
    >>> scheme.keys(rows).values.tolist() == scheme.inner.keys(sets).values.tolist()
    True
    """

    inner: Scheme
    size: int
    seed: int
    measures: ClassVar[tuple[str, ...]] = ("jaccard",)
    one_a_band: ClassVar[bool] = False  # whatever the value of `inner`: False is always correct

    @classmethod
    def of(cls, request: Request) -> Sketched:
        return cls(MinHash.of(request), DEFAULT_SIZE, request.seed)

    @property
    def promise(self) -> str:
        return (
            f"{self.inner.promise}; pairs are estimates from {self.size} hashes of each set, and "
            f"a resemblance is outside its interval with probability {float(1 - CONFIDENCE):g} at "
            "most"
        )

    def travelling(self, sets: Ragged) -> Ragged:
        return sampled(sets, self.inner.keys(sets), self.size, self.seed)

    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        high = min(high, MAX_BANDS)
        return keys_of(sets, self.size, low << HASH_BITS, high << HASH_BITS)

    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        return self.inner.key_counts(sizes)

    def recall(self, similarity: float) -> float:
        return self.inner.recall(similarity)

    def cost(self) -> list[str]:
        return self.inner.cost()
