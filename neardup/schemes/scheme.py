"""The base class of schemes, their options, and token weights (--weights)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from hashlib import blake2b
from math import floor, inf
from typing import Any, ClassVar, NamedTuple

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS, MAX_BANDS
from neardup.runtime.flags import Flag, flags
from neardup.runtime.program import one_of
from neardup.sets.hashing import random_words
from neardup.sets.ragged import Ragged
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import Measure, Threshold, measure_of, usage_of
from neardup.similarity.weighted_measures import Idf, TokenWeights, weighted_measure

MILLION = 10**6
PROBE_SIZES = (1, 2, 3, 5, 8, 13, 34, 89, 233, 987)  # sizes of the sets that `Scheme.probe` hashes
HAIR = Fraction(1, 10**15)  # the precision of probabilities, which are computed in floats


class Request(NamedTuple):
    """The parameters of a run that a scheme is made from.

    threshold: the minimum similarity, by `measure`; resemblance: the minimum Jaccard similarity
    that follows from it, or None if none follows; threshold_given: True if the user gave the
    threshold; exact: True if every pair must be found; seed: 0 … 2^64-1; counts: how many records
    have each token, if known; values: the given values of the scheme's own options, by flag.

    >>> (rows,) = flags("--rows R  min-hashes in a band [7]", rows=int)
    >>> Request(Threshold(9, 10), Threshold(9, 10)).value(rows)
    7
    """

    threshold: Threshold
    resemblance: Threshold | None
    measure: str = "jaccard"
    threshold_given: bool = False
    exact: bool = False
    seed: int = 0
    counts: TokenCounts | None = None
    values: Mapping[str, Any] = {}

    def value(self, option: Flag) -> Any:
        """Return the value given for an option, or else its default; None if it has none."""
        default = None if option.default is None else option.read(option.default)
        return self.values.get(option.name, default)

    @property
    def least(self) -> Threshold:
        """The minimum resemblance of a pair; only for schemes whose measures all imply one."""
        assert self.resemblance is not None
        return self.resemblance

    def key_seed(self, scheme: str) -> int:
        """Return a seed for keys that differs if scheme, --seed, resemblance or counts differ."""
        counts = None if self.counts is None else self.counts.digest()
        asked = repr((scheme, self.seed, self.resemblance, counts))
        return int.from_bytes(blake2b(asked.encode(), digest_size=8).digest(), "little")


class Weighing(NamedTuple):
    help: str
    repeats: bool = False
    own: bool = False
    by_idf: bool = False

    def weights(self, counts: TokenCounts | None) -> TokenWeights:
        """Return token weights of this kind; idf, if used, is taken from `counts`."""
        idf = Idf(counts) if self.by_idf and counts else None
        return TokenWeights(self.repeats, self.own, idf)


ONE = "one"
KINDS = {
    ONE: Weighing("the same for every token"),
    "tf": Weighing("the number of times that a record has it", repeats=True),
    "idf": Weighing("higher for a token that few records have", by_idf=True),
    "tfidf": Weighing("the product of both", repeats=True, by_idf=True),
    "own": Weighing("read from the line, SHINGLE:WEIGHT", own=True),
}
(WEIGHTS,) = flags(
    f"""
    --weights KIND  weight of a token, with minhash, simhash and projection;
                    {"; ".join(f"{name}: {kind.help}" for name, kind in KINDS.items())} [{ONE}]
    """,
    weights=one_of(*KINDS),
)


def required_counts(request: Request, who: str) -> TokenCounts:
    """Return the token counts of a request; ValueError if there are none."""
    if request.counts is None:
        raise ValueError(
            f"{who} needs --counts: step.py count makes that file, and "
            "run_local.sh, run_hadoop.sh and job.py make it by themselves"
        )
    return request.counts


def weighing(request: Request) -> tuple[TokenWeights | None, int]:
    """Return the token weights (None if all are equal) and a seed; ValueError if idf lacks counts.

    Each kind of weights has its own seed, so that reducers detect a mix of kinds.
    """
    kind = request.value(WEIGHTS)
    if kind == ONE:
        return None, request.seed
    if usage_of(request.measure) != request.measure:
        raise ValueError(
            f"--weights {kind} is not for --measure {request.measure}; use jaccard or dice"
        )
    if KINDS[kind].by_idf:
        required_counts(request, f"--weights {kind}")
    # The seed depends neither on which program made the counts nor on the threshold.
    counts = replace(request.counts, own=False) if request.counts else None
    seed = request._replace(resemblance=None, counts=counts).key_seed(f"weights {kind}")
    return KINDS[kind].weights(request.counts), seed


class Scheme(ABC):
    """The base class of schemes; a scheme computes the keys of each record in a batch."""

    measures: ClassVar[tuple[str, ...]] = ("jaccard", "dice", "cosine")
    """The measures that can verify the scheme's pairs; the first one is the default."""
    options: ClassVar[tuple[Flag, ...]] = ()
    """The scheme's options, besides --threshold, --measure, --seed and --counts."""
    keeps_recall: ClassVar[bool] = False
    """True if the scheme finds every pair, or a pair at the threshold with probability --recall."""
    finds_every_pair: ClassVar[bool] = False
    """True if every pair shares a key, so that any exact join gives the same answer."""
    counting: ClassVar[bool] = False
    """True if a run should count tokens first."""
    joined_in_memory: ClassVar[bool] = False
    """True if a join in memory compares the records first, and makes keys for similar ones only."""
    weights: TokenWeights | None = None
    """None if all tokens have the same weight."""
    one_a_band: ClassVar[bool] = True
    """True if a set has at most one key in each band."""
    suits_shingle: ClassVar[str | None] = None
    """The --shingle of the scheme's paper; a run with another kind prints a warning."""
    finds_more: ClassVar[str] = ""
    """The advice of `neardup why` about a pair that the scheme missed."""

    @classmethod
    @abstractmethod
    def of(cls, request: Request) -> Scheme:
        """Make the scheme for a request; ValueError if it cannot fulfil the request."""

    @classmethod
    def asks_for_counts(cls, values: Mapping[str, Any]) -> bool:
        """Return whether a run with these option values should count tokens first."""
        return cls.counting or (
            WEIGHTS in cls.options and KINDS[values.get(WEIGHTS.name, ONE)].by_idf
        )

    @property
    @abstractmethod
    def promise(self) -> str:
        """A sentence for the summary: which pairs are found, and with what probability."""

    def travelling(self, sets: Ragged) -> Ragged:
        """Return the rows sent to reducers instead of the sets; their `keys` are the same."""
        return sets

    @abstractmethod
    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        """Return the keys of bands low … high-1: one row for each set, each in ascending order.

        A row depends on its set alone, not on the batch.  No set may be empty.
        """

    def probe(self) -> str:
        """Return a digest that changes if fixed sets get other keys, in 16 hexadecimal digits."""
        words = random_words(1, sum(PROBE_SIZES))
        keys = self.keys(Ragged.from_unsorted(words, np.array(PROBE_SIZES)))
        digest = blake2b(keys.values.astype("<u8").tobytes(), digest_size=8)
        digest.update(keys.offsets.astype("<u8").tobytes())
        return digest.hexdigest()

    @abstractmethod
    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        """Return, for each size of a set, its maximum number of keys (int64)."""

    @abstractmethod
    def recall(self, similarity: float) -> float:
        """Return the minimum probability that two sets of a given similarity share a key."""

    def seconds(self, request: Request, sets: Ragged) -> float:
        """Estimate the seconds of a run by keys, given all sets; infinite if nothing is known."""
        return inf

    def option_values(self, request: Request) -> dict[str, Any]:
        """Return {flag: value} for the scheme's options; the keys depend on these values."""
        return {option.name: request.value(option) for option in self.options}

    def cost(self) -> list[str]:
        """Return lines about the cost of a run: warnings, and options that would reduce it."""
        return []

    def measure(self, name: str, threshold: Threshold) -> Measure:
        """Return the measure called `name`, for weighted sets if tokens have weights."""
        if self.weights is None:
            return measure_of(name, threshold)
        return weighted_measure(name, threshold, self.weights)


def banded(words: np.ndarray, bands: np.ndarray) -> Ragged:
    """Make the keys of n sets from one word for each set and band (`bands`: int64, ascending).

    `words`: hashes, uint64 (n, bands); a key has the upper bits of its word.
    """
    keys = words >> np.uint64(64 - HASH_BITS) | bands.astype(np.uint64) << np.uint64(HASH_BITS)
    return Ragged(keys.ravel(), np.arange(len(words) + 1) * len(bands))


def shown(chance: float) -> str:
    """Format a probability with six decimals, rounded down so as not to promise too much.

    Subtle: a float may be slightly below the probability that it represents, such as 0.29, so HAIR
    is added; in fractions, since a product of floats is rounded, too.  Only 1 is shown as 1.

    >>> shown(0.9999419), shown(0.29), shown(0.99999999), shown(1)
    ('0.999941', '0.290000', '0.999999', '1.000000')
    """
    millionths = floor((Fraction(chance) + HAIR) * MILLION)
    return "{}.{:06}".format(*divmod(min(millionths, MILLION - (chance < 1)), MILLION))
