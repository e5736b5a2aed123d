"""The pairs found among sketches are those of a loop over all pairs with a slow estimator.

Coverage and bias are held with exact binomial intervals (ALPHA), and fixed seeds.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.joins import inverted_index
from neardup.runtime.counters import Counters
from neardup.sets.ragged import Batch, Ragged
from neardup.similarity.intervals import clopper_pearson, exact_interval
from neardup.similarity.measures import Threshold
from neardup.tools.sketches import similar, sketch, sketch_kinds
from neardup.tools.sketches.similar import Search, shown
from neardup.tools.sketches.sketch import SketchFile, write_sketches
from neardup.tools.sketches.sketch_kinds import CONTAINMENT, JACCARD, Kind, Signatures, kind_of
from tests.schemes.test_schemes import ALPHA, PAIRS, pairs_of_similarity
from tests.support.cases import crossed

KINDS = ["min:16", "min:64", "mod:1", "mod:7", "signature:40"]
every_kind = pytest.mark.parametrize("kind", KINDS)
Pair = tuple[int, int, Fraction]


def drawn(seed: int, n: int = 120) -> list[list[int]]:
    """Return small and large sets with popular elements; half are altered copies."""
    rng = np.random.default_rng(seed)
    sets: list[list[int]] = []
    for i in range(n):
        if i % 2 and sets:
            x = set(sets[int(rng.integers(len(sets)))])
            for value in list(x)[: int(rng.integers(0, 1 + len(x) // 5))]:
                x.discard(value)
            x |= set(rng.integers(0, 1 << 60, int(rng.integers(0, 4))).tolist())
        else:
            x = set(rng.integers(0, 1 << 60, int(rng.integers(1, 150))).tolist())
            x |= set(rng.integers(0, 30, 20).tolist())
        sets.append(sorted(x) or [1])
    return sets


def written(path: Path, sets: list[list[int]], kind: str, first: int = 0) -> SketchFile:
    batches = [
        Batch([b"v%d" % (first + i + j) for j in range(len(sets[i : i + 50]))], rows)
        for i in range(0, len(sets), 50)
        for rows in [Ragged.from_rows(sets[i : i + 50])]
    ]
    path.unlink(missing_ok=True)
    write_sketches(path, batches, kind_of(kind), 3, {"--seed": "3"})
    return SketchFile(str(path))


def search(file: SketchFile, t: str, measure: str = JACCARD, **more) -> list[Pair]:
    """Return (x, y, estimate) of the pairs found; for jaccard within one file, x < y."""
    asked = {"other": None, "of": None, **more}
    pairs = []
    found = Search(file, threshold=Threshold.parse(t), measure=measure, counters=COUNTERS, **asked)
    for alike in found.pairs():
        for x, y, part, whole in zip(*(column.tolist() for column in alike[:4])):
            swap = alike.swapped or (measure == JACCARD and asked["other"] is None and y < x)
            pairs.append((*((y, x) if swap else (x, y)), Fraction(part, whole)))
    assert len(set(pairs)) == len(pairs)
    return sorted(pairs)


COUNTERS = Counters("test")


def sketched(sets: list[list[int]], kind: Kind) -> list[list[int]]:
    """Return the sketch of each set, computed alone."""
    return [kind.sketches(Ragged.from_rows([x]), 3).row(0).tolist() for x in sets]


def slow(kind: Kind, x: list[int], y: list[int], measure: str) -> Fraction | None:
    """Return the estimated similarity of two sketches, by its definition, or None if undefined."""
    if isinstance(kind, Signatures):
        return Fraction(sum(a == b for a, b in zip(x, y)), len(x))
    s = int(kind.text.split(":")[1])
    if measure == CONTAINMENT:
        return Fraction(len({*x} & {*y}), len(x)) if x else None
    sample = sorted({*x, *y})
    if kind.text.startswith("min") and max(len(x), len(y)) >= s:
        sample = sample[:s]
    return Fraction(len({*x} & {*y} & {*sample}), len(sample)) if sample else None


def all_pairs(
    kind: Kind, mine: list[list[int]], yours: list[list[int]], t: str, measure: str, same: bool
) -> list[Pair]:
    return sorted(
        (i, j, estimate)
        for i, x in enumerate(mine)
        for j, y in enumerate(yours)
        if not same or (i < j if measure == JACCARD else i != j)
        for estimate in [slow(kind, x, y, measure)]
        if estimate is not None and estimate >= Fraction(t)
    )


@pytest.fixture(params=[False, True], ids=["as it is", "in small pieces"])
def pieces(request, monkeypatch) -> None:
    if request.param:
        monkeypatch.setattr(sketch, "NUMBERS_AT_ONCE", 300)
        monkeypatch.setattr(similar, "NUMBERS_AT_ONCE", 300)
        monkeypatch.setattr(inverted_index, "STEP", 50)


@pytest.fixture(params=[False, True], ids=["alone", "two and two"])
def paired(request, monkeypatch) -> None:
    """Choose, by the fixture's parameter, whether records meet by single hashes or by pairs."""
    monkeypatch.setattr(sketch_kinds, "MANY_COLLISIONS", -1 if request.param else 10**9)
    monkeypatch.setattr(sketch_kinds, "MAX_PAIRED", 10**6)


