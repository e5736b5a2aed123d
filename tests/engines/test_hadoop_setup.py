"""The cluster for tests and trials reports missing requirements, starts, and ends cleanly."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cluster import daemons, install
from neardup.runtime.counters import Counters
from tests.support import hadoop_cluster
from tests.support.engines import ROOT, environment, program, refuse, run


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a folder with cluster/ in which no cluster was ever started."""
    shutil.copytree(ROOT / "cluster", tmp_path / "clone" / "cluster", symlinks=True)
    return tmp_path / "clone"


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ({}, "cluster.py: needs Java 17 or later; on Debian and Ubuntu: apt-get install openjdk"),
        ({"java": "11.0.2"}, "needs Java 17 or later, and "),
        (
            {"java": "17.0.1"},
            "cluster.py: needs Maven; on Debian and Ubuntu: apt-get install maven\n",
        ),
        (
            {"java": "21", "mvn": "no route"},
            "Maven could not fetch Hadoop: [ERROR] no route to the registry\n",
        ),
    ],
)
@pytest.mark.parametrize("command", ["up", "run true"])
def test_what_is_missing_is_named(
    command: str, programs: dict[str, str], said: str, clone: Path, tmp_path: Path
) -> None:
    if "java" in programs:
        version = f"""echo 'openjdk version "{programs["java"]}"' >&2"""
        program(tmp_path / "bin" / "java", version)
    if "mvn" in programs:
        program(tmp_path / "bin" / "mvn", "echo '[ERROR] no route to the registry'", "exit 1")
    start = [sys.executable, clone / "cluster" / "cluster.py", *command.split()]
    refuse(start, tmp_path, said, code=1, PATH=str(tmp_path / "bin"), JAVA_HOME="")
    assert not (clone / ".hadoop" / "lib").exists()


@pytest.mark.parametrize("name", ["my clone", "a,b", "a&b", "a%20b"])
def test_a_folder_that_hadoop_cannot_use(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "cluster", tmp_path / name / "cluster", symlinks=True)
    result = run([sys.executable, tmp_path / name / "cluster" / "cluster.py", "up"], tmp_path)
    assert result.code == 1
    assert "needs a path of only ASCII letters" in result.err


@pytest.mark.slow
def test_the_command_of_run_is_ended(tmp_path: Path) -> None:
    """If `cluster.run` is interrupted, its command can clean up, and the command's child ends."""
    script = (
        f"trap 'echo cleaned >{tmp_path}/said; exit' INT; sleep 998 & "
        f"sleep 1; echo $! >{tmp_path}/pid; wait"  # until then it is no more about to start this
    )
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cluster import cluster; "
    code += f"cluster.run(['bash', '-c', {script!r}])"
    process = subprocess.Popen([sys.executable, "-c", code])
    sleeper = int(
        hadoop_cluster.wait_for(
            lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()
        )
    )
    process.send_signal(signal.SIGINT)
    assert process.wait(300) != 0
    assert (tmp_path / "said").read_text() == "cleaned\n"
    hadoop_cluster.wait_for(lambda: not daemons.start_time(sleeper))


def test_a_taken_port_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    first = install.free_ports()["namenode"]
    with socket.socket() as taken:
        taken.bind(("localhost", first))
        taken.listen()
        ports = install.free_ports()
    assert first not in ports.values()
    assert len(set(ports.values())) == len(daemons.PORTS)
    monkeypatch.setattr(install, "is_free", lambda port: False)
    with pytest.raises(daemons.ClusterError, match="too few free ports"):
        install.free_ports()


def test_another_process_with_the_number_of_a_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon's process id in pids/ is ignored if another process has it now, as after a crash."""
    monkeypatch.setattr(daemons, "HOME", tmp_path)
    (tmp_path / "pids").mkdir()
    (tmp_path / "pids" / "namenode").write_text(f"{os.getpid()} 12345\n")
    assert daemons.pid("namenode") == 0
    started = daemons.start_time(os.getpid())
    (tmp_path / "pids" / "namenode").write_text(f"{os.getpid()} {started}\n")
    assert daemons.pid("namenode") == os.getpid()


def test_a_long_bucket_gives_signs_of_life(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("mapreduce_task_attempt_id", "attempt_1")
    monkeypatch.setattr("neardup.runtime.counters.STATUS_SECONDS", 0)
    counters = Counters("reducer", progress="pairs")
    counters.add("pairs", 1200)
    assert capsys.readouterr().err == "reporter:status:reducer: 1,200 pairs\n"
    monkeypatch.setattr("neardup.runtime.counters.STATUS_SECONDS", 60)
    counters.alive()
    assert capsys.readouterr().err == ""


@pytest.mark.hadoop
def test_a_cluster_ends_with_its_command(clone: Path, tmp_path: Path) -> None:
    """A signal ends a second cluster with its command, and leaves the first cluster running."""
    (clone / ".hadoop").mkdir()
    (clone / ".hadoop" / "lib").symlink_to(daemons.HOME / "lib")
    ready = tmp_path / "ready"
    command = [
        "sh",
        "-c",
        f'"$HADOOP_HOME/bin/hadoop" fs -ls / >{ready}.all && mv {ready}.all {ready}; sleep 999',
    ]
    process = subprocess.Popen(
        [sys.executable, clone / "cluster" / "cluster.py", "run", *command],
        env=environment(tmp_path),
        start_new_session=True,
    )
    try:
        hadoop_cluster.wait_for(ready.exists)
        assert "/user" in ready.read_text()
        pids = [int(file.read_text().split()[0]) for file in (clone / ".hadoop" / "pids").iterdir()]
        assert len(pids) == len(daemons.DAEMONS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait()
    assert not any(daemons.start_time(pid) for pid in pids)
    assert daemons.healthy()  # the first one
