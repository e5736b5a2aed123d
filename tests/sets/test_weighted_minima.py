"""Weighted samples equal those of plain loops, and agree as often as Σ min / Σ max.

The intervals are exact (Clopper-Pearson, α = 1e-9), and the seeds are fixed.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.sets import weighted_sets as module
from neardup.sets.hashing import mix, random_words
from neardup.sets.ragged import Ragged
from neardup.sets.weighted_sets import POISSON, weighted_band_words, weighted_minima
from neardup.similarity.intervals import clopper_pearson
from tests.support.drawn import TOP

ALPHA = 1e-9
FUNCTIONS = 60
SEEDS = 150
weighted_sets = st.dictionaries(
    st.integers(0, 9) | st.integers(0, TOP),
    st.integers(1, 20) | st.integers(1, 10**12) | st.sampled_from([2**k for k in range(41)]),
    min_size=1,
    max_size=8,
)


def rows_of(vectors):
    """Return weighted sets as arrays of tokens and weights."""
    tokens = [sorted(x) for x in vectors]
    weights = [x[token] for x, row in zip(vectors, tokens) for token in row]
    return Ragged.from_rows(tokens), np.array(weights, dtype=np.int64)


def samples_of(*vectors, numbers=None, functions=FUNCTIONS, seed=0):
    numbers = np.arange(functions) if numbers is None else np.array(numbers)
    return weighted_minima(*rows_of(vectors), numbers, functions, seed)


def mixed(word):
    return int(mix(np.array([word % 2**64], dtype=np.uint64))[0])


def points_of(token, strip, cell, functions):
    """Yield (hash function, rank, place, word) of each point in a cell of a strip.

    0-1 is strip 0, 1-2 is strip 1, 2-4 strip 2, and a cell of a strip of width W is 1/W high."""
    log_width = max(strip - 1, 0)
    cell_word = mixed(mixed(token + strip) + cell)
    for k in range(sum(cell_word >= int(bound) for bound in POISSON)):
        word = mixed(cell_word + (k + 1) * 0xD1342543DE82EF95)
        draw = mixed(word)
        rank = (Fraction(draw >> 24, 2**40) + cell) / 2**log_width
        place = (2**log_width if strip else 0) + mixed(draw) % 2**log_width + 1
        yield (word >> 32) * functions >> 32, rank, place, word


def naive_samples(vector, functions, seed):
    """Return a set's samples, from all cells up to a height above which no point is a sample."""
    best = {}
    total, height = sum(vector.values()), 1
    salt = int(random_words(seed, 1, stream=6)[0])
    while len(best) < functions or max(best.values())[0] * total >= height:
        height *= 2
        for value, weight in vector.items():
            token = mixed(value ^ salt)
            for strip in range(1 + (weight - 1).bit_length()):
                for cell in range(-(-height * 2 ** max(strip - 1, 0) // total)):
                    for number, rank, place, word in points_of(token, strip, cell, functions):
                        if place <= weight:
                            best[number] = min(best.get(number, (rank, word)), (rank, word))
    return [best[number][1] for number in range(functions)]


@pytest.mark.slow
@settings(max_examples=15)
@given(weighted_sets, st.sampled_from([1, 2, 7]), st.integers(0, TOP))
def test_samples_are_the_lowest_points_of_the_process(vector, functions, seed):
    found = samples_of(vector, functions=functions, seed=seed)[0].tolist()
    assert found == naive_samples(vector, functions, seed)


@given(st.lists(weighted_sets, min_size=1, max_size=6), st.data())
def test_a_sample_depends_on_its_set_and_its_number_alone(vectors, data):
    together = samples_of(*vectors)
    numbers = sorted(data.draw(st.sets(st.integers(0, FUNCTIONS - 1), max_size=9)))
    for i, vector in enumerate(vectors):
        assert samples_of(vector)[0].tolist() == together[i].tolist()
    assert samples_of(*vectors, numbers=numbers).tolist() == together[:, numbers].tolist()


@pytest.mark.parametrize("points", [-2, 0, 9])
@pytest.mark.parametrize("at_once", [1, 500, 1 << 20])
@pytest.mark.parametrize("pieces", [1, 3, 1 << 20])
def test_what_is_guessed_or_cut_does_not_show(points, at_once, pieces, monkeypatch):
    rng = np.random.default_rng(0)
    vectors = [
        {int(t): int(w) for t, w in zip(rng.integers(0, 1 << 63, n), 2 ** rng.uniform(0, 40, n))}
        for n in (1, 2, 3, 10, 50)
    ]
    expected = samples_of(*vectors).tolist()
    monkeypatch.setattr(module, "POINTS", points)
    monkeypatch.setattr(module, "CELLS_AT_ONCE", at_once)
    monkeypatch.setattr(module, "STRIPS_AT_ONCE", pieces)
    assert samples_of(*vectors).tolist() == expected


PAIRS = {
    "plain": ({1: 1, 2: 1, 3: 1}, {2: 1, 3: 1, 4: 1}),
    "one token": ({1: 3}, {1: 5}),
    "one token, heavy": ({1: 3 * 10**11}, {1: 5 * 10**11}),
    "bags": ({1: 4, 2: 1}, {1: 1, 2: 4}),
    "all magnitudes": (
        {k: 10**k for k in range(13)},
        {k: 10**k * (1 + (k == 11)) for k in range(1, 13)},
    ),
    "light tokens do not count": (
        {0: 10**12, **dict.fromkeys(range(1, 30), 1)},
        {0: 10**12, **dict.fromkeys(range(30, 60), 1)},
    ),
    "one heavy token differs": ({0: 10**12, 1: 1, 2: 7}, {3: 10**12, 1: 1, 2: 7}),
    "powers of two": ({1: 8, 2: 16}, {1: 16, 2: 8}),
    "just above": ({1: 9, 2: 17}, {1: 17, 2: 9}),
    "nothing in common": ({1: 5, 2: 7}, {3: 5, 4: 7}),
}


def agreeing(x, y, functions=FUNCTIONS, seeds=SEEDS):
    """Return the number of draws in which two weighted sets have the same sample."""
    return sum(
        int(np.count_nonzero(np.equal(*samples_of(x, y, functions=functions, seed=seed))))
        for seed in range(seeds)
    )


def similarity(x, y):
    tokens = {*x, *y}
    low = sum(min(x.get(t, 0), y.get(t, 0)) for t in tokens)
    return low / sum(max(x.get(t, 0), y.get(t, 0)) for t in tokens)


@pytest.mark.parametrize("pair", PAIRS)
def test_samples_agree_as_often_as_the_weighted_jaccard_similarity(pair):
    x, y = PAIRS[pair]
    low, high = clopper_pearson(agreeing(x, y), FUNCTIONS * SEEDS, ALPHA)
    assert low <= similarity(x, y) <= high


def test_another_similarity_would_show():
    x, y = PAIRS["bags"]
    low, high = clopper_pearson(agreeing(x, y), FUNCTIONS * SEEDS, ALPHA)
    assert low <= 2 / 8 <= high
    for wrong in (1.0, 8 / 17, 0.32, 0.18):  # plain, cosine, and 30 % off
        assert not low <= wrong <= high


@pytest.mark.parametrize("scale", [1, 3, 1000, 10**6, 10**11])
def test_scale_does_not_matter(scale):
    x, y = ({token: scale * w for token, w in z.items()} for z in PAIRS["bags"])
    low, high = clopper_pearson(agreeing(x, y), FUNCTIONS * SEEDS, ALPHA)
    assert low <= 2 / 8 <= high


@pytest.mark.slow
def test_hash_functions_agree_by_themselves():
    """Two hash functions, adjacent or not, are independent: both agree with probability s²."""
    x, y = PAIRS["bags"]
    both = {1: 0, 30: 0}
    for seed in range(600):
        equal = np.equal(*samples_of(x, y, seed=seed))
        for apart in both:
            both[apart] += int(np.count_nonzero(equal[:30] & equal[apart : apart + 30]))
    for count in both.values():
        # Of one draw's 30 products not all are independent: a tenth of them is asked for.
        low, high = clopper_pearson(count // 10, 600 * 3, ALPHA)
        assert low <= 1 / 16 <= high


def test_a_token_is_sampled_as_often_as_it_weighs():
    """A token's own sample is the set's sample as often as its share of the weight implies."""
    x = {1: 1, 2: 2, 3: 5}
    alone = 0
    for seed in range(SEEDS):
        whole, part = samples_of(x, {3: 5}, seed=seed)
        alone += int(np.count_nonzero(whole == part))
    low, high = clopper_pearson(alone, FUNCTIONS * SEEDS, ALPHA)
    assert low <= 5 / 8 <= high


def test_counts_of_points_are_those_of_poisson():
    """The table of cumulative Poisson probabilities, with mean 1, is exact to within 2^-63."""
    e = sum(Fraction(1, np.prod([*range(1, k + 1)], dtype=object)) for k in range(40))
    below, factorial = Fraction(0), 1
    for k, bound in enumerate(POISSON.tolist()):
        factorial *= max(k, 1)
        below += 1 / e / factorial
        assert abs(Fraction(bound, 2**64) - below) <= Fraction(2, 2**64)


@given(st.lists(weighted_sets, min_size=1, max_size=4), st.integers(0, 5), st.integers(0, 5))
def test_some_bands_have_the_words_that_they_have_among_all(vectors, low, more):
    rows = rows_of(vectors)
    every = weighted_band_words(*rows, np.arange(8), 8, 3, seed=1)
    some = weighted_band_words(*rows, np.arange(low, min(low + more, 8)), 8, 3, seed=1)
    assert some.tolist() == every[:, low : low + more].tolist()


def test_equal_samples_in_other_bands_are_other_words():
    words = weighted_band_words(*rows_of([{1: 7}]), np.arange(64), 64, 1, seed=0)
    assert len(set(words[0].tolist())) == 64


def test_no_set_has_no_samples():
    assert samples_of(numbers=[1, 2]).shape == (0, 2)
    assert samples_of({1: 1}, numbers=[]).shape == (1, 0)
