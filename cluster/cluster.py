#!/usr/bin/env python3
"""A Hadoop cluster on this machine: HDFS, YARN with two NodeManagers, and the history server.

    cluster/cluster.py up               fetch Hadoop (once), start every daemon, wait for them
    cluster/cluster.py status           list the daemons, their web pages, and the line to type next
    cluster/cluster.py down             stop every daemon
    cluster/cluster.py run COMMAND …    up; run COMMAND with HADOOP_HOME and HADOOP_CONF_DIR; down

The daemons are plain Java processes below .hadoop/, which git ignores: lib/ holds the jars, conf/
the configuration made from cluster/conf, data/ HDFS and the containers, logs/ the output of each
daemon, and pids/ a file for each daemon that runs.  They listen on loopback ports that were free.
The shuffles of the two NodeManagers and, while a job runs, its master listen on any port of all
addresses: Hadoop has no setting for that.  On an untrusted
network, block this machine's ports from 1024 up.

The cluster trusts all users of this machine: each may submit jobs, read and remove what is in HDFS,
and tasks run as the user who started it.
Needs Java 17 and, for the first start, Maven.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster.daemons import (
    DAEMONS,
    HOME,
    STOP_SECONDS,
    ClusterError,
    container_processes,
    environment,
    hadoop,
    healthy,
    pid,
    start,
    status,
    stop,
    wait_until,
)
from cluster.install import (
    check_machine,
    configure,
    fetch,
    share_classes,
)

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def up() -> None:
    """Start all daemons that are not running, and wait until jobs can be submitted."""
    check_machine()
    fetch()
    configure()
    if not (HOME / "data" / "namenode" / "current" / "VERSION").exists():
        shutil.rmtree(HOME / "data", ignore_errors=True)
        hadoop("namenode", "-format", "-nonInteractive", log="format")
    (HOME / "data" / "tmp").mkdir(parents=True, exist_ok=True)
    (HOME / "data" / "tmp").chmod(0o1777)  # as /tmp
    for name in DAEMONS:
        print(f"starting {name}", file=sys.stderr)
        start(name)
    print("waiting until HDFS and YARN answer", file=sys.stderr)
    wait_until(healthy, "the cluster to be up")
    # `.` is the home of this user, for relative names; every user may submit jobs.
    shared = ["/tmp", "/tmp/hadoop-yarn", "/tmp/hadoop-yarn/staging"]
    hadoop("fs", "-mkdir", "-p", ".", *shared, log="mkdir")
    hadoop("fs", "-chmod", "1777", *shared, log="mkdir")
    share_classes()


def down() -> None:
    """Stop all daemons, and kill the containers that they have left."""
    for name in reversed(DAEMONS):
        with suppress(ClusterError):
            stop(name)
    for name in DAEMONS:
        stop(name, signal.SIGKILL)
    for process in container_processes():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@contextmanager
def running(stay: bool) -> Iterator[None]:
    """Context manager: start the cluster; stop it on exit, but with `stay` only after a failure.

    A cluster that was running before is not stopped.
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
    """Context manager: lock the cluster; ClusterError if another cluster.py has locked it."""
    HOME.mkdir(exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterError(
                "another cluster.py is using this cluster; wait until it ends"
            ) from None
        yield


def shown() -> bool:
    """Print the status and, if all daemons are running, the line to type next; return whether."""
    if running := status():
        home = shlex.quote(str(HOME))
        print(f'\nexport HADOOP_HOME={home} HADOOP_CONF_DIR={home}/conf PATH={home}/bin:"$PATH"')
    return running


def run(command: list[str]) -> int:
    """Run a command and return its exit code; end the command if this program ends early."""
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
        return 0 if shown() else 3
    if command == "run" and rest:
        with alone(), running(stay=False):
            return run(rest)
    if command == "up" and not rest:
        with alone(), running(stay=True):
            shown()
        return 0
    if command == "down" and not rest:
        with alone():
            down()
        print(f"stopped; {HOME} keeps Hadoop, and what is in HDFS; make clean removes it")
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
