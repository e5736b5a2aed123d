"""A decision on records equals the oracle's, and has the properties that every decision has.

The records are paths, stars, cliques, ties and copies, in any order, under ids that repeat; what is
large in real life, such as a dense cluster, is small here (`tests.support.deciding.Sizes`).
"""

from __future__ import annotations

import random
import re
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from neardup.reading.blocks import NEW
from neardup.runtime.counters import Counters
from neardup.runtime.summary import (
    CHAINED,
    CHAINED_AWAY,
    CLUSTERS,
    COMPARISONS,
    IN_CLUSTERS,
    LARGEST,
    REMOVED,
    REPEATED,
    USED,
)
from tests.support.cases import crossed
from tests.support.deciding import (
    SIZES,
    Decision,
    Sizes,
    copies,
    decide,
    decided_line,
    nested,
    pairs_of,
    path,
    records,
    reduced,
    star,
)
from tests.support.decision_oracle import (
    CONTAINMENT,
    Line,
    cluster,
    components,
    direct,
    jaccard,
    longest_before,
    order,
    printed,
    reasons_to_remove,
)
from tests.support.drawn import settings_of

KEEPS = ["first", "longest", "smallest"]
THRESHOLDS = st.sampled_from(["0.6", "0.7", "0.8", "0.9", "1"])
a_few = settings(max_examples=8)  # of each of many measures, or beside a test with the oracle
SOME_KEEP = st.sampled_from(KEEPS)


def flags_of(threshold: str, *more: str, output: str = "removed") -> list[str]:
    return ["--exact", f"--threshold={threshold}", f"--output={output}", *more]


def named(sets: list[frozenset[int]], old: int = 0) -> list[Line]:
    return [Line(b"v%02d" % i, set_, i < old) for i, set_ in enumerate(sets)]


def has_both(lines: list[Line], pairs: dict[tuple[int, int], str]) -> bool:
    """Return whether at least two records form a pair and at least two do not."""
    return 0 < len(pairs) < len(lines) * (len(lines) - 1)


# Against the oracle.


@pytest.mark.parametrize("edge_bytes", [250, 500, 1000])
def test_removed_records_are_in_order_of_priority(edge_bytes: int) -> None:
    """Some records of a batch are decided at once, others one by one; the lines are in order."""
    sets = [*path(0, 12), *star(100, 8), *copies(200, 4), *path(300, 9)]
    random.Random(0).shuffle(sets)
    lines = decide(named(sets), flags_of("0.8"), Sizes(edge_bytes=edge_bytes)).lines
    assert len(lines) == 22
    assert lines == sorted(lines)  # the first field is the place, which is the priority


@pytest.mark.slow
@given(SOME_KEEP, records(), THRESHOLDS, SIZES)
@example(
    "first", named(star(0, 11)), "0.9", Sizes(dense=3, batch=2)
)  # all because of the first one
@example("first", named(star(0, 11)[::-1]), "0.9", Sizes(dense=3, batch=2))  # which comes last
@example("first", named([*path(0, 9), *path(0, 9)]), "0.8", Sizes(dense=1, bucket_bytes=100))
def test_rule_direct(keep, lines, threshold, sizes):
    pairs = pairs_of(lines, threshold)
    assert pairs or threshold in ("0.9", "1")
    assert len(pairs) < len(lines) * (len(lines) - 1)
    gone = direct(lines, pairs, keep)
    result = decide(lines, flags_of(threshold, f"--keep={keep}"), sizes)
    assert sorted(result.lines) == sorted(decided_line(lines, each) for each in gone)
    together = components(len(lines), pairs)
    chained = sum(len(some) - 1 for some in together) - len(gone)
    assert result.counts[REMOVED] == len(gone)
    assert result.counts[CHAINED] == chained
    assert result.counts[LARGEST] == max(map(len, together), default=0)
    assert CHAINED_AWAY not in result.counts


