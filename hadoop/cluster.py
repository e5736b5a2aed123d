#!/usr/bin/env python3
"""A Hadoop cluster on this machine: HDFS, YARN with two NodeManagers, and the history server.

    hadoop/cluster.py up                fetch Hadoop (once), start every daemon, wait until all work
    hadoop/cluster.py status            what runs, and where its pages are
    hadoop/cluster.py down              stop it
    hadoop/cluster.py run COMMAND …     up, COMMAND with HADOOP_HOME and HADOOP_CONF_DIR set, down

The daemons are plain Java processes below .hadoop/, which git ignores: lib/ holds the jars, conf/
the templates of hadoop/conf filled in, data/ HDFS and the containers, logs/ what they all said,
pids/ one file for each daemon that runs.  They listen on loopback ports that were seen to be free;
only the shuffle and a job's master take any port, on all addresses, as Hadoop leaves no choice.
It takes Java 17, Maven for the first start, and nothing else.
"""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

SOURCE = Path(__file__).resolve().parent
HOME = SOURCE.parent / ".hadoop"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
FIRST_PORT = 29800
START_SECONDS, STOP_SECONDS, FETCH_SECONDS = 180, 20, 1200
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
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NODEMANAGERS = ("nodemanager1", "nodemanager2")
# In the order of their start; they stop in the reverse one, so that tasks end first.
DAEMONS = ("namenode", "datanode", "historyserver", "resourcemanager", *NODEMANAGERS)
_children: dict[str, subprocess.Popen] = {}  # the daemons that this very process has started


class ClusterError(Exception):
    """The cluster cannot do what was asked; the message says why."""


# Start and stop.


def up() -> None:
    """Start what does not run yet; when this returns, jobs can be submitted."""
    _check_machine()
    _fetch()
    _configure()
    if not (HOME / "data" / "namenode" / "current" / "VERSION").exists():
        shutil.rmtree(HOME / "data", ignore_errors=True)
        _hadoop("namenode", "-format", "-nonInteractive", log="format")
    for name in DAEMONS:
        start(name)
    wait_until(healthy, "the cluster to be up")
    _hadoop("fs", "-mkdir", "-p", "/tmp", ".", log="mkdir")  # and the user's home


def down() -> None:
    """Stop the daemons, and whatever containers they left."""
    for name in reversed(DAEMONS):
        with suppress(ClusterError):
            stop(name)
    for name in DAEMONS:
        stop(name, signal.SIGKILL)
    for process in container_processes():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def start(name: str) -> None:
    """Start one daemon, unless it runs."""
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
    _pid_file(name).write_text(f"{process.pid} {_start_time(process.pid)}\n")


def stop(name: str, how: int = signal.SIGTERM) -> None:
    """End one daemon, if it runs, and wait until it has ended."""
    if number := pid(name):
        with suppress(ProcessLookupError):
            os.kill(number, how)
        wait_until(lambda: not pid(name), f"{name} to end", STOP_SECONDS)


def pid(name: str) -> int:
    """The daemon's process, or 0: a process that only got the same number is not taken for it."""
    try:
        number, started = _pid_file(name).read_text().split()
    except (OSError, ValueError):
        return 0
    if name in _children:
        _children[name].poll()  # so that it is gone when it has ended
    return int(number) if _start_time(int(number)) == started else 0


