"""What every scheme is, and what it is made from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar

import numpy as np

from neardup.lines.keys import HASH_BITS, MAX_BANDS
from neardup.schemes import banding
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import MEASURES, Measure
from neardup.similarity.threshold import Threshold
from neardup.token_counts.counts import TokenCounts

RECALL = 0.9999


@dataclass(frozen=True)
class Request:
    """What a user asks of a scheme; `None` is for what was not asked, or does not exist.

    threshold: the least similarity, by the measure of that name; resemblance: the least Jaccard
    similarity that follows from it; recall: the promise, 0 < P < 1; max_bands, bands, rows: 1 and
    more; seed: 0 … 2^64-1; distance: of fingerprints, in bits; weighted: whether tokens weigh by
    their idf; idf: the band of the I-Match filter, 0 … 1; lexicons: 1 and more; counts: how many
    records have each token.
    """

    threshold: Threshold
    resemblance: Threshold | None
    measure: str = "jaccard"
    recall: float | None = None
    max_bands: int | None = None
    bands: int | None = None
    rows: int | None = None
    seed: int = 0
    distance: int = 3
    weighted: bool = False
    idf: tuple[float, float] = (0.1, 0.9)
    lexicons: int = 1
    counts: TokenCounts | None = None

    def key_seed(self, scheme: str) -> int:
        """Draws other keys for another scheme, threshold or counts, so that the reducer notices."""
        counts = None if self.counts is None else self.counts.digest()
        asked = repr((scheme, self.seed, self.resemblance, counts))
        return int.from_bytes(blake2b(asked.encode(), digest_size=8).digest(), "little")

    def banding(self, agreement: float, max_bands: int) -> tuple[int, int]:
        """(bands, rows) for pairs at the threshold, whose rows agree with this probability.

        From the promise within `max_bands` (unless others were asked for), or by hand and not
        against the promise; ValueError where that cannot be.
        """
        if self.bands is None and self.rows is None:
            limit = max_bands if self.max_bands is None else self.max_bands
            recall = self.recall or RECALL
            try:
                return banding.choose(agreement, recall, limit)
            except ValueError as error:
                asked = f"a recall of {recall:g} at threshold {self.threshold}"
                raise ValueError(f"{asked} {error}") from None
        if self.bands is None or self.rows is None:
            given, missing = ("--rows", "--bands") if self.bands is None else ("--bands", "--rows")
            raise ValueError(f"{given} needs {missing}; or leave both to --recall")
        if self.max_bands is not None and self.bands > self.max_bands:
            raise ValueError(f"--bands {self.bands} is more than --max-bands {self.max_bands}")
        reached = banding.recall(agreement, self.bands, self.rows)
        if self.recall and reached < self.recall:
            raise ValueError(
                f"{self.bands} bands of {self.rows} rows have a recall of {reached:.6f} at "
                f"threshold {self.threshold}, and --recall asks for {self.recall:g}"
            )
        return self.bands, self.rows


class Scheme(ABC):
    """Gives each record of a batch its keys."""

    measures: ClassVar[tuple[str, ...]] = ("jaccard", "dice", "cosine")
    """By which its pairs may be verified; the first one is the default."""
    options: ClassVar[tuple[str, ...]] = ()
    """Those that it heeds, beside --threshold, --measure, --seed and --counts."""
    counting: ClassVar[bool] = False
    """Whether a run should count tokens first."""
    one_a_band: ClassVar[bool] = True
    """Whether a set has at most one key of each band."""

    @classmethod
    @abstractmethod
    def of(cls, request: Request) -> Scheme:
        """ValueError for what it cannot promise."""

    @property
    @abstractmethod
    def promise(self) -> str:
        """Which pairs it finds, and how surely, in words for the summary."""

    @abstractmethod
    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        """Row i: the keys of set i in ascending order, whatever else is in the batch.

        Only those of the bands low … high-1.  No set may be empty.
        """

    @abstractmethod
    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        """How many keys sets of these sizes have, at most (int64 arrays)."""

    @abstractmethod
    def recall(self, similarity: float) -> float:
        """The least probability that two sets share a key.

        They have this similarity by the scheme's own measure, the first of `measures`.
        """

    def cost(self) -> list[str]:
        """What a run is going to cost, where it can tell: some lines in words."""
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
