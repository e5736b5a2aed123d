"""`judge` shows pairs once, keeps verdicts with the texts they are about, and weighs strata."""

from __future__ import annotations

import fcntl
import re
import signal
import subprocess
from fractions import Fraction
from itertools import product
from math import comb
from pathlib import Path

import numpy as np
import pytest

from neardup.runtime.program import StageError
from neardup.tools.judge.precision import ALPHA, Strata, _low_end, ends, report
from neardup.verification.not_pairs import DIFFERENT, SAME, UNDONE, Verdict, read_verdicts
from tests.support.engines import NEARDUP, ROOT, Result, refuse, succeed
from tests.support.programs import environment

JUDGE = [*NEARDUP, "judge"]
TEXTS = {
    "a": "to be or not to be",
    "b": "to be or not to see",
    "c": "to be <script>alert(1)</script> to see",
    "d": "to be or not to fly",
}
LINES = ["a\tb\t0.900000", "a\tc\t0.500000", "b\tc\t0.750000", "a\td\t0.910000"]
BASIC = ["--input=text", "--shingle=word:1", "--terminal"]


def texts(**changed: str) -> bytes:
    return b"".join(f"{id_}\t{text}\n".encode() for id_, text in {**TEXTS, **changed}.items())


def judge(
    tmp: Path, keys: bytes, *flags: str, records: bytes | None = None, lines: list[str] = LINES
) -> Result:
    (tmp / "pairs.tsv").write_text("".join(f"{line}\n" for line in lines))
    (tmp / "texts.tsv").write_bytes(texts() if records is None else records)
    names = [tmp / "pairs.tsv", "--records", tmp / "texts.tsv"]
    return succeed([*JUDGE, *names, *BASIC, *flags], tmp, keys)


def pairs_shown(result: Result) -> list[tuple[str, str]]:
    return re.findall(r"^A  (\S+)\nB  (\S+)$", result.err, re.MULTILINE)


def verdicts(tmp: Path) -> list[Verdict]:
    lines = (tmp / "pairs.tsv.verdicts").read_bytes().splitlines(keepends=True)
    return list(map(Verdict.parse, lines[1:]))


def test_all_are_shown_once_and_only_what_is_open_later(tmp_path: Path) -> None:
    first = judge(tmp_path, b"sd q")
    assert len(pairs_shown(first)) == 4 == len(set(pairs_shown(first)))
    assert "<script>" in first.err
    later = pairs_shown(judge(tmp_path, b"ss"))
    assert later == [pairs_shown(first)[i] for i in (2, 3)]
    last = judge(tmp_path, b"sss")
    assert not pairs_shown(last)
    assert [each.verdict for each in verdicts(tmp_path)] == [SAME, DIFFERENT, SAME, SAME]
    assert judge(tmp_path, b"", "--estimate").out == last.out
    assert b"all                    4       4       3  0.7500" in last.out


def test_strata_come_in_turn(tmp_path: Path) -> None:
    many = [f"a\tb\t0.{n}00000" for n in range(1, 6)] + [f"a\tc{n}\t0.99{n:04}" for n in range(50)]
    records = texts() + b"".join(b"c%d\tto be %d\n" % (n, n) for n in range(50))
    found = judge(tmp_path, b"s" * 4, "--sample=4", lines=many, records=records)
    assert len({pair[1][0] for pair in pairs_shown(found)}) == 2  # of strata of 5 and 50 pairs


def test_undo_takes_back_what_was_answered(tmp_path: Path) -> None:
    shown = pairs_shown(judge(tmp_path, b"usuds uq"))  # u before the first does nothing
    first, second, third, fourth = dict.fromkeys(shown)
    assert shown == [first, first, second, first, second, third, fourth, third]
    assert [each.verdict for each in verdicts(tmp_path)] == [SAME, UNDONE, DIFFERENT, SAME]
    assert pairs_shown(judge(tmp_path, b"")) == [third]  # shown until the input ends
    assert pairs_shown(judge(tmp_path, b" ")) == [third, fourth]
    verdict = {each.ids: each.verdict for each in verdicts(tmp_path)}
    assert verdict == {_ids(first): DIFFERENT, _ids(second): SAME}


def _ids(pair: tuple[str, str]) -> tuple[bytes, bytes]:
    return pair[0].encode(), pair[1].encode()


def test_a_verdict_is_about_texts_under_any_ids(tmp_path: Path) -> None:
    judge(tmp_path, b"dddd")
    renamed = texts().replace(b"a\t", b"x\t", 1)
    lines = [line.replace("a\t", "x\t") for line in LINES]
    assert not pairs_shown(judge(tmp_path, b"", records=renamed, lines=lines))
    changed = judge(tmp_path, b"", records=texts(a="to be or to be"))
    assert {a for a, _ in pairs_shown(changed)} == {"a"}
    assert b"from 0.75              1       1       0" in changed.out  # that of b and c holds