@pytest.mark.slow
@given(SOME_KEEP, records(), THRESHOLDS, SIZES)
def test_rule_cluster(keep, lines, threshold, sizes):
    pairs = pairs_of(lines, threshold)
    gone = cluster(lines, pairs, keep)
    flags = flags_of(threshold, f"--keep={keep}", "--rule=cluster")
    result = decide(lines, flags, sizes)
    assert sorted(result.lines) == sorted(decided_line(lines, each) for each in gone)
    assert result.counts[REMOVED] == len(gone)
    assert result.counts[CHAINED_AWAY] == sum(each.similarity == "-" for each in gone)
    assert CHAINED not in result.counts


@pytest.mark.slow
@given(SOME_KEEP, records(old=True), st.sampled_from(["0.6", "0.7", "0.8"]), st.booleans(), SIZES)
@example("longest", named([*copies(0, 6), *path(100, 3)], old=2), "0.6", True, Sizes(dense=1))
@example(
    "longest", named([*copies(0, 6), *path(100, 3)], old=2), "0.6", False, Sizes(bucket_bytes=100)
)
@example("longest", named(star(0, 11), old=5), "0.8", False, Sizes(dense=2, batch=1))
def test_of_new_records(keep, lines, threshold, between, sizes):
    """With old records, a decision equals the greedy oracle's, and removes no old record."""
    pairs = pairs_of(lines, threshold, between)
    assume(pairs)
    assert has_both(lines, pairs)
    flags = flags_of(threshold, f"--keep={keep}", "--against=old", *["--between"] * between)
    result = decide(lines, flags, sizes)
    gone = direct(lines, pairs, keep)
    assert sorted(result.lines) == sorted(decided_line(lines, each) for each in gone)
    assert not any(lines[each.place].old for each in gone)


VALUES = st.sampled_from(["^(.)", "(.)$", "([0-9]*)$"])  # few, more, and one for each record


def valued_pairs(
    lines: list[Line], threshold: str, pattern: str, between: bool = False
) -> dict[tuple[int, int], str]:
    """Return the pairs with different values; each id has one."""
    found = [re.search(pattern, line.id.decode("utf-8", "replace")) for line in lines]
    values = [each and each[1] for each in found]
    pairs = pairs_of(lines, threshold, between)
    return {(i, j): pair for (i, j), pair in pairs.items() if values[i] != values[j]}


ALL_COPIES = named([*copies(0, 9), *copies(50, 9), *path(100, 5), *star(100, 6)])
MANY_VALUES = [line._replace(id=b"%c%02d" % (97 + i % 5, i)) for i, line in enumerate(ALL_COPIES)]


@pytest.mark.slow
@given(SOME_KEEP, records(unique=True, old=True), THRESHOLDS, VALUES, st.booleans(), SIZES)
@example("first", MANY_VALUES, "0.6", "^(.)", False, Sizes(dense=2, batch=2))
@example("first", MANY_VALUES, "0.6", "([0-9]*)$", False, Sizes(dense=2, bucket_bytes=400))
@example("smallest", MANY_VALUES, "0.8", "^(.)", False, Sizes(dense=1, bucket_bytes=100))
def test_records_of_different_values(keep, lines, threshold, pattern, between, sizes):
    """Equal sets are joined once for each value (--across); the answer is that of all pairs."""
    pairs = valued_pairs(lines, threshold, pattern, between)
    assume(pairs)
    old = any(line.old for line in lines)
    across = f"--across=id:{pattern}"
    flags = flags_of(threshold, across, f"--keep={keep}", *["--against=old"] * old)
    flags += ["--between"] * (old and between)
    pairs = valued_pairs(lines, threshold, pattern, old and between)
    gone = direct(lines, pairs, keep)
    result = decide(lines, flags, sizes)
    assert sorted(result.lines) == sorted(decided_line(lines, each) for each in gone)
    together = components(len(lines), pairs)
    new = [[not lines[i].old for i in some] for some in together]
    assert result.counts[CHAINED] == sum(sum(some) - all(some) for some in new) - len(gone)
    if old:
        return
    assert result.counts[LARGEST] == max(map(len, together), default=0)
    result = decide(lines, [*flags, "--rule=cluster"], sizes)
    gone = cluster(lines, pairs, keep)
    assert sorted(result.lines) == sorted(decided_line(lines, each) for each in gone)
    settings = settings_of(*flags_of(threshold, across, output="pairs"))
    found = sorted(reduced(lines, settings, Counters("test"), sizes))
    each = ((lines[i].id, lines[j].id, s.encode()) for (i, j), s in pairs.items())
    assert found == sorted(b"%b\t%b\t%b\n" % pair for pair in each if pair[0] < pair[1])
    result = decide(lines, flags_of(threshold, across, output="clusters"), sizes)
    ids = [[lines[i].id for i in some] for some in together]
    assert sorted(result.lines) == sorted(
        b"%b\t%b\n" % (min(some), id_) for some in ids for id_ in some
    )