def _start_time(number: int) -> str:
    """In clock ticks since boot; "" where there is no such process any more."""
    try:
        state, *rest = Path(f"/proc/{number}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else rest[18]


def container_processes() -> Iterator[int]:
    """Processes that a NodeManager of this cluster has started."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            inside = os.readlink(folder / "cwd").startswith(f"{HOME}/data/nodemanager")
            if inside and b"CONTAINER_ID=container_" in (folder / "environ").read_bytes():
                yield int(folder.name)


# Whether it works.


def healthy() -> bool:
    """Whether files can be written and two NodeManagers wait for work; ClusterError if one died."""
    for name in DAEMONS:
        if not pid(name):
            raise ClusterError(f"{name} has ended; its log is {_log(name)}")
    query = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
    files: dict = next(iter(_ask("namenode_web", query).get("beans", [])), {})
    running = _ask("resourcemanager_web", "/ws/v1/cluster/nodes?states=RUNNING").get("nodes") or {}
    # By name: one that was killed counts as running for some seconds.
    nodes = {
        _ask(f"{name}_web", "/ws/v1/node/info").get("nodeInfo", {}).get("id")
        for name in NODEMANAGERS
    }
    return (
        files.get("NumLiveDataNodes") == 1
        and files.get("FSState") == "Operational"
        and nodes == {node["id"] for node in running.get("node", [])}
        and "historyInfo" in _ask("historyserver_web", "/ws/v1/history/info")
    )


def wait_until(done: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    """ClusterError if it takes longer."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise ClusterError(f"waited {seconds:.0f} s for {what}; the logs are in {HOME}/logs")
        time.sleep(0.1)


def _ask(port: str, path: str) -> dict:
    """A page of a daemon as JSON; {} while it does not answer."""
    request = urllib.request.Request(
        f"http://localhost:{ports()[port]}{path}", headers={"Accept": "application/json"}
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=5) as answer:
            return json.load(answer)
    except (OSError, ValueError, http.client.HTTPException):
        return {}


def status() -> bool:
    """Print what runs; whether all of it does."""
    for name in DAEMONS:
        number = pid(name)
        page = f"http://localhost:{ports().get(name + '_web')}/" if number else ""
        print(f"{name:16} {number or 'down':>8}  {page}".rstrip())
    return all(pid(name) for name in DAEMONS)


# What it needs.


def _check_machine() -> None:
    if not re.fullmatch("[A-Za-z0-9/._+@-]+", str(HOME)):
        raise ClusterError(f"Hadoop cannot live in a folder of this name; letters, digits: {HOME}")
    java = Path(environment()["JAVA_HOME"], "bin", "java")
    said = ""
    with suppress(OSError, subprocess.TimeoutExpired):
        command = [str(java), "-version"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60).stderr
    version = re.search(r'version "(\d+)', said)
    if not version or int(version[1]) < 17:
        found = f", and {java} is {version[1]}" if version else ""
        advice = "on Debian and Ubuntu: apt-get install openjdk-17-jre"
        raise ClusterError(f"needs Java 17 or later{found}; {advice}")


def _fetch() -> None:
    """Fetch the jars that pom.xml names, unless they are there."""
    lib, pom = HOME / "lib", SOURCE / "pom.xml"
    with suppress(FileNotFoundError):
        if (lib / "pom.xml").read_bytes() == pom.read_bytes():
            return
    if not shutil.which("mvn"):
        raise ClusterError("needs Maven; on Debian and Ubuntu: apt-get install maven")
    print("cluster.py: fetching Hadoop (100 MB) from Maven's registry", file=sys.stderr)
    new = HOME / "lib.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    log = HOME / "fetch.log"
    goal = ["mvn", "-B", "-f", str(pom), COPY, f"-DoutputDirectory={new}", "-DincludeScope=runtime"]
    with log.open("wb") as output:
        code = _run(goal, output, FETCH_SECONDS)
    if code:
        said = log.read_text("utf-8", "replace").splitlines()
        reason = next((line for line in said if "[ERROR]" in line), "no reason given")
        raise ClusterError(f"Maven could not fetch Hadoop: {reason}\nThe whole log is {log}")
    shutil.copy(pom, new)
    shutil.rmtree(lib, ignore_errors=True)
    new.rename(lib)  # only whole


def _configure() -> None:
    """Fill in the templates, with free ports; a cluster that runs keeps what it has."""
    if any(pid(name) for name in DAEMONS):
        return
    for folder in ("conf", "logs", "pids"):
        (HOME / folder).mkdir(parents=True, exist_ok=True)
    shutil.rmtree(HOME / "bin", ignore_errors=True)
    shutil.copytree(SOURCE / "bin", HOME / "bin", symlinks=True)
    (HOME / "conf" / "ports.new").write_text(json.dumps(_free_ports()))
    (HOME / "conf" / "ports.new").replace(HOME / "conf" / "ports.json")
    for page in ("hdfs", "datanode"):  # the jars lack these pages, and the servers look for them
        (HOME / "conf" / "webapps" / page).mkdir(parents=True, exist_ok=True)
    for template in sorted((SOURCE / "conf").iterdir()):
        text = template.read_text()
        for name, value in {"home": HOME, **ports()}.items():
            text = text.replace(f"@{name}@", str(value))
        (HOME / "conf" / template.name).write_text(text)


def ports() -> dict[str, int]:
    """The port of each name in PORTS, since the last start."""
    try:
        return json.loads((HOME / "conf" / "ports.json").read_text())
    except FileNotFoundError:
        return {}


def _free_ports() -> dict[str, int]:
    """The first that nobody listens on; below those that systems give to anyone who asks."""
    free = filter(_is_free, range(FIRST_PORT, FIRST_PORT + 1000))
    found = dict(zip(PORTS, free))
    if len(found) < len(PORTS):
        raise ClusterError(f"too few free ports from {FIRST_PORT} to {FIRST_PORT + 999}")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("localhost", port))
        except OSError:
            return False
    return True


