"""run_hadoop.sh removes its own folders on the cluster, and no other folders."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cluster import daemons
from tests.support import hadoop_cluster
from tests.support.engines import RUN_HADOOP, RUN_LOCAL, VIDEOS, environment, program, succeed

pytestmark = pytest.mark.hadoop


@pytest.fixture
def folder() -> str:
    """Return a folder on HDFS for the output `pairs`; it has a file that no run wrote."""
    folder = hadoop_cluster.new_output()
    hadoop_cluster.put(b"mine", f"{folder}/pairs.counts/part-00000")
    return folder


def test_all_users_may_submit_jobs() -> None:
    shared = ["/tmp", "/tmp/hadoop-yarn", "/tmp/hadoop-yarn/staging"]
    assert hadoop_cluster.hadoop("fs", "-stat", "%a", *shared).split() == [b"1777"] * 3


def test_the_cluster_keeps_its_files_in_its_own_folder() -> None:
    """YARN's node attributes are in the cluster's own folder."""
    assert (daemons.HOME / "data" / "node-attribute").is_dir()


def test_overwrite_leaves_what_has_no_mark(tmp_path: Path) -> None:
    kept = ("part-00000", "_SUCCESS", "_temporary/1/part-00000")
    any_input = hadoop_cluster.put(b"a 1 2 3\n", "/in/any.txt")
    output = hadoop_cluster.new_output()
    for name in kept:
        hadoop_cluster.put(b"mine", f"{output}/{name}")
    result = hadoop_cluster.attempt([*RUN_HADOOP, "--overwrite", any_input, output], tmp_path)
    assert result.code == 1
    assert f"{output} has no _neardup in it" in result.err.splitlines()[-1]
    for name in kept:
        assert hadoop_cluster.hdfs("OPEN", f"{output}/{name}") == b"mine"


class Client(NamedTuple):
    process: subprocess.Popen
    said: Path

    def end(self, number: int) -> str:
        """Interrupt the run once its job has begun; return all of its messages."""
        hadoop_cluster.wait_for(lambda: " map 0% " in self.said.read_text(), 600)
        self.process.send_signal(number)
        assert self.process.wait(300) == 128 + number
        with pytest.raises(ProcessLookupError):
            os.killpg(self.process.pid, 0)  # Hadoop's client is gone as well
        return self.said.read_text()


@pytest.fixture
def client(request: pytest.FixtureRequest, folder: str, tmp_path: Path) -> Iterator[Client]:
    """Yield run_hadoop.sh with the flags of `request`, running in a session of its own.

    Its tasks wait, so that the job cannot end before it is stopped.
    """
    python = program(tmp_path / "python", "sleep 300", f'exec {hadoop_cluster.PYTHON} "$@"')
    hadoop_cluster.put(VIDEOS.read_bytes(), "/in/stopped.txt")
    command = [*RUN_HADOOP, "--python", python, *request.param]
    with (tmp_path / "said").open("wb") as stderr:
        process = subprocess.Popen(
            [*command, "/in/stopped.txt", f"{folder}/pairs"],
            stderr=stderr,
            env={**daemons.environment(), **environment(tmp_path)},
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # even under nohup
        )
    yield Client(process, tmp_path / "said")
    process.kill()
    process.wait()


def final_status(said: str) -> str:
    """Return the final status of the application in YARN: UNDEFINED while it runs."""
    (application,) = re.findall(r"Submitted application (\w+)", said)
    return daemons.ask("resourcemanager_web", f"/ws/v1/cluster/apps/{application}")["app"][
        "finalStatus"
    ]


@pytest.mark.parametrize(
    ("client", "number"), [(["--exact"], signal.SIGINT), ([], signal.SIGHUP)], indirect=["client"]
)
def test_a_run_that_is_stopped(client: Client, number: int, folder: str, tmp_path: Path) -> None:
    """An interrupted run ends its job and removes its folders; a parallel run is refused."""
    hadoop_cluster.wait_for(lambda: " map 0% " in client.said.read_text(), 600)
    more = ["--overwrite", "--exact", "--reducers=1", "-D", "mapreduce.job.maps=1"]
    again = [*RUN_HADOOP, *more, "/in/stopped.txt", f"{folder}/pairs"]
    result = hadoop_cluster.attempt(again, tmp_path)
    assert result.code == 1
    assert "another run on this machine is writing to it" in result.err.splitlines()[-1]
    assert final_status(client.end(number)) == "KILLED"
    assert hadoop_cluster.names_in(folder) == ["pairs.counts"]


@pytest.mark.parametrize("client", [["--exact", "--detach"]], indirect=True)
def test_a_run_that_is_detached(client: Client, folder: str) -> None:
    """An interrupted run with --detach lets its job continue, and prints commands to end it."""
    said = client.end(signal.SIGINT)
    kill, remove = re.findall(
        r"^(?:The job is still running; to end it|and then, to remove .*?): (.*)$", said, re.M
    )
    assert final_status(said) == "UNDEFINED"
    for line in (kill, remove):
        subprocess.run(shlex.split(line), env=daemons.environment(), check=True, timeout=300)
    assert final_status(said) == "KILLED"
    assert hadoop_cluster.names_in(folder) == ["pairs.counts"]


def test_the_same_line_goes_on_after_a_killed_run(tmp_path: Path) -> None:
    """The jobs that a killed run has finished are not run again, and the answer is the same."""
    data = VIDEOS.read_bytes()
    new = hadoop_cluster.put(data, f"/in/{time.time_ns()}.txt")
    hadoop_cluster.hadoop("fs", "-touch", "-m", "-t", "20260131:090000", new)
    folder = hadoop_cluster.new_output()
    words = ["--exact", "--output=kept", "--reducers=2", new, f"{folder}/clean"]
    waits = program(
        tmp_path / "python",
        'case "$*" in *mapper.py*) sleep 300;; esac',
        f'exec {hadoop_cluster.PYTHON} "$@"',
    )
    said = tmp_path / "said"
    with said.open("wb") as stderr:
        process = subprocess.Popen(
            [*RUN_HADOOP, "--python", waits, *words],
            stderr=stderr,
            env={**daemons.environment(), **environment(tmp_path)},
            start_new_session=True,
        )
    try:
        hadoop_cluster.wait_for(lambda: said.read_text().count(" map 0% ") == 3, 900)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    number = re.findall(r"Running job: (job_\w+)", said.read_text())[-1]
    daemons_kill = [str(daemons.HOME / "bin" / "mapred"), "job", "-kill", number]
    subprocess.run(daemons_kill, env=daemons.environment(), check=True, timeout=300)

    again = hadoop_cluster.attempt(
        [*RUN_HADOOP, "--python", hadoop_cluster.PYTHON, *words], tmp_path
    )
    assert again.code == 0, again.err
    for name, done in {"sums": True, "counts": True, "pairs": False, "decided": False}.items():
        assert (f"\n{name}: an earlier run has finished this job" in f"\n{again.err}") == done
    assert again.err.count("Running job: ") == 3  # pairs, decision, kept lines
    assert hadoop_cluster.names_in(folder) == ["clean"]
    here = succeed([*RUN_LOCAL, "--exact", "--output=kept", VIDEOS], tmp_path)
    assert hadoop_cluster.lines_in(f"{folder}/clean") == here.out