@given(SOME_KEEP, records(old=True), st.booleans())
def test_what_chaining_would_remove_of_new_records(keep, lines, between):
    pairs = pairs_of(lines, "0.7", between)
    new = [
        [not lines[i].old for i in together] for together in components(len(lines), pairs)
    ]  # one of each would stay: an old one, if there is one
    chained = sum(sum(some) - all(some) for some in new)
    flags = flags_of("0.7", f"--keep={keep}", "--against=old", *["--between"] * between)
    counts = decide(lines, flags).counts
    assert counts[CHAINED] == chained - counts[REMOVED]


@pytest.mark.slow
@given(records(), THRESHOLDS, SIZES)
def test_clusters(lines, threshold, sizes):
    together = components(len(lines), pairs_of(lines, threshold))
    result = decide(lines, flags_of(threshold, output="clusters"), sizes)
    ids = [[lines[i].id for i in some] for some in together]
    assert sorted(result.lines) == sorted(
        b"%b\t%b\n" % (min(some), id_) for some in ids for id_ in some
    )
    assert result.counts[IN_CLUSTERS] == sum(map(len, together))
    assert result.counts[CLUSTERS] == len(together)
    assert result.counts[LARGEST] == max(map(len, together), default=0)


@pytest.mark.slow
@crossed(
    keep=KEEPS, flags=["--bands=3 --rows=4", "--scheme=prefix", "--scheme=partition"], dense=[2, 64]
)
def test_of_the_pairs_that_a_scheme_finds(keep, flags, dense):
    """A decision uses exactly the pairs that the same options print, whichever pairs they are."""
    rng = random.Random(3)
    sets = [set_ for base in range(0, 3000, 100) for set_ in star(base, 11) + path(base + 50, 5)]
    lines = named(rng.sample(sets, len(sets)))
    options = [*flags.split(), "--threshold=0.8"]
    pairs = {}
    for line in reduced(lines, settings_of(*options), Counters("pairs"), Sizes()):
        a, b, similarity = line.decode().split()
        i, j = int(a[1:]), int(b[1:])
        pairs[i, j] = pairs[j, i] = similarity
    every = pairs_of(lines, "0.8")
    assert has_both(lines, pairs)
    assert pairs.items() <= every.items()
    assert (pairs == every) == ("--bands" not in flags)
    result = decide(lines, [*options, "--output=removed", f"--keep={keep}"], Sizes(dense=dense))
    gone = direct(lines, pairs, keep)
    assert sorted(result.lines) == sorted(decided_line(lines, each) for each in gone)


@pytest.mark.parametrize("sizes", [Sizes(), Sizes(dense=1, batch=1)])
def test_a_copy_has_the_best_reason_of_those_that_were_kept_before_it(sizes: Sizes) -> None:
    """Of two equal records, the later one may duplicate a record that came between them."""
    twice = frozenset(range(10))
    sets = [{*range(8), 20, 21}, twice, {*range(1, 10), 30}, twice]
    lines = named([frozenset(some) for some in sets])
    found = reasons(lines, decide(lines, flags_of("0.6"), sizes))
    assert found == {b"v01": (b"v00", "0.666667"), b"v03": (b"v02", "0.818182")}


