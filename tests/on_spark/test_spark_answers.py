"""A Spark job writes lines and a summary with the bytes and counts of run_local.sh."""

from __future__ import annotations

import bz2
import gzip
import os
import re
from pathlib import Path
from typing import Any

import pytest

from neardup.runtime.program import StageError, UsageError
from tests.support import same_ids
from tests.support.cases import in_turn
from tests.support.engines import IN_FILES, RUN_LOCAL, VIDEOS, in_order, succeed

pytestmark = pytest.mark.spark

# Bytes that are no UTF-8, all ends of lines, blank lines, bad ones, a mark of byte order, and no
# end of the last line.
PACKED = gzip.compress(b"a 1 2\n" * 99, mtime=0)
ODD = (
    b"\xef\xbb\xbfa\xff\xfe 1 2 3 4\r\n\r\n\nb\xc3( 4 3 2 1\rc\x01\x0b 1 2 3 4 \n"
    b"no shingles\nd \xff\ne\xe2\x80\xa8 1 2 3 4\n\x00 1 2 3 4\nf 1 2 3 4"
)


def answer(spark: Any, output: Path, *words: object) -> bytes:
    """Run a Spark job with the options and inputs of run_spark.sh; return its lines, sorted."""
    from neardup.engines.spark import spark_job
    from neardup.engines.spark import spark_submit as spark_options

    spark_job.answer(spark, spark_options.read(["-v", *map(str, words), str(output)]))
    return written(output)


def written(output: Path) -> bytes:
    assert (output / "_SUCCESS").exists()
    return in_order(b"".join(part.read_bytes() for part in sorted(output.glob("part-*"))))


def counts(said: str) -> dict[str, str]:
    """Return the numbers in a summary, without those that depend on the engine."""
    found = re.findall(r"^([a-z][a-z ]*?)  +([\d,]+(?:  \(.*\))?)$", said, re.M)
    return {name: n for name, n in found if name not in ENGINES_OWN}


ENGINES_OWN = (
    "bytes shuffled",
    "tasks with compiled kernels",
    "keyed lines",
    "buckets with more than one record",
    "candidate pairs",
    "comparisons",
)


def test_fingerprints(spark: Any, tmp_path: Path) -> None:
    flags = ["--input=fingerprints", "--bits=32", "--distance=3"]
    lines = "".join(f"v{i} {i * 0x9E3779 % 2**32 >> 9:08x} {i:08x}\n" for i in range(400))
    (tmp_path / "hashes.txt").write_text(lines)
    expected = succeed([*RUN_LOCAL, *flags, tmp_path / "hashes.txt"], tmp_path).out
    assert expected.count(b"\n") > 100
    assert answer(spark, tmp_path / "pairs", *flags, tmp_path / "hashes.txt") == expected


@pytest.mark.parametrize("flags", [["--rounds=1"], ["--rounds=2"], ["--rounds=2", "--reducers=7"]])
def test_videos(spark: Any, tmp_path: Path, capsys: Any, flags: list[str]) -> None:
    expected = succeed([*RUN_LOCAL, *IN_FILES, "-v", VIDEOS], tmp_path)
    assert answer(spark, tmp_path / "pairs", *flags, VIDEOS) == expected.out != b""
    said = capsys.readouterr().err
    assert counts(said) == counts(expected.err)
    assert counts(said)["pairs"] == "790"
    shuffled = int(re.findall(r"bytes shuffled +([\d,]+)  \(before p", said)[0].replace(",", ""))
    lines = int(re.findall(r"keyed lines +([\d,]+)", said)[0].replace(",", ""))
    assert (lines == 30_000) == ("--rounds=1" in flags)
    assert (shuffled < 2_500_000) == ("--rounds=2" in flags)


@in_turn(1, way=["", "--within", "--across"], output=["removed", "pairs"])
def test_pairs_are_kept_out(spark: Any, tmp_path: Path, output: str, way: str) -> None:
    """The driver reads the file, and tasks get its pairs."""
    values = [f"{way}=id:(.)$"] * bool(way)
    first = succeed([*RUN_LOCAL, *values, VIDEOS], tmp_path).out.splitlines()[:40]
    ids = b"".join(b"\t".join(line.split(b"\t")[:2]) + b"\n" for line in first)
    (tmp_path / "ids").write_bytes(ids)
    flags = [f"--output={output}", *values, "--not-pairs", tmp_path / "ids"]
    expected = succeed([*RUN_LOCAL, *flags, VIDEOS], tmp_path).out
    assert expected != succeed([*RUN_LOCAL, *flags[:-2], VIDEOS], tmp_path).out
    assert answer(spark, tmp_path / "out", *flags, VIDEOS) == expected


@pytest.mark.parametrize("rounds", ["--rounds=1", "--rounds=2"])
def test_ids_of_removed_and_of_kept_records_are_counted(
    spark: Any, tmp_path: Path, capsys: Any, rounds: str
) -> None:
    files = same_ids.written(tmp_path)
    gone = answer(spark, tmp_path / "out", rounds, "--output=removed", "--reducers=3", *files)
    assert same_ids.remark(gone, files, verbose=True) in capsys.readouterr().err


