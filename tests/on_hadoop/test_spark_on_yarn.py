"""run_spark.sh on YARN writes the bytes and counts of run_local.sh, from HDFS to HDFS."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cluster import daemons
from neardup.commands import example as synthetic_videos
from tests.on_spark.test_spark_answers import counts
from tests.support import hadoop_cluster
from tests.support.engines import IN_FILES, RUN_LOCAL, Result, environment, in_order, succeed
from tests.support.hadoop_cluster import JOB_SECONDS, PYTHON, new_output, pairs_in, wait_for
from tests.support.programs import RUN_SPARK
from tests.support.spark_cluster import LOOPBACK, QUICK, home

pytestmark = pytest.mark.hadoop
FINISHED = 5 + 6 + 5  # tasks: those that send keys, that share them, and that send lines
ENDED = {"FINISHED", "FAILED", "KILLED"}


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write two files, one of them compressed, with copies across them; return their paths."""
    folder = tmp_path_factory.mktemp("videos")
    lines = list(synthetic_videos.lines(20_000, seed=1, copies=0.1))
    files = [folder / "a.txt", folder / "b c.txt.gz"]
    files[0].write_bytes(b"".join(lines[::2]))
    files[1].write_bytes(gzip.compress(b"".join(lines[1::2])))
    return files


@pytest.fixture(scope="module")
def in_hdfs(videos: list[Path]) -> str:
    """Put the files into a folder of HDFS; return its path."""
    folder = new_output().replace("/out/", "/in/yarn.")
    for file in videos:
        hadoop_cluster.put(file.read_bytes(), f"{folder}/{file.name}")
    return folder


def command(*words: str) -> list[str]:
    """Return a run_spark.sh command for YARN that sends no jars, as the nodes are this machine."""
    jars = f"spark.yarn.jars=local:{home()}/jars/*"
    return [*RUN_SPARK, "-v", *QUICK, "--master=yarn", "--python", PYTHON, "--conf", jars, *words]


def attempt(tmp: Path, *words: str) -> Result:
    return hadoop_cluster.attempt(command(*words), tmp, SPARK_LOCAL_IP=LOOPBACK)


def test_the_same_as_on_one_machine(videos: list[Path], in_hdfs: str, tmp_path: Path) -> None:
    """Compressed files and files outside HDFS give the lines and counts of run_local.sh."""
    old = videos[0].with_name("old.txt")
    old.write_bytes(b"".join(videos[0].read_bytes().splitlines(keepends=True)[:2000]))
    flags, output = ["-v", "--output=removed", "--against"], new_output()
    here = succeed([*RUN_LOCAL, *IN_FILES, *flags, old, *videos], tmp_path)
    there = attempt(tmp_path, *flags, f"file:{old}", in_hdfs, output)
    assert there.code == 0, there.err
    assert there.out == b""
    assert pairs_in(output) == in_order(here.out) != b""
    assert counts(there.err) == counts(here.err)


def test_an_executor_is_killed(videos: list[Path], in_hdfs: str, tmp_path: Path) -> None:
    """If an executor whose keys other executors need is killed in round 2, no pair is lost."""
    here = succeed([*RUN_LOCAL, *IN_FILES, "-v", *videos], tmp_path)
    output = new_output()
    flags = ["spark.sql.files.maxPartitionBytes=2m", "spark.log.level=INFO"]
    more = [word for flag in flags for word in ("--conf", flag)]
    with started(tmp_path, "--reducers=6", *more, in_hdfs, output) as (client, said):
        wait_for(lambda: said().count("Finished task") > FINISHED or ended(client))
        executor, *_ = executors(application(said()))
        os.kill(executor, signal.SIGKILL)
        assert client.wait(JOB_SECONDS) == 0, said()
        assert "Lost executor" in said()
        assert counts(said()) == counts(here.err)
    assert pairs_in(output) == in_order(here.out) != b""


def test_ctrl_c_ends_the_application(in_hdfs: str, tmp_path: Path) -> None:
    output = new_output()
    with started(tmp_path, in_hdfs, output) as (client, said):
        wait_for(lambda: "application_" in said() or ended(client))
        name = application(said())
        wait_for(lambda: executors(name) or ended(client))
        os.killpg(client.pid, signal.SIGINT)
        assert client.wait(JOB_SECONDS) == 130
        wait_for(lambda: state(name) in ENDED)
        wait_for(lambda: not executors(name))
    assert "Traceback" not in said()
    assert output[len("/out/") :] not in hadoop_cluster.names_in("/out")


def test_what_ends_a_run_is_said_in_its_last_line(in_hdfs: str, tmp_path: Path) -> None:
    missing = attempt(tmp_path, "/in/nowhere.txt", new_output())
    assert missing.code == 1
    root = f"hdfs://localhost:{daemons.ports()['namenode']}"
    assert missing.err.splitlines()[-1] == f"run_spark.sh: {root}/in/nowhere.txt: no such file"


@contextmanager
def started(tmp: Path, *words: str) -> Iterator[tuple[subprocess.Popen, Callable[[], str]]]:
    """Yield run_spark.sh, running in its own session, and a function that returns its stderr."""
    log = tmp / "said"
    with log.open("wb") as stderr:
        client = subprocess.Popen(
            command(*words),
            stderr=stderr,
            env={**daemons.environment(), **environment(tmp), "SPARK_LOCAL_IP": LOOPBACK},
            start_new_session=True,
        )
    try:
        yield client, lambda: log.read_text("utf-8", "backslashreplace")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(client.pid, signal.SIGKILL)
        client.wait()


def ended(client: subprocess.Popen) -> bool:
    return client.poll() is not None


def application(said: str) -> str:
    found = re.search(r"application_\d+_\d+", said)
    assert found, said
    return found[0]


def state(application: str) -> str:
    """Return an application's state in YARN, or an empty string if YARN does not know it."""
    app = daemons.ask("resourcemanager_web", f"/ws/v1/cluster/apps/{application}").get("app", {})
    return app.get("state", "")


def executors(application: str) -> list[int]:
    """Return the process ids of an application's JVMs, which run its tasks."""
    return [each.pid for each in hadoop_cluster.processes(f"--app-id\0{application}\0")]
