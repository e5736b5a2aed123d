"""Figures of a run's summary equal the counts of a nested loop; two are only bounded by them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest

from tests.support.deciding import clique, copies, pairs_of, path, record_line, star
from tests.support.decision_oracle import Line, components, direct
from tests.support.engines import INLINE, MAPPER, REDUCER, RUN_LOCAL, in_order, succeed
from tests.support.programs import Command

THRESHOLD = "0.8"
EXACT = ["--exact", f"--threshold={THRESHOLD}"]
SETS = [*path(0, 5), *copies(100, 4), *star(200, 6), *clique(300, 4), *copies(400, 1)]
OLD_SETS = [*copies(100, 3), *path(0, 2), *copies(500, 2)]
NEW = [Line(b"n%02d" % i, set_) for i, set_ in enumerate(SETS)]
OLD = [Line(b"o%02d" % i, set_, True) for i, set_ in enumerate(OLD_SETS)]
OUTPUTS = {  # with --against and --between, where it takes them
    "pairs": [[], ["--against"], ["--against", "--between"]],
    "links": [[]],
    "clusters": [[]],
    "removed": [[], ["--against"], ["--against", "--between"]],
    "kept": [[], ["--against"], ["--against", "--between"]],
}
RUNS = [(output, flags) for output, some in OUTPUTS.items() for flags in some]


def summary(said: str) -> dict[str, int]:
    found = re.findall(r"^(\D+?)  +([\d,]+)(?:  \(.*\))?$", said, re.M)
    return {name: int(count.replace(",", "")) for name, count in found}


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("command", "output", "flags"),
    [
        *((RUN_LOCAL, *run) for run in RUNS),
        (INLINE, "pairs", ["--against"]),
        pytest.param(INLINE, "pairs", [], marks=pytest.mark.slow),
        pytest.param(INLINE, "pairs", ["--against", "--between"], marks=pytest.mark.slow),
        pytest.param(INLINE, "links", [], marks=pytest.mark.slow),
    ],
)
def test_each_figure_is_what_its_name_says(
    tmp_path: Path, command: Command, output: str, flags: list[str]
) -> None:
    new, old = tmp_path / "new.txt", tmp_path / "old.txt"
    new.write_bytes(b"".join(map(record_line, NEW)) + b"bad x\n")
    old.write_bytes(b"".join(map(record_line, OLD)))
    given = [flag if flag != "--against" else f"--against={old}" for flag in flags]
    result = succeed([*command, "-v", *EXACT, f"--output={output}", *given, new], tmp_path)
    lines = [*OLD, *NEW] if flags else NEW
    pairs = pairs_of(list(lines), THRESHOLD, "--between" in flags)
    counts = summary(result.err)
    assert counts["records"] == len(lines)
    assert counts.get("… old ones", 0) == len(lines) - len(NEW)
    assert counts["bad lines"] == 1
    assert counts["repeated ids"] == 0
    printed = len(result.out.splitlines())
    if output == "pairs":
        assert counts["pairs"] == counts["unique pairs"] == printed == len(pairs) // 2
        # All pairs share a key; what shares one but is too unlike in size is no candidate.
        assert len(pairs) // 2 <= counts["candidate pairs"] <= comparable(lines, flags)
        assert {"comparisons", "pairs used"}.isdisjoint(counts)
        return
    assert {"candidate pairs", "pairs"}.isdisjoint(counts)
    clusters = components(len(lines), pairs)
    inside = sum(map(len, clusters))
    if output == "links":
        assert counts["unique pairs"] == printed
    elif output == "clusters":
        assert counts["records in clusters"] == inside == printed
        assert counts["clusters"] == len(clusters)
    else:
        gone = direct(list(lines), pairs, "first")
        assert counts["records removed"] == len(gone) > 0
        assert counts["records kept"] == len(NEW) - len(gone)
        # The bad line is kept.
        assert printed == (len(gone) if output == "removed" else len(NEW) - len(gone) + 1)
    if not flags:
        assert counts["pairs used"] >= inside - len(clusters)
        assert counts["pairs used"] < len(pairs) // 2
        if output != "links":
            assert counts["records of the largest cluster"] == max(map(len, clusters))


def comparable(lines: Sequence[Line], flags: Sequence[str]) -> int:
    """Return the number of pairs that --against and --between allow to be compared."""
    return sum(
        not (a.old and b.old) and ("--between" not in flags or a.old != b.old)
        for a, b in combinations(lines, 2)
    )


@pytest.mark.parametrize("between", [False, True])
def test_candidates_are_pairs_that_may_be_printed(tmp_path: Path, between: bool) -> None:
    """Candidate pairs never count two old records, even if old and new records have equal sets."""
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    sets = [frozenset(range(10)), frozenset(range(9))]
    for file, names in ((old, b"opq"), (new, b"ab")):
        lines = [Line(b"%c%d" % (name, i), set_) for name in names for i, set_ in enumerate(sets)]
        file.write_bytes(b"".join(map(record_line, lines)))
    flags = [f"--against={old}", *["--between"] * between]
    said = succeed([*RUN_LOCAL, "-v", *EXACT, *flags, new], tmp_path).err
    # Of 6 old and 4 new records, all alike.
    assert summary(said)["pairs"] == summary(said)["candidate pairs"] == 24 + 6 * (not between)


def test_a_crowd_is_not_said_to_be_without_pairs(tmp_path: Path) -> None:
    """A dense cluster, whose pairs the reducer does not count, is not reported to have no pairs."""
    alike = [Line(b"v%d" % i, frozenset([*range(30), 99 + i])) for i in range(70)]
    near = b"".join(map(record_line, alike))
    flags = [*EXACT, "--output=removed"]
    keyed = in_order(succeed([*MAPPER, *flags], tmp_path, near).out)
    said = succeed([*REDUCER, "-v", *flags], tmp_path, keyed).err
    assert summary(said)["pairs used"] == 0
    assert "No two records" not in said
    apart = in_order(succeed([*MAPPER, *flags], tmp_path, b"a 1 2 3\nb 2 3 4\n").out)
    assert "No two records" in succeed([*REDUCER, *flags], tmp_path, apart).err
