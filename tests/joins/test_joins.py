"""Every join agrees with the nested loop."""

import random
import sys
from collections import defaultdict
from itertools import combinations

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.joins import JOINS, filters, nested_loop, ppjoin_plus
from neardup.joins.bitmap_joins import join_by
from neardup.joins.filters import (
    Ordered,
    indexing_prefix,
    overlap_needed,
    probing_prefix,
    ranks,
    token_of,
)
from neardup.joins.inverted_index import InvertedIndex, Joined
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Threshold, measure_of
from tests.support.cases import crossed
from tests.support.drawn import SOME_MEASURES, TOP, shingle_sets

PPJOIN_PLUS = sys.modules["neardup.joins.prefix_joins"]  # in the package, this name is the function
FAST = [name for name in JOINS if name != "nested_loop"]
THRESHOLDS = ["1/2", "2/3", "0.7", "0.8", "0.9", "0.95", "1"]
every_join = pytest.mark.parametrize("name", FAST)
every_threshold = pytest.mark.parametrize("t", THRESHOLDS)


def all_against_all(rows, measure):
    found = [np.stack(part, axis=1) for part in InvertedIndex.of(rows).overlaps(rows)]
    i, j, common = np.concatenate(found).T
    good = (i < j) & measure.may_reach(common, rows.sizes[i], rows.sizes[j])
    n = int((rows.sizes > 0).sum())
    return Joined.of(
        np.arange(len(rows)), np.stack((i, j, common), axis=1)[good], {"all": n * (n - 1) // 2}
    )


def ppjoin(rows, threshold):
    """Return how many pairs each filter leaves, in a loop over records and tokens."""
    records = Ordered.of(rows)
    first = records.first_partner(threshold)
    counts = {**records.counts(first), "prefix": 0, "positional": 0}
    every = np.split(token_of(records.keys, records.bits), records.offsets[1:-1])
    sizes = records.sizes.tolist()
    index = defaultdict(list)  # token → records and positions
    for y, tokens in enumerate(every):
        size = len(tokens)
        shared = {}  # record → common tokens so far, 0 if dropped
        for j, token in enumerate(tokens[: probing_prefix(threshold, size)], 1):
            for x, i in index[token]:
                if x >= first[y] and shared.get(x) != 0:
                    most = filters.most_common(sizes[x], size, i, j, shared.get(x, 0) + 1)
                    needed = overlap_needed(threshold, sizes[x], size)
                    shared[x] = shared.get(x, 0) + 1 if most >= needed else 0
        counts["prefix"] += len(shared)
        counts["positional"] += sum(count > 0 for count in shared.values())
        for i, token in enumerate(tokens[: indexing_prefix(threshold, size)], 1):
            index[token].append((y, i))
    return counts


def triples(joined):
    return list(zip(joined.left.tolist(), joined.right.tolist(), joined.common.tolist()))


def oracle(sets, t):
    joined = nested_loop(Ragged.from_rows([list(x) for x in sets]), Threshold.parse(t))
    assert 0 < joined.candidates["pairs"] < joined.candidates["all"]
    return triples(joined)


def join(name, sets, t):
    joined = JOINS[name](Ragged.from_rows([list(x) for x in sets]), Threshold.parse(t))
    counts = list(joined.candidates.values())
    assert counts == sorted(counts, reverse=True)
    assert list(joined.candidates)[-1] == "pairs"
    assert counts[-1] == len(joined.left)
    assert joined.left.dtype == joined.right.dtype == joined.common.dtype == np.int64
    return triples(joined)


def families(seed, universe, largest):
    """Return sets of up to about `largest` values: some equal, some near-copies, some empty."""
    rng = random.Random(seed)
    sets = [[], []]
    for _ in range(12):
        base = rng.sample(universe, rng.randint(1, largest))
        sets += [base, base]
        for _ in range(rng.randint(1, 5)):
            kept = rng.sample(base, max(1, len(base) - rng.randint(0, 2)))
            sets.append(kept + rng.sample(universe, rng.randint(0, 1)))
    rng.shuffle(sets)
    return sets


UNIVERSES = {
    "small": range(15),
    "wide": range(2000),
    "64 bits": [*range(TOP - 20, TOP + 1), *range(20), *range(1 << 40, TOP, 1 << 59)],
}


@crossed(name=FAST, t=THRESHOLDS, universe=list(UNIVERSES), drawn=[(1, 3), (2, 12), (3, 15)])
def test_the_pairs_are_those_of_the_nested_loop(name, t, universe, drawn):
    seed, largest = drawn
    sets = families(seed, UNIVERSES[universe], largest)
    assert join(name, sets, t) == oracle(sets, t)


@every_join
@hypothesis.settings(max_examples=25)
@given(st.lists(shingle_sets, max_size=14), st.sampled_from([*THRESHOLDS, "0.05", "0.000000001"]))
def test_any_sets_give_the_pairs_of_the_nested_loop(name, sets, t):
    rows = Ragged.from_rows([list(x) for x in sets])
    assert join(name, sets, t) == triples(nested_loop(rows, Threshold.parse(t)))


@every_join
@every_threshold
def test_all_sets_of_a_small_universe(name, t):
    sets = [x for size in range(6) for x in combinations(range(5), size)] * 2
    assert join(name, sets, t) == oracle(sets, t)


@pytest.mark.parametrize("name", JOINS)
def test_a_pair_exactly_at_the_threshold_counts_and_a_hair_above_it_does_not(name):
    for hundredths in range(5, 101):
        sets = [range(100), range(hundredths)]
        assert join(name, sets, f"{hundredths / 100:.2f}") == [(0, 1, hundredths)]
        if hundredths < 100:
            assert join(name, sets, f"{hundredths / 100:.2f}0001") == []


@every_join
def test_many_equal_sets_and_a_token_in_every_one(name):
    sets = [[7, 100 + k // 40, 200 + k // 40] for k in range(120)] + [
        [7, 500 + k] for k in range(9)
    ]
    pairs = join(name, sets, "0.8")
    assert pairs == oracle(sets, "0.8")
    assert len(pairs) == 3 * (40 * 39 // 2)


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("sets", [[], [[]], [[], []], [[5]], [[], [5], []]])
def test_too_few_sets_make_no_pair(name, sets):
    assert join(name, sets, "0.5") == []


@pytest.mark.parametrize("step", [1, 7, 100])
@every_threshold
def test_the_steps_of_ppjoin_plus_do_not_change_its_pairs(monkeypatch, step, t):
    sets = families(4, range(40), 12)
    counts = ppjoin_plus(Ragged.from_rows(sets), Threshold.parse(t)).candidates
    monkeypatch.setattr(PPJOIN_PLUS, "STEP", step)
    monkeypatch.setattr(PPJOIN_PLUS, "PAIR_STEP", step)
    assert join("ppjoin_plus", sets, t) == oracle(sets, t)
    assert ppjoin_plus(Ragged.from_rows(sets), Threshold.parse(t)).candidates == counts


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
@every_threshold
def test_no_depth_of_the_suffix_filter_changes_the_pairs(monkeypatch, depth, t):
    monkeypatch.setattr(PPJOIN_PLUS, "SUFFIX_DEPTH", depth)
    sets = families(5, range(30), 14)
    assert join("ppjoin_plus", sets, t) == oracle(sets, t)


@every_threshold
@pytest.mark.parametrize("seed", range(4))
def test_all_ppjoins_have_the_same_candidates(t, seed):
    """The joins that add a filter to ppjoin count its candidates after the filters of ppjoin."""
    rows = Ragged.from_rows(families(seed, range(25), 14))
    counts = ppjoin(rows, Threshold.parse(t))
    assert counts["prefix"] > 0
    for name in ("ppjoin_plus", "bitmap_join"):
        assert counts.items() <= JOINS[name](rows, Threshold.parse(t)).candidates.items()


@crossed(measure=SOME_MEASURES, t=THRESHOLDS, universe=list(UNIVERSES), drawn=[(1, 3), (2, 12)])
def test_bitmap_join_by_each_measure_finds_what_comparing_all_finds(measure, t, universe, drawn):
    rows = Ragged.from_rows(families(drawn[0], UNIVERSES[universe], drawn[1]))
    by = measure_of(measure, Threshold.parse(t))
    every = all_against_all(rows, by)
    assert 0 < every.candidates["pairs"] < every.candidates["all"]
    assert set(triples(join_by(by, rows))) == set(triples(every))


def test_each_filter_leaves_fewer_candidates():
    rng = random.Random(6)
    sets = [rng.sample(range(60), rng.randint(20, 30)) for _ in range(300)]
    sets += [x[:-1] for x in sets[:20]]
    joined = ppjoin_plus(Ragged.from_rows(sets), Threshold.parse("0.7"))
    filters_ = ["all", "length", "prefix", "positional", "suffix", "pairs"]
    assert list(joined.candidates) == filters_
    assert len(set(joined.candidates.values())) == len(filters_)
    assert joined.candidates["pairs"] >= 20


@given(st.lists(st.integers(0, 9) | st.integers(TOP - 9, TOP), max_size=60))
def test_ranks_are_a_numbering_from_the_rare_to_the_frequent(values):
    tokens, distinct = ranks(np.array(values, np.uint64))
    rank = dict(zip(values, tokens.tolist()))
    assert [rank[value] for value in values] == tokens.tolist()
    assert sorted(rank.values()) == list(range(distinct)) == list(range(len(set(values))))
    in_order = [values.count(value) for value in sorted(rank, key=rank.__getitem__)]
    assert in_order == sorted(in_order)


def test_values_whose_hashes_agree_in_all_bits_that_count_are_kept_apart(monkeypatch):
    values = np.array([5, 6, 5, 6, 7, 5], np.uint64)
    monkeypatch.setattr("neardup.joins.filters.mix", np.zeros_like)
    tokens, distinct = ranks(values)
    assert tokens.tolist() == [2, 1, 2, 1, 0, 2]
    assert distinct == 3
