"""Super-shingles have the recall of their formula.

The intervals are exact, as in test_schemes.py: α = 1e-9, and the seeds are fixed.
"""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest

from neardup.runtime.program import UsageError
from neardup.schemes import minhash as supershingle_module
from neardup.schemes.banding import at_least
from neardup.schemes.minhash import Supers, SuperShingle
from neardup.sets.hashing import band_words, combine
from neardup.sets.ragged import Ragged, shared
from tests.schemes.test_schemes import interval, pairs_of_similarity
from tests.support.cases import crossed
from tests.support.drawn import settings_of

SHAPES = ["84:6:2", "60:10:2", "30:10:3", "24:4:1", "15:5:5", "12:12:11"]


def scheme_of(supers: str, seed: int = 0) -> SuperShingle:
    return SuperShingle(seed, supers=Supers.parse(supers))


def binomial(needed: int, parts: int, chance: Fraction) -> Fraction:
    ways = range(needed, parts + 1)
    return sum((comb(parts, k) * chance**k * (1 - chance) ** (parts - k) for k in ways), Fraction())


@crossed(supers=SHAPES, common=[60, 80, 90])
def test_so_many_of_so_many_agree_as_often_as_the_binomial_says(supers, common):
    scheme = scheme_of(supers, seed=common)
    low, high = interval(scheme, pairs_of_similarity(common, 100, "consecutive"))
    minima, number, agree = map(int, supers.split(":"))
    chance = Fraction(common, 100) ** (minima // number)
    assert low <= float(binomial(agree, number, chance)) <= high
    assert scheme.recall(common / 100) == pytest.approx(float(binomial(agree, number, chance)))


@pytest.mark.parametrize("other", ["78:6:2", "90:6:2", "70:5:2", "98:7:2", "84:6:1", "84:6:3"])
def test_one_more_or_less_of_any_would_show(other):
    low, high = interval(SuperShingle(), pairs_of_similarity(90, 100, "consecutive"))
    assert low <= SuperShingle().recall(0.9) <= high
    assert not low <= scheme_of(other).recall(0.9) <= high


def test_a_mega_shingle_needs_both_of_its_super_shingles():
    """A mega-shingle needs both super-shingles, so a pair shares 0, 1, 3, 6, 10 or 15 keys."""
    sets, left, right = pairs_of_similarity(90, 100, "random")
    counts = np.unique(shared(SuperShingle().keys(sets), left, right).sizes)
    assert {0, 1, 3} <= set(counts.tolist()) <= {0, 1, 3, 6, 10, 15}
    assert SuperShingle().recall(0) == 0
    assert SuperShingle().recall(1) == 1


@pytest.mark.parametrize("at_once", [1, 40, 1 << 21])
def test_a_key_is_a_hash_of_its_super_shingles(at_once, monkeypatch):
    """Each key is the hash of chosen super-shingles; keys are ordered by the last one chosen."""
    monkeypatch.setattr(supershingle_module, "CHOSEN_AT_ONCE", at_once)
    sets = Ragged.from_rows([[1, 2, 3], [5, 6]])
    words = band_words(sets, np.arange(5), 4, 3)
    keys = scheme_of("20:5:3", seed=3).keys(sets)
    choices = sorted(combinations(range(5), 3), key=max)
    assert [max(choice) for choice in choices] == [2, 3, 3, 3, 4, 4, 4, 4, 4, 4]
    for i in range(2):
        hashed = {int(combine(words[i, list(c), None], seed=0)[0]) >> 24 for c in choices}
        assert {key & (1 << 40) - 1 for key in keys.row(i).tolist()} == hashed
        assert [key >> 40 for key in keys.row(i).tolist()] == [*range(10)]


def test_the_keys_of_the_default_stay():
    keys = SuperShingle().keys(Ragged.from_rows([range(100)])).row(0).tolist()
    assert [f"{key:013x}" for key in keys[:2] + keys[-1:]] == [
        "00072000cef5a",
        "00196ebe393ce",
        "00e0b399bdfea",
    ]
    assert settings_of("--scheme=supershingle").scheme == SuperShingle()


@pytest.mark.parametrize(("needed", "parts"), [(2, 6), (1, 100), (99, 100), (3, 10), (9, 9)])
def test_the_sum_is_stable_at_both_ends(needed, parts):
    chances = [10.0**-k for k in range(1, 13)] + [0.25, 0.5, 0.75]
    for p in chances + [1 - chance for chance in chances]:
        exact = binomial(needed, parts, Fraction(p))
        found = at_least(needed, parts, p)
        assert 0 <= found < 1
        assert found == pytest.approx(float(exact), rel=1e-11, abs=1e-300)
        assert abs(Fraction(found) - exact) < Fraction(1, 10**14)
    assert at_least(needed, parts, 1) == 1
    assert at_least(needed, parts, 0) == 0


def test_the_promise_says_what_was_asked():
    flags = ["--scheme=supershingle", "--supershingles=60:10:2", "--threshold=0.95"]
    promise = settings_of(*flags).scheme.promise
    assert promise.startswith("2 of 10 super-shingles of 6 minima find a pair at 0.95 with ")
    found = float(binomial(2, 10, Fraction(95, 100) ** 6))
    assert found - 1e-6 < float(promise.split()[-1]) <= found
    promise = settings_of(*flags[:1], "--supershingles=20:20:1").scheme.promise
    assert promise.endswith(" 0.999999")  # 1 - 10^-20


@pytest.mark.parametrize(
    ("supers", "said"),
    [
        ("84", "not M:S:B, such as 84:6:2"),
        ("84:6:two", "not M:S:B"),
        ("84:6:²", "not M:S:B"),
        ("84:6:-2", "not M:S:B"),
        ("0:1:1", "B <= S <= M <= 1024"),
        ("1025:1:1", "B <= S <= M <= 1024"),
        ("84:6:7", "1 <= B <= S <= M"),
        ("84:6:0", "1 <= B <= S <= M"),
        ("6:84:2", "1 <= B <= S <= M"),
        ("84:84:3", "more than 4,096 keys"),
    ],
)
def test_refusals(supers, said):
    with pytest.raises(UsageError, match=f"--supershingles: .*{said}"):
        settings_of("--scheme=supershingle", f"--supershingles={supers}")


def test_a_choice_at_which_dissimilar_records_meet_is_said():
    flags = ["--scheme=supershingle", "--supershingles=64:64:1"]
    (line,) = settings_of(*flags).scheme.cost()
    assert line.startswith(
        "--supershingles 64:64:1: dissimilar records collide with probability 0.998"
    )
    assert "--scheme minhash" in line
