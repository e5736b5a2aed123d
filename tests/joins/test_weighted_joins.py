"""The joins of weighted rows agree with the formulas, in fractions, for every two rows."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.joins import JOINS, WEIGHTED_JOINS
from neardup.sets.ragged import Ragged
from neardup.similarity import measures
from neardup.similarity.measures import Threshold
from neardup.similarity.weighted_measures import TokenWeights, weighted_measure
from tests.support.cases import crossed
from tests.support.drawn import TOP

MOST = 10**12
MEASURES = ["jaccard", "dice", "cosine"]
every_join = pytest.mark.parametrize("name", WEIGHTED_JOINS)
every_measure = pytest.mark.parametrize("measure", MEASURES)
Row = dict[int, int]


def ragged(rows: list[Row]) -> Ragged:
    tokens = [token for row in rows for token in sorted(row)]
    weights = [row[token] for row in rows for token in sorted(row)]
    ends = np.cumsum([0, *map(len, rows)])
    return Ragged(np.array(tokens, np.uint64), ends, np.array(weights, np.int64))


def power(similarity: Fraction | str, measure: str) -> Fraction:
    return Fraction(similarity) ** (2 if measure == "cosine" else 1)


def similarity(x: Row, y: Row, measure: str) -> Fraction:
    """Return the similarity of two rows as a fraction; for the cosine, its square."""
    tokens = {*x, *y}
    both = [(x.get(token, 0), y.get(token, 0)) for token in tokens]
    least, most = sum(map(min, both)), sum(map(max, both))
    if measure == "jaccard":
        return Fraction(least, most)
    if measure == "dice":
        return Fraction(2 * least, least + most)
    dot = sum(a * b for a, b in both)
    return Fraction(dot * dot, sum(a * a for a, _ in both) * sum(b * b for _, b in both))


def expected(rows: list[Row], measure: str, t: str) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i, j in combinations(range(len(rows)), 2)
        if rows[i] and rows[j] and similarity(rows[i], rows[j], measure) >= power(t, measure)
    ]


def join(name: str, rows: list[Row], measure: str, t: str) -> list[tuple[int, int]]:
    joined = WEIGHTED_JOINS[name](ragged(rows), measure, Threshold.parse(t))
    counts = list(joined.candidates.values())
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == len(joined.left)
    assert joined.left.dtype == joined.right.dtype == np.int64
    return list(zip(joined.left.tolist(), joined.right.tolist()))


def families(seed: int, universe: int, largest: int, heaviest: int) -> list[Row]:
    """Return rows: some empty, equal or multiples, some with weights changed or a token added."""
    rng = random.Random(seed)

    def weight() -> int:
        return rng.choice([1, heaviest, rng.randint(1, heaviest), rng.randint(1, 5)])

    rows: list[Row] = [{}, {}]
    for _ in range(8):
        size = rng.randint(1, largest)
        base = {token: weight() for token in rng.sample(range(universe), size)}
        rows += [base, base]
        if max(base.values()) * 3 <= MOST:
            rows.append({token: 3 * weight for token, weight in base.items()})
        for _ in range(4):
            changed = dict(base)
            for token in rng.sample(sorted(base), rng.randint(0, min(2, size))):
                changed[token] = max(1, changed[token] * rng.randint(1, 4) // 4)
            if rng.random() < 0.5:
                changed[rng.randrange(universe)] = weight()
            rows.append(changed)
    rng.shuffle(rows)
    return rows


@crossed(
    name=list(WEIGHTED_JOINS),
    measure=MEASURES,
    t=["0.1", "1/2", "0.8", "0.95", "1"],
    drawn=[(10, 4, 3), (40, 25, 300), (2000, 12, MOST)],
)
def test_the_pairs_are_those_of_the_definition(
    name: str, measure: str, t: str, drawn: tuple[int, int, int]
) -> None:
    universe, largest, heaviest = drawn
    rows = families(largest, universe, largest, heaviest)
    pairs = join(name, rows, measure, t)
    assert pairs == expected(rows, measure, t)
    assert 0 < len(pairs) < len(rows) * (len(rows) - 1) // 2


tokens = st.integers(0, 8) | st.integers(TOP - 8, TOP)
weights = st.integers(1, 4) | st.integers(1, MOST) | st.just(MOST)
drawn_rows = st.lists(st.dictionaries(tokens, weights, max_size=8), max_size=10)


@every_join
@every_measure
@hypothesis.settings(max_examples=25)
@given(
    rows=drawn_rows, t=st.sampled_from(["0.000000001", "0.05", "1/3", "0.8", "0.999999999", "1"])
)
def test_any_rows(name: str, measure: str, rows: list[Row], t: str) -> None:
    assert join(name, rows, measure, t) == expected(rows, measure, t)


@every_join
@pytest.mark.parametrize("factor", [1, 10**9 + 7])
def test_a_pair_exactly_at_the_threshold_counts_and_a_hair_above_it_does_not(
    name: str, factor: int
) -> None:
    """A pair is found at a threshold equal to its similarity, but not at one 1e-6 higher."""
    cut = {1: 60 * factor, 2: 40 * factor}
    for hundredths in range(5, 101, 5):
        rows = [cut, {1: min(60, hundredths) * factor}]
        if hundredths > 60:
            rows[1][2] = (hundredths - 60) * factor
        dice = f"{2 * hundredths}/{100 + hundredths}"
        for measure, t in (("jaccard", f"{hundredths}/100"), ("dice", dice)):
            assert len(join(name, rows, measure, t)) == 1
            if hundredths < 100:
                above = Fraction(t) + Fraction(1, 10**6)
                assert join(name, rows, measure, f"{above}") == []


@every_join
@pytest.mark.parametrize("factor", [1, 10**9 + 7])
@pytest.mark.parametrize(("a", "b", "c"), [(3, 4, 5), (20, 21, 29), (696, 697, 985), (4, 3, 5)])
def test_a_cosine_exactly_at_the_threshold(name: str, factor: int, a: int, b: int, c: int) -> None:
    """A pair is found at threshold a/c, its cosine (a² + b² = c²), but not at one 1e-6 higher."""
    rows = [{1: a * factor, 2: b * factor}, {1: 7 * factor}]
    assert len(join(name, rows, "cosine", f"{a}/{c}")) == 1
    assert join(name, rows, "cosine", f"{Fraction(a, c) + Fraction(1, 10**6)}") == []


@every_join
@every_measure
def test_a_hair_that_no_float_tells(name: str, measure: str) -> None:
    """Rows with a similarity just below 1, by 1e-12 or less, are not a pair at threshold 1."""
    rows = [{1: MOST, 2: 1}, {1: MOST}]
    assert join(name, rows, measure, "1") == []
    assert len(join(name, rows, measure, "0.999999999")) == 1


@every_join
@every_measure
def test_rows_that_are_all_equal(name: str, measure: str) -> None:
    rows = [{1: 5, 9: MOST, TOP: 1}] * 9
    assert len(join(name, rows, measure, "1")) == 9 * 8 // 2


@every_join
@every_measure
@pytest.mark.parametrize("rows", [[], [{}], [{}, {}], [{5: 2}], [{}, {5: 2}, {}]])
def test_too_few_rows_make_no_pair(name: str, measure: str, rows: list[Row]) -> None:
    assert join(name, rows, measure, "0.5") == []


@every_join
@pytest.mark.parametrize("measure", ["jaccard", "dice"])
@pytest.mark.parametrize("t", ["0.5", "0.8"])
def test_where_all_weigh_the_same_they_are_plain_sets(name: str, measure: str, t: str) -> None:
    rows = [dict.fromkeys(row, 1) for row in families(3, 30, 12, 1)]
    least = measures.MEASURES[measure](Threshold.parse(t)).resemblance
    plain = JOINS["ppjoin_plus"](ragged(rows), least)
    pairs = join(name, rows, measure, t)
    assert pairs == list(zip(plain.left.tolist(), plain.right.tolist()))
    assert join(name, [dict.fromkeys(row, MOST) for row in rows], measure, t) == pairs


def test_plain_joins_do_not_look_at_weights() -> None:
    rows = families(5, 30, 12, 100)
    plain = ragged([dict.fromkeys(row, 1) for row in rows])
    for name, plain_join in JOINS.items():
        one, other = (plain_join(r, Threshold.parse("0.6")) for r in (ragged(rows), plain))
        assert one.common.tolist() == other.common.tolist(), name
        assert one.candidates == other.candidates


@every_measure
def test_they_are_what_the_measure_verifies(measure: str) -> None:
    rows, t = families(7, 40, 20, MOST), Threshold.parse("0.7")
    sets = ragged(rows)
    full = [i for i, row in enumerate(rows) if row]
    left, right = map(np.array, zip(*combinations(range(len(full)), 2)))
    found = weighted_measure(measure, t, TokenWeights()).verified(
        sets.take(np.array(full)), left, right
    )
    pairs = [(full[i], full[j]) for i, j in zip(found.left.tolist(), found.right.tolist())]
    assert join("all_pairs", rows, measure, "0.7") == pairs


@every_measure
def test_the_bounds_leave_out_nearly_all_that_is_no_pair(measure: str) -> None:
    """The bounds leave out every non-pair, even if all rows share a token of low weight."""
    rows = [{0: 1, 1 + i // 2: 100, 1000 + i: 10} for i in range(200)]
    joined = WEIGHTED_JOINS["all_pairs"](ragged(rows), measure, Threshold.parse("0.8"))
    assert joined.candidates["pairs"] == joined.candidates["prefix"] == 100
