"""What a scheme is: its options, its request, what tokens weigh (--weights), and the base class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from hashlib import blake2b
from math import floor
from typing import Any, Callable, ClassVar, NamedTuple

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS, MAX_BANDS
from neardup.sets.hashing import random_words
from neardup.sets.ragged import Ragged
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import Measure, Threshold
from neardup.similarity.weighted_measures import Idf, TokenWeights, weighted_measure

MILLION = 10**6
PROBES = (1, 2, 3, 5, 8, 13, 34, 89, 233, 987)  # sizes of sets
HAIR = Fraction(1, 10**15)  # chances are computed in floats, and right to so much


class Option(NamedTuple):
    """An option of schemes; those that heed it have it among their `options`.

    flag: "--lexicons"; metavar, help: as --help shows them; read: from text to value, with a
    ValueError that names what is wrong; default: as text; finds_more: how it would find a pair that
    was missed, for `why`.
    """

    flag: str
    metavar: str
    help: str
    read: Callable[[str], Any]
    default: str | None = None
    finds_more: str = ""


class Request(NamedTuple):
    """What a scheme is asked for.

    threshold: the least similarity, by the measure of that name; resemblance: the least Jaccard
    similarity that follows from it, None where none does; threshold_given: whether it is the
    user's; seed: 0 … 2^64-1; counts: how many records have each token, if that is known; values:
    what was given for the scheme's own options, by flag.

    >>> rows = Option("--rows", "R", "min-hashes in a band", int, default="7")
    >>> Request(Threshold(9, 10), Threshold(9, 10)).value(rows)
    7
    """

    threshold: Threshold
    resemblance: Threshold | None
    measure: str = "jaccard"
    threshold_given: bool = False
    seed: int = 0
    counts: TokenCounts | None = None
    values: Mapping[str, Any] = {}

    def value(self, option: Option) -> Any:
        """The value that was given, or the default; None where there is neither."""
        if option.flag in self.values:
            return self.values[option.flag]
        return None if option.default is None else option.read(option.default)

    @property
    def least(self) -> Threshold:
        """The least resemblance, for schemes whose measures all have one."""
        assert self.resemblance is not None
        return self.resemblance

    def key_options(self, options: Iterable[Option]) -> dict[str, str]:
        """The request by flag, in words that are equal for equal requests."""
        own = {option.flag: self.value(option) for option in options}
        return {
            "--measure": self.measure,
            "--threshold": self.threshold.exactly(),
            **{flag: "" if value is None else str(value) for flag, value in own.items()},
            "--seed": str(self.seed),
            "--counts": self.counts.description() if self.counts else "",
        }

    def key_seed(self, scheme: str) -> int:
        """A seed of its own for each scheme, threshold and counts, so that the reducer notices."""
        counts = None if self.counts is None else self.counts.digest()
        asked = repr((scheme, self.seed, self.resemblance, counts))
        return int.from_bytes(blake2b(asked.encode(), digest_size=8).digest(), "little")


def whole(low: int, high: int) -> Callable[[str], int]:
    """Read an integer from `low` to `high`.

    >>> whole(1, 16)("12")
    12
    """

    def read(text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) <= 20 and low <= int(text) <= high:
            return int(text)
        raise ValueError(f"{text!r} is not an integer from {low} to {high}")

    return read


def one_of(*kinds: str) -> Callable[[str], str]:
    """Read one of these words."""

    def read(text: str) -> str:
        if text in kinds:
            return text
        raise ValueError(f"{text!r} is not {' or '.join(kinds)}")

    return read


def probability(text: str) -> float:
    """Read a number between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not 0 < value < 1:
        raise ValueError(f"{text} is outside 0 < P < 1; only an exact scheme finds every pair")
    return value


class Weighing(NamedTuple):
    help: str
    repeats: bool = False
    own: bool = False
    by_idf: bool = False

    def weights(self, counts: TokenCounts | None) -> TokenWeights:
        """The weights by these counts, if the kind takes any."""
        idf = Idf(counts) if self.by_idf and counts else None
        return TokenWeights(self.repeats, self.own, idf)


ONE = "one"
KINDS = {
    ONE: Weighing("the same for every token"),
    "tf": Weighing("how often a record has it", repeats=True),
    "idf": Weighing("more where few records have it", by_idf=True),
    "tfidf": Weighing("the product of both", repeats=True, by_idf=True),
    "own": Weighing("as the line says, SHINGLE:WEIGHT", own=True),
}
WEIGHTS = Option(
    "--weights",
    "KIND",
    "what a token weighs, with minhash, simhash and projection; "
    + "; ".join(f"{name}: {kind.help}" for name, kind in KINDS.items())
    + f" (default: {ONE})",
    one_of(*KINDS),
    default=ONE,
)


