"""job.py on a real Hadoop: the decisions that run_local.sh makes, over files in many splits."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.support import hadoop_cluster
from tests.support.engines import JOB, RUN_LOCAL, VIDEOS, Result, succeed

pytestmark = pytest.mark.hadoop
SUMMED = (
    "records",
    "… old ones",
    "records removed",
    "records that stay",
    "… that only a chain would remove",
)


def job(tmp: Path, *options: object) -> Result:
    command = [*JOB, "--no-conf", "-r", "hadoop", "--python-bin", hadoop_cluster.PYTHON]
    result = hadoop_cluster.attempt([*command, *map(str, options)], tmp)
    assert result.code == 0, result.err
    return result


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Four parts of the videos: old ones, new ones, among lines that are no records, packed."""
    folder = tmp_path_factory.mktemp("parts")
    lines = VIDEOS.read_bytes().splitlines(keepends=True)
    odd = [b"\n", b"bad\tx\t\n", b"\tbad\t\t2\t\n", b"\xff\xfe \n"]
    files = {
        "old.txt": b"".join(lines[:600]),
        "2.txt": b"".join(lines[600:850]),
        "3.txt": b"".join([*lines[850:1000], *odd, *lines[1000:1500]]),
        "1.gz": gzip.compress(b"".join(lines[1500:])),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in files]


def test_what_stays_of_new_files_in_splits(parts: list[Path], tmp_path: Path) -> None:
    """Old and packed ones are sent along from here; two are in HDFS, by a pattern: one in small
    blocks, and one that Hadoop would by itself cut otherwise where old ones are there too.
    """
    old, *new = parts
    here, there = tmp_path / "here.tsv", tmp_path / "there.tsv"
    flags = ["--output=kept", f"--against={old}"]
    local = succeed([*RUN_LOCAL, *flags, f"--removed={here}", *new], tmp_path)
    for file, block_bytes in ((new[0], 64 << 10), (new[1], 128 << 20)):
        hadoop_cluster.put(file.read_bytes(), f"/in/mrjob decisions/{file.name}", block_bytes)
    in_hdfs = "hdfs:///in/mrjob decisions/?.txt"
    found = job(tmp_path, *flags, f"--removed={there}", in_hdfs, new[2])
    assert found.lines() == local.lines()
    assert len(found.lines()) > 1000
    assert 20 < here.read_bytes().count(b"\n") < 1000
    assert there.read_bytes() == here.read_bytes()
    for name in SUMMED:
        assert found.count(name) == local.count(name)


def test_clusters_that_stay_in_hdfs(parts: list[Path], tmp_path: Path) -> None:
    local = succeed([*RUN_LOCAL, "--output=clusters", *parts], tmp_path)
    assert local.out.count(b"\n") > 100
    output = hadoop_cluster.new_output()
    found = job(tmp_path, "--output=clusters", f"--output-dir=hdfs://{output}", *parts)
    assert found.out == b""
    assert hadoop_cluster.names_in(output) == ["_SUCCESS", "part-00000"]
    assert hadoop_cluster.hadoop("fs", "-cat", f"{output}/part-00000") == local.out
    assert found.count("records of the largest cluster") == local.count(
        "records of the largest cluster"
    )
    assert found.count("records") == local.count("records")
