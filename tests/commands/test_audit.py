"""The counts of `evaluate` and `audit` equal those of set operations on the lines."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from neardup.commands import audit
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.runtime import program
from neardup.sets.ragged import Batch, Ragged
from neardup.similarity.intervals import clopper_pearson
from neardup.stages.sampled_pairs import IdSample
from tests.support.engines import ANSWER, NEARDUP, RUN_LOCAL, VIDEOS, Result, refuse, run, succeed

EVALUATE, AUDIT = [*NEARDUP, "evaluate"], [*NEARDUP, "audit"]
TRUE = ANSWER.read_bytes().splitlines(keepends=True)


def ends(line: bytes) -> list[bytes]:
    return line.split(b"\t")[:2]


def number(result: Result, name: str) -> str:
    """Return the value in the row with this name, without the note."""
    found = re.search(rf"^{name} +(\S+)", result.out.decode(), re.M)
    assert found, result.out
    return found[1]


def damaged(lines: list[bytes], missing: int, extra: int) -> list[bytes]:
    """Return the lines shuffled, without `missing` of them, and with `extra` wrong pairs."""
    rng = random.Random(1)
    lines = rng.sample(lines, len(lines) - missing)
    lines += [b"VIDEO_%09d\tVIDEO_%09d\t0.950000\n" % (2 * i + 1, 2 * i + 2) for i in range(extra)]
    rng.shuffle(lines)
    assert len(set(lines) - set(TRUE)) == extra
    return lines


def test_evaluate_counts(tmp_path: Path) -> None:
    pairs, truth = tmp_path / "pairs.tsv.gz", tmp_path / "truth.tsv.bz2"
    pairs.write_bytes(gzip.compress(b"".join(damaged(TRUE, missing=40, extra=30))))
    truth.write_bytes(bz2.compress(b"".join(reversed(TRUE))))
    result = succeed([*EVALUATE, pairs, truth, "--confidence", "0.99"], tmp_path)
    low, high = clopper_pearson(750, 790, 0.01)
    ends_ = f"{low - 5e-7:.6f} to {high + 5e-7:.6f}"  # rounded outwards
    expected = f"""\
true positives                           750  printed, and true
false positives                           30  printed, but not true
false negatives                           40  true, but not printed
precision                           0.961538
recall                              0.949367  {ends_} with confidence 0.99
F1                                  0.955414
"""
    assert result.out.decode() == expected
    assert result.err == ""


def test_evaluate_says_what_else_differs(tmp_path: Path) -> None:
    (tmp_path / "pairs").write_bytes(b"a\tb\t0.900000\t\nb\tc\t0.950000\na\tb\t0.900000\n")
    (tmp_path / "truth").write_bytes(b"a\tb\t0.900000\nb\tc\t0.960000\n")
    result = succeed([*EVALUATE, tmp_path / "pairs", tmp_path / "truth"], tmp_path)
    assert [number(result, name) for name in ("precision", "recall", "F1")] == ["1.000000"] * 3
    repeats = "lines that repeat a pair: 1"
    differs = f"lines with another similarity than in {tmp_path}/truth: 1"
    assert result.err.splitlines() == [repeats, differs]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.csv", "x.parquet", "x.arrow"])
def test_pairs_as_rows(name: str, tmp_path: Path) -> None:
    """Pairs that -o wrote as rows give the same counts as lines in evaluate and audit."""
    if name in ("x.parquet", "x.arrow"):
        pytest.importorskip("pyarrow")
    succeed([*RUN_LOCAL, "-o", tmp_path / name, VIDEOS], tmp_path)
    lines, rows = damaged(TRUE, missing=40, extra=30), tmp_path / name
    (tmp_path / "pairs.tsv").write_bytes(b"".join(lines))
    for pairs, truth in ((tmp_path / "pairs.tsv", rows), (rows, tmp_path / "pairs.tsv")):
        assert number(succeed([*EVALUATE, pairs, truth], tmp_path), "true positives") == "750"
    by_lines = succeed([*AUDIT, VIDEOS, ANSWER], tmp_path).out
    assert succeed([*AUDIT, VIDEOS, rows], tmp_path).out == by_lines


@pytest.mark.parametrize("command", [[*AUDIT, VIDEOS, "x.tsv"], [*EVALUATE, "x.tsv", ANSWER]])
def test_links_are_refused(command: list[str | Path], tmp_path: Path) -> None:
    """Links are not all pairs, as the run file beside them says."""
    succeed([*RUN_LOCAL, "--output=links", "-o", tmp_path / "x.tsv", VIDEOS], tmp_path)
    said = "x.tsv: has links, not all pairs; run again with --output pairs"
    refuse(command, tmp_path, said, cwd=tmp_path)


def test_evaluate_without_pairs(tmp_path: Path) -> None:
    """A precision or recall without pairs to divide by is printed as "-", not as 0.000000."""
    (tmp_path / "none").write_bytes(b"")
    result = succeed([*EVALUATE, tmp_path / "none", ANSWER], tmp_path)
    assert (number(result, "precision"), number(result, "recall")) == ("-", "0.000000")
    result = succeed([*EVALUATE, "-", tmp_path / "none"], tmp_path, ANSWER.read_bytes())
    assert (number(result, "precision"), number(result, "recall")) == ("0.000000", "-")


@pytest.mark.slow
def test_an_audit_of_all_ids_counts_exactly(tmp_path: Path) -> None:
    (tmp_path / "pairs").write_bytes(b"".join(damaged(TRUE, missing=40, extra=30)))
    result = succeed([*AUDIT, "--sample", "2000", VIDEOS, tmp_path / "pairs"], tmp_path)
    expected = """\
