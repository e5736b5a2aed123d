"""Schemes of weighted sets have the recall of the S-curve; keys depend on weighted sets alone.

The intervals are exact, as in test_schemes.py: α = 1e-9, and the seeds are fixed.
"""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.lines.keyed_lines import HASH_BITS
from neardup.schemes import SCHEMES, banding
from neardup.schemes.minhash import MinHash
from neardup.schemes.projection import Projection
from neardup.schemes.scheme import KINDS, ONE, WEIGHTS
from neardup.sets.ragged import Ragged
from neardup.similarity.weighted_measures import Idf, TokenWeights
from tests.schemes.test_schemes import PAIRS, interval
from tests.sets.test_ragged import with_weights
from tests.support.drawn import COUNTS, settings_of, shingles

LEFT = np.arange(0, 2 * PAIRS, 2)
SCHEMES_WITH_WEIGHTS = [name for name, scheme in SCHEMES.items() if WEIGHTS in scheme.options]
WEIGHTED = {
    f"{name} {kind}": settings_of(
        f"--scheme={name}", f"--weights={kind}", counts=COUNTS if form.by_idf else None
    ).scheme
    for name in SCHEMES_WITH_WEIGHTS
    for kind, form in KINDS.items()
    if kind != ONE
}
every_weighted = pytest.mark.parametrize("scheme", WEIGHTED.values(), ids=WEIGHTED)
some_sets = st.lists(
    st.dictionaries(shingles, st.integers(1, 300), min_size=1, max_size=8), min_size=1, max_size=5
)


def random_tokens(count):
    rng = np.random.default_rng(count)
    return rng.integers(0, 1 << 63, (PAIRS, count)).tolist()


def pairs_with(x, y):
    """Return PAIRS pairs of sets in which token k weighs x[k] and y[k]; 0 means absent."""
    rows = []
    for tokens in random_tokens(len(x)):
        for weights in (x, y):
            rows.append({token: w for token, w in zip(tokens, weights) if w})
    return with_weights(rows), LEFT, LEFT + 1


SHAPES = [  # what each token weighs in one set, and in the other
    ([4, 1], [1, 4]),
    ([8, 1, 1, 2, 0, 0, 1, 2], [2, 1, 1, 2, 1, 1, 1, 1]),
    ([10, 1, 4, 1], [10, 1, 1, 0]),
    ([20, 3, 4, 0], [20, 1, 4, 1]),
]


def similarity(x, y):
    return sum(map(min, x, y)) / sum(map(max, x, y))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{similarity(*shape):.2f}")
@pytest.mark.parametrize(
    ("weights", "scale"),
    [
        (TokenWeights(repeats=True), 1),
        (TokenWeights(own=True), 1),
        (TokenWeights(own=True), 123_457),
    ],
    ids=["tf", "own", "own, heavy"],
)
def test_weighted_pairs_meet_as_often_as_the_s_curve_says(shape, weights, scale):
    x, y = ([scale * w for w in side] for side in shape)
    pairs = pairs_with(x, y)
    for bands, rows in [(1, 1), (6, 3)]:
        scheme = MinHash(bands, rows, seed=rows, weights=weights)
        low, high = interval(scheme, pairs)
        assert low <= scheme.recall(similarity(x, y)) <= high


@pytest.mark.parametrize("kind", ["tf", "own"])
def test_the_interval_would_catch_plain_sets_and_other_rows(kind):
    x, y = SHAPES[-1]  # 25/28, and 3/4 of their tokens
    weights = TokenWeights(repeats=kind == "tf", own=kind == "own")
    low, high = interval(MinHash(2, 7, weights=weights), pairs_with(x, y))
    assert low <= banding.recall(similarity(x, y), 2, 7) <= high
    for wrong in (banding.recall(3 / 4, 2, 7), banding.recall(similarity(x, y), 2, 9)):
        assert not low <= wrong <= high


@pytest.mark.slow
def test_pairs_meet_by_what_is_rare():
    heavy, light = np.arange(1000), np.arange(1000, 4000)
    counts = replace(
        COUNTS,
        holders=np.array([1 << 20]),
        sizes=np.array([1]),
        tokens=np.arange(4000, dtype=np.uint64),
        frequencies=np.array([1 << 12] * len(heavy) + [1 << 18] * len(light)),
    )
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(PAIRS):
        common, rest = rng.choice(heavy, 8, False), rng.choice(light, 12, False)
        rows += [[*common, *rest[:6]], [*common, *rest[6:]]]
    pairs = Ragged.from_rows(rows), LEFT, LEFT + 1
    weighted = 8 * 64 / (8 * 64 + 12 * 16)
    for idf, s, other in [(Idf(counts), weighted, 8 / 20), (None, 8 / 20, weighted)]:
        scheme = MinHash(6, 4, weights=TokenWeights(idf=idf) if idf else None)
        low, high = interval(scheme, pairs)
        assert low <= scheme.recall(s) <= high
        assert not low <= scheme.recall(other) <= high


@pytest.mark.slow
def test_pairs_meet_by_their_weighted_angle():
    """Pairs meet by their weighted angle; 40 common tokens weigh 300 each, 60 others weigh 100."""
    x, y = [300] * 40 + [100] * 60 + [0] * 60, [300] * 40 + [0] * 60 + [100] * 60
    dot, square = 40 * 300**2, 40 * 300**2 + 60 * 100**2
    scheme = Projection(4, 8, weights=TokenWeights(own=True))
    low, high = interval(scheme, pairs_with(x, y))
    assert low <= scheme.recall(dot / square) <= high
    assert not low <= scheme.recall(40 / 100) <= high
    assert not low <= scheme.recall(sqrt(dot / square)) <= high


@pytest.mark.first_case
@every_weighted
@settings(max_examples=12)
@given(some_sets)
def test_keys_depend_on_the_weighted_set_alone(scheme, sets):
    keys = scheme.keys(with_weights(sets))
    for i, vector in enumerate(sets):
        row = keys.row(i).tolist()
        assert row == sorted(set(row))
        assert row == scheme.keys(with_weights([vector])).row(0).tolist()
        some = scheme.keys(with_weights([vector]), 3, 7).row(0).tolist()
        assert some == [key for key in row if 3 <= key >> HASH_BITS < 7]


@pytest.mark.parametrize("name", SCHEMES_WITH_WEIGHTS)
def test_other_weights_draw_other_keys(name):
    """Each kind of weights has its own keys; idf keys depend on the counts, not on their source."""
    sets = Ragged.from_rows([list(range(0, 30, 3))])
    kinds = {"": settings_of(f"--scheme={name}").scheme}
    kinds |= {k: scheme for k, scheme in WEIGHTED.items() if k.startswith(name)}
    assert len({tuple(scheme.keys(sets).row(0).tolist()) for scheme in kinds.values()}) == 5
    own = replace(COUNTS, own=True)
    again = settings_of(f"--scheme={name}", "--weights=idf", counts=own).scheme
    assert again.keys(sets).row(0).tolist() == kinds[f"{name} idf"].keys(sets).row(0).tolist()