def test_bytes_stay_what_they_are(spark: Any, tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "a folder, with é"
    (folder / "deeper").mkdir(parents=True)
    (folder / "plain.txt").write_bytes(ODD)
    (folder / "deeper" / "two words.txt.gz").write_bytes(gzip.compress(ODD.replace(b" 1 ", b" 9 ")))
    (folder / "x.txt.bz2").write_bytes(bz2.compress(b"z" + ODD[3:]))
    files = sorted(folder.rglob("*.txt*"))
    expected = succeed([*RUN_LOCAL, *IN_FILES, "-v", "--max-bad=1", *files], tmp_path)
    assert b"c\x01\te\xe2\x80\xa8\t" in expected.out
    assert answer(spark, tmp_path / "pairs", "--max-bad=1", folder) == expected.out
    said = capsys.readouterr().err
    assert counts(said) == counts(expected.err)
    assert "(3 NUL byte, 6 not UTF-8, 6 not an integer)" in said
    assert [line.replace("file:", "") for line in said.splitlines() if ": line " in line] == [
        line for line in expected.err.splitlines() if ": line " in line
    ]
    some = answer(spark, tmp_path / "some", "--max-bad=1", f"{folder}/p*.txt")
    assert some == succeed([*RUN_LOCAL, "-v", "--max-bad=1", folder / "plain.txt"], tmp_path).out


@pytest.mark.parametrize(
    ("name", "flags", "data"),
    [
        (
            "a.txt",
            ["--input=text", "--threshold=0.5"],
            b"x\tto be or not to be\ny\tTo be or not to\n",
        ),
        ("a.jsonl", [], b'{"id": "x", "text": [1, 2]}\n{"id": "y", "text": [2, 1]}\n'),
        ("twice.txt", [], b"a 1 2\nb 1 2\na 1 2\nb 2 1\n"),
        ("links.txt", ["--output=links"], b"".join(b"v%d 1 2 3\n" % i for i in range(50))),
        ("empty.txt", [], b""),
        ("exact.txt", ["--scheme=prefix", "--counts={counts}"], b"a 1 2 3\nb 1 2 3\nc 4\n"),
    ],
)
def test_other_inputs_and_outputs(
    spark: Any, tmp_path: Path, name: str, flags: list[str], data: bytes
) -> None:
    (tmp_path / "counts").write_bytes(b"s00000000000000000003\t2\n")
    flags = [flag.format(counts=tmp_path / "counts") for flag in flags]
    file = tmp_path / name
    file.write_bytes(data)
    expected = succeed([*RUN_LOCAL, "-v", *flags, file], tmp_path).out
    assert bool(expected) == bool(data)
    assert answer(spark, tmp_path / "pairs", *flags, file) == expected


def test_a_line_that_is_too_long_is_a_bad_line(spark: Any, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "long.txt"
    file.write_bytes(b"a 1 2\nlong " + b"7 " * (1 << 19) + b"8\nb 1 2\n")
    flags = ["--max-line=1", "--max-bad=0.4"]
    assert answer(spark, tmp_path / "pairs", *flags, file) == b"a\tb\t1.000000\n"
    assert "long.txt: line 2: line too long: 'long 7 7" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said", "stays"),
    [
        (["--strict"], "bad.txt: line 2: no shingles: 'b'", False),
        ([], "3 of 5 lines could not be read; --max-bad 0.5", True),
    ],
)
def test_bad_lines(spark: Any, tmp_path: Path, flags: list[str], said: str, stays: bool) -> None:
    file, output = tmp_path / "bad.txt", tmp_path / "pairs"
    file.write_bytes(b"a 1 2\nb\nc 2 1\nd\ne x\n")
    from neardup.engines.spark.spark_flow import in_a_line

    with pytest.raises(StageError) as error, in_a_line():
        answer(spark, output, *flags, file)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert output.exists() == stays


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("nowhere.txt", None, "nowhere.txt: no such file"),
        ("table.txt", b"PAR1\x15\x04", "table.txt: is a Parquet file"),
        ("packed.txt", PACKED, "packed.txt: is compressed with gzip; "),
        ("cut.txt.gz", PACKED[:30], "Unexpected end of input stream"),
    ],
)
def test_what_cannot_be_read(
    spark: Any, tmp_path: Path, name: str, data: bytes | None, said: str
) -> None:
    from neardup.engines.spark.spark_flow import in_a_line

    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(StageError) as error, in_a_line():
        answer(spark, tmp_path / "pairs", tmp_path / name)
    assert said in str(error.value)
    assert not (tmp_path / "pairs").exists()