ids looked at                          2,000  all, so the values are exact
their pairs                              790
found                                    750
missed                                    40
printed, but not a pair                   30
recall                              0.949367
precision                           0.961538
"""
    assert result.out.decode().startswith(expected)
    assert result.count("records") == 2000


@pytest.mark.first_case
@pytest.mark.parametrize("seed", [0, 7])
def test_an_audit_of_some_ids(seed: int, tmp_path: Path) -> None:
    """An audit of a sample, with two files and pairs on stdin, gives exact counts and intervals."""
    lines = VIDEOS.read_bytes().splitlines(keepends=True)
    (tmp_path / "1.gz").write_bytes(gzip.compress(b"".join(lines[:700])))
    (tmp_path / "2").write_bytes(b"".join(lines[700:]))
    printed = damaged(TRUE, missing=200, extra=300)
    flags = ["--sample", "150", "--seed", str(seed), tmp_path / "1.gz", tmp_path / "2", "-"]
    result = succeed([*AUDIT, *flags], tmp_path, b"".join(printed))
    sample = IdSample(150, seed)
    sample.add(parse_shingle_lines(VIDEOS.read_bytes())[0])
    drawn = set(sample.records().ids)
    true = {line for line in TRUE if drawn & set(ends(line))}
    mine = {line for line in printed if drawn & set(ends(line))}
    assert len(drawn) == 150
    assert 10 < len(true & mine) < min(len(true), len(mine))
    names = ["ids looked at", "their pairs", "found", "missed", "printed, but not a pair"]
    counts = [len(drawn), len(true), len(true & mine), len(true - mine), len(mine - true)]
    assert [int(number(result, name)) for name in names] == counts
    for name, n in ("recall", len(true)), ("precision", len(mine)):
        low, high = clopper_pearson(len(true & mine), n, 0.05)
        (row,) = re.findall(rf"^{name} +\S+  (\S+) to (\S+) with", result.out.decode(), re.M)
        assert 0 <= low - float(row[0]) <= 1e-6
        assert 0 <= float(row[1]) - high <= 1e-6
    missed = sorted(true - mine)
    title = f"missed (the first 10 of {len(missed)}):" if len(missed) > 10 else "missed:"
    assert b"%b\n%b" % (title.encode(), b"".join(missed[:10])) in result.out


@pytest.mark.slow
def test_an_audit_by_measures_with_and_without_direction(tmp_path: Path) -> None:
    videos = tmp_path / "videos.txt"
    videos.write_bytes(b"".join(VIDEOS.read_bytes().splitlines(keepends=True)[:700]))
    for measure in ("containment", "tversky:1,0.2", "cosine"):
        job = [*RUN_LOCAL, "--scheme", "prefix", "--measure", measure, videos]
        lines = succeed(job, tmp_path).lines()
        assert len(lines) > 50
        (tmp_path / "pairs").write_bytes(b"".join(lines[5:]))
        flags = ["--measure", measure, "--sample", "700", videos, tmp_path / "pairs"]
        result = succeed([*AUDIT, *flags], tmp_path)
        assert number(result, "their pairs").replace(",", "") == str(len(lines))
        assert number(result, "missed") == "5"
        assert number(result, "printed, but not a pair") == "0"
        assert b"missed:\n" + b"".join(lines[:5]) in result.out


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["tf", "tfidf"])
def test_an_audit_of_a_weighted_run(weights: str, tmp_path: Path) -> None:
    """An audit counts weighted pairs, and prints a `why` command that confirms a missed pair."""
    videos = tmp_path / "videos.txt"
    lines = VIDEOS.read_bytes().splitlines()[:1000]
    videos.write_bytes(b"".join(b"%b %b\n" % (x, b" ".join(x.split()[1:9])) for x in lines))
    flags = ["--weights", weights, "--threshold", "0.8"]
    pairs = succeed([*RUN_LOCAL, *flags, videos], tmp_path).lines()
    assert len(pairs) > 5
    (tmp_path / "pairs").write_bytes(b"".join(pairs[2:]) + b"VIDEO_0\tVIDEO_1\t0.900000\n")
    result = succeed([*AUDIT, *flags, "--sample", "1000", videos, tmp_path / "pairs"], tmp_path)
    truth = succeed([*NEARDUP, "truth", *flags, videos], tmp_path).lines()
    assert truth == pairs
    assert int(number(result, "their pairs")) == len(truth)
    assert int(number(result, "found")) == len(truth) - 2
    assert b"missed:\n" + b"".join(pairs[:2]) in result.out
    assert b"with another similarity" not in result.out
    hint = shlex.split(result.out.decode().splitlines()[-1])
    assert f"--weights={weights}" in hint
    assert b"verdict     a pair" in succeed([*NEARDUP, *hint[3:]], tmp_path).out


@pytest.mark.slow
def test_an_id_that_comes_twice_has_its_highest_similarity(tmp_path: Path) -> None:
    """A pair of ids counts once, with its highest similarity; no id is paired with itself."""
    (tmp_path / "records").write_bytes(
        b"a 1 2 3 4 5 6 7 8 9\nb 1 2 3 4 5 6 7 8 9\nb 1 2 3 4 5 6 7 8 9 10\nb 1 2 3 4 5 6 7 8 9\n"
        b"c 1 2 3 4 5 6 7 8 9 10\n"
    )
    pairs = succeed([*RUN_LOCAL, "--exact", tmp_path / "records"], tmp_path)
    assert pairs.out == b"a\tb\t1.000000\na\tc\t0.900000\nb\tc\t1.000000\n"
    result = succeed([*AUDIT, tmp_path / "records", "-"], tmp_path, pairs.out)
    assert number(result, "their pairs") == "3"
    assert b"found                                      3\n" in result.out


def test_the_hint_leads_to_the_reason(tmp_path: Path) -> None:
    """The `why` command that audit prints names the fields, and with the job's options a reason."""
    weak = ["--bands", "2", "--rows", "12"]
    path, letters = tmp_path / "it's rows.jsonl", " ".join("abcdefghijklmnopqrst")
    rows = ({"key": f"t{i}", "body": f"{letters} {i}"} for i in range(9))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ["--threshold=0.8", "--shingle=word:1", "--id=key", "--text=body"]
    pairs = succeed([*RUN_LOCAL, *weak, *flags, path], tmp_path).out
    (tmp_path / "pairs").write_bytes(pairs)
    result = succeed([*AUDIT, *flags, path, tmp_path / "pairs"], tmp_path)
    assert int(number(result, "missed")) > 0
    hint = shlex.split(result.out.decode().splitlines()[-1])
    assert hint[:4] == ["python3", "-m", "neardup", "why"]
    why = succeed([*NEARDUP, *hint[3:], *weak], tmp_path)
    assert b"that is MISSED: no key in both" in why.out


