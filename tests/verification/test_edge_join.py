"""Pairs of two collections are those of a nested loop over old and new records."""

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from neardup.lines.answer_lines import parse_pair
from neardup.runtime.counters import Counters
from neardup.runtime.summary import OLD_RECORDS, REPEATED
from neardup.stages.pairs import dedup_pairs
from tests.support.deciding import SIZES, USUAL, Sizes, copies, records, reduced
from tests.support.decision_oracle import Line, jaccard, printed
from tests.support.drawn import settings_of


def contained(x: Line, y: Line) -> Fraction:
    """Return the share of x that is in y."""
    return Fraction(len(x.set & y.set), len(x.set))


def pairs(lines: list[Line], threshold: str, between: bool) -> list[bytes]:
    """Return the lines of all pairs of a new record with an old or, unless `between`, a new one.

    New records with one id are not a pair.
    """
    best: dict[tuple, Fraction] = {}
    for a, b in permutations(lines, 2):
        first_is_first = not a.old and (b.old or a.id < b.id)
        if first_is_first and not (between and not b.old) and jaccard(a, b) >= Fraction(threshold):
            pair = a.id, b.id, b"old" if b.old else b"new"
            best[pair] = max(jaccard(a, b), best.get(pair, Fraction(0)))
    return sorted(
        b"%b\t%b\t%b\t%b\n" % (a, b, printed(similarity).encode(), which)
        for (a, b, which), similarity in best.items()
    )


def directed(lines: list[Line], threshold: str, between: bool) -> list[bytes]:
    """Return the lines of pairs where y contains x and one is new; a new record comes first."""
    best: dict[tuple, Fraction] = {}
    for x, y in permutations(lines, 2):
        same = x.id == y.id and x.old == y.old
        wanted = x.old != y.old or not (x.old or between)
        if wanted and not same and contained(x, y) >= Fraction(threshold):
            ways = (y.id, x.id, b"old\tcontains") if x.old else (x.id, y.id, _way(y))
            best[ways] = max(contained(x, y), best.get(ways, Fraction(0)))
    return sorted(
        b"%b\t%b\t%b\t%b\n" % (a, b, printed(similarity).encode(), which)
        for (a, b, which), similarity in best.items()
    )


def _way(y: Line) -> bytes:
    return b"old\tcontained" if y.old else b"new\tcontained"


def found(lines: list[Line], flags: list[str], sizes: Sizes = USUAL) -> list[bytes]:
    """Return the job's lines after removing repeated pairs."""
    lines_ = reduced(lines, settings_of(*flags), Counters("test"), sizes)
    return sorted(dedup_pairs(lines_, Counters("dedup")))


SAME = [Line(b"v", frozenset({1, 2, 3}), i < 2) for i in range(4)]
ORDERS = ["--scheme=prefix", "--measure=containment"]
# A large old one with a small new one in it, and the other way round; one that is as large.
NESTED = [
    Line(id_, frozenset(range(low, high)), old)
    for id_, low, high, old in [
        (b"a", 0, 20, True),
        (b"b", 0, 10, False),
        (b"c", 5, 10, True),
        (b"b", 0, 10, True),
        (b"d", 100, 120, False),
        (b"e", 100, 110, False),
        (b"a", 0, 20, False),
    ]
]
NESTED.sort(key=lambda line: not line.old)


@given(records(old=True), st.sampled_from(["0.6", "0.8"]), st.booleans(), SIZES)
@example(SAME, "0.8", False, USUAL)
@example(SAME, "0.8", True, Sizes(bucket_bytes=60))
@example([line._replace(old=True) for line in SAME], "0.8", False, USUAL)
def test_every_pair_that_has_a_new_record(lines, threshold, between, sizes):
    flags = ["--exact", f"--threshold={threshold}", "--against=old", *["--between"] * between]
    expected = pairs(lines, threshold, between)
    assert len(expected) < len(lines) * (len(lines) - 1) / 2
    assert found(lines, flags, sizes) == expected


@pytest.mark.slow
@settings(max_examples=10)
@given(records(old=True), st.sampled_from(["0.6", "0.8", "1"]), st.booleans(), SIZES)
@example(SAME, "1", False, USUAL)
@example(NESTED, "1", False, USUAL)
@example(NESTED, "0.5", True, Sizes(bucket_bytes=60))
def test_which_is_contained_in_which(lines, threshold, between, sizes):
    flags = [*ORDERS, f"--threshold={threshold}", "--against=old", *["--between"] * between]
    assert found(lines, flags, sizes) == directed(lines, threshold, between)


def test_what_the_columns_say():
    flags = ["--exact", "--threshold=0.8", "--against=old"]
    assert found(SAME[1:3], flags) == [b"v\tv\t1.000000\told\n"]
    new = [Line(id_, frozenset({1})) for id_ in (b"b", b"a")]
    assert found(new, flags) == [b"a\tb\t1.000000\tnew\n"]
    assert found(new, [*flags, "--between"]) == []
    flags = [*ORDERS, "--threshold=1", "--against=old"]
    assert found([NESTED[0]._replace(old=True), Line(b"z", frozenset({3}))], flags) == [
        b"z\ta\t1.000000\told\tcontained\n"
    ]
    assert found([NESTED[1], Line(b"z", frozenset(range(30)))], flags) == [
        b"z\tc\t1.000000\told\tcontains\n"
    ]


def test_no_two_old_records_are_compared():
    lines = [Line(b"v%d" % i, x, True) for i, x in enumerate(copies(0, 3) * 10)]
    counters = Counters("test")
    assert reduced(lines, settings_of("--exact", "--against=old"), counters, USUAL) == []
    assert counters.counts.get("candidate pairs", 0) == 0


@pytest.mark.parametrize("other", [frozenset({1, 2, 3}), frozenset({1, 2, 3, 4, 5, 6, 7, 8, 9})])
def test_ids_that_repeat_are_told_without_a_tag(other):
    """A repeated id of new records is counted once; an old record's equal id is not a repeat."""
    nine = frozenset(range(1, 10))
    lines = [Line(b"v", nine, True), Line(b"v", nine), Line(b"v", nine | {10}), Line(b"w", other)]
    counters = Counters("test")
    result = reduced(lines, settings_of("--exact", "--against=old"), counters, USUAL)
    assert {parse_pair(line)[:2] for line in result} >= {(b"v", b"v")}
    assert counters.counts[REPEATED] == 1
    assert counters.repeated == b"v"


def test_old_records_are_counted():
    settings = settings_of("--exact", "--against=old")
    from neardup.reading.blocks import Block, first_place
    from neardup.stages.pairs import parsed

    counters = Counters("test")
    blocks = [
        Block("", 1, b"a 1\nb 2\nbad\n", "", first_place(0, new=False)),
        Block("", 1, b"c 3\n"),
    ]
    assert len(list(parsed(blocks, settings, counters))) == 2
    assert (counters.counts["records"], counters.counts[OLD_RECORDS]) == (3, 2)


@pytest.mark.parametrize("order", [1, -1])
def test_of_a_repeated_pair_the_highest_similarity_is_kept(order: int) -> None:
    lines = [b"a\tb\t0.800000\n", b"a\tb\t0.900000\n"][::order]
    assert list(dedup_pairs(lines, Counters("dedup"))) == [b"a\tb\t0.900000\n"]
