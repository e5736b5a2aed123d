"""Measures and idf weights of weighted sets agree with fractions, for every pair and digit."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.schemes.minhash import MinHash
from neardup.schemes.scheme import WEIGHTS, Request, weighing
from neardup.sets.ragged import Ragged
from neardup.sets.token_counts import TokenCounts
from neardup.similarity import weighted_measures as module
from neardup.similarity.measures import (
    MEASURES,
    NINE_TENTHS,
    Cosine,
    Jaccard,
    Threshold,
    six_decimals,
)
from neardup.similarity.weighted_measures import (
    Idf,
    MinSum,
    TokenWeights,
    WeightedCosine,
    common_places,
    weighted_measure,
)
from tests.sets.test_ragged import row_lists, with_weights
from tests.support.drawn import COUNTS, TOP, shingle_sets
from tests.support.weighted_oracle import dice, jaccard, millionths_of_root, squared_cosine

OWN = TokenWeights(own=True)
ORACLES = {"jaccard": jaccard, "dice": dice}
THRESHOLDS = ["1/1000000000", "1/3", "0.5", "9/10", "0.999999999", "1"]
tokens = st.integers(0, 6) | st.integers(TOP - 3, TOP)
near_sets = st.dictionaries(
    tokens,
    st.integers(1, 4)
    | st.integers(1, 10**12)
    | st.integers(2**52, 2**54)
    | st.integers(2**57, 2**58),
    min_size=1,
    max_size=6,
)


def every_pair(count):
    return np.triu_indices(count, 1)


def verified(measure, rows):
    """Return (i, j, similarity as text) of all pairs that reach the threshold."""
    left, right, part, whole = measure.verified(rows, *every_pair(len(rows)))
    return list(zip(left.tolist(), right.tolist(), six_decimals(part, whole)))


def expected_pairs(vectors, name, t):
    found = []
    for i, j in zip(*(side.tolist() for side in every_pair(len(vectors)))):
        x, y = vectors[i], vectors[j]
        if name == "cosine":
            square = squared_cosine(x, y)
            reached, millionths = square >= t**2, millionths_of_root(square)
        else:
            similarity = ORACLES[name](x, y)
            reached, millionths = similarity >= t, round(similarity * 10**6)
        if reached:
            found.append((i, j, b"%d.%06d" % divmod(millionths, 10**6)))
    return found


@pytest.mark.parametrize("name", ["jaccard", "dice", "cosine"])
@given(st.lists(near_sets, min_size=2, max_size=6), st.sampled_from(THRESHOLDS))
def test_weighted_measures_are_those_of_the_definition(name, vectors, t):
    measure = weighted_measure(name, Threshold.parse(t), OWN)
    expected = expected_pairs(vectors, name, Fraction(t))
    assert verified(measure, with_weights(vectors)) == expected


@pytest.mark.parametrize("name", ["jaccard", "dice"])
@given(near_sets, near_sets, st.sampled_from([1, 10**6, 2**48]))
def test_a_pair_exactly_at_the_threshold_is_one(name, x, y, scale):
    """A pair is found at a threshold equal to its similarity, but not at one 1e-6 higher."""
    x, y = ({token: 1 + w % 40 for token, w in z.items()} for z in (x, y))
    similarity = ORACLES[name](x, y)
    above = similarity + Fraction(1, 10**6)
    rows = with_weights([{token: scale * w for token, w in z.items()} for z in (x, y)])
    for t, reached in [(similarity, True), (above, False)]:
        if 0 < t <= 1:
            measure = weighted_measure(name, Threshold(t.numerator, t.denominator), OWN)
            assert bool(verified(measure, rows)) == reached


@pytest.mark.parametrize("name", ["jaccard", "dice", "cosine"])
@given(st.lists(shingle_sets.filter(bool), min_size=2, max_size=6), st.sampled_from(THRESHOLDS))
def test_weights_that_are_all_the_same_change_nothing(name, sets, t):
    threshold = Threshold.parse(t)
    plain = Ragged.from_rows([list(x) for x in sets])
    heavy = with_weights([dict.fromkeys(x, 10**12) for x in sets])
    expected = verified(MEASURES[name](threshold), plain)
    assert verified(weighted_measure(name, threshold, OWN), plain) == expected
    assert verified(weighted_measure(name, threshold, OWN), heavy) == expected


@pytest.mark.parametrize("name", ["jaccard", "dice", "cosine"])
@given(st.lists(near_sets, min_size=2, max_size=5), st.sampled_from(["1/3", ".9"]))
def test_idf_weights_are_multiplied_by_those_of_the_record(name, vectors, t):
    few = [{token: 1 + w % 9 for token, w in vector.items()} for vector in vectors]
    idf = Idf(COUNTS)

    def rare(token):
        return int(idf.of(np.array([token], dtype=np.uint64))[0])

    heavy = [{token: w * rare(token) for token, w in x.items()} for x in few]
    ones = [{token: rare(token) for token in x} for x in few]
    measure = weighted_measure(name, Threshold.parse(t), TokenWeights(repeats=True, idf=idf))
    assert verified(measure, with_weights(few)) == expected_pairs(heavy, name, Fraction(t))
    measure = weighted_measure(name, Threshold.parse(t), TokenWeights(idf=idf))
    assert verified(measure, with_weights(few).bare()) == expected_pairs(ones, name, Fraction(t))


def test_a_hair_is_seen_in_sums_that_no_float_holds():
    """A difference of 2^-60, too small for floats, keeps a pair below threshold 1."""
    rows = with_weights([{1: 2**60, 2: 5}, {1: 2**60 - 1, 2: 5}])
    for name in ("jaccard", "dice", "cosine"):
        measure = weighted_measure(name, Threshold(1, 1), OWN)
        assert verified(measure, rows) == []
        assert verified(measure, rows.take(np.array([0, 0]))) == [(0, 1, b"1.000000")]
    measure = MinSum(Jaccard(Threshold.parse("0.999999999")), OWN)
    assert verified(measure, rows) == [(0, 1, b"1.000000")]


def test_a_cosine_that_is_a_tie_goes_to_the_even_digit():
    rows = with_weights([dict.fromkeys(range(128), 7), dict.fromkeys(range(3, 131), 7)])
    assert verified(WeightedCosine(Threshold.parse("0.9"), OWN), rows) == [(0, 1, b"0.976562")]


def test_a_cosine_of_three_fifths():
    """The cosine of (3·10^11, 4·10^11) and (1, 0) is exactly 3/5."""
    rows = with_weights([{0: 3 * 10**11, 1: 4 * 10**11}, {0: 1}])
    assert verified(WeightedCosine(Threshold.parse("0.6"), OWN), rows) == [(0, 1, b"0.600000")]
    assert verified(WeightedCosine(Threshold.parse("0.600000001"), OWN), rows) == []


def test_nothing_to_compare():
    nothing = np.empty(0, np.int64)
    for rows in (Ragged.from_rows([]), with_weights([{1: 2}, {1: 3}])):
        for name in ("jaccard", "dice", "cosine"):
            found = weighted_measure(name, Threshold(1, 2), OWN).verified(rows, nothing, nothing)
            assert [len(column) for column in found] == [0, 0, 0, 0]


def test_without_weights_it_is_the_plain_measure():
    assert MinHash(15, 7).measure("cosine", Threshold(1, 2)) == Cosine(Threshold(1, 2))


# Idf weights, in eighths of a bit, from 1 to 255.


def counts_of(records, frequencies):
    """Return the counts of tokens 0, 1, 2 … with these frequencies."""
    return TokenCounts(
        np.array([1]),
        np.array([records]),
        np.arange(len(frequencies), dtype=np.uint64),
        np.array(frequencies),
    )


def words(*values):
    return np.array(values, dtype=np.uint64)


def weight(records, frequency):
    """Return 8·log2(N / df), rounded by exact fractions, and at least 1 and at most 255.

    It is the largest w with (N / df)^16 ≥ 2^(2w - 1).
    """
    power = Fraction(records, frequency) ** 16
    return max([w for w in range(1, 256) if power >= 2 ** (2 * w - 1)], default=1)


@given(st.integers(2, 10**12), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_a_weight_is_the_idf_in_eighths_of_a_bit(records, shares):
    frequencies = [max(1, int(records**share)) for share in shares]
    weights = Idf(counts_of(records, frequencies)).of(words(*range(len(shares))))
    assert weights.tolist() == [weight(records, frequency) for frequency in frequencies]
    floats = np.clip(8 * np.log2(records / np.array(frequencies)), 1, 255)
    assert (np.abs(weights - floats) <= 0.5 + 1e-9).all()


def test_no_weight_is_below_1_or_above_255():
    frequencies = [10**12, 10**12 - 1, 10**6, 2, 1]
    weights = Idf(counts_of(10**12, frequencies)).of(words(0, 1, 2, 3, 4, 99))
    assert weights.tolist() == [1, 1, 159, 255, 255, 255]
    assert Idf(TokenCounts.empty()).of(words(1, 2)).tolist() == [1, 1]


def test_weights_need_counts():
    for name in ("idf", "tfidf"):
        with pytest.raises(ValueError, match=f"--weights {name} needs --counts"):
            weighing(Request(NINE_TENTHS, None, values={WEIGHTS.name: name}))
    assert weighing(Request(NINE_TENTHS, None)) == (None, 0)


@pytest.mark.parametrize(
    ("name", "expected"), [("tf", [2, 1]), ("own", [2, 1]), ("idf", [8, 16]), ("tfidf", [16, 16])]
)
def test_what_a_record_gives_is_multiplied_by_what_is_rare(name, expected):
    counts = counts_of(4, [2, 1])
    weights, _ = weighing(Request(NINE_TENTHS, None, counts=counts, values={"--weights": name}))
    own = None if name == "idf" else np.array([2, 1])
    sets = Ragged(words(0, 1), np.array([0, 2]), own)
    assert weights.of(sets).tolist() == expected


# The places at which two rows hold the same value.


def naive(sets, pairs):
    rows = Ragged.from_rows([list(row) for row in sets])
    found = []
    for pair, (i, j) in enumerate(pairs):
        for value in sorted(sets[i] & sets[j]):
            places = (rows.offsets[k] + rows.row(k).tolist().index(value) for k in (i, j))
            found.append((pair, *map(int, places)))
    return found


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_places_of_what_two_rows_share(step, monkeypatch):
    monkeypatch.setattr(module, "PAIR_STEP", step)

    @given(st.data(), row_lists.filter(bool))
    def check(data, sets):
        index = st.integers(0, len(sets) - 1)
        pairs = data.draw(st.lists(st.tuples(index, index), max_size=20))
        rows = Ragged.from_rows([list(row) for row in sets])
        left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
        columns = common_places(rows, left, right)
        assert list(zip(*(column.tolist() for column in columns))) == naive(sets, pairs)

    check()


def test_no_pairs_have_no_places():
    nothing = np.empty(0, np.int64)
    assert [len(column) for column in common_places(Ragged.from_rows([]), nothing, nothing)] == [
        0,
        0,
        0,
    ]