@pytest.mark.slow
@crossed(
    *("pieces", "paired"),
    kind=KINDS,
    t=["0.1", "0.5", "0.9", "1"],
    pieces=[False, True],
    paired=[False, True],
)
def test_every_pair_at_the_threshold_is_found_and_no_other(kind, t, tmp_path, pieces, paired):
    sets = drawn(1)
    file = written(tmp_path / "s", sets, kind)
    sketches = sketched(sets, file.kind)
    expected = all_pairs(file.kind, sketches, sketches, t, JACCARD, same=True)
    assert search(file, t) == expected
    assert 0 < len(expected) < len(sets) ** 2 / 2


@pytest.mark.slow
@every_kind
def test_pairs_of_two_files_and_of_some_records(kind, tmp_path, paired):
    sets = drawn(2)
    one, two = (written(tmp_path / str(i), sets[i:], kind, i) for i in (0, 60))
    mine, yours = (sketched(some, one.kind) for some in (sets, sets[60:]))
    expected = all_pairs(one.kind, mine, yours, "0.7", JACCARD, same=False)
    assert len(expected) > 60
    assert search(one, "0.7", other=two) == expected
    of = np.array([3, 70, 71])
    some = [pair for pair in expected if pair[0] in of]
    assert search(one, "0.7", other=two, of=of) == some
    within = all_pairs(one.kind, mine, mine, "0.7", JACCARD, same=True)
    assert search(one, "0.7", of=of) == [p for p in within if {p[0], p[1]} & set(of.tolist())]


@pytest.mark.first_case
@pytest.mark.parametrize("kind", ["mod:1", "mod:7"])
@pytest.mark.parametrize("t", ["0.6", "1"])
def test_containment(kind, t, tmp_path, pieces):
    sets = drawn(3)
    sets += [x[::3] for x in sets[::4]]
    file = written(tmp_path / "s", sets, kind)
    sketches = sketched(sets, file.kind)
    expected = all_pairs(file.kind, sketches, sketches, t, CONTAINMENT, same=True)
    assert search(file, t, CONTAINMENT) == expected
    assert any((j, i) not in {pair[:2] for pair in expected} for i, j, _ in expected)
    of = np.array([0, 1, 8, 125])
    some = [pair for pair in expected if {pair[0], pair[1]} & set(of.tolist())]
    assert search(file, t, CONTAINMENT, of=of) == some
    assert some


@given(
    st.integers(0, 10**6),
    st.sampled_from(KINDS),
    st.sampled_from(["0.3", "2/3", "0.95"]),
    st.sampled_from([-1, 1, 10**9]),
)
def test_any_sets(tmp_path_factory, seed, kind, t, many):
    sets = drawn(seed, 24)
    file = written(tmp_path_factory.getbasetemp() / "any", sets, kind)
    sketches = sketched(sets, file.kind)
    with patch.object(sketch_kinds, "MANY_COLLISIONS", many):
        assert search(file, t) == all_pairs(file.kind, sketches, sketches, t, JACCARD, same=True)


def test_hashes_meet_two_and_two_where_none_is_rare(tmp_path, monkeypatch):
    """Where no hash is rare, records meet by pairs of hashes: fewer candidates, as many pairs."""
    rng = np.random.default_rng(4)
    sets = [rng.choice(50, 16, replace=False).tolist() for _ in range(300)]
    sets += [x[1:] for x in sets[:20]]
    file = written(tmp_path / "s", sets, "min:64")
    compared = []
    for many in (10**9, 10):
        monkeypatch.setattr(sketch_kinds, "MANY_COLLISIONS", many)
        counters = Counters("test")
        found = Search(file, None, Threshold.parse("0.9"), JACCARD, None, counters).pairs()
        pairs = sum(len(each.asked) for each in found)
        assert pairs >= 20
        compared.append((pairs, counters.counts["candidate pairs"]))
    (pairs, many), (again, few) = compared
    assert pairs == again
    assert few < many / 3


@every_kind
def test_what_is_packed_is_unpacked(kind):
    made = kind_of(kind).sketches(Ragged.from_rows(drawn(4)), 0)
    again = kind_of(kind).unpacked(*kind_of(kind).packed(made))
    assert again.values.tolist() == made.values.tolist()
    assert again.offsets.tolist() == made.offsets.tolist()


@pytest.mark.first_case
@pytest.mark.parametrize("kind", ["min:32", "mod:4", "signature:64"])
@pytest.mark.parametrize("common", [60, 90])
def test_intervals_miss_as_rarely_as_they_say_and_estimates_are_right_on_average(kind, common):
    sets, left, right = pairs_of_similarity(common, 100, "random")
    made = kind_of(kind)
    part, whole, known = made.counted(made.sketches(sets, common), left, right, JACCARD)
    assert not known.any()
    alpha, truth, missed = Fraction("0.05"), common * 10**4, 0
    cache = {key: exact_interval(*key, alpha) for key in set(zip(part.tolist(), whole.tolist()))}
    for key in zip(part.tolist(), whole.tolist()):
        low, high = cache[key]
        missed += not low <= truth <= high
    assert clopper_pearson(missed, PAIRS, ALPHA)[0] <= alpha
    # Pooled hits: of draws without replacement, they lie nearer to the mean than binomial ones.
    low, high = clopper_pearson(int(part.sum()), int(whole.sum()), ALPHA)
    assert low <= common / 100 <= high


def test_what_is_known_is_one_number():
    assert shown(1, 3, True, Fraction("0.05")) == (333333, 333333, 333333)
