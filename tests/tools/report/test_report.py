"""`report` takes pairs, records and options from the right sources, and refuses wrong ones."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from neardup.runtime.counters import RunFile
from tests.support.engines import NEARDUP, RUN_LOCAL, Result, refuse, run, succeed

RECORDS = b"a\tone two three four\nb\tone two three five\nc\tsix\nd\n"
PAIRS = b"a\tb\t0.600000\n"
ASKED = RunFile(
    options=["--threshold=0.6", "--input=text", "--shingle=word:1", "--verify=exact"],
    files=["records.txt"],
    output="pairs",
    threshold="3/5",
    measure="jaccard",
    scheme="minhash",
    promise="16 bands of 2 rows",
    counts={"records": 12345, "bad lines: no id": 3},
    seconds={"count": 0.5},
    started="2026-05-31T18:00:00Z",
    took=83.5,
    program="run_local.sh",
    version="0.1.0",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "records.txt").write_bytes(RECORDS)
    (tmp_path / "pairs.tsv").write_bytes(PAIRS)
    return tmp_path


def page(folder: Path, *words: str, pairs: str = "pairs.tsv", records: bool = True) -> str:
    """Return the page that `report` writes, started in `folder`."""
    given = [*["--records=records.txt"] * records, *words]
    command = [*NEARDUP, "report", pairs, "-o", "page.html", *given]
    assert run(command, folder, cwd=folder) == Result(0, b"", "", [], [])
    return (folder / "page.html").read_text("utf-8")


def write_run_file(folder: Path, **changed: object) -> None:
    told = replace(ASKED, **{"files": [str(folder / "records.txt")], **changed})  # type: ignore[arg-type]
    (folder / ".pairs.tsv.neardup.json").write_bytes(told.format())


def test_what_was_asked_by_options(folder: Path) -> None:
    text = page(folder, "--input=text", "--threshold=3/5", "--scheme=prefix", "--measure=jaccard")
    for said in (
        "pair</h1>" not in text and "2 of 3 records have a near-duplicate.",
        "0.6 or more, by jaccard",
        "<code>--scheme=prefix</code>",
        "every pair",
        "From the options given to this command.",
    ):
        assert str(said) in text
    assert "--output=pairs" not in text


def test_what_was_asked_by_a_runs_own_file(folder: Path) -> None:
    write_run_file(folder)
    text = page(folder, records=False)
    for said in (
        "2 of 12,345 records have a near-duplicate.",
        "0.6 or more, by jaccard",
        "<code>--shingle=word:1</code>",
        "16 bands of 2 rows",
        "3 (3 no id)",
        "<dt>Run</dt><dd>2026-05-31 18:00 UTC, 1 min 23 s</dd>",
        "From .pairs.tsv.neardup.json.",
        "<del>four</del>",
    ):
        assert said in text
    assert "not known" not in text


@pytest.mark.slow
def test_options_that_say_the_same_are_welcome(folder: Path) -> None:
    write_run_file(folder)
    assert page(folder, "--threshold=0.6", "--input=text") == page(folder)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"threshold": "1/0"}, ", and its field threshold is missing or of another type"),
        ({"options": ["--new=1"]}, ": '--new=1' is not an option of this version"),
        ({"options": ["--exact=1"]}, ": '--exact=1' is not an option of this version"),
    ],
)
def test_a_run_file_of_another_version(changed: dict[str, object], said: str, folder: Path) -> None:
    write_run_file(folder, **changed)
    told = f": .pairs.tsv.neardup.json: written by neardup 0.1.0{said}; run again with -o\n"
    command = [*NEARDUP, "report", "pairs.tsv", "-o", "page.html"]
    refuse(command, folder, told, code=1, cwd=folder)
    assert not (folder / "page.html").exists()


@pytest.mark.slow
def test_a_folder_of_parts_and_packed_files(folder: Path) -> None:
    whole = page(folder, "--input=text")
    (folder / "out").mkdir()
    (folder / "out" / "_SUCCESS").touch()
    (folder / "out" / "part-00000").touch()
    (folder / "out" / "part-00001.gz").write_bytes(gzip.compress(PAIRS))
    assert page(folder, "--input=text", pairs="out") == whole.replace("pairs.tsv", "out")
    (folder / "pairs.tsv.gz").write_bytes(gzip.compress(PAIRS))
    assert page(folder, "--input=text", pairs="pairs.tsv.gz") == whole.replace("tsv", "tsv.gz")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet", "arrow"])
def test_a_run_that_wrote_rows(suffix: str, folder: Path) -> None:
    """Pairs and removed records that were written as rows give the same page as lines."""
    if suffix in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    options = ["--input=text", "--shingle=word:1", "--threshold=0.6"]
    for name in ("removed.tsv", f"removed.{suffix}"):
        kept = ["--output=kept", "-o", folder / "kept", "--removed", folder / name]
        succeed([*RUN_LOCAL, *options, *kept, folder / "records.txt"], folder)
    succeed([*RUN_LOCAL, *options, "-o", folder / f"x.{suffix}", folder / "records.txt"], folder)
    (folder / f".x.{suffix}.neardup.json").unlink()
    of_lines = page(folder, *options, "--removed=removed.tsv")
    of_rows = page(folder, *options, f"--removed=removed.{suffix}", pairs=f"x.{suffix}")
    assert of_rows == of_lines.replace("pairs.tsv", f"x.{suffix}")


def test_the_audit_as_it_was_printed(folder: Path) -> None:
    flags = ["--input=text", "--shingle=word:1", "--threshold=0.6"]
    audit = [*NEARDUP, "audit", *flags, f"{folder}/records.txt", f"{folder}/pairs.tsv"]
    (folder / "audit.txt").write_bytes(succeed(audit, folder).out)
    text = page(folder, *flags, "--audit=audit.txt")
    assert "<dt>Audited recall</dt><dd><b>1.000000</b>; from 3 ids, all, so the values" in text


@pytest.mark.slow
def test_all_of_a_real_run(folder: Path) -> None:
    flags = ["--input=text", "--shingle=word:1", "--threshold=0.6"]
    job = [*RUN_LOCAL, *flags, "--output=kept", f"--removed={folder}/gone.tsv"]
    assert succeed([*job, f"{folder}/records.txt"], folder).out.count(b"\n") == 3
    text = page(folder, *flags, "--removed=gone.tsv")
    assert "1 record was removed (33.3&nbsp;%); it duplicates 1 record that is kept." in text


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("pairs.tsv --records=", 1, "an empty name: no such file"),
        ("pairs.tsv --threshold=0.7", 2, "a pair has a similarity of 0.600000"),
        ("pairs.tsv --audit=pairs.tsv", 1, "neardup audit"),
        ("pairs.tsv --removed=records.txt", 1, "line 1: expected ID"),
        ("pairs.tsv -o no/page", 1, "there is no folder"),
        ("estimates.tsv", 1, "expected exact pairs, got an estimate of --verify sketch"),
        ("removed.tsv", 2, "run the job with --output pairs, or with --report FILE"),
        ("run.tsv --threshold=0.7", 2, ": differs from the options in .run.tsv.neardup.json; "),
        ("parts", 1, "no part-* files in this folder; name a file of pairs"),
    ],
)
def test_refusals(words: str, code: int, said: str, folder: Path) -> None:
    (folder / "parts").mkdir()
    (folder / "estimates.tsv").write_bytes(b"a\tb\t~0.500000..0.700000\n")
    for name, output in ("removed", "removed"), ("run", "pairs"):
        (folder / f"{name}.tsv").write_bytes(PAIRS)
        told = replace(ASKED, output=output).format()
        (folder / f".{name}.tsv.neardup.json").write_bytes(told)
    command = [*NEARDUP, "report", "--records=records.txt", "-o", "page.html", *words.split()]
    refuse(command, folder, said, code=code, cwd=folder)
    assert not (folder / "page.html").exists()


@pytest.mark.slow
def test_without_jinja(folder: Path) -> None:
    (folder / "none").mkdir()
    (folder / "none" / "jinja2.py").write_text("raise ImportError('not here')")
    command = [*NEARDUP, "report", f"{folder}/pairs.tsv", "-o", f"{folder}/page.html"]
    said = "neardup report: a report needs the package jinja2: python3 -m pip install jinja2\n"
    refuse(command, folder, said, code=1, process=True, PYTHONPATH=f"{folder}/none")
    assert not (folder / "page.html").exists()