def test_a_line_that_was_cut_short_is_lost_with_a_word(tmp_path: Path) -> None:
    judge(tmp_path, b"ssss")
    file = tmp_path / "pairs.tsv.verdicts"
    file.write_bytes(file.read_bytes()[:-9])
    again = judge(tmp_path, b"d")
    assert "cut short" in again.err
    assert len(pairs_shown(again)) == 1
    assert [each.verdict for each in verdicts(tmp_path)] == [SAME, SAME, SAME, DIFFERENT]


@pytest.mark.slow
def test_a_kill_loses_no_answer_that_was_taken(tmp_path: Path) -> None:
    judge(tmp_path, b"")
    words = [*JUDGE, tmp_path / "pairs.tsv", "--records", tmp_path / "texts.tsv", *BASIC]
    with subprocess.Popen(
        words, stdin=-1, stderr=-1, stdout=-1, cwd=ROOT, env=environment(tmp_path)
    ) as process:
        assert process.stdin
        assert process.stderr
        process.stdin.write(b"sd")
        process.stdin.flush()
        while b"3 of 4" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGKILL)
    assert [each.verdict for each in verdicts(tmp_path)] == [SAME, DIFFERENT]
    assert len(pairs_shown(judge(tmp_path, b""))) == 1  # the third, at the end of the input


def test_two_judges_cannot_write_one_file(tmp_path: Path) -> None:
    judge(tmp_path, b"s")
    with open(tmp_path / "pairs.tsv.verdicts") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        words = [*JUDGE, tmp_path / "pairs.tsv", "--records", tmp_path / "texts.tsv", *BASIC]
        refuse(words, tmp_path, "another judge", "--verdicts", code=1)
        assert succeed([*words, "--estimate"], tmp_path).out  # reads only
    (tmp_path / "pairs.tsv.verdicts").unlink()
    refuse([*words, "--estimate"], tmp_path, "no verdicts yet; leave out --estimate", code=1)
    assert not (tmp_path / "pairs.tsv.verdicts").exists()


@pytest.mark.parametrize(
    ("records", "lines", "said"),
    [
        (texts(), [], "has no pairs"),
        (texts(), ["a\tgone\t0.900000"], "an id has no record in --records: 1 pair"),
        (texts() + b"a\tanother\n", LINES, "an id has several records: 3 pairs"),
        (texts() + b"e\t\xff\n", LINES, ""),
        (b"", LINES, "an id has no record in --records: 4 pairs"),
    ],
)
def test_what_cannot_be_shown_is_counted(
    tmp_path: Path, records: bytes, lines: list[str], said: str
) -> None:
    assert said in judge(tmp_path, b"", "--max-bad=1", records=records, lines=lines).err


@pytest.mark.parametrize(
    ("flags", "records"),
    [
        (["--input=shingles"], b"a 1 2 3\nb 1 2 4\n"),
        (["--input=fingerprints", "--bits=32"], b"a 00ff0000\nb 01ff0000\n"),
        (["--input=jsonl"], b'{"id": "a", "text": "to be"}\n{"id": "b", "text": "to see"}\n'),
    ],
)
def test_every_kind_of_record_can_be_judged(
    tmp_path: Path, flags: list[str], records: bytes
) -> None:
    (tmp_path / "records").write_bytes(records)
    (tmp_path / "pairs").write_text("a\tb\t0.500000\n")
    names = [tmp_path / "pairs", "--records", tmp_path / "records", "--terminal"]
    found = succeed([*JUDGE, *names, *flags], tmp_path, b"s")
    assert "[-" in found.err
    assert "{+" in found.err
    assert b" 1.0000" in found.out


@pytest.mark.parametrize(
    ("flags", "said", "code"),
    [
        (["--shingle=word:2"], "grep ^different", 1),
        (["--sample=0"], "--sample", 2),
        (["--verdicts="], "--verdicts", 2),
    ],
)
def test_refusals(tmp_path: Path, flags: list[str], said: str, code: int) -> None:
    judge(tmp_path, b"s")
    words = [*JUDGE, tmp_path / "pairs.tsv", "--records", tmp_path / "texts.tsv", *BASIC]
    refuse([*words, *flags], tmp_path, said, code=code)
    (tmp_path / "other").write_bytes(b"a\tb\n")
    refuse([*words, "--verdicts", tmp_path / "other"], tmp_path, "is not a file of", code=1)
    assert (tmp_path / "other").read_bytes() == b"a\tb\n"


# ---- what an estimate is made from


COOKIES = [f"p{i}\tq{j}\t0.900000" for i in range(60) for j in range(60)]
SITES = [f"r{i}\ts{i}\t0.900000" for i in range(600)]
COPIES = b"".join(b"p%d\tour cookies\nq%d\tyour cookies\n" % (i, i) for i in range(60))
COPIES += b"".join(b"r%d\tsite %d\ns%d\tsite %d now\n" % (i, i, i, i) for i in range(600))


def answers(tmp: Path, *flags: str) -> bytes:
    """Return the keys of a person who judges copies different, and all else the same."""
    shown = pairs_shown(judge(tmp, b" " * 5000, *flags, records=COPIES, lines=COOKIES + SITES))
    return b"".join(b"d" if a[0] == "p" else b"s" for a, _ in shown)