@pytest.mark.parametrize(
    "flags",
    [
        "--output=removed",
        "--output=removed --rule=cluster --keep=longest",
        "--output=kept --against=old --keep=smallest",
        "--output=marked --across=id:([0-9])$",
        "--output=marked --against=old --between",
        "--output=clusters",
    ],
)
@pytest.mark.parametrize("dense", [2, 64])
def test_what_does_not_fit_into_memory_is_decided_in_parts(flags: str, dense: int) -> None:
    """The lines, their order and the counts are those of a decision in memory.

    Kept rows are merged: each line then has the place of the kept row, too.
    """
    bases = range(0, 800, 100)
    sets = [set_ for i in bases for set_ in [*star(i, 7), *path(i + 50, 5), *copies(i + 70, 3)]]
    rng = random.Random(1)
    lines = named(rng.sample(sets, len(sets)), old=36 if "against" in flags else 0)
    lines = [line._replace(id=b"v%02d" % (i % 90)) for i, line in enumerate(lines)]
    options = ["--exact", "--threshold=0.7", *flags.split()]
    merge = {"tags": None} if "kept" in flags else {}
    whole = decide(lines, options, Sizes(dense=dense), merge=merge)
    parts = decide(lines, options, Sizes(dense=dense, held=1000, edge_bytes=500), merge=merge)
    assert not merge or all(line.count(b"\t") == 4 for line in whole.lines)
    assert parts.lines == whole.lines
    assert len(whole.lines) > 40
    ways = {COMPARISONS, USED, REPEATED}  # depend on the batches, in dense clusters
    assert parts.counts.keys() == whole.counts.keys()
    different = {name for name in whole.counts if parts.counts[name] != whole.counts[name]}
    assert different <= ways


# Containment, and the overlap coefficient: a longer record is never removed for a shorter one.


BY_PART = ["containment", "overlap", "tversky:1,0", "tversky:1,0.2", "tversky:0.2,1"]
WAYS = ["", "--rule=cluster", "--against=old", "--against=old --between"]


@pytest.mark.parametrize("more", WAYS)
@pytest.mark.parametrize("measure", BY_PART)
def test_a_longer_record_is_never_removed_for_a_shorter_one(measure: str, more: str) -> None:
    for seed, keep in enumerate(KEEPS):
        sets = [*nested(0, 7), *nested(0, 3), *nested(100, 7), *path(200, 5)]
        lines = named(random.Random(seed).sample(sets, len(sets)), old=8)
        assert longest_stay(measure, keep, lines, "0.8", more, Sizes(dense=[2, 64, 64][seed]))


@pytest.mark.slow
@pytest.mark.parametrize("measure", BY_PART)
@a_few
@given(
    SOME_KEEP,
    records(shapes=[nested, nested, path, copies], old=True),
    st.sampled_from(["0.5", "0.8", "1"]),
    st.sampled_from(WAYS),
    SIZES,
)
def test_a_record_is_removed_for_one_that_is_not_shorter(
    measure, keep, lines, threshold, more, sizes
):
    longest_stay(measure, keep, lines, threshold, more, sizes)


