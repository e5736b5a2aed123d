"""The jobs that find passages on Hadoop, and what is refused, without a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.engines import ROOT, Result, run
from tests.support.fake_hadoop import FILE, fake_hadoop, was_asked

JOBS = [sys.executable, str(ROOT / "neardup/tools/documents/passage_jobs.py")]
NOT_THERE = 'if [ "$1 $2" = "fs -test" ]; then exit 1; fi'
LISTED = f'if [ "$1 $2" = "fs -ls" ]; then echo "{FILE} /in/b.jsonl"; echo "{FILE} /in/a.jsonl"; fi'
# An output of its own for each test: two runs at the same time may not write to one.
RUNS = """if [ "$1" = jar ]; then echo 'Running job: job_1_0001' >&2; fi"""


def attempt(tmp: Path, *words: str, hadoop: tuple[str, ...] = (NOT_THERE, LISTED, RUNS)) -> Result:
    return run([*JOBS, *words], tmp, **fake_hadoop(tmp, *hadoop))


def test_a_changed_input_is_refused_before_the_answer(tmp_path: Path) -> None:
    grows = f'if [ "$1 $2" = "fs -ls" ]; then echo "{FILE} /in/$(wc -l <{tmp_path}/asked)"; fi'
    result = attempt(tmp_path, "--input=text", "/in", "/passages2", hadoop=(NOT_THERE, grows, RUNS))
    assert result.code == 1
    assert "changed while it was read; run again" in result.err
    assert not any("-output /passages2" in line for line in was_asked(tmp_path))
    assert was_asked(tmp_path)[-1].startswith("fs -rm -r -f -skipTrash /_neardup-")


def test_bad_lines_are_counted_and_too_many_are_an_error(tmp_path: Path) -> None:
    """They are counted in the job that reads the texts for the answer."""
    for bad, code in ((1, 0), (30, 1)):
        counts = f"\\tneardup\\n\\t\\trecords=10\\n\\t\\tbad lines: no id={bad}\\n"
        says = f'case "$*" in *" windows "*) printf "{counts}" >&2;; esac'
        tmp = tmp_path / f"{bad}"
        tmp.mkdir()
        result = attempt(
            tmp, "--input=text", "/in", "/passages3", hadoop=(NOT_THERE, LISTED, RUNS, says)
        )
        assert result.code == code, result.err
        assert "passages: 10 records" in result.err
        assert was_asked(tmp)[-1] == "fs -touchz /passages3/_neardup"
        assert f"{bad} bad line" in result.err


CUT = f'case "$*" in "fs -ls -R "*decided) echo "{FILE} /d/part-00000";; esac'
LISTED_IN = f'case "$*" in "fs -ls -R /in") echo "{FILE} /in/a.jsonl";; esac'
KEPT = ["--input=text", "--output=kept", "--removed=/cuts4", "/in", "/kept4"]


def outputs(tmp: Path) -> list[str]:
    """Return the names of the folders that jobs were to write, in order."""
    words = [line.split() for line in was_asked(tmp) if line.startswith("jar ")]
    return [line[line.index("-output") + 1].rpartition("/")[2] for line in words]


def test_rounds_until_nothing_is_cut(tmp_path: Path) -> None:
    counts = "\\tneardup\\n\\t\\trecords=10\\n\\t\\trecords without words left=3\\n"
    says = f'case "$*" in *" rows "*|*" cuts "*) printf "{counts}" >&2;; esac'
    result = attempt(tmp_path, *KEPT, hadoop=(NOT_THERE, LISTED_IN, CUT, RUNS, says))
    assert result.code == 0, result.err
    assert "passages: 0 records; " in result.err
    assert "\n3 records without words left: --removed lists them, with 0 wo" in result.err
    rounds = [f"{name}{k}" for k in ("", 1) for name in ("shared", "runs", "decided")]
    assert outputs(tmp_path) == [*rounds, "cuts4", "kept4"]
    *_, rows = (line for line in was_asked(tmp_path) if line.startswith("jar "))
    assert "passages rows --input=text --length=50" in rows
    assert "--decided=decided -D" not in rows
    assert "/decided#decided" in rows
    assert "decided1" not in rows
    assert was_asked(tmp_path)[-1] == "fs -touchz /kept4/_neardup /cuts4/_neardup"


def test_both_answers_are_removed_after_a_failure(tmp_path: Path) -> None:
    fails = 'case "$*" in *" rows "*) exit 1;; *jar*) echo "completed successfully" >&2;; esac'
    result = attempt(tmp_path, *KEPT, hadoop=(NOT_THERE, LISTED_IN, RUNS, fails))
    assert result.code == 1
    assert outputs(tmp_path) == ["shared", "runs", "decided", "cuts4", "kept4"]
    removed = was_asked(tmp_path)[-1].split()
    assert removed[:5] == ["fs", "-rm", "-r", "-f", "-skipTrash"]
    assert {"/cuts4", "/kept4"} < {*removed}


def test_lines_in_order_are_sorted_by_one_reducer(tmp_path: Path) -> None:
    words = ["--input=text", "--by=count", "/in", "/order4"]
    result = attempt(tmp_path, *words, hadoop=(NOT_THERE, LISTED_IN, RUNS))
    assert result.code == 0, result.err
    assert outputs(tmp_path) == ["shared", "runs", "decided", "order4"]
    *_, last = (line for line in was_asked(tmp_path) if line.startswith("jar "))
    assert "mapreduce.job.reduces=1 " in last


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["/in", "/out"], "lines of shingles have no words"),
        (["--input=csv", "/in", "/out"], "--input csv: tasks split a file at line ends"),
        (["--input=jsonl", "--id=", "/in", "/out"], "--id '': a task reads some lines"),
        (["--input=jsonl", "--text=a b", "/in", "/out"], "Hadoop cannot pass '--text=a b'"),
        (["--input=text", "/in,/more", "/out"], "Hadoop would take the comma"),
        (["--input=text", "--length=0", "/in", "/out"], "--length: "),
        (["--input=text", "/in"], "required: OUTPUT"),
        (["--input=text", "--removed=/x", "/in", "/out"], "--removed needs --output kept"),
        (["--input=jsonl", "--output=kept", "--text=a,b", "/in", "/out"], "cuts one field"),
        (["--input=text", "--output=kept", "--removed=/out/x", "/in", "/out"], "separate folders"),
    ],
)
def test_refusals(words: list[str], said: str, tmp_path: Path) -> None:
    result = attempt(tmp_path, *words)
    assert (result.code, result.out) == (2, b"")
    assert said in result.err
    assert "passage_jobs.py: " in result.err


def test_an_output_that_exists_is_refused(tmp_path: Path) -> None:
    result = attempt(tmp_path, "--input=text", "/in", "/out", hadoop=(LISTED,))
    assert result.code == 1
    assert "/out already exists; name a new folder" in result.err
