"""`neardup run --audit N` counts the pairs of N ids that a nested loop finds, and those found."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.similarity.intervals import interval
from neardup.stages.sampled_pairs import IdSample
from tests.engines.test_scheme_choice import topical
from tests.support.cases import in_turn
from tests.support.engines import ANSWER, IN_FILES, NEARDUP, RUN_LOCAL, VIDEOS, Result, refuse
from tests.support.engines import succeed as succeeded

WEAK = ["--bands=2", "--rows=9"]  # misses a third of the pairs
TRUE = {tuple(line.split(b"\t")[:2]) for line in ANSWER.read_bytes().splitlines()}


def audited(result: Result) -> tuple[int, int, str]:
    """Return the pairs that were found, all pairs of the sample, and the rest of the line."""
    line = re.search(
        r"^audit: ([\d,]+) of the ([\d,]+) pairs? of .*; recall (.*)$", result.err, re.M
    )
    assert line, result.err
    found, pairs = (int(n.replace(",", "")) for n in line.groups()[:2])
    return found, pairs, line[3]


def drawn(size: int, lines: bytes) -> set[bytes]:
    sample = IdSample(size, seed=0)
    sample.add(parse_shingle_lines(lines)[0])
    return set(sample.records().ids)


@in_turn(2, output=["pairs", "kept", "removed", "marked"], memory=[[], IN_FILES], jobs=["1", "3"])
def test_the_pairs_of_a_sample(memory: list[str], output: str, jobs: str, tmp_path: Path) -> None:
    """The pairs of 300 ids, and those in the answer, or with a removed record in a decision."""
    ids = drawn(300, VIDEOS.read_bytes())
    true = {pair for pair in TRUE if ids & set(pair)}
    run = [*RUN_LOCAL, *WEAK, *memory, f"--jobs={jobs}", VIDEOS]
    more = [f"--removed={tmp_path}/removed"] if output in ("kept", "marked") else []
    result = succeeded([*run, "--audit=300", f"--output={output}", *more], tmp_path)
    lines = (tmp_path / "removed").read_bytes() if more else result.out
    ends = [line.split(b"\t")[:2] for line in lines.splitlines()]
    if output == "pairs":
        found = true & {tuple(pair) for pair in ends}
    else:
        gone = {id_ for id_, _ in ends}
        found = {pair for pair in true if gone & set(pair)}
    assert 0 < len(found) < len(true)
    share = f"{len(found) * 10**6 // len(true) / 10**6:.6f}"
    assert audited(result) == (
        len(found),
        len(true),
        f"{share}, {interval(len(found), len(true), 0.95)}",
    )


def test_an_audit_does_not_change_the_answer(tmp_path: Path) -> None:
    run = [*RUN_LOCAL, *WEAK, VIDEOS]
    assert succeeded([*run, "--audit=50"], tmp_path).out == succeeded(run, tmp_path).out


def test_an_audit_of_all_records_is_exact(tmp_path: Path) -> None:
    result = succeeded([*RUN_LOCAL, *WEAK, "--audit=2000", VIDEOS], tmp_path)
    found = len(result.out.splitlines())
    assert 0 < found < len(TRUE)
    assert audited(result) == (found, len(TRUE), f"{found / len(TRUE):.7f}"[:8] + ", exactly")


@pytest.mark.parametrize("memory", [[], IN_FILES])
@pytest.mark.parametrize("field", [None, "--within=site", "--across=site"])
def test_repeated_ids_and_fields(field: str | None, memory: list[str], tmp_path: Path) -> None:
    """A nested loop over rows, of which two have one id, counts the same pairs of ids."""
    letters = "abcdefghijklmnopqrst"
    rows = [(f"r{i % 38}", f"s{i % 3}", [*letters[: 18 + i % 3], f"w{i % 5}"]) for i in range(40)]
    text = "".join(f'{{"id":"{a}","site":"{b}","text":"{" ".join(c)}"}}\n' for a, b, c in rows)
    (tmp_path / "x.jsonl").write_text(text)
    true = set()
    for (a, s, x), (b, t, y) in combinations(rows, 2):
        same = field is None or (s == t) == field.startswith("--within")
        if a != b and same and 10 * len({*x} & {*y}) >= 9 * len({*x} | {*y}):
            true.add((min(a, b), max(a, b)))
    assert 0 < len(true) < len(rows) ** 2 // 2
    flags = ["--shingle=word:1", "--bands=1", "--rows=24", "--audit=99", *[field] * bool(field)]
    result = succeeded([*RUN_LOCAL, *flags, *memory, tmp_path / "x.jsonl"], tmp_path)
    found, pairs, _ = audited(result)
    assert pairs == len(true)
    assert found == len(result.out.splitlines()) < pairs


def test_pairs_kept_out_are_no_pairs(tmp_path: Path) -> None:
    a, b = sorted(TRUE)[0]
    (tmp_path / "out").write_bytes(a + b"\t" + b + b"\n")
    for output in ("pairs", "removed"):
        flags = [f"--output={output}", f"--not-pairs={tmp_path}/out", "--audit=2000"]
        assert audited(succeeded([*RUN_LOCAL, *flags, VIDEOS], tmp_path))[1] == len(TRUE) - 1


def test_fingerprints(tmp_path: Path) -> None:
    lines = "".join(f"p{i} {(0xF0F0F0F0F0F0F0F0 ^ (1 << i % 60)):016x}\n" for i in range(90))
    (tmp_path / "x").write_text(lines)
    flags = ["--input=fingerprints", "--bits=64", "--distance=1", "--audit=99"]
    result = succeeded([*RUN_LOCAL, *flags, tmp_path / "x"], tmp_path)
    assert audited(result)[:2] == (30, 30)  # i and i + 60 are equal, and others differ in two bits


@pytest.mark.parametrize("memory", [[], IN_FILES])
def test_a_run_that_chose_an_exact_join_needs_no_audit(memory: list[str], tmp_path: Path) -> None:
    lines = (f"r{i:05} {' '.join(map(str, set_))}\n" for i, set_ in enumerate(topical()))
    (tmp_path / "x").write_text("".join(lines))
    run = [*NEARDUP, "run", "--threshold=0.7", "--audit=9", *memory, tmp_path / "x"]
    result = succeeded(run, tmp_path)
    assert "audit: not needed; the exact join finds every pair\n" in result.err
    named = succeeded([*run, "--seed=0"], tmp_path)
    assert audited(named)[1] > 0


def test_records_without_a_pair(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a 1 2 3\nb 4 5 6\n")
    result = succeeded([*RUN_LOCAL, "--audit=9", tmp_path / "x"], tmp_path)
    assert "audit: all 2 ids form no pair, so that there is no recall\n" in result.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            "--exact",
            "--audit: --scheme exact finds every pair, so that there is nothing to measure",
        ),
        ("--threshold=0.05", "--audit: --scheme exact finds every pair"),
        (
            "--output=links",
            "--audit: links are not all pairs; type --output pairs, or leave it out",
        ),
        ("--output=clusters", "--audit: clusters are not all pairs; type --output pairs"),
        ("--verify=sketch", "--audit compares exact pairs; leave out --verify"),
        (f"--against={VIDEOS}", "--audit compares the records of one collection; leave it out"),
        ("--audit=0", "--audit: '0' is not an integer from 1 to 1000000"),
    ],
)
def test_what_cannot_be_audited(flags: str, said: str, tmp_path: Path) -> None:
    refuse([*RUN_LOCAL, "--audit=9", flags, VIDEOS], tmp_path, said)


@pytest.mark.slow
def test_a_page_has_the_recall_of_the_audit(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = succeeded([*RUN_LOCAL, *WEAK, "--audit=300", f"--report={page}", VIDEOS], tmp_path)
    recall = audited(result)[2].split(",")[0]
    assert f"<dt>Audited recall</dt><dd><b>{recall}</b>" in page.read_text()
