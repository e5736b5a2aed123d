"""Exact schemes miss no pair, and print no pair below the threshold."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.options.settings import Settings
from neardup.runtime.program import StageError, UsageError
from neardup.schemes import SCHEMES
from neardup.schemes.by_size import groups_of
from neardup.sets.ragged import Ragged, shared
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.definitions import tversky
from neardup.similarity.measures import Threshold
from tests.support.cases import some
from tests.support.drawn import (
    SOME_MEASURES,
    arguments_of,
    job,
    mapped,
    pairs_in,
    record_lines,
    reduced,
    settings_of,
    shingle_sets,
)

THRESHOLDS = ["0.95", "0.9", "0.8", "0.7", "2/3", "1/2", "1"]
EXACT = ["partition", "prefix", "exact"]
Pair = tuple[int, int]
every_exact = pytest.mark.parametrize("scheme", EXACT)
every_threshold = pytest.mark.parametrize("t", THRESHOLDS)


def settings_for(sets: list[frozenset[int]], *flags: str, counted: bool = True) -> Settings:
    """Return settings; if `counted`, with the counts of these sets and all sets as the sample."""
    rows = Ragged.from_rows([sorted(x) for x in sets])
    counts = replace(TokenCounts.of_sets(rows), sample=rows) if counted else None
    return Settings.of(arguments_of(*flags), counts)


def similarity(measure: str, x: frozenset[int], y: frozenset[int]) -> list[Fraction | float]:
    """Return the similarity by the definition, in each direction if there are two."""
    common = len(x & y)
    return {
        "jaccard": [Fraction(common, len(x | y))],
        "dice": [Fraction(2 * common, len(x) + len(y))],
        "cosine": [common / (len(x) * len(y)) ** 0.5],
        "overlap": [Fraction(common, min(len(x), len(y)))],
        "containment": [Fraction(common, len(x)), Fraction(common, len(y))],
        "tversky:1,0.2": [tversky(x, y, 1, Fraction(1, 5)), tversky(y, x, 1, Fraction(1, 5))],
        "tversky:0,2": [tversky(x, y, 0, Fraction(2)), tversky(y, x, 0, Fraction(2))],
        "tversky:2,2": [tversky(x, y, Fraction(2), 2)],
    }[measure]


def meet(settings: Settings, sets: list[frozenset[int]], pairs: Iterable[Pair]) -> list[bool]:
    """Return whether the two sets of each pair share a key."""
    keys = settings.scheme.keys(Ragged.from_rows([sorted(x) for x in sets]))
    return [bool(size) for size in shared(keys, *np.array([*pairs]).T).sizes]


@every_exact
@every_threshold
@pytest.mark.parametrize("counted", [False, True])
@given(sets=st.lists(shingle_sets.filter(bool), min_size=2, max_size=8))
def test_every_pair_meets(scheme: str, t: str, counted: bool, sets: list[frozenset[int]]) -> None:
    settings = settings_for(sets, f"--scheme={scheme}", f"--threshold={t}", counted=counted)
    pairs = [*combinations(range(len(sets)), 2)]
    for (i, j), met in zip(pairs, meet(settings, sets, pairs)):
        assert met or similarity("jaccard", sets[i], sets[j])[0] < Fraction(t)


@every_exact
@every_threshold
@some("size", [*range(1, 13), 30, 99, 400], *range(1, 13), 30)
def test_pairs_exactly_at_the_threshold_meet(scheme: str, t: str, size: int) -> None:
    """Two sets, the smaller of `size` elements, meet if their similarity is t or just above t."""
    rng, sets = random.Random(size), []
    for larger in range(size, int(size / Fraction(t)) + 1):
        common = -(-(size + larger) * Fraction(t) // (1 + Fraction(t)))
        if common <= size:
            union = rng.sample(range(10**6), size + larger - int(common))
            sets += [frozenset(union[:size]), frozenset(union[size - int(common) :])]
    settings = settings_for(sets, f"--scheme={scheme}", f"--threshold={t}")
    assert all(meet(settings, sets, ((i, i + 1) for i in range(0, len(sets), 2))))


@pytest.mark.parametrize("scheme", ["partition", "prefix"])
@pytest.mark.parametrize("size", [5, 40, 300])
def test_dissimilar_records_seldom_meet(scheme: str, size: int) -> None:
    rng = random.Random(size)
    sets = [frozenset(rng.sample(range(10**6), size)) for _ in range(60)]
    met = meet(settings_for(sets, f"--scheme={scheme}"), sets, combinations(range(60), 2))
    assert sum(met) <= 5


@pytest.mark.parametrize(
    ("scheme", "measure"),
    [(scheme, measure) for scheme in EXACT for measure in SCHEMES[scheme].measures],
)
@given(sets=st.lists(shingle_sets.filter(bool), min_size=2, max_size=8))
def test_every_measure_that_is_promised(
    scheme: str, measure: str, sets: list[frozenset[int]]
) -> None:
    flags = f"--scheme={scheme}", f"--measure={measure}", "--threshold=0.75"
    pairs = [*combinations(range(len(sets)), 2)]
    for (i, j), met in zip(pairs, meet(settings_for(sets, *flags), sets, pairs)):
        assert met or max(similarity(measure, sets[i], sets[j])) < 0.75


@pytest.mark.parametrize("measure", SOME_MEASURES)
@pytest.mark.parametrize("t", ["1", "0.75", "1/3"])
@given(sets=st.lists(shingle_sets.filter(bool), min_size=2, max_size=7))
def test_what_is_printed_is_what_the_measure_says(
    measure: str, t: str, sets: list[frozenset[int]]
) -> None:
    records = {b"%d" % i: x for i, x in enumerate(sets)}
    lines = job(records, "--scheme=prefix", f"--measure={measure}", f"--threshold={t}")
    expected = {}
    for (a, x), (b, y) in combinations(records.items(), 2):
        for pair, value in zip([(a, b), (b, a)], similarity(measure, x, y)):
            if value >= Fraction(t) - (measure == "cosine") * Fraction(1, 10**12):
                expected[pair] = value
    assert sorted(pairs_in(lines)) == sorted(expected)
    for line in lines:
        a, b, text = line.split()
        assert abs(Fraction(text.decode()) - Fraction(expected[a, b])) <= Fraction(1, 2 * 10**6)


@pytest.mark.first_case
@every_threshold
def test_groups_are_wide_enough_for_their_pairs(t: str) -> None:
    """Two sizes of a possible pair share a group that allows for all elements that may differ."""
    threshold = Threshold.parse(t)
    groups = groups_of(threshold)
    for size in range(1, 400):
        own = int(groups.own(np.array([size]))[0])
        for partner in range(size, int(threshold.largest_partner(np.array([size]))[0]) + 1):
            assert own in groups.memberships(np.array([partner]))[1]
            common = -(-(size + partner) * threshold.num // (threshold.num + threshold.den))
            assert size + partner - 2 * common <= groups.differ[own] or common > size


def test_small_sets_have_one_key_and_large_ones_a_bounded_number() -> None:
    settings = settings_for([frozenset([1])], "--scheme=partition")
    sizes = np.array([1, 8, 9, 35, 10_000, 1_000_000])
    assert settings.scheme.key_counts(sizes).tolist()[:3] == [1, 1, 2]
    assert settings.scheme.key_counts(sizes).tolist()[-1] <= 2
    assert settings.scheme.key_counts(sizes).max() < 3000


def test_a_token_in_one_record_only_is_no_key() -> None:
    sets = [frozenset(range(100)), frozenset(range(98)) | {200, 201}]
    keys = [
        settings_for(sets, "--scheme=prefix", counted=counted).scheme.keys(
            Ragged.from_rows([sorted(x) for x in sets])
        )
        for counted in (False, True)
    ]
    assert keys[0].sizes.tolist() == [11, 11]
    assert keys[1].sizes.tolist() == [9, 9]


def test_exact_says_what_it_costs_and_takes_the_cheapest() -> None:
    """--exact prints its cost, and chooses the cheapest way for each group of sizes."""
    rng = random.Random(1)
    sets = [frozenset(rng.sample(range(60), 30)) for _ in range(300)]
    sets += [frozenset(rng.sample(range(5200), 5000)) for _ in range(3)]
    scheme = settings_for(sets, "--exact").scheme
    lines = scheme.cost()
    assert any(" by parts:" in line for line in lines)
    assert lines[-1].startswith("sizes 4,")
    assert " by all: about 6 keys, 3 candidate pairs" in lines[-1]
    assert scheme.key_counts(np.array([5000]))[0] == 2  # in two groups


@pytest.mark.parametrize("name", ["partition", "exact", "auto", "minhash"])
@pytest.mark.parametrize("measure", ["overlap", "containment"])
def test_what_cannot_be_promised_is_refused(name: str, measure: str) -> None:
    with pytest.raises(Exception, match="cannot promise a recall for --measure") as error:
        settings_for([frozenset([1])], f"--scheme={name}", f"--measure={measure}")
    assert "--scheme prefix" in str(error.value)


def test_auto_keeps_the_promise_where_it_is_not_exact() -> None:
    scheme = settings_for([frozenset([1])], "--scheme=auto", "--recall=0.99").scheme
    assert 0.99 <= scheme.recall(0.9) < 1
    assert "exact if a set of a pair has at most" in scheme.promise


def test_counts_of_another_input_are_noticed() -> None:
    settings = settings_for([frozenset([1, 2])], "--scheme=prefix")
    with pytest.raises(StageError, match=r"--counts: .* in which no record has 3 shingles"):
        settings.scheme.keys(Ragged.from_rows([[1, 2], [1, 2, 3]]))


@every_exact
@pytest.mark.parametrize("other", [[{1, 2}, {1, 2}], [{7}], [{1, 2, 3}, {3}, {3, 1}]])
@given(sets=st.lists(shingle_sets.filter(bool), min_size=2, max_size=8))
def test_counts_of_other_records_cost_no_pair(
    scheme: str, other: list[set[int]], sets: list[frozenset[int]]
) -> None:
    rows = Ragged.from_rows([sorted(x) for x in other])
    counts = replace(TokenCounts.of_sets(rows), own=False)
    settings = Settings.of(arguments_of(f"--scheme={scheme}", "--threshold=0.6"), counts)
    pairs = [*combinations(range(len(sets)), 2)]
    for (i, j), met in zip(pairs, meet(settings, sets, pairs)):
        assert met or similarity("jaccard", sets[i], sets[j])[0] < Fraction("0.6")


@pytest.mark.parametrize("scheme", [*EXACT, "spotsigs"])
@pytest.mark.parametrize("flags", [["--threshold=0.8"], ["--measure=dice"], ["--seed=1"]])
def test_a_reducer_with_other_options_notices(scheme: str, flags: list[str]) -> None:
    data = record_lines({b"%d" % i: range(i, i + 30) for i in range(5)})
    lines = mapped(data, settings_of(f"--scheme={scheme}"))
    with pytest.raises(StageError, match="these keys were not made with the options given here"):
        reduced(lines, settings_of(f"--scheme={scheme}", *flags))


@pytest.mark.parametrize("scheme", ["minhash", *EXACT, "spotsigs"])
@pytest.mark.parametrize("flags", ["--threshold=0.00001 --measure=cosine", "--threshold=1e-9"])
def test_thresholds_that_are_too_small_are_refused(scheme: str, flags: str) -> None:
    with pytest.raises(UsageError, match="--threshold"):
        settings_of(f"--scheme={scheme}", *flags.split())


@every_exact
@pytest.mark.parametrize("t", ["0.000000001", "0.001"])
def test_small_thresholds_are_no_harm(scheme: str, t: str) -> None:
    sets = [frozenset(range(i, i + 3)) for i in range(0, 9, 2)]
    settings = settings_for(sets, f"--scheme={scheme}", f"--threshold={t}")
    assert all(meet(settings, sets, ((i, i + 1) for i in range(4))))