def longest_stay(
    measure: str, keep: str, lines: list[Line], threshold: str, more: str, sizes: Sizes
) -> int:
    """Check a decision with the oracle of containment; return the number of removed records."""
    if "--against" not in more:
        lines = [line._replace(old=False) for line in lines]
    _, _, weights = measure.partition(":")  # the contained record has the larger one
    weigh = sorted(map(Fraction, weights.split(",")))[::-1] if weights else CONTAINMENT
    pairs = reasons_to_remove(lines, Fraction(threshold), weigh)
    if "--between" in more:
        pairs = {(i, k): s for (i, k), s in pairs.items() if lines[i].old != lines[k].old}
    both = {**pairs, **{(k, i): similarity for (i, k), similarity in pairs.items()}}
    rank = longest_before(lines, keep)
    gone = cluster(lines, both, rank) if "cluster" in more else direct(lines, pairs, rank)
    flags = ["--scheme=prefix", f"--measure={measure}", "--output=removed", f"--keep={keep}"]
    result = decide(lines, [*flags, f"--threshold={threshold}", *more.split()], sizes)
    old = {lines[i].set: i for i in reversed(order(lines, rank)) if lines[i].old}
    # Of old records that contain it, the one with the same set is named.
    gone = [each._replace(kept=old.get(lines[each.place].set, each.kept)) for each in gone]
    assert sorted(result.lines) == sorted(decided_line(lines, each) for each in gone)
    return len(gone)


@pytest.mark.slow
@given(records(shapes=[nested, nested, path, copies]), THRESHOLDS, SIZES)
def test_clusters_by_containment_are_those_of_either_direction(lines, threshold, sizes):
    pairs = reasons_to_remove(lines, Fraction(threshold))
    both = {**pairs, **{(k, i): similarity for (i, k), similarity in pairs.items()}}
    flags = ["--scheme=prefix", "--measure=containment", "--output=clusters"]
    result = decide(lines, [*flags, f"--threshold={threshold}"], sizes)
    together = [[lines[i].id for i in some] for some in components(len(lines), both)]
    assert sorted(result.lines) == sorted(
        b"%b\t%b\n" % (min(some), id_) for some in together for id_ in some
    )


# What holds of every decision, without an oracle.


def reasons(lines: list[Line], result: Decision) -> dict[bytes, tuple[bytes, str]]:
    """Return, for each removed id, the kept record that it duplicates and their similarity."""
    found = {}
    for line in result.lines:
        _, id_, kept, similarity = line.rstrip(b"\n").split(b"\t")
        found[id_] = kept, similarity.decode()
    assert len(found) == len(result.lines)
    assert found.keys() < {line.id for line in lines}  # somebody always stays
    return found


@pytest.mark.slow
@a_few
@given(SOME_KEEP, records(unique=True), THRESHOLDS, SIZES)
def test_no_two_that_stay_are_a_pair(keep, lines, threshold, sizes):
    gone = reasons(lines, decide(lines, flags_of(threshold, f"--keep={keep}"), sizes))
    staying = [line for line in lines if line.id not in gone]
    assert all(jaccard(a, b) < Fraction(threshold) for a, b in combinations(staying, 2))


@pytest.mark.slow
@a_few
@given(
    SOME_KEEP, records(unique=True, old=True), st.sampled_from(["0.6", "0.8"]), st.booleans(), SIZES
)
def test_no_new_one_that_stays_is_a_pair(keep, lines, threshold, between, sizes):
    """No kept new record is a pair with an old one or, without --between, with a kept new one."""
    flags = flags_of(threshold, f"--keep={keep}", "--against=old", *["--between"] * between)
    gone = reasons(lines, decide(lines, flags, sizes))
    staying = [line for line in lines if line.id not in gone]
    assert {line for line in lines if line.old} <= set(staying)
    for a, b in combinations(staying, 2):
        if a.old != b.old or not (a.old or between):
            assert jaccard(a, b) < Fraction(threshold)


@pytest.mark.slow
@a_few
@given(
    SOME_KEEP, records(unique=True, old=True), st.sampled_from(["0.6", "0.8"]), st.booleans(), SIZES
)
def test_each_reason_is_the_best_of_those_that_stay_before(keep, lines, threshold, against, sizes):
    """The reason is the most similar old record, or else the most similar earlier kept record."""
    if not against:
        lines = [line._replace(old=False) for line in lines]
    flags = flags_of(threshold, f"--keep={keep}", *["--against=old"] * against)
    gone = reasons(lines, decide(lines, flags, sizes))
    in_order = [lines[i] for i in order(lines, keep)]
    for rank, line in enumerate(in_order):
        before = [other for other in in_order[:rank] if other.id not in gone]
        pairs = [other for other in before if jaccard(line, other) >= Fraction(threshold)]
        if line.id in gone:
            best = max(pairs, key=lambda other: (other.old, jaccard(line, other)))  # the first one
            assert gone[line.id] == (best.id, printed(jaccard(line, best)))
        else:
            assert line.old or not pairs


