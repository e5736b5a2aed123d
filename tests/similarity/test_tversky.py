"""The Tversky index: exact for all parameters, by every scheme and join, and in both directions."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.joins.bitmap_joins import join_by
from neardup.runtime import kernels
from neardup.runtime.program import UsageError
from neardup.sets.ragged import Ragged
from neardup.similarity.definitions import tversky
from neardup.similarity.measures import (
    MAX_DENOMINATOR,
    MAX_PARAMETER,
    MEASURES,
    Threshold,
    Tversky,
    canonical,
    measure_of,
    promised_as,
    six_decimals,
)
from tests.support.drawn import job, settings_of, shingle_sets
from tests.support.engines import ENGINES, NEARDUP, RUN_LOCAL, Input, in_order, refuse, succeed

weights = st.fractions(0, 3, max_denominator=40)
parameters = st.tuples(weights, weights).filter(any)
thresholds = st.sampled_from(["0.05", "1/3", "0.5", "2/3", "0.75", "0.9", "1"])
sets_of = st.lists(shingle_sets.filter(bool), min_size=2, max_size=9)
LARGEST = 10**9


def name_of(a: Fraction, b: Fraction) -> str:
    return f"tversky:{a},{b}"


def expected(sets: list[frozenset[int]], a: Fraction, b: Fraction, t: str) -> dict:
    """Return {(i, j): similarity of i to j} by a nested loop; if undirected, only with i < j."""
    found = {}
    for i, j in permutations(range(len(sets)), 2):
        similarity = tversky(sets[i], sets[j], a, b)
        if similarity >= Fraction(t) and (a != b or i < j):
            found[i, j] = similarity
    return found


@given(sets_of, parameters, thresholds)
def test_the_measure_is_its_definition(sets, ab, t):
    measure = measure_of(name_of(*ab), Threshold.parse(t))
    rows = Ragged.from_rows([sorted(x) for x in sets])
    left, right = np.triu_indices(len(sets), 1)
    found = measure.verified(rows, left, right)
    pairs = zip(found.left.tolist(), found.right.tolist())
    values = map(Fraction, found.part.tolist(), found.whole.tolist())
    assert dict(zip(pairs, values)) == expected(sets, *ab, t)
    assert measure.directed == measure.nested == (ab[0] != ab[1])


@given(sets_of, parameters, thresholds)
def test_the_larger_of_both_directions_is_for_the_smaller_set(sets, ab, t):
    both = expected(sets, *ab, t)
    measure = measure_of(name_of(*ab), Threshold.parse(t)).undirected()
    rows = Ragged.from_rows([sorted(x) for x in sets])
    left, right = np.triu_indices(len(sets), 1)
    found = measure.verified(rows, left, right)
    values = map(Fraction, found.part.tolist(), found.whole.tolist())
    here = dict(zip(zip(found.left.tolist(), found.right.tolist()), values))
    assert not measure.directed
    assert here == {
        (i, j): max(both.get((i, j), 0), both.get((j, i), 0))
        for i, j in zip(left.tolist(), right.tolist())
        if (i, j) in both or (j, i) in both
    }


@given(parameters, thresholds)
def test_every_bound_holds_for_all_sizes(ab, t):
    measure = measure_of(name_of(*ab), Threshold.parse(t))
    x, y, common = (
        np.array(c) for c in zip(*((x, y, c) for x, y in product(range(1, 10), repeat=2)
                                   for c in range(1, min(x, y) + 1)))
    )  # fmt: skip
    able = measure.may_reach(common, x, y)
    assert (able == measure.may_reach(common, y, x)).all()
    x, y, common = x[able], y[able], common[able]
    assert (np.maximum(x, y) <= measure.largest_partner(np.minimum(x, y))).all()
    share = measure.smaller_share
    assert (common * share.den >= np.minimum(x, y) * share.num).all()
    least = measure.resemblance
    assert (least is None) == (min(ab) == 0)
    assert least is None or least.reached(common, x + y - common).all()
    assert promised_as(name_of(*ab)) == ("dice" if least else "containment")


@pytest.mark.parametrize("compiled", [True, False])
@given(sets=sets_of, ab=parameters, t=thresholds)
def test_the_join_in_memory_and_the_library(compiled, sets, ab, t):
    exactly = expected(sets, *ab, t)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "COMPILED", compiled and kernels.COMPILED)
        joined = join_by(measure_of(name_of(*ab), Threshold.parse(t)), Ragged.from_rows(sets))
        found = {*zip(joined.left.tolist(), joined.right.tolist())}
        assert found == {(min(pair), max(pair)) for pair in exactly}
        ways = [{"scheme": "prefix"}] + [{"exact": True}, {"scheme": "partition"}] * (min(ab) > 0)
        for how in ways:
            pairs = neardup.pairs(sets, t, measure=name_of(*ab), **how)
            assert {(a, b): similarity for a, b, similarity in pairs} == exactly


@given(sets=sets_of, ab=parameters, t=thresholds)
def test_mapper_and_reducer(sets, ab, t):
    records = {b"%d" % i: x for i, x in enumerate(sets)}
    exactly = expected(sets, *ab, t)
    lines = {
        b"%d\t%d\t%d.%06d\n" % (*pair, *divmod(round(value * 10**6), 10**6))
        for pair, value in exactly.items()
    }
    for scheme in ["prefix", "exact", "spotsigs"] if min(ab) else ["prefix"]:
        flags = f"--scheme={scheme}", f"--measure={name_of(*ab)}", f"--threshold={t}"
        assert set(job(records, *flags)) == lines


@pytest.mark.parametrize(
    ("name", "known"), [("1,1", "jaccard"), (".5,1/2", "dice"), ("1,0", "containment")]
)
@given(sets=sets_of, t=st.sampled_from(["0.3", "0.900000001", "1"]))
def test_special_parameters_are_other_measures(name, known, sets, t):
    rows = Ragged.from_rows([sorted(x) for x in sets])
    left, right = np.triu_indices(len(sets), 1)
    one, other = (measure_of(each, Threshold.parse(t)) for each in (f"tversky:{name}", known))
    mine, theirs = (each.verified(rows, left, right) for each in (one, other))
    for a, b in zip(mine[:2], theirs[:2]):
        assert a.tolist() == b.tolist()
    assert (mine.part * theirs.whole == theirs.part * mine.whole).all()
    assert one.resemblance == other.resemblance
    assert promised_as(f"tversky:{name}") in ("dice", known)


@given(
    st.tuples(*[st.integers(0, MAX_PARAMETER)] * 2, st.integers(1, MAX_PARAMETER)),
    st.lists(st.tuples(*[st.integers(LARGEST - 5, LARGEST)] * 2, st.integers(1, LARGEST - 5))),
    st.integers(1, MAX_DENOMINATOR),
)
def test_the_largest_sets_and_parameters_fit(abd, cells, num):
    a, b, d = abd
    if not a + b:
        return
    alpha, beta = Fraction(a, d), Fraction(b, d)
    threshold = Threshold(num, MAX_DENOMINATOR)
    measure = Tversky(threshold, alpha, beta)
    x, y, common = (np.array([cell[k] for cell in cells], np.int64) for k in range(3))
    values = [
        Fraction(c) / (c + alpha * (n - c) + beta * (m - c))
        for n, m, c in zip(x.tolist(), y.tolist(), common.tolist())
    ]
    assert six_decimals(*measure.fraction(common, x, y)) == [
        b"%d.%06d" % divmod(round(value * 10**6), 10**6) for value in values
    ]
    least = Fraction(num, MAX_DENOMINATOR)
    assert measure.reached(common, x, y).tolist() == [value >= least for value in values]


def test_parameters_have_one_form():
    assert canonical("tversky:1.0,2/10") == canonical("tversky:1,.2") == "tversky:1,0.2"
    assert canonical("tversky:1/3,0.0") == "tversky:1/3,0"
    assert canonical("agreement") == "agreement"


REFUSED = {
    "tversky": "tversky needs parameters: tversky:A,B",
    "tversky:": "tversky needs parameters: tversky:A,B",
    "tversky:1": "tversky:1 is not tversky:A,B, such as tversky:1,0.2",
    "tversky:1,2,3": "tversky:1,2,3 is not tversky:A,B, such as tversky:1,0.2",
    "tversky:A,B": "'A' is not a number such as 0.25 or 1/4, of at most 20 characters",
    "tversky:,": "'' is not a number such as 0.25 or 1/4, of at most 20 characters",
    "tversky:nan,1": "'nan' is not a number such as 0.25 or 1/4, of at most 20 characters",
    "tversky:1,inf": "'inf' is not a number such as 0.25 or 1/4, of at most 20 characters",
    "tversky:1e-3,1": "'1e-3' is not a number such as 0.25 or 1/4, of at most 20 characters",
    "tversky:1/0,1": "'1/0' is not a number such as 0.25 or 1/4, of at most 20 characters",
    "tversky:-1,1": "tversky:-1,1 needs numbers of 0 or more, not both 0",
    "tversky:0,0.0": "tversky:0,0.0 needs numbers of 0 or more, not both 0",
    "tversky:1,0.0001": "tversky:1,0.0001: a, b and d of a/d,b/d must be at most 4000; use up to "
    "3 decimals",
    "tversky:1/4001,1": "tversky:1/4001,1: a, b and d of a/d,b/d must be at most 4000; use up to "
    "3 decimals",
    "tversky:4001,1": "tversky:4001,1: a, b and d of a/d,b/d must be at most 4000; use up to 3 "
    "decimals",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    with pytest.raises(ValueError, match=f"^measure(: |=){re.escape(REFUSED[name])}$"):
        neardup.pairs([{1}, {1}], measure=name)


# On the command line.

DATA = b"".join(
    b"r%02d %b\n" % (i, b" ".join(b"%d" % n for n in [*range(i % 5, 9 + i % 13), 100 + i % 3]))
    for i in range(40)
)
SETS = {line.split()[0]: frozenset(map(int, line.split()[1:])) for line in DATA.splitlines()}


def lines_of(a: str, b: str, t: str) -> list[bytes]:
    ids, sets = zip(*SETS.items())
    found = expected(list(sets), Fraction(a), Fraction(b), t)
    return sorted(
        b"%b\t%b\t%d.%06d" % (ids[i], ids[j], *divmod(round(value * 10**6), 10**6))
        for (i, j), value in found.items()
    )


@pytest.mark.parametrize("engine", ["pipe", "run_local 1", "run_local 2", "mrjob inline"])
@pytest.mark.parametrize("ab", ["1,1/5", "0.3,0.3"])
def test_every_engine_writes_the_pairs_of_the_definition(engine, ab, tmp_path):
    (tmp_path / "sets.txt").write_bytes(DATA)
    flags = [f"--measure=tversky:{ab}", "--threshold=0.8", "--max-bands=60"]
    found = ENGINES[engine](Input(DATA, [str(tmp_path / "sets.txt")]), flags, tmp_path)
    assert in_order(found).splitlines() == lines_of(*ab.split(","), "0.8")


def command(*words: str | Path, tmp_path: Path) -> list[bytes]:
    return succeed([*NEARDUP, *words], tmp_path).out.splitlines()


@pytest.mark.parametrize("ab", ["1,0", "0,1", "1,0.2", "0.2,1", "2,2"])
def test_truth_find_audit_and_why(ab, tmp_path):
    path, index = tmp_path / "sets.txt", tmp_path / "index"
    path.write_bytes(DATA)
    flags = [f"--measure=tversky:{ab}", "--threshold=0.8"]
    lines = lines_of(*ab.split(","), "0.8")
    joins = ["bitmap_join", "nested_loop", *["all_pairs", "ppjoin_plus"] * ("0" not in ab[::2])]
    for join in joins:
        assert command("truth", f"--join={join}", *flags, path, tmp_path=tmp_path) == lines
    pairs = tmp_path / "pairs.tsv"
    made = [*RUN_LOCAL, "--scheme=prefix", *flags, path, "-o", pairs]
    succeed(made, tmp_path)
    assert pairs.read_bytes().splitlines() == lines
    rows = command("audit", *flags, path, pairs, tmp_path=tmp_path)
    assert b"recall                              1.000000" in [row.rstrip() for row in rows]
    why = b"\n".join(command("why", "--run", pairs, "r00", "r09", tmp_path=tmp_path))
    assert (b"A to B" in why) == (ab != "2,2")
    command("index", "--scheme=prefix", *flags, path, "--to", index, tmp_path=tmp_path)
    found = command("find", index, path, tmp_path=tmp_path)
    both = {(*line.split()[:2], line.split()[2]) for line in lines}
    both |= {(b, a, s) for a, b, s in both} if ab == "2,2" else set()
    both |= {(id_, id_, b"1.000000") for id_ in SETS}
    assert {tuple(line.split()) for line in found} == both


@pytest.mark.parametrize("ab", ["1,0.2", "0.2,1"])
def test_two_collections_name_the_contained_record(ab, tmp_path):
    (tmp_path / "old.txt").write_bytes(b"".join(DATA.splitlines(keepends=True)[:20]))
    (tmp_path / "new.txt").write_bytes(b"".join(DATA.splitlines(keepends=True)[20:]))
    flags = [f"--measure=tversky:{ab}", "--threshold=0.8", "--exact", "--against", "old.txt"]
    out = succeed([*RUN_LOCAL, *flags, "new.txt"], tmp_path, cwd=tmp_path).out
    found, inner = set(), 1 if ab == "0.2,1" else 0
    for line in out.splitlines():
        new, other, similarity, _, how = line.split(b"\t")
        pair = (new, other) if (how == b"contained") == (inner == 0) else (other, new)
        found.add(b"\t".join((*pair, similarity)))
    old = {b"r%02d" % i for i in range(20)}
    assert found == {
        line for line in lines_of(*ab.split(","), "0.8") if not {*line.split()[:2]} <= old
    }


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            "--measure tversky:1,0",
            "--scheme minhash cannot promise a recall for --measure tversky:1,0: a small set "
            "inside a large one has next to no Jaccard similarity; use --scheme prefix",
        ),
        (
            "--measure tversky:1,.5 --output links",
            "--measure tversky:1,0.5 has a direction, and --output links has none; use --output "
            "clusters, the larger of both directions",
        ),
        (
            "--measure tversky:1,1 --weights tf",
            "--weights tf is not for --measure tversky:1,1; use jaccard or dice",
        ),
        ("--measure tversky:1,-1", f"--measure: {REFUSED['tversky:-1,1'].replace('-1,1', '1,-1')}"),
        ("--measure tversky", f"--measure: {REFUSED['tversky']}"),
        ("--measure dice:1,1 --exact", "--measure: 'dice:1,1' is not one of jaccard, dice, "),
        (
            "--measure tversky:1,0.001 --threshold 0.0000001",
            "--threshold: a pair may have next to no Jaccard similarity; use a larger threshold",
        ),
    ],
)
def test_refusals_on_the_command_line(flags, message, tmp_path):
    refuse([*RUN_LOCAL, *flags.split(), "-"], tmp_path, message, stdin=b"a 1\n")


class Half(Tversky):
    """A measure that bounds the Jaccard similarity of its pairs only above a threshold of 1/2."""

    @property
    def resemblance(self) -> Threshold | None:
        return super().resemblance if float(self.threshold) > 0.5 else None


def test_a_scheme_is_refused_where_the_threshold_is_too_low_for_its_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(MEASURES, "tversky:A,B", Half)
    flags = ["--measure=tversky:2,2", "--scheme=minhash"]
    assert settings_of(*flags, "--threshold=0.51").scheme.recall(0.9) > 0.99
    with pytest.raises(UsageError, match="cannot promise a recall for --measure tversky:2,2: "):
        settings_of(*flags, "--threshold=0.5")
