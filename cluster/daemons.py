"""The daemons of the cluster: start and stop them, find their processes, check their health."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

SOURCE = Path(__file__).resolve().parent
HOME = SOURCE.parent / ".hadoop"
START_SECONDS, STOP_SECONDS, FETCH_SECONDS = 600, 60, 3600
PORTS = (
    "namenode",
    "namenode_web",
    "datanode",
    "datanode_web",
    "datanode_ipc",
    "resourcemanager",
    "resourcemanager_scheduler",
    "resourcemanager_tracker",
    "resourcemanager_admin",
    "resourcemanager_web",
    "nodemanager1_web",
    "nodemanager2_web",
    "historyserver",
    "historyserver_admin",
    "historyserver_web",
)
NODEMANAGERS = ("nodemanager1", "nodemanager2")
# In the order of their start; they stop in the reverse one, so that tasks end first.
DAEMONS = ("namenode", "datanode", "historyserver", "resourcemanager", *NODEMANAGERS)
_children: dict[str, subprocess.Popen[bytes]] = {}  # the daemons that this very process has started


class ClusterError(Exception):
    """The cluster cannot be started, stopped or used; the message gives the reason."""


def start(name: str) -> None:
    """Start a daemon, unless it is running."""
    if pid(name):
        return
    arguments = [str(HOME / "bin" / "hadoop"), name.rstrip("12")]
    if name in NODEMANAGERS:
        arguments += [
            f"-Dyarn.nodemanager.local-dirs={HOME}/data/{name}",
            f"-Dyarn.nodemanager.log-dirs={HOME}/logs/containers/{name}",
            f"-Dyarn.nodemanager.webapp.address=localhost:{ports()[name + '_web']}",
        ]
    with _log(name).open("ab") as log:
        process = _children[name] = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment(),
            cwd=HOME,
            start_new_session=True,  # Ctrl-C is for this program, which stops the daemons itself
        )
    _pid_file(name).write_text(f"{process.pid} {start_time(process.pid)}\n")


def stop(name: str, how: int = signal.SIGTERM) -> None:
    """Send the signal `how` to a daemon, if it is running, and wait until it has ended."""
    if number := pid(name):
        with suppress(ProcessLookupError):
            os.kill(number, how)
        wait_until(lambda: not pid(name), f"{name} to end", STOP_SECONDS)


def pid(name: str) -> int:
    """Return a daemon's process id, or 0 if it has ended, even if its id is in use again."""
    try:
        number, started = _pid_file(name).read_text().split()
    except (OSError, ValueError):
        return 0
    if name in _children:
        _children[name].poll()  # so that it is gone when it has ended
    return int(number) if start_time(int(number)) == started else 0


def start_time(number: int) -> str:
    """Return when a process started, in clock ticks since boot, or "" if it has ended."""
    try:
        state, *rest = Path(f"/proc/{number}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else rest[18]


def container_processes() -> Iterator[int]:
    """Yield the process ids of containers that a NodeManager of this cluster has started."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            inside = os.readlink(folder / "cwd").startswith(f"{HOME}/data/nodemanager")
            if inside and b"CONTAINER_ID=container_" in (folder / "environ").read_bytes():
                yield int(folder.name)


def healthy() -> bool:
    """Return whether HDFS, YARN and the history server work; ClusterError if a daemon has ended."""
    for name in DAEMONS:
        if not pid(name):
            raise ClusterError(f"{name} has ended; its log is {_log(name)}")
    query = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
    files: dict[str, Any] = next(iter(ask("namenode_web", query).get("beans", [])), {})
    running = ask("resourcemanager_web", "/ws/v1/cluster/nodes?states=RUNNING").get("nodes") or {}
    # By name: one that was killed counts as running for some seconds.
    nodes = {
        ask(f"{name}_web", "/ws/v1/node/info").get("nodeInfo", {}).get("id")
        for name in NODEMANAGERS
    }
    return (
        files.get("NumLiveDataNodes") == 1
        and files.get("FSState") == "Operational"
        and nodes == {node["id"] for node in running.get("node", [])}
        and "historyInfo" in ask("historyserver_web", "/ws/v1/history/info")
    )


def wait_until(done: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    """Wait until done() is true; after `seconds`, raise a ClusterError that names `what`."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise ClusterError(f"waited {seconds:.0f} s for {what}; the logs are in {HOME}/logs")
        time.sleep(0.1)


def ask(port: str, path: str) -> dict[str, Any]:
    """Return a page of a daemon's web server, parsed from JSON, or {} if it does not answer."""
    request = urllib.request.Request(
        f"http://localhost:{ports()[port]}{path}", headers={"Accept": "application/json"}
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=5) as answer:
            page: dict[str, Any] = json.load(answer)
            return page
    except (OSError, ValueError, http.client.HTTPException):
        return {}


def status() -> bool:
    """Print each daemon's process id and web page; return whether all daemons are running."""
    for name in DAEMONS:
        number = pid(name)
        page = f"http://localhost:{ports().get(name + '_web')}/" if number else ""
        print(f"{name:16} {number or 'down':>8}  {page}".rstrip())
    return all(pid(name) for name in DAEMONS)


def ports() -> dict[str, int]:
    """Return the port of each name in PORTS, as set by the last start; {} before any start."""
    try:
        taken: dict[str, int] = json.loads((HOME / "conf" / "ports.json").read_text())
        return taken
    except FileNotFoundError:
        return {}


def environment() -> dict[str, str]:
    """Return this process's environment, plus JAVA_HOME, HADOOP_HOME and HADOOP_CONF_DIR."""
    java = Path(shutil.which("java") or "java").resolve().parent.parent
    return {
        **os.environ,
        "JAVA_HOME": os.environ.get("JAVA_HOME") or str(java),
        "HADOOP_HOME": str(HOME),
        "HADOOP_CONF_DIR": str(HOME / "conf"),
    }


def hadoop(*arguments: str, log: str) -> None:
    with _log(log).open("ab") as output:
        code = run_logged([str(HOME / "bin" / "hadoop"), *arguments], output, START_SECONDS)
    if code:
        raise ClusterError(f"hadoop {' '.join(arguments)} failed; its log is {_log(log)}")


def run_logged(command: list[str], output: IO[bytes], seconds: float) -> int:
    """Run a command that writes to a file; return its exit code; ClusterError on a timeout."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment(),
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{command[0]} did not end within {seconds:.0f} s") from None
    return done.returncode


def _log(name: str) -> Path:
    return HOME / "logs" / f"{name}.log"


def _pid_file(name: str) -> Path:
    return HOME / "pids" / name
