"""Faults on a cluster during a job cost time, but no pair.

Each test lets a job run, breaks something for real, and waits for the job to end by itself with
the right bytes.  The job's history must show that attempts were lost and made again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cluster import daemons
from tests.support import hadoop_cluster
from tests.support.engines import ROOT, RUN_LOCAL, succeed

pytestmark = pytest.mark.hadoop
RECORDS = 80_000
# Hadoop may start an attempt twice to be faster, and kill the slower one; here only faults may.
ONCE = ["-D", "mapreduce.map.speculative=false", "-D", "mapreduce.reduce.speculative=false"]


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """Put synthetic videos into HDFS, in four blocks; return their path and their pairs."""
    tmp = tmp_path_factory.mktemp("faults")
    make = [sys.executable, "-m", "neardup", "example", f"--records={RECORDS}", "--seed=4"]
    data = subprocess.run(make, stdout=subprocess.PIPE, check=True, cwd=ROOT).stdout
    (tmp / "videos.txt").write_bytes(data)
    pairs = succeed([*RUN_LOCAL, tmp / "videos.txt"], tmp).out
    assert pairs.count(b"\n") > RECORDS / 20
    return hadoop_cluster.put(
        data, "/in/faults/videos.txt", -(-len(data) // 4 // 4096) * 4096
    ), pairs


@pytest.fixture(autouse=True)
def _whole_again() -> Iterator[None]:
    """After each test, start the daemons that have ended, and wait until the cluster is healthy."""
    yield
    for name in daemons.DAEMONS:
        daemons.start(name)
    daemons.wait_until(daemons.healthy, "the cluster to be whole again")


def run_and_break(videos: tuple[str, bytes], fault: Callable[[], None], tmp: Path) -> str:
    """Run the job and, at the same time, `fault`; return the job's id."""
    errors: list[BaseException] = []

    def strike() -> None:
        try:
            fault()
        except BaseException as error:
            errors.append(error)

    breaker = threading.Thread(target=strike)
    breaker.start()
    try:
        job = hadoop_cluster.submit(tmp, [videos[0]], "--reducers=3", *ONCE)
    finally:
        breaker.join()
    assert not errors, errors
    assert job.pairs == videos[1]
    return job.id


def lost(job: str, kind: str) -> list[hadoop_cluster.Attempt]:
    """Return a job's map or reduce attempts that did not succeed, though their tasks did."""
    all_ = [attempt for attempt in hadoop_cluster.attempts(job) if attempt.kind == kind]
    failed = [attempt for attempt in all_ if attempt.state != "SUCCEEDED"]
    done = {attempt.task for attempt in all_ if attempt.state == "SUCCEEDED"}
    assert failed, all_
    assert {attempt.task for attempt in failed} <= done
    return failed


def at_work(script: str, away_from_master: bool = False) -> hadoop_cluster.Process:
    """Wait until the first attempt of a task has read 8 MiB; return its process."""

    def find() -> hadoop_cluster.Process | None:
        master = {process.node for process in hadoop_cluster.processes("MRAppMaster")}
        for process in hadoop_cluster.processes(script):
            first = process.attempt.endswith("_0") and process.has_read(8)
            if first and not (away_from_master and process.node in master):
                return process
        return None

    return hadoop_cluster.wait_for(find)


def kill(process: hadoop_cluster.Process) -> bool:
    """Kill a process; return whether it was still there."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
        return True
    return False


TASKS = {"/mapper.py": "MAP", "/reducer.py": "REDUCE"}


def test_python_is_killed(videos: tuple[str, bytes], tmp_path: Path) -> None:
    """If the Python of a mapper and later that of a reducer is killed, no pair is lost."""

    def fault() -> None:
        for script in TASKS:
            hadoop_cluster.wait_for(lambda script=script: kill(at_work(script)))

    job = run_and_break(videos, fault, tmp_path)
    for kind in TASKS.values():
        assert any("code 137" in attempt.said for attempt in lost(job, kind))


@pytest.mark.parametrize(("script", "kind"), TASKS.items(), ids=TASKS.values())
def test_a_node_dies(script: str, kind: str, videos: tuple[str, bytes], tmp_path: Path) -> None:
    """If a NodeManager and all its processes die while a map or a reduce runs, no pair is lost."""

    def fault() -> None:
        node = at_work(script, away_from_master=True).node
        daemons.stop(node, signal.SIGKILL)
        for process in hadoop_cluster.processes(""):
            if process.node == node:
                kill(process)

    lost(run_and_break(videos, fault, tmp_path), kind)


def test_the_job_master_is_killed(videos: tuple[str, bytes], tmp_path: Path) -> None:
    """If the job's master is killed while reducers work, a second master finishes the job."""

    def fault() -> None:
        at_work("/reducer.py")
        (master,) = (one for one in hadoop_cluster.processes("MRAppMaster") if is_java(one.pid))
        assert kill(master)

    job = run_and_break(videos, fault, tmp_path)
    masters = hadoop_cluster.history(f"jobs/{job}/jobattempts")["jobAttempts"]["jobAttempt"]
    assert len(masters) == 2


def is_java(pid: int) -> bool:
    """Return whether a process is a JVM, not the shell that started it."""
    return os.path.basename(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]) == b"java"


def test_the_datanode_is_restarted(videos: tuple[str, bytes], tmp_path: Path) -> None:
    """If the DataNode restarts while reducers work, their output and the job's history survive.

    With one DataNode, a job can only survive this if it comes back, and says so to those who write;
    that is what "upgrade" asks for.
    """
    times: list[float] = []

    def fault() -> None:
        at_work("/reducer.py")
        before = daemons.pid("datanode")
        times.append(time.time())
        address = f"localhost:{daemons.ports()['datanode_ipc']}"
        hadoop_cluster.hadoop("dfsadmin", "-shutdownDatanode", address, "upgrade")
        daemons.wait_until(lambda: not daemons.pid("datanode"), "the DataNode to end")
        daemons.start("datanode")
        times.append(time.time())
        assert daemons.pid("datanode") not in (0, before)

    job = hadoop_cluster.history(f"jobs/{run_and_break(videos, fault, tmp_path)}")["job"]
    assert job["state"] == "SUCCEEDED"
    assert job["startTime"] / 1000 < times[0] < times[1]
    assert times[0] < job["finishTime"] / 1000
