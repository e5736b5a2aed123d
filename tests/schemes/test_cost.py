"""A scheme that costs a hundred times as much as another is reported at the start."""

from dataclasses import replace

import numpy as np
import pytest

from neardup.schemes.exact import DEARER
from neardup.sets.ragged import Ragged
from neardup.sets.token_counts import TokenCounts
from tests.support.drawn import settings_of

RNG = np.random.default_rng(7)
# Sets of 40 frequent tokens of 60 each, next to which no token is rare.
SOME = TokenCounts.of_sets(
    Ragged.from_unsorted(RNG.integers(0, 60, 40 * 3000).astype(np.uint64), np.full(3000, 40))
)
FREQUENT = replace(SOME, holders=SOME.holders * 1000, frequencies=SOME.frequencies * 1000)
# Of two million tokens, of which hardly any is in two sets.
RARE = TokenCounts.of_sets(
    Ragged.from_unsorted(RNG.integers(0, 1 << 21, 40 * 3000).astype(np.uint64), np.full(3000, 40))
)


@pytest.mark.parametrize(
    ("flags", "advice"),
    [
        ("--scheme=partition --threshold=0.3", "--exact"),
        ("--scheme=partition --threshold=0.5", "--exact"),
        ("--bands=16 --rows=1", "--recall"),
        ("--scheme=auto --bands=16 --rows=1", "--recall"),
        ("--scheme=projection --bands=128 --rows=2", "--recall"),
    ],
)
def test_without_counts(flags: str, advice: str) -> None:
    (line,) = settings_of(*flags.split()).scheme.cost()
    assert advice in line


@pytest.mark.parametrize(
    "flags",
    [
        "",
        "--scheme=partition",
        "--scheme=partition --threshold=0.8",
        "--scheme=auto",
        "--scheme=projection",
        "--scheme=supershingle",
        "--scheme=simhash",
        "--threshold=0.44",  # where nothing that is promised is cheaper
        "--bands=10 --rows=10",
        "--scheme=prefix",
        "--scheme=exact",
    ],
)
def test_nothing_to_say(flags: str) -> None:
    assert settings_of(*flags.split()).scheme.cost() == []


def test_rare_tokens_are_cheap_for_a_prefix() -> None:
    for scheme in ("prefix", "spotsigs"):
        assert settings_of(f"--scheme={scheme}", counts=RARE).scheme.cost() == []


def test_frequent_tokens_are_dear_for_a_prefix_if_parts_are_cheap() -> None:
    """With frequent tokens, the schemes prefix and spotsigs report that --exact is cheaper."""
    for scheme in ("prefix", "spotsigs"):
        lines = settings_of(f"--scheme={scheme}", "--threshold=0.95", counts=FREQUENT).scheme.cost()
        assert len(lines) == 1
        assert "--exact" in lines[0]
        times = int(lines[0].split(" about ")[1].split()[0].replace(",", ""))
        assert times >= DEARER
