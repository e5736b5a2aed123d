"""On a real Hadoop, bad lines are counted or end the job; hot keys and huge records work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import hadoop_cluster
from tests.support.engines import RUN_HADOOP, VIDEOS

pytestmark = pytest.mark.hadoop
BAD = b"a 1 2 3\nlonely\nb 1 2 x\nc 1 2 3\nd 1 -2\ne 99999999999999999999\n\xff 1\n"


def test_bad_lines_are_counted(tmp_path: Path) -> None:
    hdfs = hadoop_cluster.put(BAD, "/in/bad.txt")
    job = hadoop_cluster.submit(tmp_path, [hdfs], *hadoop_cluster.WITHOUT_YARN, "--max-bad=1")
    assert job.pairs == b"a\tc\t1.000000\n"
    assert job.result.count("records") == 2
    assert job.result.count("bad lines") == 5
    reasons = re.search(r"^bad lines .*\((.*)\)$", job.result.err, re.MULTILINE)
    assert reasons
    assert set(reasons[1].split(", ")) == {
        "1 no shingles",
        "1 not an integer",
        "1 negative shingle",
        "1 shingle over 2^64-1",
        "1 not UTF-8",
    }


def test_the_first_bad_line_ends_a_strict_job(tmp_path: Path) -> None:
    hdfs = hadoop_cluster.put(BAD, "/in/strict.txt")
    command = [*RUN_HADOOP, "--python", hadoop_cluster.PYTHON, "--strict", "--reducers=1"]
    once = ["-D", "mapreduce.map.maxattempts=1"]
    result = hadoop_cluster.attempt([*command, *once, hdfs, hadoop_cluster.new_output()], tmp_path)
    assert result.code == 1
    said = r"run_hadoop.sh: mapper.py: hdfs://\S+/in/strict.txt(?: from byte \d+)?: line \d: "
    assert re.match(said, result.err.splitlines()[-1])


def test_nothing_to_read(tmp_path: Path) -> None:
    command = [*RUN_HADOOP, "/in/nowhere*", hadoop_cluster.new_output()]
    result = hadoop_cluster.attempt(command, tmp_path)
    assert result.code == 1
    assert "`/in/nowhere*': No such file or directory" in result.err
    assert result.err.splitlines()[-1].startswith("run_hadoop.sh: cannot list /in/nowhere*; ")


def test_an_empty_input(tmp_path: Path) -> None:
    hadoop_cluster.put(b"", "/in/empty/nothing.txt")
    without_yarn = hadoop_cluster.WITHOUT_YARN
    job = hadoop_cluster.submit(tmp_path, ["/in/empty"], "--reducers=2", *without_yarn)
    assert job.pairs == b""
    assert job.result.count("records") == 0


def test_a_hot_key_as_links(tmp_path: Path) -> None:
    """A hot key of 5,000 copies gives 4,999 links instead of 12,497,500 pairs."""
    lines = VIDEOS.read_bytes().splitlines(keepends=True)
    _, shingles = lines[0].split(b" ", 1)
    copies = b"".join(b"COPY_%04d %b" % (i, shingles) for i in range(5000))
    hdfs = hadoop_cluster.put(copies + b"".join(lines[1:]), "/in/hot.txt", 3 << 20)
    job = hadoop_cluster.submit(tmp_path, [hdfs], "--reducers=2", "--output=links")
    links = [line.split(b"\t") for line in job.pairs.splitlines()]
    copies_linked = [
        link for link in links if link[0].startswith(b"COPY") and link[1].startswith(b"COPY")
    ]
    assert len(copies_linked) == 4999
    assert {similarity for *_, similarity in copies_linked} == {b"1.000000"}


def test_a_very_large_video(tmp_path: Path) -> None:
    large = b" ".join(b"%d" % (3 * i) for i in range(1_000_000))
    more = b" ".join(b"%d" % (3 * i) for i in range(1_000_000, 1_050_000))
    data = b"LARGE %b\nSMALL 1 2 3\nLARGER %b %b\n" % (large, large, more)
    job = hadoop_cluster.submit(
        tmp_path, [hadoop_cluster.put(data, "/in/large.txt")], "--reducers=2"
    )
    assert job.pairs == b"LARGE\tLARGER\t0.952381\n"


def test_no_line_can_be_read(tmp_path: Path) -> None:
    """If no line of a file can be read, its task ends, and its log names --input text."""
    text = b"".join(b"%d\ta text of some words\n" % i for i in range(50))
    hdfs = hadoop_cluster.put(text, "/in/text.txt")
    command = [*RUN_HADOOP, "--python", hadoop_cluster.PYTHON, "--reducers=1"]
    result = hadoop_cluster.attempt([*command, hdfs, hadoop_cluster.new_output()], tmp_path)
    assert result.code == 1
    assert "No two records" not in result.err
    assert "looks like text; add: --input text" in result.err


def test_an_id_on_all_records(tmp_path: Path) -> None:
    text = b"".join(b"id: text %d of some words\n" % i for i in range(50))
    hdfs = hadoop_cluster.put(text, "/in/id.txt")
    flags = [*hadoop_cluster.WITHOUT_YARN, "--reducers=1", "--input=text"]
    job = hadoop_cluster.submit(tmp_path, [hdfs], *flags)
    assert "50 of 50 records have the same id, or one of a few" in job.result.err
