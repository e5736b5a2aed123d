"""What every scheme is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from math import floor
from typing import Any, ClassVar

import numpy as np

from neardup.lines.keys import HASH_BITS, MAX_BANDS
from neardup.schemes.request import Option, Request
from neardup.sets.hashing import random_words
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import MEASURES, Measure
from neardup.similarity.threshold import Threshold
from neardup.similarity.weights import TokenWeights

MILLION = 10**6
PROBES = (1, 2, 3, 5, 8, 13, 34, 89, 233, 987)  # sizes of sets
HAIR = Fraction(1, 10**15)  # chances are computed in floats, and right to so much


class Scheme(ABC):
    """Gives each record of a batch its keys."""

    measures: ClassVar[tuple[str, ...]] = ("jaccard", "dice", "cosine")
    """By which its pairs may be verified; the first one is the default."""
    options: ClassVar[tuple[Option, ...]] = ()
    """Those that it heeds, beside --threshold, --measure, --seed and --counts."""
    keeps_recall: ClassVar[bool] = False
    """Whether all pairs are found, or those at the threshold as surely as --recall asks."""
    counting: ClassVar[bool] = False
    """Whether a run should count tokens first."""
    weights: TokenWeights | None = None
    """What tokens weigh; None where it is the same for all."""
    one_a_band: ClassVar[bool] = True
    """Whether a set has at most one key of each band."""
    suits_shingle: ClassVar[str | None] = None
    """What its paper makes of texts, as --shingle; a run by another says so before it starts."""

    @classmethod
    @abstractmethod
    def of(cls, request: Request) -> Scheme:
        """ValueError for what it cannot promise."""

    @classmethod
    def asks_for_counts(cls, values: Mapping[str, Any]) -> bool:
        """Whether a run should count tokens first, with these values of options, by flag."""
        return cls.counting

    @property
    @abstractmethod
    def promise(self) -> str:
        """Which pairs it finds, and how surely, in words for the summary."""

    def travelling(self, sets: Ragged) -> Ragged:
        """What of these sets is sent to where they are verified, and `keys` is asked of then."""
        return sets

    @abstractmethod
    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        """Row i: the keys of set i in ascending order, whatever else is in the batch.

        Only those of the bands low … high-1.  No set may be empty.
        """

    def probe(self) -> str:
        """What the keys of some sets are, in 16 hexadecimal digits: other versions give others."""
        from hashlib import blake2b  # of what most programs do not ask

        keys = self.keys(Ragged.from_unsorted(random_words(1, sum(PROBES)), np.array(PROBES)))
        told = blake2b(keys.values.astype("<u8").tobytes(), digest_size=8)
        told.update(keys.offsets.astype("<u8").tobytes())
        return told.hexdigest()

    @abstractmethod
    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        """How many keys sets of these sizes have, at most (int64 arrays)."""

    @abstractmethod
    def recall(self, similarity: float) -> float:
        """The least probability that two sets share a key.

        They have this similarity by the scheme's own measure, the first of `measures`.
        """

    def cost(self) -> list[str]:
        """What a run is going to cost, where it can tell, or another would save: lines in words."""
        return []

    def measure(self, name: str, threshold: Threshold) -> Measure:
        """One of `measures`."""
        return MEASURES[name](threshold)


def banded(words: np.ndarray, bands: np.ndarray) -> Ragged:
    """Keys of n sets that have one of each of these bands (int64, ascending).

    `words` (uint64, of shape (n, bands)) are random-looking; their upper bits are the hash.
    """
    keys = words >> np.uint64(64 - HASH_BITS) | bands.astype(np.uint64) << np.uint64(HASH_BITS)
    return Ragged(keys.ravel(), np.arange(len(words) + 1) * len(bands))


def shown(chance: float) -> str:
    """Six decimals, rounded down, so that no promise is more than what is kept; only 1 is 1.

    Subtle: a float may lie a hair below the chance that it stands for, as 0.29 does; so the hair
    is added, and by fractions, since a product of floats is rounded, too.

    >>> shown(0.9999419), shown(0.29), shown(0.99999999), shown(1)
    ('0.999941', '0.290000', '0.999999', '1.000000')
    """
    millionths = floor((Fraction(chance) + HAIR) * MILLION)
    return "{}.{:06}".format(*divmod(min(millionths, MILLION - (chance < 1)), MILLION))
