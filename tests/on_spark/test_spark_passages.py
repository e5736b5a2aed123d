"""Passages on Spark are the lines of `neardup passages`, however texts are divided among tasks."""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from neardup.reading.cleaning import Cleaning
from neardup.runtime.program import StageError
from neardup.tools.documents import passage_spark
from neardup.tools.documents.passage_windows import PassageOptions
from tests.on_hadoop.test_hadoop_passages import corpus, two_files
from tests.on_spark.test_spark_answers import written
from tests.support.engines import NEARDUP, in_order, refuse, run, succeed
from tests.support.spark_cluster import QUICK
from tests.tools.documents.test_passage_answers import emptied
from tests.tools.documents.test_passage_steps import drawn, expected

pytestmark = pytest.mark.spark
DOOR = [sys.executable, "-m", "neardup.tools.documents.passage_spark"]


def answer(spark: Any, output: Path, *words: object) -> bytes:
    """Run a job on a session; return its lines, sorted."""
    passage_spark.answer(spark, passage_spark.read([*map(str, words), str(output)]))
    return written(output)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_texts(spark: Any, tmp_path: Path, seed: int) -> None:
    """Some texts have half a surrogate pair, or no word; there are more tasks than texts."""
    dice = random.Random(seed)
    clean = ["", "accents", "digits,punctuation", "width"][seed]
    cleaning = Cleaning.parse(clean) if clean else Cleaning()
    options = PassageOptions(dice.choice([1, 2, 3]), dice.choice([1, 2]), cleaning)
    texts = [text for _ in range(6) for text in drawn(dice)]
    lines = [json.dumps({"id": f"r{i}", "text": text}) + "\n" for i, text in enumerate(texts)]
    half = len(lines) // 2
    (tmp_path / "a.jsonl").write_text("".join(lines[:half]))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress("".join(lines[half:]).encode(), mtime=0))
    words = [f"--length={options.width}", f"--min-records={options.least}", "--reducers=3"]
    words += [f"--clean={clean}"] * bool(clean) + ["--places"] * (every := seed > 1)
    found = answer(spark, tmp_path / "out", *words, "--input=jsonl", tmp_path / "[ab].jsonl*")
    assert found == expected(texts, options, every) != b""


def test_nothing_to_find(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "one.txt").write_text("a of one text\n")
    assert answer(spark, tmp_path / "none", tmp_path / "empty.jsonl") == b""
    assert answer(spark, tmp_path / "one", "--input=text", tmp_path / "one.txt") == b""


def test_too_many_bad_lines_are_an_error(spark: Any, tmp_path: Path) -> None:
    file, output = tmp_path / "a.jsonl", tmp_path / "out"
    file.write_text('{"id": 1, "text": "a b a b"}\n[]\n[]\n')
    from neardup.engines.spark.spark_flow import in_a_line

    with pytest.raises(StageError, match="could not be read"):
        answer(spark, output, "--length=2", file)
    assert b"a b" in written(output)
    with pytest.raises(StageError, match=r"out already exists; name another OUTPUT"):
        answer(spark, output, "--length=2", file)
    with pytest.raises(StageError, match=r"a\.jsonl: line 2: "), in_a_line():
        answer(spark, tmp_path / "strict", "--strict", file)
    assert not (tmp_path / "strict").exists()


def test_with_spark_submit(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"".join(corpus(60)))
    here = in_order(succeed([*NEARDUP, "passages", "--length=13", file], tmp_path).out)
    words = ["--master", "local[2]", "--length=13", str(file), str(tmp_path / "out")]
    result = run([*DOOR, *QUICK, *words], tmp_path, seconds=1800, process=True)
    assert result.code == 0, result.err
    assert written(tmp_path / "out") == here != b""
    assert "passages: 60 records" in result.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["in.txt"], "lines of shingles have no words"),
        (["in.csv"], "--input csv: tasks split a file at line ends"),
        (["--input=text", "x.xz"], "x.xz: Spark cannot decompress .xz"),
        (["--input=text", "/data/_x"], "/data/_x: Spark skips names that begin with _ or ."),
        (["--rounds=1", "in.jsonl"], "unrecognized arguments: --rounds=1"),
    ],
)
def test_what_is_refused_before_a_jvm_starts(tmp_path: Path, words: list[str], said: str) -> None:
    refuse([*DOOR, *words, "out"], tmp_path, said)


def test_the_command_is_shown(tmp_path: Path) -> None:
    shown = succeed([*DOOR, "--show", "--length=7", "in.jsonl", "out"], tmp_path).out.decode()
    assert "--name passages " in shown
    assert shown.endswith("passage_spark.py --length=7 in.jsonl out\n")