@pytest.mark.slow
def test_an_audit_sees_another_similarity(tmp_path: Path) -> None:
    pairs = ANSWER.read_bytes().replace(b"\t1.000000", b"\t0.999999", 3)
    result = succeed([*AUDIT, "--sample", "2000", VIDEOS, "-"], tmp_path, pairs)
    assert b"790  3 with another similarity\n" in result.out


@pytest.mark.slow
def test_audit_reads_files_twice(tmp_path: Path) -> None:
    for name in ("-", "/dev/stdin"):
        # As a process: its standard input is a pipe.
        said = f"audit: {name}: must be read twice, but is not a regular file; copy it to one\n"
        refuse([*AUDIT, name, ANSWER], tmp_path, said, stdin=VIDEOS.read_bytes(), process=True)


def test_an_audit_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "none").write_bytes(b"")
    result = succeed([*AUDIT, tmp_path / "none", tmp_path / "none"], tmp_path)
    assert number(result, "ids looked at") == "0"
    assert number(result, "recall") == "-"


@pytest.mark.parametrize(("good", "ids"), [(2, "2"), (0, "0")])
def test_the_answer_is_printed_where_too_many_lines_are_bad(
    good: int, ids: str, tmp_path: Path
) -> None:
    (tmp_path / "videos").write_bytes(b"a 1 2 3\nb 1 2 3\n" * (good > 0) + b"x\n" * 3)
    (tmp_path / "pairs").write_bytes(b"a\tb\t1.000000\n" * (good > 0))
    result = run([*AUDIT, tmp_path / "videos", tmp_path / "pairs"], tmp_path)
    assert result.code == 1
    assert number(result, "ids looked at") == ids
    assert number(result, "precision") == ("1.000000" if good else "-")
    assert "3 of " in result.err or "none of 3 lines could be read" in result.err