def test_a_verdict_counts_for_each_drawn_pair_with_its_texts(tmp_path: Path) -> None:
    keys = answers(tmp_path, "--sample=5000")
    assert (len(keys), keys.count(b"d")) == (601, 1)
    found = judge(tmp_path, keys, "--sample=5000", records=COPIES, lines=COOKIES + SITES)
    assert found.out.splitlines()[2].split()[:5] == b"all 4,200 4,200 600 0.1429".split()


def test_a_draw_goes_on_past_equal_texts(tmp_path: Path) -> None:
    assert len(answers(tmp_path, "--sample=300")) == 300
    some = judge(tmp_path, b"s" * 9, "--sample=9", records=COPIES, lines=COOKIES + SITES)
    _, judged, same = map(int, some.out.splitlines()[1].replace(b",", b"").split()[2:5])
    assert judged == same > 9
    assert "not in the estimate" not in some.err  # later copies of what counts are not named


def test_verdicts_of_another_draw_save_questions_only(tmp_path: Path) -> None:
    """100 pairs of a first file, all the same, are a sixth of the second; all others differ."""
    judge(tmp_path, b"s" * 100, records=COPIES, lines=SITES[:100])
    few = judge(tmp_path, b"d" * 10, "--sample=10", records=COPIES, lines=SITES)
    assert len(pairs_shown(few)) == 10
    assert few.out.splitlines()[1].split()[2:5] == b"600 12 2".split()
    assert "not in the estimate: " in few.err


def test_a_skipped_pair_ends_what_is_counted(tmp_path: Path) -> None:
    lines = SITES[:40]
    found = judge(tmp_path, b"sss d" + b"s" * 35, records=COPIES, lines=lines)
    assert found.out.splitlines()[1].split()[2:5] == b"40 3 3".split()
    assert "not in the estimate: 36 judged pairs" in found.err
    again = judge(tmp_path, b"d", records=COPIES, lines=lines)
    assert again.out.splitlines()[1].split()[2:5] == b"40 40 38".split()


def test_the_estimate_is_right_on_average_with_skewed_copies() -> None:
    """400 samples of 20 texts from 1000 pairs; within 5 standard errors, seeded."""
    generator = np.random.default_rng(1)
    texts_ = np.where(np.arange(1000) < 800, 0, np.arange(1000))  # 800 copies, which differ
    strata = Strata([900_000], [1000])
    shares = []
    for _ in range(400):
        order = generator.permutation(1000)
        draws = [((b"%d" % i, b""), 900_000) for i in texts_[order].tolist()]
        asked = list(dict.fromkeys(key for key, _ in draws))[:20]
        counted = strata.prefixes(draws, asked)
        shares.append(sum(key != (b"0", b"") for key, _ in counted) / len(counted))
    assert abs(np.mean(shares) - 0.2) < 5 * np.std(shares) / 20
    assert np.std(shares) < 0.1


# ---- precision


def binomial(k: int, n: int, p: Fraction) -> Fraction:
    return comb(n, k) * p**k * (1 - p) ** (n - k)


@pytest.mark.parametrize("shares", [(50, 99), (90, 90), (100, 98)])
def test_the_weighted_bound_fails_rarely(shares: tuple[int, int]) -> None:
    """All draws of 12 and 9 pairs from two strata: exact, without chance."""
    sizes, n = (1000, 300), (12, 9)
    p = [Fraction(share, 100) for share in shares]
    true = float(sum(a * b for a, b in zip(p, sizes)) / sum(sizes))
    missed = Fraction(0)
    for k in product(*(range(each + 1) for each in n)):
        rows = list(zip(k, n, sizes))
        if _low_end(rows, 2) > true:
            missed += binomial(k[0], n[0], p[0]) * binomial(k[1], n[1], p[1])
    assert missed <= ALPHA


def test_the_table_weighs_rows_by_their_pairs() -> None:
    strata = Strata.of({90: 900, 100: 100})
    low, high = 900_000, 1_000_000
    told = [(low, SAME), (low, DIFFERENT), (high, SAME), (high, SAME)]
    table = report(strata, told)
    assert table[3].split()[4] == "0.5500"
    assert "no threshold" in table[-1]


@pytest.mark.parametrize(("judged", "said"), [(30, "no threshold has"), (800, "threshold 0.9 has")])
def test_the_lowest_threshold_with_the_precision_is_named(judged: int, said: str) -> None:
    strata = Strata.of({90: 5000, 100: 800})
    verdicts_ = [(low, SAME) for low in strata.lows for _ in range(judged)]
    assert said in report(strata, verdicts_)[-1]
    assert ends(5, 5, 5, ALPHA) == (1, 1)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "v"
    file.write_bytes(b"#neardup-verdicts\tx\nsame\ta\n")
    with pytest.raises(StageError, match="line 2"):
        read_verdicts(file, "x")
