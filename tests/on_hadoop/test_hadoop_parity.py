"""A real Hadoop gives the bytes of run_local.sh, however the work is divided."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from cluster import daemons
from tests.engines.test_articles import ARTICLES, FLAGS
from tests.support import hadoop_cluster
from tests.support.engines import (
    ANSWER,
    JOB,
    NEARDUP,
    ROOT,
    RUN_HADOOP,
    RUN_LOCAL,
    VIDEOS,
    environment,
    in_order,
    succeed,
)

pytestmark = pytest.mark.hadoop
# Each number of reducers once, and each input once.
BLOCKS = {"videos": 4, "generated": 2, "articles": 2}
REDUCERS = {"videos": 4, "generated": 3}
ROUNDS = {"videos": 1, "generated": 2}


class Input(NamedTuple):
    file: Path
    flags: list[str]
    exact: bytes  # the exact answer, from somewhere else
    promised: float  # how much of it must be found


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Input]:
    tmp = tmp_path_factory.mktemp("inputs")
    generated, exact = tmp / "generated.txt", tmp / "generated.tsv"
    for target, *command in (
        (generated, "neardup", "example", "--records=20000", "--seed=3"),
        (exact, "bench.data.exact_answer", str(generated)),
    ):
        with target.open("wb") as stdout:
            program = [sys.executable, "-m", *command]
            subprocess.run(program, stdout=stdout, check=True, cwd=ROOT, env=environment(tmp))
    found = {
        "videos": Input(VIDEOS, [], ANSWER.read_bytes(), 1),
        "generated": Input(generated, [], exact.read_bytes(), 0.999),
    }
    found["articles"] = real_articles() if ARTICLES.is_dir() else generated_articles(tmp)
    return found


def real_articles() -> Input:
    truth = (ARTICLES / "articles_1000.truth").read_bytes()
    return Input(ARTICLES / "articles_1000.train", FLAGS, truth, 1)


def generated_articles(tmp: Path) -> Input:
    """Write the videos as texts whose words are the shingles in order; return the input."""
    file = tmp / "texts.txt"
    with file.open("wb") as texts:
        for line in VIDEOS.read_bytes().splitlines():
            name, *shingles = line.split()
            texts.write(b"%b\t%b\n" % (name, b" ".join(sorted(set(shingles), key=int))))
    return Input(file, FLAGS, succeed([*NEARDUP, "truth", *FLAGS, file], tmp).out, 0.999)


class Expected(NamedTuple):
    hdfs: str
    flags: list[str]
    pairs: bytes


@pytest.fixture(scope="module")
def expected(
    request: pytest.FixtureRequest,
    inputs: dict[str, Input],
    tmp_path_factory: pytest.TempPathFactory,
) -> Expected:
    """Put an input into HDFS; return its path, its flags and run_local.sh's pairs, once checked."""
    file, flags, exact, promised = inputs[request.param]
    pairs = succeed([*RUN_LOCAL, *flags, file], tmp_path_factory.mktemp("local")).out
    found = {frozenset(line.split()[:2]) for line in pairs.splitlines()}
    truth = {frozenset(line.split()[:2]) for line in exact.splitlines()}
    assert truth
    assert found <= truth
    assert len(found) >= promised * len(truth)
    block = -(-file.stat().st_size // BLOCKS[request.param] // 4096) * 4096
    hdfs = hadoop_cluster.put(file.read_bytes(), f"/in/{file.name}", block)
    return Expected(hdfs, flags, pairs)


@pytest.mark.parametrize(
    ("expected", "blocks", "reducers", "rounds"),
    [(name, BLOCKS[name], REDUCERS[name], ROUNDS[name]) for name in REDUCERS],
    indirect=["expected"],
)
def test_streaming(
    expected: Expected, blocks: int, reducers: int, rounds: int, tmp_path: Path
) -> None:
    # With two rounds, --reducers is what the first one has at most; -D is for both.
    number = f"--reducers={reducers}" if rounds == 1 else f"-Dmapreduce.job.reduces={reducers}"
    numbers = [number, f"--rounds={rounds}"]
    job = hadoop_cluster.submit(tmp_path, [expected.hdfs], *numbers, *expected.flags)
    assert job.pairs == expected.pairs
    assert job.hadoop_counter("Launched map tasks") >= blocks * rounds
    assert job.hadoop_counter("Launched reduce tasks") >= reducers * rounds
    assert job.result.count("pairs") == expected.pairs.count(b"\n")
    assert job.hadoop_counter("Map output records") < 1000  # blocks, and not lines


@pytest.mark.parametrize("expected", ["articles"], indirect=True)
def test_mrjob(expected: Expected, tmp_path: Path) -> None:
    """mrjob runs on YARN: it counts tokens, searches for pairs, and removes repeated pairs."""
    command = [*JOB, "--no-conf", "-r", "hadoop", "--python-bin", hadoop_cluster.PYTHON]
    reducers = ["-D", "mapreduce.job.reduces=2", "--scheme=prefix"]
    result = hadoop_cluster.attempt(
        [*command, *reducers, *expected.flags, f"hdfs://{expected.hdfs}"], tmp_path
    )
    assert result.code == 0, result.err
    assert in_order(result.out) == expected.pairs
    assert result.count("unique pairs") == expected.pairs.count(b"\n")
    assert result.count("bad lines") == 0


# Once is enough for what follows.


@pytest.fixture
def videos() -> bytes:
    return VIDEOS.read_bytes()


def test_nodes_without_numpy(videos: bytes, tmp_path: Path) -> None:
    """With --ship-venv, a job works on nodes without numpy.

    The first block of docs/hadoop.md, which another test runs, uses --ship-numpy.
    """
    hdfs = hadoop_cluster.put(videos, "/in/ship/videos.txt")
    output = hadoop_cluster.new_output()
    command = [*RUN_HADOOP, "--reducers=2", "--ship-venv"]
    result = hadoop_cluster.attempt([*command, hdfs, output], tmp_path)
    assert result.code == 0, result.err
    assert hadoop_cluster.pairs_in(output) == ANSWER.read_bytes()


def test_numpy_is_put_on_the_cluster_once(videos: bytes, tmp_path: Path) -> None:
    """numpy is uploaded once for a new user, and all jobs of two runs use that file."""
    user = f"user{time.time_ns()}"
    hdfs = hadoop_cluster.put(videos, "/in/kept/videos.txt")
    hadoop_cluster.hadoop("fs", "-mkdir", "-p", f"/user/{user}")
    run = [*RUN_HADOOP, "--ship-numpy", "--output=removed", hdfs, hadoop_cluster.new_output()]
    mrjob = [*JOB, "--no-conf", "-r", "hadoop", "--ship-numpy", f"hdfs://{hdfs}"]
    seen = set()
    for command in (run, mrjob):
        result = hadoop_cluster.attempt(command, tmp_path, HADOOP_USER_NAME=user)
        assert result.code == 0, result.err
        assert result.err.count("Running job: ") == 2
        (name,) = hadoop_cluster.names_in(f"/user/{user}/.neardup")
        kept = f"/user/{user}/.neardup"
        seen.add(hadoop_cluster.hadoop("fs", "-stat", "%A %b %y", kept, f"{kept}/{name}"))
    (told,) = seen
    assert told.startswith(b"rwx------ ")
    assert in_order(result.out) == ANSWER.read_bytes()
    unpacked = list(daemons.HOME.glob(f"data/nodemanager*/usercache/{user}/filecache/*/numpy-*"))
    assert {path.name for path in unpacked} == {name}
    assert len(unpacked) <= 2  # one on each node, for four jobs


def test_a_folder_of_plain_and_packed_files(videos: bytes, tmp_path: Path) -> None:
    lines = videos.splitlines(keepends=True)
    hadoop_cluster.put(b"".join(lines[:500]), "/in/mixed/plain.txt")
    hadoop_cluster.put(gzip.compress(b"".join(lines[500:1200])), "/in/mixed/packed.gz")
    hadoop_cluster.put(b"".join(lines[1200:]), "/in/mixed/deeper/rest.txt")
    for inputs in (["/in/mixed"], ["/in/{mixed/p*.*,none}", "/in/mixed/deeper"]):
        job = hadoop_cluster.submit(tmp_path, inputs, "--reducers=2", *hadoop_cluster.WITHOUT_YARN)
        assert job.pairs == ANSWER.read_bytes()


def test_the_second_reduce(tmp_path: Path) -> None:
    """With --dedup, a second reduce removes repeated pairs; an existing output is refused."""
    data = b"x 1 2 3\nx 1 2 3 4 5 6 7 8 9\ny 1 2 3\ny 1 2 3 4 5 6 7 8 9 10\nz 4\n"
    hdfs, output = hadoop_cluster.put(data, "/in/again.txt"), hadoop_cluster.new_output()
    command = [*RUN_HADOOP, "-v", "--python", hadoop_cluster.PYTHON, "--reducers=2"]
    without_yarn = hadoop_cluster.WITHOUT_YARN
    result = hadoop_cluster.attempt([*command, *without_yarn, hdfs, output], tmp_path)
    assert result.code == 0, result.err
    assert hadoop_cluster.pairs_in(output) == b"x\ty\t0.900000\nx\ty\t1.000000\n"
    result = hadoop_cluster.attempt([*command, hdfs, output], tmp_path)
    assert result.code == 1
    assert "already exists; --overwrite removes an earlier answer" in result.err.splitlines()[-1]
    result = hadoop_cluster.attempt(
        [*command, *without_yarn, "--dedup", "--overwrite", hdfs, output],
        tmp_path,
        HADOOP_USER_NAME="guest",
    )
    assert result.code == 0, result.err
    assert hadoop_cluster.pairs_in(output) == b"x\ty\t1.000000\n"
    assert result.count("unique pairs") == 1
    assert result.count("repeated pairs") == 1


def test_a_scheme_that_counts_tokens_first(videos: bytes, tmp_path: Path) -> None:
    """The jobs that count tokens remove their own folder, and no other folder beside the output."""
    folder = hadoop_cluster.new_output()
    output = f"{folder}/my pairs"
    hdfs = hadoop_cluster.put(videos, f"{output}.counts/videos.txt", 1 << 20)
    hadoop_cluster.put(b"mine", f"{output}.sums/part-00000")
    command = [*RUN_HADOOP, "--python", hadoop_cluster.PYTHON, "--reducers=3"]
    result = hadoop_cluster.attempt([*command, "--exact", hdfs, output], tmp_path)
    assert result.code == 0, result.err
    assert hadoop_cluster.pairs_in(output) == ANSWER.read_bytes()
    assert len(re.findall("Running job: ", result.err)) == 3
    assert re.search("^sizes 45 to .* keys, .* candidate pairs$", result.err, re.MULTILINE)
    assert result.count("records") == videos.count(b"\n")
    assert hadoop_cluster.names_in(folder) == ["my pairs", "my pairs.counts", "my pairs.sums"]
    assert hadoop_cluster.hdfs("OPEN", f"{output}.sums/part-00000") == b"mine"

    # A relative name, and the one JVM of the client.
    output = folder.lstrip("/").replace("/", ".")
    local = ["--scheme=prefix", *hadoop_cluster.WITHOUT_YARN]
    result = hadoop_cluster.attempt([*command, *local, f"{folder}/my*.counts", output], tmp_path)
    assert result.code == 0, result.err
    assert hadoop_cluster.pairs_in(output) == ANSWER.read_bytes()
    assert result.count("records") == videos.count(b"\n")
