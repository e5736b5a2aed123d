"""Each scheme has sound keys, its pairs are printed once, and minhash has its S-curve's recall.

The statistical tests are exact: the number of pairs that meet is binomial, and its Clopper-Pearson
interval at α = 1e-9 holds the promised probability but in one of 10^9 draws.  Seeds are fixed.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.lines.keyed_lines import HASH_BITS, KEY_BITS
from neardup.schemes import banding
from neardup.schemes.minhash import MinHash
from neardup.sets.ragged import Ragged, shared
from neardup.similarity.intervals import clopper_pearson
from tests.support import drawn
from tests.support.drawn import foreign_counts, job, pairs_in, settings_of, shingle_sets

ALPHA = 1e-9
PAIRS = 4000
SETS = drawn.every_scheme()
every_scheme = pytest.mark.parametrize("scheme", SETS.values(), ids=SETS)
some_sets = st.lists(shingle_sets.filter(bool), min_size=1, max_size=8)


@every_scheme
@given(some_sets)
def test_keys_are_ascending_and_fit_and_may_be_one_a_band(scheme, sets):
    keys = scheme.keys(Ragged.from_rows([list(x) for x in sets]))
    for i in range(len(sets)):
        row = keys.row(i).tolist()
        assert row == sorted(set(row))
        assert len(row) <= scheme.key_counts(np.array([len(sets[i])]))[0]
        assert all(key < 1 << KEY_BITS for key in row)
        assert not scheme.one_a_band or len({key >> HASH_BITS for key in row}) == len(row)


@pytest.mark.slow
@every_scheme
@given(some_sets, st.randoms())
def test_a_sets_keys_do_not_depend_on_its_company(scheme, sets, random):
    together = scheme.keys(Ragged.from_rows([list(x) for x in sets]))
    for i, x in enumerate(sets):
        shuffled = random.sample(sorted(x), len(x))
        alone = scheme.keys(Ragged.from_rows([shuffled * 2]))
        assert alone.row(0).tolist() == together.row(i).tolist()


@every_scheme
@given(shingle_sets.filter(bool), st.integers(0, 8), st.integers(0, 8))
def test_some_bands_have_the_keys_that_they_have_among_all(scheme, x, low, more):
    sets = Ragged.from_rows([list(x)])
    some = scheme.keys(sets, low, low + more).row(0).tolist()
    every = scheme.keys(sets).row(0).tolist()
    assert some == [key for key in every if low <= key >> HASH_BITS < low + more]


@every_scheme
def test_equal_sets_share_all_keys_and_disjoint_ones_none(scheme):
    sets = Ragged.from_rows([[1, 2, 3], [3, 1, 2], [4, 5, 6]])
    rows = [scheme.keys(sets).row(i).tolist() for i in range(3)]
    assert rows[0] == rows[1] != []
    assert not set(rows[0]) & set(rows[2])


def test_another_seed_gives_other_keys():
    sets = Ragged.from_rows([[1, 2, 3]])
    keys = [tuple(MinHash(5, 2, seed).keys(sets).row(0).tolist()) for seed in range(50)]
    assert len(set(keys)) == 50


def pairs_of_similarity(common: int, union: int, ids: str) -> tuple[Ragged, np.ndarray, np.ndarray]:
    """Return PAIRS pairs of sets (2i, 2i+1) of this resemblance, with this kind of tokens."""
    rng = np.random.default_rng(common * 1000 + union)
    rows = []
    for pair in range(PAIRS):
        if ids == "consecutive":
            tokens = np.arange(pair * union, (pair + 1) * union)
        elif ids == "a small universe":
            tokens = rng.permutation(max(4 * union, 400))[:union]
        else:
            tokens = rng.integers(0, 1 << 63, union)
        one_side = (union - common) // 2
        rows += [tokens[: common + one_side].tolist()]
        rows += [np.concatenate((tokens[:common], tokens[common + one_side :])).tolist()]
    left = np.arange(0, 2 * PAIRS, 2)
    return Ragged.from_rows(rows), left, left + 1


def interval(scheme, pairs):
    """Return the confidence interval of the probability that a pair of this kind shares a key."""
    sets, left, right = pairs
    met = int(np.count_nonzero(shared(scheme.keys(sets), left, right).sizes))
    return clopper_pearson(met, PAIRS, ALPHA)


@pytest.mark.parametrize("ids", ["consecutive", "a small universe", "random"])
@pytest.mark.parametrize(
    ("common", "union"),
    [(50, 100), (70, 100), (80, 100), (90, 100), (96, 100), (2, 4), (3, 5), (9, 10)]
    + [(10, 20), (18, 20), (36, 40), (48, 50)],
)
def test_pairs_meet_as_often_as_the_s_curve_says(common, union, ids):
    pairs = pairs_of_similarity(common, union, ids)
    for bands, rows in [(1, 1), (15, 7), (6, 3), (1, 20)]:
        scheme = MinHash(bands, rows, seed=common)
        low, high = interval(scheme, pairs)
        assert low <= scheme.recall(common / union) <= high


def test_the_interval_would_catch_one_row_too_many_or_too_few():
    low, high = interval(MinHash(15, 7), pairs_of_similarity(80, 100, "consecutive"))
    assert low <= banding.recall(0.8, 15, 7) <= high
    for rows in (6, 8):
        assert not low <= banding.recall(0.8, 15, rows) <= high


def test_a_large_set_has_the_keys_of_its_pieces_together(monkeypatch):
    sets = Ragged.from_rows([list(range(0, 3000, 7)), [5], list(range(900))])
    whole = MinHash(4, 3, 0).keys(sets).values.tolist()
    monkeypatch.setattr("neardup.sets.hashing.CACHE_TOKENS", 50)
    assert MinHash(4, 3, 0).keys(sets).values.tolist() == whole


@pytest.mark.first_case
@pytest.mark.parametrize("flags", [flags.split() for flags in SETS], ids=" ".join)
@settings(max_examples=15)
@given(st.lists(shingle_sets.filter(bool), max_size=5), st.lists(st.integers(0, 40), max_size=5))
def test_the_job_prints_once_each_pair_that_shares_a_key_and_reaches_the_threshold(
    flags, sets, dropped
):
    base = frozenset(range(30))
    sets = [base, *sets, *(base - {token} for token in dropped)]
    counts = foreign_counts(" ".join(flags))
    wanted = settings_of(*flags, counts=counts)
    rows = Ragged.from_rows([list(x) for x in sets])
    left, right = np.triu_indices(len(sets), 1)
    met = shared(wanted.scheme.keys(rows), left, right).sizes > 0
    found = wanted.measure.verified(rows, left[met], right[met])
    expected = [(b"%02d" % i, b"%02d" % j) for i, j in zip(found.left, found.right)]
    records = {b"%02d" % i: x for i, x in enumerate(sets)}
    assert pairs_in(job(records, *flags, counts=counts)) == expected
    copies = [i for i, token in enumerate(dropped, len(sets) - len(dropped)) if token >= 30]
    assert len(expected) >= len(copies)
