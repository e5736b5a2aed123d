"""Pairs that are kept out are in no answer, and no other pair is lost or made up."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, UsageError
from neardup.runtime.summary import KEPT_OUT
from neardup.sets.ragged import Ragged
from neardup.verification.not_pairs import DIFFERENT, SAME, UNDONE, Verdict, set_digests
from tests.support.deciding import (
    SIZES,
    USUAL,
    Sizes,
    clique,
    copies,
    decide,
    decided_line,
    pairs_of,
    path,
    records,
    reduced,
)
from tests.support.decision_oracle import Line, cluster, components, direct
from tests.support.drawn import mapped, record_lines, settings_of
from tests.support.drawn import reduced as reduced_lines

Two = tuple[int, int]
HEADER = b"#neardup-verdicts\t--input=shingles --clean= --shingle=\n"
NONE = b"0" * 32


def verdict_line(a: Line, b: Line, verdict: bytes = DIFFERENT, text: int = 0) -> bytes:
    sets = set_digests(Ragged.from_rows([sorted(a.set), sorted(b.set)]))
    texts = (b"%032x" % text, NONE)
    return Verdict(verdict, texts, (sets[0], sets[1]), b"0.900000", (a.id, b.id)).format()


def listed(lines: Sequence[Line], chosen: Sequence[Two], judged: bool) -> bytes:
    """Return a file with the chosen pairs of places: verdicts, or ids."""
    pairs = [(lines[i], lines[j]) for i, j in chosen]
    if judged:
        return HEADER + b"".join(verdict_line(*two, text=n) for n, two in enumerate(pairs))
    return b"".join(b"%b\t%b\n" % (a.id, b.id) for a, b in pairs)


def is_out(a: Line, b: Line, lines: Sequence[Line], chosen: Sequence[Two], judged: bool) -> bool:
    """The definition: two records are kept out by their ids, or by their sets."""
    for x, y in ((lines[i], lines[j]) for i, j in chosen):
        if judged and x.set != y.set:
            if {a.set, b.set} == {x.set, y.set}:
                return True
        elif {a.id, b.id} == {x.id, y.id} and (not judged or a.set == b.set == x.set):
            return True
    return False


def left(lines: list[Line], pairs: dict[Two, str], chosen: Sequence[Two], judged: bool) -> dict:
    return {
        (i, j): similarity
        for (i, j), similarity in pairs.items()
        if not is_out(lines[i], lines[j], lines, chosen, judged)
    }


FOLDER = tempfile.TemporaryDirectory()


def with_file(data: bytes, flags: Sequence[str]) -> list[str]:
    path = Path(FOLDER.name) / "not.tsv"
    path.write_bytes(data)
    return [*flags, f"--not-pairs={path}"]


@st.composite
def cases(draw: st.DrawFn, old: bool = False) -> tuple[list[Line], list[Two], bool]:
    lines = draw(records(unique=draw(st.booleans()), old=old))
    pairs = sorted(pairs_of(lines, "0.6"))
    near = st.sampled_from(pairs) if pairs else st.nothing()
    chosen = draw(st.lists(near, max_size=4)) if pairs else []
    return lines, chosen, draw(st.booleans())


CHAIN = [Line(b"v%d" % i, set_) for i, set_ in enumerate([*path(0, 3), *copies(100, 3)])]
DENSE = [Line(b"v%02d" % i, set_) for i, set_ in enumerate(clique(0, 9))]
# An old record and its new copy, which has another old neighbour.
OLD = [Line(b"v0", DENSE[0].set, True), Line(b"v1", DENSE[1].set, True), Line(b"v2", DENSE[1].set)]
# v1 is removed because of v0, and its copy is not.
FATE = [Line(b"v0", DENSE[0].set), Line(b"v1", DENSE[1].set), Line(b"v2", DENSE[1].set)]
BRIDGE = [*DENSE, *(Line(b"c%d" % i, DENSE[1].set) for i in range(3))]


@given(cases(old=True), st.sampled_from(["0.6", "0.8", "1"]), SIZES, st.booleans())
@example((CHAIN, [(0, 1), (3, 4)], True), "0.6", USUAL, False)
@example((OLD, [(1, 2)], False), "0.6", USUAL, False)
@example((OLD, [(1, 2)], True), "0.6", USUAL, True)
@example((FATE, [(0, 2)], False), "0.6", USUAL, False)
@example((BRIDGE, [(1, 9), (0, 10), (0, 2)], False), "0.6", Sizes(2, 1, 100), False)
@example((BRIDGE, [(1, 9), (0, 10), (0, 2)], True), "0.6", Sizes(2, 1, 400), False)
def test_removals_are_those_of_the_pairs_that_are_left(
    case: tuple[list[Line], list[Two], bool], threshold: str, sizes: Sizes, between: bool
) -> None:
    lines, chosen, judged = case
    across = ["--against=old", *["--between"] * between] if any(x.old for x in lines) else []
    flags = ["--exact", f"--threshold={threshold}", "--output=removed", *across]
    pairs = left(lines, pairs_of(lines, threshold, bool(across) and between), chosen, judged)
    found = decide(lines, with_file(listed(lines, chosen, judged), flags), sizes)
    gone = direct(lines, pairs, "first")
    assert found.lines == [decided_line(lines, each) for each in gone]


@pytest.mark.parametrize("output", ["pairs", "removed", "clusters", "links"])
def test_mapper_and_reducer_need_the_same_list(output: str, tmp_path: Path) -> None:
    (tmp_path / "ids").write_bytes(b"a\tb\n")
    (tmp_path / "others").write_bytes(b"a\tc\n")
    lists = [[], [f"--not-pairs={tmp_path}/ids"], [f"--not-pairs={tmp_path}/others"]]
    for there, here in product(lists, repeat=2):
        mapper, reducer = (settings_of(f"--output={output}", *flags) for flags in (there, here))
        lines = mapped(record_lines({b"a": [1, 2], b"b": [1, 2], b"c": [1, 2]}), mapper)
        if there == here:
            assert reduced_lines(lines, reducer)
        else:
            with pytest.raises(StageError, match=r"these keys were not made with .*--not-pairs"):
                reduced_lines(lines, reducer)


@given(cases(), st.sampled_from(["0.6", "0.8", "1"]), SIZES)
@example((BRIDGE, [(1, 9), (0, 10), (0, 2)], False), "0.6", Sizes(2, 1, 100))
@example((BRIDGE, [(1, 9), (9, 10), (0, 2)], True), "0.6", Sizes(1, 1, 100))
def test_so_are_clusters_and_links(
    case: tuple[list[Line], list[Two], bool], threshold: str, sizes: Sizes
) -> None:
    lines, chosen, judged = case
    pairs = left(lines, pairs_of(lines, threshold), chosen, judged)
    flags = with_file(listed(lines, chosen, judged), ["--exact", f"--threshold={threshold}"])
    by_cluster = decide(lines, [*flags, "--output=removed", "--rule=cluster"], sizes)
    gone = sorted(cluster(lines, pairs, "first"))
    assert by_cluster.lines == [decided_line(lines, each) for each in gone]
    if len({line.id for line in lines}) == len(lines):
        links = reduced(lines, settings_of(*flags, "--output=links"), Counters(""), sizes)
        places = {line.id: i for i, line in enumerate(lines)}
        ends = [line.split(b"\t")[:2] for line in links]
        forest = {(places[a], places[b]): "" for a, b in ends}
        assert forest.keys() <= pairs.keys()
        both = {**forest, **{(b, a): "" for a, b in forest}}
        assert components(len(lines), both) == components(len(lines), pairs)


@given(cases(), st.sampled_from(["0.6", "1"]), SIZES)
def test_so_are_pairs(
    case: tuple[list[Line], list[Two], bool], threshold: str, sizes: Sizes
) -> None:
    lines, chosen, judged = case
    pairs = left(lines, pairs_of(lines, threshold), chosen, judged)
    counters = Counters("")
    flags = with_file(listed(lines, chosen, judged), ["--exact", f"--threshold={threshold}"])
    found = reduced(lines, settings_of(*flags), counters, sizes)
    two = [(lines[i].id, lines[j].id, each) for (i, j), each in pairs.items() if i < j]
    wanted = {b"%b\t%b\t%b\n" % (*sorted(ab), each.encode()) for *ab, each in two if len({*ab}) > 1}
    assert set(found) == wanted


@pytest.mark.parametrize("judged", [True, False])
def test_what_is_kept_out_is_counted_once(judged: bool) -> None:
    flags = ["--exact", "--threshold=0.6", "--output=removed"]
    found = decide(CHAIN, with_file(listed(CHAIN, [(0, 1)], judged), flags))
    assert len(found.lines) == len(decide(CHAIN, flags).lines) - 1
    assert found.counts[KEPT_OUT] == 1


def test_the_last_verdict_counts_and_only_with_these_sets(tmp_path: Path) -> None:
    a, b, *_ = CHAIN
    flags = ["--exact", "--threshold=0.6"]

    def pairs(data: bytes) -> int:
        settings = settings_of(*with_file(HEADER + data, flags))
        return len(reduced(CHAIN, settings, Counters(""), USUAL))

    every = pairs(b"")
    assert pairs(verdict_line(a, b)) == every - 1
    for later in (UNDONE, SAME):
        assert pairs(verdict_line(a, b) + verdict_line(a, b, later)) == every
    assert pairs(verdict_line(a, b) + verdict_line(a, b, SAME, text=1)) == every - 1
    assert pairs(verdict_line(a._replace(set=frozenset([1])), b)) == every


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a\n", "line 1: expected two ids"),
        (b"a\tb\nc\td\t0.9\n", "line 2: .* cut -f 1,2"),
        (b"a\t\xff\n", "UTF-8"),
        (b"\n", "line 1"),
        (HEADER.replace(b"shingles", b"text"), "grep \\^different"),
        (HEADER + b"different\ta", "sed -i"),
        (HEADER + b"different\ta\n", "line 2: expected a line of neardup judge"),
    ],
)
def test_other_files_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(StageError, match=said):
        settings_of(*with_file(data, []))


def test_what_cannot_be_kept_apart_is_refused() -> None:
    contained = ["--measure=containment", "--scheme=prefix", "--output=removed", "--against=x"]
    for flags in (["--verify=sketch"], contained):
        with pytest.raises(UsageError, match="--not-pairs"):
            settings_of(*with_file(b"a\tb\n", flags))
