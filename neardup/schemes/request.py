"""What a user asks of a scheme: options that schemes own, and what was given for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Callable, NamedTuple

from neardup.similarity.threshold import Threshold
from neardup.token_counts.counts import TokenCounts


class Option(NamedTuple):
    """An option that schemes own; those that heed it have it among their `options`.

    flag: "--lexicons"; metavar, help: as --help shows them; read: from text to value, and its
    ValueError says what is wrong; default: what stands for it where it is not given, as text;
    finds_more: how it would find a pair that was missed, for `why`.
    """

    flag: str
    metavar: str
    help: str
    read: Callable[[str], Any]
    default: str | None = None
    finds_more: str = ""


class Request(NamedTuple):
    """threshold: the least similarity, by the measure of that name; resemblance: the least Jaccard
    similarity that follows from it, `None` where there is none; threshold_given: whether it is the
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
        """What was given, or the default; None where there is neither."""
        if option.flag in self.values:
            return self.values[option.flag]
        return None if option.default is None else option.read(option.default)

    def told(self, options: Iterable[Option]) -> dict[str, str]:
        """What is asked, by flag, in words that are equal for equal requests."""
        own = {option.flag: self.value(option) for option in options}
        return {
            "--measure": self.measure,
            "--threshold": self.threshold.exactly(),
            **{flag: "" if value is None else str(value) for flag, value in own.items()},
            "--seed": str(self.seed),
            "--counts": self.counts.told() if self.counts else "",
        }

    def key_seed(self, scheme: str) -> int:
        """Draws other keys for another scheme, threshold or counts, so that the reducer notices."""
        counts = None if self.counts is None else self.counts.digest()
        asked = repr((scheme, self.seed, self.resemblance, counts))
        return int.from_bytes(blake2b(asked.encode(), digest_size=8).digest(), "little")


# What options read.


def whole(low: int, high: int) -> Callable[[str], int]:
    """Reads an integer from `low` to `high`.

    >>> whole(1, 16)("12")
    12
    """

    def read(text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) <= 20 and low <= int(text) <= high:
            return int(text)
        raise ValueError(f"{text!r} is not an integer from {low} to {high}")

    return read


def one_of(*kinds: str) -> Callable[[str], str]:
    """Reads one of these words."""

    def read(text: str) -> str:
        if text in kinds:
            return text
        raise ValueError(f"{text!r} is not {' or '.join(kinds)}")

    return read


def probability(text: str) -> float:
    """Reads a number between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not 0 < value < 1:
        raise ValueError(f"{text} is outside 0 < P < 1; only an exact scheme finds every pair")
    return value