def batch(ids: list[bytes]) -> Batch:
    return Batch(ids, Ragged.from_rows([[i] for i in range(len(ids))]))


def test_a_sample_does_not_depend_on_order_or_blocks() -> None:
    """A sample depends on neither order nor blocks, and has all records of an id or none."""
    ids = [b"%d" % (i % 70) for i in range(300)]
    wanted = None
    for size in (1, 7, 300):
        for some in (ids, ids[::-1]):
            sample = IdSample(5, seed=3)
            for low in range(0, 300, size):
                sample.add(batch(some[low : low + size]))
            drawn = sample.records().ids
            wanted = wanted or set(drawn)
            assert set(drawn) == wanted
            assert len(wanted) == 5
            assert len(drawn) == sum(id_ in wanted for id_ in ids)
            assert not sample.whole


@pytest.mark.parametrize(("ids", "whole"), [(4, True), (5, True), (6, False)])
def test_a_sample_knows_whether_it_is_whole(ids: int, whole: bool) -> None:
    sample = IdSample(5, seed=0)
    for _ in range(10):
        sample.add(batch([b"%d" % i for i in range(ids)]))
    assert len(set(sample.records().ids)) == min(ids, 5)
    assert sample.whole == whole


@pytest.mark.slow
def test_every_id_is_as_likely() -> None:
    """Each of 20 ids is in a sample of 5 with probability 1/4.

    The probability of a false alarm is below 1e-9 in total.
    """
    counts = np.zeros(20)
    for seed in range(1000):
        sample = IdSample(5, seed)
        sample.add(batch([b"VIDEO_%d" % i for i in range(20)]))
        counts += [b"VIDEO_%d" % i in sample.records().ids for i in range(20)]
    for count in counts.tolist():
        low, high = clopper_pearson(int(count), 1000, 1e-9 / 20)
        assert low <= 0.25 <= high
    assert clopper_pearson(350, 1000, 1e-9 / 20)[0] > 0.25  # a lean towards some would be noticed


def test_an_input_that_changed_between_its_two_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An audit fails if its input changed between the two readings."""
    data = tmp_path / "data.txt"
    data.write_bytes(VIDEOS.read_bytes())
    monkeypatch.setattr(sys, "argv", ["audit", str(data), str(ANSWER)])
    records = IdSample.records

    def changed(self: IdSample) -> Batch:
        data.write_bytes(VIDEOS.read_bytes()[:100_000])
        return records(self)

    for harm, code in ((records, 0), (changed, 1)):
        monkeypatch.setattr(IdSample, "records", harm)
        assert program.run("neardup audit", audit.main) == code
    assert f"{data}: changed while it was read; run again" in capsys.readouterr().err