def environment() -> dict[str, str]:
    """This process's, for programs that talk to the cluster; containers inherit JAVA_HOME."""
    java = Path(shutil.which("java") or "java").resolve().parent.parent
    return {
        **os.environ,
        "JAVA_HOME": os.environ.get("JAVA_HOME") or str(java),
        "HADOOP_HOME": str(HOME),
        "HADOOP_CONF_DIR": str(HOME / "conf"),
    }


def _hadoop(*arguments: str, log: str) -> None:
    with _log(log).open("ab") as output:
        code = _run([str(HOME / "bin" / "hadoop"), *arguments], output, START_SECONDS)
    if code:
        raise ClusterError(f"hadoop {' '.join(arguments)} failed; its log is {_log(log)}")


def _run(command: list[str], output: IO[bytes], seconds: float) -> int:
    """The exit code; ClusterError if it takes longer."""
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


# The commands.


@contextmanager
def running(stay: bool) -> Iterator[None]:
    """A cluster for the block; it goes down after it, or after a failure only if it may `stay`.

    A cluster that ran before is left alone.
    """
    ran = any(map(pid, DAEMONS))
    try:
        up()
        yield
        failed = False
    except BaseException:
        failed = True
        raise
    finally:
        for number in ENDS:
            signal.signal(number, signal.SIG_IGN)
        if not ran and (failed or not stay):
            down()


@contextmanager
def alone() -> Iterator[None]:
    """ClusterError where another cluster.py starts, stops or uses this cluster."""
    HOME.mkdir(exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterError("another cluster.py is at work here") from None
        yield


def run(command: list[str]) -> int:
    """The exit code of a command; what ends this program early ends the command, too."""
    process = subprocess.Popen(command, env=environment(), start_new_session=True)
    try:
        return process.wait()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, signal.SIGINT)  # tests then clean up behind them
                process.wait(STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def main(arguments: list[str]) -> int:
    for number in ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    command, rest = (arguments or [""])[0], arguments[1:]
    if command == "status" and not rest:
        return 0 if status() else 3
    if command == "run" and rest:
        with alone(), running(stay=False):
            return run(rest)
    if command == "up" and not rest:
        with alone(), running(stay=True):
            status()
        print(f"\nexport HADOOP_HOME={HOME} HADOOP_CONF_DIR={HOME}/conf PATH={HOME}/bin:$PATH")
        return 0
    if command == "down" and not rest:
        with alone():
            down()
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ClusterError as error:
        sys.exit(f"cluster.py: {error}")
    except BrokenPipeError:  # status | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        sys.exit(f"cluster.py: {error.filename or ''}: {error.strerror or error}")