def test_zstd_is_read_or_refused_in_a_line(spark: Any, tmp_path: Path) -> None:
    """A .zst file is read, or refused in one line if this Spark's Hadoop libraries lack zstd."""
    zstd = pytest.importorskip("backports.zstd")
    from neardup.engines.spark.spark_flow import in_a_line

    file = tmp_path / "a.txt.zst"
    file.write_bytes(zstd.compress(b"a 1 2\nb 1 2\n"))
    try:
        with in_a_line():
            assert answer(spark, tmp_path / "pairs", file) == b"a\tb\t1.000000\n"
    except StageError as error:
        assert "cannot decompress" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "flags",
    [
        ["--output=clusters"],
        ["--output=removed", "--keep=longest"],
        ["--output=removed", "--keep=prefer:[02468]$,longest"],
        ["--output=removed", "--rule=cluster"],
        ["--output=kept"],
        ["--output=kept", "--against={old}"],
        ["--output=marked"],
        ["--output=marked", "--against={old}"],
        ["--output=pairs", "--against={old}", "--between"],
        ["--output=removed", "--across=id:([0-9])$"],
        ["--output=pairs", "--within=id:([0-9])$"],
    ],
)
def test_decisions_and_two_collections(
    spark: Any, tmp_path: Path, capsys: Any, flags: list[str]
) -> None:
    lines = VIDEOS.read_bytes().splitlines(keepends=True)
    old, folder = tmp_path / "old.txt", tmp_path / "new"
    folder.mkdir()
    old.write_bytes(b"".join(lines[:500]))
    new = [folder / "a b.txt", folder / "c.txt.gz"]
    new[0].write_bytes(b"".join(lines[500:1200]) + b"\nbad\n")
    new[1].write_bytes(gzip.compress(b"".join(lines[1200:])))
    flags = [flag.format(old=old) for flag in flags]
    expected = succeed([*RUN_LOCAL, *IN_FILES, "-v", *flags, *new], tmp_path)
    assert (
        answer(spark, tmp_path / "answer", "--reducers=3", *flags, folder)
        == in_order(expected.out)
        != b""
    )
    assert counts(capsys.readouterr().err) == counts(expected.err)


@pytest.mark.parametrize("output", ["kept", "marked"])
def test_old_files_do_not_change_the_splits_of_new_ones(
    spark: Any, tmp_path: Path, output: str
) -> None:
    """Spark cuts files by the size of all that it reads at once; places are of splits."""
    name = "spark.sql.files.openCostInBytes"
    lines = VIDEOS.read_bytes().splitlines(keepends=True)
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_bytes(b"".join(lines[:1500]))
    new.write_bytes(b"".join(lines[1000:]))
    flags = [f"--output={output}", f"--against={old}", new]
    before = spark.conf.get(name)
    spark.conf.set(name, "1k")
    try:
        found = answer(spark, tmp_path / "out", *flags)
    finally:
        spark.conf.set(name, before)
    assert found == in_order(succeed([*RUN_LOCAL, *IN_FILES, *flags], tmp_path).out) != b""


@pytest.mark.parametrize("output", ["kept", "marked"])
def test_nothing_to_decide(spark: Any, tmp_path: Path, output: str) -> None:
    file = tmp_path / "a b%20.txt"
    file.write_text("x 1 2 3\ny 4 5 6\n")
    here = succeed([*RUN_LOCAL, f"--output={output}", file], tmp_path).out
    assert answer(spark, tmp_path / "o %20ut", f"--output={output}", file) == here != b""
    assert sorted(path.name for path in tmp_path.iterdir() if "neardup-" in path.name) == []


@pytest.mark.parametrize("output", ["pairs", "kept", "marked"])
def test_columns_by_number(spark: Any, tmp_path: Path, output: str) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("1\tx y z\t-\n2\tx y z\n\n3\tx\n4\n", newline="")
    flags = ["--id=1", "--text=2", f"--output={output}", "--max-bad=1", file]
    here = succeed([*RUN_LOCAL, *flags], tmp_path).out
    assert answer(spark, tmp_path / "out", *flags) == in_order(here)
    assert here.count(b"\n") == {"pairs": 1, "kept": 4, "marked": 5}[output]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (b"a 1 2\n", "of 1 lines 1 are kept, but 1 records are removed: did the in"),
        (b"e 5 6\nf 5 6\ng 7\nh 8\n", "a.txt: changed while it was read; run again"),
    ],
)
def test_an_input_that_changes_before_its_lines_are_kept(
    other: bytes, message: str, spark: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    from neardup.engines.spark.spark_flow import SparkJob

    file, kept = tmp_path / "a.txt", SparkJob.kept
    file.write_bytes(b"a 1 2\nb 1 2\nc 3\nd 4\n")

    def and_then(self: Any, *given: Any) -> Any:
        blocks = kept(self, *given)
        file.write_bytes(other)
        os.utime(file, (1, 1))
        return blocks

    monkeypatch.setattr(SparkJob, "kept", and_then)
    with pytest.raises(StageError, match=message):
        answer(spark, tmp_path / "out", "--output=kept", file)
    assert not (tmp_path / "out").exists()


def test_a_file_is_named_once_where_places_matter(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"videos.txt: is named twice"):
        answer(spark, tmp_path / "out", "--output=removed", VIDEOS, VIDEOS)
