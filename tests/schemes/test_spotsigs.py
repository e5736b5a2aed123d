"""SpotSigs misses no pair at the threshold; its partitions and prefixes are as small as can be."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.schemes import by_size, chosen_tokens
from neardup.schemes.by_size import prefix_sizes, rarest
from neardup.schemes.chosen_tokens import SpotSigs, first_sizes
from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged, shared
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import Threshold
from tests.support.drawn import COUNTS, job, nested_loop, pairs_in, shingle_sets

THRESHOLDS = [Threshold.parse(t) for t in ("1/2", "0.7", "0.8", "0.9", "0.95", "1")]
# The worst order for pairs_of_sizes: what one set has alone comes before what both have.
WORST = TokenCounts.of_sets(Ragged.from_rows([list(range(500))] * 2))
every_threshold = pytest.mark.parametrize("threshold", THRESHOLDS, ids=str)


def pairs_of_sizes(threshold, sizes, seed):
    """Return pairs of sets (rows 2i and 2i+1) of all sizes, with the fewest common tokens for t."""
    rng = np.random.default_rng(seed)
    t = Fraction(threshold.num, threshold.den)
    rows = []
    for x in sizes:
        for y in range(x, floor(x / t) + 1):
            common = next(c for c in range(1, x + 1) if Fraction(c, x + y - c) >= t)
            both = rng.choice(500, common, False).tolist()
            one = (500 + rng.choice(500, x + y - 2 * common, False)).tolist()
            rows += [both + one[: x - common], both + one[x - common :]]
    left = np.arange(0, len(rows), 2)
    return Ragged.from_rows(rows), left, left + 1


@pytest.mark.slow
@every_threshold
@pytest.mark.parametrize("counts", [None, WORST], ids=["hashes", "counts"])
def test_no_pair_exactly_at_the_threshold_is_missed(threshold, counts):
    for sizes, seeds in [(range(1, 13), 40), (range(13, 100), 1)]:
        for seed in range(seeds):
            sets, left, right = pairs_of_sizes(threshold, sizes, seed)
            scheme = SpotSigs(threshold, counts, seed)
            assert shared(scheme.keys(sets), left, right).sizes.all()


@pytest.mark.slow
@pytest.mark.parametrize("t", ["1/2", "0.9"])
def test_a_prefix_one_token_shorter_would_miss_some(t, monkeypatch):
    sets, left, right = pairs_of_sizes(Threshold.parse(t), range(13, 100), 0)
    monkeypatch.setattr(
        chosen_tokens, "prefix_sizes", lambda *args: np.maximum(prefix_sizes(*args) - 1, 1)
    )
    scheme = SpotSigs(Threshold.parse(t), counts=WORST)
    assert not shared(scheme.keys(sets), left, right).sizes.all()


def test_the_partition_before_is_needed(monkeypatch):
    sets, left, right = pairs_of_sizes(Threshold.parse("0.9"), range(13, 100), 0)
    own = SpotSigs()._partitions(sets.sizes)[0]
    monkeypatch.setattr(SpotSigs, "_partitions", lambda *_: (own, own))
    assert not shared(SpotSigs().keys(sets), left, right).sizes.all()


@every_threshold
@given(st.lists(shingle_sets.filter(bool), min_size=2, max_size=8))
def test_the_job_finds_what_the_nested_loop_finds(threshold, sets):
    records = {b"%d" % i: x for i, x in enumerate(sets)}
    flags = "--scheme=spotsigs", f"--threshold={threshold.num}/{threshold.den}"
    expected = nested_loop(records, threshold)
    assert pairs_in(job(records, *flags)) == expected
    assert pairs_in(job(records, *flags, counts=COUNTS)) == expected


@every_threshold
def test_partitions_are_the_smallest_that_keep_pairs_among_neighbours(threshold):
    t = Fraction(threshold.num, threshold.den)
    sizes = np.arange(1, 3000)
    starts = np.unique(first_sizes(threshold, sizes)).tolist()
    assert starts[:2] == [1, 2]
    for first, second, third in zip(starts, starts[1:], starts[2:]):
        assert third > floor((second - 1) / t)  # no partner lies beyond the next partition
        if third > second + 1:  # with one size less, one would
            assert third - 1 == floor((second - 1) / t)
        assert first < second


def test_partitions_do_not_depend_on_the_batch():
    sizes = np.arange(1, 2000)
    for threshold in THRESHOLDS:
        together = first_sizes(threshold, sizes).tolist()
        assert together == [int(first_sizes(threshold, sizes[i : i + 1])[0]) for i in range(1999)]


@every_threshold
def test_key_counts_are_those_of_two_prefixes(threshold):
    sizes = list(range(1, 60)) + [1000]
    sets = Ragged.from_rows([list(range(n)) for n in sizes])
    counts = SpotSigs(threshold).key_counts(sets.sizes).tolist()
    assert SpotSigs(threshold).keys(sets).sizes.tolist() == counts
    t = Fraction(threshold.num, threshold.den)
    prefixes = [n - ceil(t * n) + 1 for n in sizes]
    assert all(count in (prefix, 2 * prefix) for count, prefix in zip(counts, prefixes))


@given(st.lists(shingle_sets.filter(bool), min_size=1, max_size=6), st.data())
def test_the_rarest_come_first_and_equals_by_one_order(sets, data):
    take = [data.draw(st.integers(0, len(x))) for x in sets]
    rows = Ragged.from_rows([list(x) for x in sets])

    def rank(token):
        words = np.array([token], dtype=np.uint64)
        return int(COUNTS.of(words)[0]), int(mix(words)[0]) >> 32, token

    found = rarest(rows, COUNTS, np.array(take))
    expected = [sorted(sorted(x, key=rank)[:n]) for x, n in zip(sets, take)]
    assert [found.row(i).tolist() for i in range(len(sets))] == expected


def test_the_rarest_do_not_depend_on_how_many_are_sorted_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    sets = Ragged.from_unsorted(rng.integers(0, 500, 5000).astype(np.uint64), np.full(100, 50))
    whole = rarest(sets, TokenCounts.of_sets(sets), sets.sizes // 3)
    monkeypatch.setattr(by_size, "SORTED_TOKENS", 120)
    pieces = rarest(sets, TokenCounts.of_sets(sets), sets.sizes // 3)
    assert pieces.values.tolist() == whole.values.tolist()
    assert whole.sizes.tolist() == (sets.sizes // 3).tolist()


def test_the_promise():
    assert [SpotSigs().recall(s) for s in (0.89, 0.9, 1)] == [0, 1, 1]
    assert "0.9" in SpotSigs().promise
