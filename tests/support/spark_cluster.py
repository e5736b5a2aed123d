"""A Spark of a master and two workers, as local processes that listen on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, TypeVar

DAEMON = "org.apache.spark.deploy"
EXECUTOR = b"CoarseGrainedExecutorBackend"
LOOPBACK = "127.0.0.1"
SOON_WARM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a JVM that lives for seconds
QUICK = [
    word
    for which in ("driver", "executor", "yarn.am")
    for word in ("--conf", f"spark.{which}.extraJavaOptions={SOON_WARM}")
]
WAIT_SECONDS = 600  # on a busy machine
T = TypeVar("T")


class SparkCluster(NamedTuple):
    """A running cluster: the master's address, and the workers' process ids."""

    master: str
    workers: list[int]

    def executors(self) -> list[int]:
        """Return the ids of the processes that run the tasks of a job."""
        return [
            pid
            for worker in self.workers
            for pid in _children(worker)
            if EXECUTOR in _read(pid, "cmdline")
        ]


@contextmanager
def started(folder: Path) -> Iterator[SparkCluster]:
    """Yield a cluster with two workers of one core each, which ends with the block."""
    processes: list[subprocess.Popen] = []

    def start(*words: str) -> int:
        log = (folder / f"daemon-{len(processes)}.log").open("wb")
        env = {
            **os.environ,
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_WORKER_DIR": str(folder / "work"),
            "SPARK_DAEMON_JAVA_OPTS": SOON_WARM,
        }
        command = [str(home() / "bin" / "spark-class"), *words]
        processes.append(
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=folder
            )
        )
        log.close()
        return processes[-1].pid

    try:
        port, web, *others = _free_ports(6)
        start(f"{DAEMON}.master.Master", *_at(port, web))
        wait_for(lambda: _listens(port))
        master = f"spark://{LOOPBACK}:{port}"
        workers = [
            start(f"{DAEMON}.worker.Worker", *_at(*two), "--cores", "1", "--memory", "1g", master)
            for two in (others[:2], others[2:])
        ]
        log = folder / "daemon-0.log"
        wait_for(lambda: log.read_bytes().count(b"Registering worker") == len(workers))
        yield SparkCluster(master, workers)
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(WAIT_SECONDS)


def home() -> Path:
    spec = find_spec("pyspark")
    assert spec
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def wait_for(find: Callable[[], T], seconds: float = WAIT_SECONDS) -> T:
    """Wait until `find` returns a true value; return it."""
    end = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return found


def _at(port: int, web: int) -> list[str]:
    return ["--host", LOOPBACK, "--port", str(port), "--webui-port", str(web)]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind((LOOPBACK, 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
        return True
    return False


def _children(pid: int) -> list[int]:
    return [int(child) for child in _read(pid, f"task/{pid}/children").split()] + [
        child
        for task in Path(f"/proc/{pid}/task").glob("*")
        if task.name != str(pid)
        for child in map(int, _read(pid, f"task/{task.name}/children").split())
    ]


def _read(pid: int, name: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""