def asked_weights(request: Request) -> TokenWeights | None:
    """The weights, or None where all tokens weigh the same; ValueError if idf has no counts."""
    name = request.value(WEIGHTS)
    kind = KINDS[name]
    if name == ONE:
        return None
    if kind.by_idf and request.counts is None:
        raise ValueError(
            f"--weights {name} needs --counts: step.py count makes that file, and "
            "run_local.sh, run_hadoop.sh and job.py make it by themselves"
        )
    return kind.weights(request.counts)


def weighted_seed(request: Request) -> int:
    """A seed of its own for each kind of weights, so that the reducer notices."""
    kind = request.value(WEIGHTS)
    if kind == ONE:
        return request.seed
    # Weights are the same whoever made the counts, and whatever is similar enough.
    counts = replace(request.counts, own=False) if request.counts else None
    return request._replace(resemblance=None, counts=counts).key_seed(f"weights {kind}")


class Scheme(ABC):
    """Gives each record of a batch its keys."""

    measures: ClassVar[tuple[str, ...]] = ("jaccard", "dice", "cosine")
    """The measures that may verify its pairs; the first one is the default."""
    options: ClassVar[tuple[Option, ...]] = ()
    """The options that it heeds, beside --threshold, --measure, --seed and --counts."""
    keeps_recall: ClassVar[bool] = False
    """Whether all pairs are found, or those at the threshold as surely as --recall asks."""
    counting: ClassVar[bool] = False
    """Whether a run should count tokens first."""
    weights: TokenWeights | None = None
    """None where all tokens weigh the same."""
    one_a_band: ClassVar[bool] = True
    """Whether a set has at most one key of each band."""
    suits_shingle: ClassVar[str | None] = None
    """The --shingle of its paper; a run by another says so before it starts."""

    @classmethod
    @abstractmethod
    def of(cls, request: Request) -> Scheme:
        """The scheme for a request; ValueError for what it cannot promise."""

    @classmethod
    def asks_for_counts(cls, values: Mapping[str, Any]) -> bool:
        """Whether a run should count tokens first, with these values of options, by flag."""
        return cls.counting or (
            WEIGHTS in cls.options and KINDS[values.get(WEIGHTS.flag, ONE)].by_idf
        )

    @property
    @abstractmethod
    def promise(self) -> str:
        """The pairs it finds, and how surely, in words for the summary."""

    def travelling(self, sets: Ragged) -> Ragged:
        """The part of these sets that is sent to the reducer, which asks `keys` of it again."""
        return sets

    @abstractmethod
    def keys(self, sets: Ragged, low: int = 0, high: int = MAX_BANDS) -> Ragged:
        """Row i: the keys of set i in ascending order, whatever else is in the batch.

        Only those of the bands low … high-1.  No set may be empty.
        """

    def probe(self) -> str:
        """A digest of the keys of some sets, in 16 hexadecimal digits, for each version."""
        keys = self.keys(Ragged.from_unsorted(random_words(1, sum(PROBES)), np.array(PROBES)))
        digest = blake2b(keys.values.astype("<u8").tobytes(), digest_size=8)
        digest.update(keys.offsets.astype("<u8").tobytes())
        return digest.hexdigest()

    @abstractmethod
    def key_counts(self, sizes: np.ndarray) -> np.ndarray:
        """How many keys sets of these sizes have, at most (int64 arrays)."""

    @abstractmethod
    def recall(self, similarity: float) -> float:
        """The least probability that sets of this similarity share a key; by its own measure."""

    def cost(self) -> list[str]:
        """What a run will cost, or another setting would save: lines in words, if it is known."""
        return []

    def measure(self, name: str, threshold: Threshold) -> Measure:
        """The one of `measures` with this name."""
        return weighted_measure(name, threshold, self.weights)


def banded(words: np.ndarray, bands: np.ndarray) -> Ragged:
    """Keys of n sets that have one of each of these bands (int64, ascending).

    `words` (uint64, of shape (n, bands)) are random-looking; their upper bits are the hash.
    """
    keys = words >> np.uint64(64 - HASH_BITS) | bands.astype(np.uint64) << np.uint64(HASH_BITS)
    return Ragged(keys.ravel(), np.arange(len(words) + 1) * len(bands))


def shown(chance: float) -> str:
    """Six decimals, rounded down, so that no promise is more than what is kept; only 1 is 1.

    Subtle: a float may lie a hair below the chance that it stands for, as 0.29 does, so the hair is
    added; as fractions, since a product of floats is rounded, too.

    >>> shown(0.9999419), shown(0.29), shown(0.99999999), shown(1)
    ('0.999941', '0.290000', '0.999999', '1.000000')
    """
    millionths = floor((Fraction(chance) + HAIR) * MILLION)
    return "{}.{:06}".format(*divmod(min(millionths, MILLION - (chance < 1)), MILLION))