def parts(output: Path) -> bytes:
    """Return the lines of an answer in the order of its parts."""
    assert (output / "_SUCCESS").exists()
    return b"".join(part.read_bytes() for part in sorted(output.glob("part-*")))


@pytest.mark.parametrize("by", ["words", "saved"])
def test_in_order(spark: Any, tmp_path: Path, by: str) -> None:
    files = two_files(tmp_path, 120)
    words = ["--length=13", f"--by={by}", "--places", "--max-bad=1"]
    here = succeed([*NEARDUP, "passages", *words, *files], tmp_path).out
    answer(spark, tmp_path / "out", *words, *files)
    assert parts(tmp_path / "out") == here != b""


@pytest.mark.parametrize("keep", ["first", "none"])
def test_kept(spark: Any, tmp_path: Path, keep: str, capsys: Any) -> None:
    files, removed = two_files(tmp_path, 120), tmp_path / "removed"
    words = ["--length=13", "--output=kept", f"--keep={keep}", "--max-bad=1"]
    here = succeed([*NEARDUP, "passages", *words, "--removed", removed, *files], tmp_path)
    capsys.readouterr()
    answer(spark, tmp_path / "out", *words, "--removed", tmp_path / "cuts", *files)
    said = [emptied(text) for text in (here.err, capsys.readouterr().err)]
    assert said[0] == said[1] != []
    assert in_order(here.out) == written(tmp_path / "out") != b""
    assert in_order(removed.read_bytes()) == written(tmp_path / "cuts") != b""
    assert sorted(path.name for path in tmp_path.iterdir() if "neardup" in path.name) == []


def test_the_same_line_goes_on_after_a_failure(
    spark: Any, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    """The rounds before are not run again; with another option, all is."""
    from neardup.engines.spark.spark_flow import StepJob

    files, output = two_files(tmp_path, 120), tmp_path / "out [1]"
    words = ["--length=13", "--output=kept", "--max-bad=1", *files]
    here = succeed([*NEARDUP, "passages", *words], tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(StepJob, "write_splits", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            answer(spark, output, *words)
    assert "Finished stages are kept, and the same line goes on" in capsys.readouterr().err
    assert not output.exists()
    other = ["--keep=none"], ["--length=14"], ["--min-records=3"], ["--removed", tmp_path / "cuts"]
    with monkeypatch.context() as patch:
        patch.setattr(StepJob, "collect", lambda *_: 1 / 0)  # of the first stage
        for more in other:
            with pytest.raises(ZeroDivisionError):
                answer(spark, output, *words, *more)
    assert "an earlier run" not in capsys.readouterr().err
    began = time.monotonic()
    assert answer(spark, output, *words) == in_order(here.out)
    took = time.monotonic() - began
    said = capsys.readouterr().err
    for stage in ("shared", "decided", "shared1", "decided1"):
        assert f"{stage}: an earlier run has done this; see " in said
    (seconds,) = re.findall(r"passages: 121 records; ([0-9.]+) seconds", said)
    assert float(seconds) <= took + 0.1
    assert emptied(said) == emptied(here.err) != []
    assert [path.name for path in tmp_path.glob("out*")] == ["out [1]"]


@pytest.mark.parametrize("words", [["--min-records=3"], ["--output=marked"]])
def test_in_splits(words: list[str], spark: Any, tmp_path: Path, capsys: Any) -> None:
    """The first place is that in the first file by path; bad lines are counted once, and named."""
    files, words = two_files(tmp_path, 120), ["--length=13", "--max-bad=1", *words]
    here = succeed([*NEARDUP, "passages", *words, *files], tmp_path).out
    size = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(size)
    try:
        spark.conf.set(size, 1 << 14)
        assert answer(spark, tmp_path / "out", *words, *files[::-1]) == in_order(here) != b""
    finally:
        spark.conf.set(size, before)
    said = capsys.readouterr().err
    assert "passages: 121 records" in said
    assert "2 bad lines" in said
    assert "a.jsonl from byte " in said


@pytest.mark.parametrize("words", [[], ["--output=kept"]], ids=["passages", "kept"])
def test_rows_of_tsv(spark: Any, tmp_path: Path, words: list[str]) -> None:
    file = tmp_path / "a.tsv"
    rows = map(json.loads, corpus(60))
    file.write_text("".join(f"{row['id']}\t{row['text']}\tx\n" for row in rows))
    words = ["--length=13", "--id=1", "--text=2", *words]
    here = in_order(succeed([*NEARDUP, "passages", *words, file], tmp_path).out)
    assert answer(spark, tmp_path / "out", *words, "--input=tsv", file) == here != b""