@pytest.mark.slow
@a_few
@given(records(unique=True), THRESHOLDS, st.randoms(use_true_random=False), SIZES)
def test_the_order_of_the_input_does_not_matter_to_the_smallest_id(lines, threshold, rng, sizes):
    flags = flags_of(threshold, "--keep=smallest")
    shuffled = rng.sample(lines, len(lines))
    there = reasons(lines, decide(lines, flags, sizes))
    assert reasons(shuffled, decide(shuffled, flags)) == there


@pytest.mark.slow
@a_few
@given(records(unique=True), THRESHOLDS, SIZES)
def test_one_of_each_cluster_stays(lines, threshold, sizes):
    gone = reasons(lines, decide(lines, flags_of(threshold, "--rule=cluster"), sizes))
    clusters = decide(lines, flags_of(threshold, output="clusters"), sizes).lines
    members: dict[bytes, list[bytes]] = {}
    for line in clusters:
        cluster_, id_ = line.rstrip(b"\n").split(b"\t")
        members.setdefault(cluster_, []).append(id_)
    assert sum(map(len, members.values())) == len(clusters)
    for some in members.values():
        (stays,) = set(some) - gone.keys()
        assert {gone[id_][0] for id_ in some if id_ != stays} == {stays}
    assert gone.keys() <= {id_ for some in members.values() for id_ in some}


@pytest.mark.parametrize("dense", [1, 64])
def test_a_chain_is_cut_by_the_rule_of_pairs_and_goes_by_that_of_clusters(dense):
    """In a chain a–b–c, c is kept by default, and removed with --rule=cluster."""
    lines = [Line(b"abc"[i : i + 1], set_) for i, set_ in enumerate(path(0, 3))]
    place = b"%016x" % NEW
    second, third = place[:-1] + b"1", place[:-1] + b"2"
    b = second + b"\tb\ta\t0.818182\n"
    result = decide(lines, flags_of("0.8"), Sizes(dense=dense))
    assert (result.lines, result.counts[CHAINED]) == ([b], 1)
    result = decide(lines, flags_of("0.8", "--rule=cluster"), Sizes(dense=dense))
    assert (result.lines, result.counts[CHAINED_AWAY]) == ([b, third + b"\tc\ta\t-\n"], 1)


@pytest.mark.slow
def test_two_near_copies_alone_in_a_bucket_that_is_too_large_for_memory():
    """Two near-copies, the smallest possible cluster, are decided in a bucket kept on disk."""
    lines = named([frozenset(range(40)), frozenset(range(1, 40)), frozenset(range(90, 130))])
    found = reasons(lines, decide(lines, flags_of("0.9"), Sizes(bucket_bytes=60)))
    assert found == {lines[1].id: (lines[0].id, "0.975000")}


def test_of_equal_reasons_the_first_record_is_named():
    """Of equally similar kept records, the first is named as the reason for a removal."""
    sets = (range(1, 13), range(7, 19), range(4, 16))
    lines = named([frozenset(some) for some in sets])
    first, _, third = (line.id for line in lines)
    result = decide(lines, flags_of("0.6"))
    assert result.lines == [b"%016x\t%b\t%b\t0.600000\n" % (NEW + 2, third, first)]


def test_nothing_to_decide():
    for output in ("removed", "kept", "clusters"):
        for lines in ([], named([frozenset({1}), frozenset({2})])):
            assert decide(lines, flags_of("0.9", output=output)).lines == []
