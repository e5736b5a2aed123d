"""The cluster started by `cluster/cluster.py run`, for the tests on it."""

from __future__ import annotations

import getpass
import json
import os
import re
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from cluster import daemons
from tests.support.engines import JOB, RUN_HADOOP, Command, Result, in_order, run

PYTHON = str(Path(JOB[0]).absolute())  # the nodes are this machine, so they have its Python
JOB_SECONDS = 1800  # on a busy machine
MEBIBYTE = 1 << 20
# LocalJobRunner: Hadoop in the one JVM of its client; seconds where YARN takes a minute.
WITHOUT_YARN = ["-D", "mapreduce.framework.name=local", "-D", "mapreduce.task.io.sort.mb=100"]
# It has no more maps, and need not ask for the size.
WITHOUT_YARN += ["-D", "mapreduce.job.maps=1", "--rounds=1"]
T = TypeVar("T")


class Finished(NamedTuple):
    """A run of run_hadoop.sh that succeeded; `id` is that of its first job."""

    pairs: bytes  # in byte order
    result: Result
    id: str

    def hadoop_counter(self, name: str) -> int:
        """Return one of Hadoop's own counters, summed over the jobs of the run."""
        found = re.findall(rf"^\t\t{re.escape(name)}=(\d+)", self.result.err, re.MULTILINE)
        return sum(map(int, found))


def hadoop(*arguments: str) -> bytes:
    done = subprocess.run(
        [str(daemons.HOME / "bin" / "hadoop"), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=daemons.environment(),
        timeout=600,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def hdfs(operation: str, name: str, data: bytes | None = None, **options: object) -> bytes:
    """Call HDFS by its REST interface; Java's client would take a second for each call."""
    words = {"op": operation, "user.name": getpass.getuser(), **options}
    path = os.path.join("/user", getpass.getuser(), name)
    query = f"{urllib.parse.quote(path)}?{urllib.parse.urlencode(words)}"
    url = f"http://localhost:{daemons.ports()['namenode_web']}/webhdfs/v1{query}"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    if data is not None:  # which the DataNode wants
        request = urllib.request.Request(f"{url}&noredirect=true", method="PUT")
        with direct.open(request, timeout=600) as answer:
            url = urllib.parse.quote(json.load(answer)["Location"], safe="/:?&=%+")
    method = "GET" if data is None else "PUT"
    binary = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(url, data, binary, method=method)
    with direct.open(request, timeout=600) as answer:
        return answer.read()


def put(data: bytes, name: str, block_bytes: int = 128 * MEBIBYTE) -> str:
    """Store `data` in HDFS in blocks of `block_bytes`, each for one mapper; return `name`."""
    hdfs("CREATE", name, data, overwrite="true", blocksize=block_bytes)
    return name


def new_output() -> str:
    """Return the name of a new output folder, unused by earlier tests."""
    return f"/out/{time.time_ns()}"


def names_in(folder: str) -> list[str]:
    """Return the sorted names in a folder of HDFS."""
    found = json.loads(hdfs("LISTSTATUS", folder))["FileStatuses"]["FileStatus"]
    return sorted(each["pathSuffix"] for each in found)


def lines_in(folder: str) -> bytes:
    """Return the lines that a job wrote to a folder, in order of its parts."""
    parts = [name for name in names_in(folder) if name.startswith("part-")]
    assert parts
    return b"".join(hdfs("OPEN", f"{folder}/{name}") for name in parts)


def pairs_in(folder: str) -> bytes:
    return in_order(lines_in(folder))


def attempt(command: Command, tmp: Path, **env: str) -> Result:
    """Run a command on the cluster; return its result, whatever the exit code is.

    In a folder of its own: a job in the client's JVM has links to its files there.
    """
    return run(command, tmp, cwd=tmp, seconds=JOB_SECONDS, **{**daemons.environment(), **env})


def submit(tmp: Path, inputs: list[str], *options: str) -> Finished:
    """Run run_hadoop.sh, which must succeed; return its pairs, result and id."""
    output = new_output()
    command = [*RUN_HADOOP, "-v", "--python", PYTHON, *options, *inputs, output]
    result = attempt(command, tmp)
    assert result.code == 0, result.err
    assert result.out == b""
    return Finished(pairs_in(output), result, job_id(result))


def job_id(result: Result) -> str:
    found = re.search(r"Running job: (job_\w+)", result.err)
    assert found, result.err
    return found[1]


# What happened in a job, by the history server.


class Attempt(NamedTuple):
    task: str
    kind: str  # MAP or REDUCE
    state: str  # SUCCEEDED, FAILED or KILLED
    said: str


def attempts(job: str) -> list[Attempt]:
    """Return all attempts of all tasks of a job that has ended."""
    tasks = wait_for(lambda: history(f"jobs/{job}/tasks").get("tasks", {}).get("task"))
    return [
        Attempt(task["id"], task["type"], one["state"], one["diagnostics"])
        for task in tasks
        for one in history(f"jobs/{job}/tasks/{task['id']}/attempts")["taskAttempts"]["taskAttempt"]
    ]


def history(path: str) -> dict:
    url = f"http://localhost:{daemons.ports()['historyserver_web']}/ws/v1/history/mapreduce/{path}"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with suppress(urllib.request.HTTPError), direct.open(url, timeout=10) as answer:
        return json.load(answer)
    return {}


def wait_for(find: Callable[[], T], seconds: float = 900) -> T:
    """Wait until `find` returns a true value; return it."""
    end = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
    return found


# The processes of a job that runs.


class Process(NamedTuple):
    pid: int
    node: str  # nodemanager1 or nodemanager2
    attempt: str  # attempt_…_0 is the first

    def has_read(self, megabytes: float) -> bool:
        with suppress(OSError):
            io = Path(f"/proc/{self.pid}/io").read_text()
            return int(io.split()[1]) > megabytes * MEBIBYTE
        return False


def processes(part_of_command: str) -> Iterator[Process]:
    """Yield the container processes whose command line contains a text."""
    for pid in daemons.container_processes():
        with suppress(OSError):
            folder = Path(f"/proc/{pid}")
            if part_of_command.encode() in (folder / "cmdline").read_bytes():
                variables = (folder / "environ").read_bytes().decode("utf-8", "replace")
                node = re.search(r"/data/(nodemanager\d)", os.readlink(folder / "cwd"))
                task = re.search(r"mapreduce_task_attempt_id=(\w+)", variables)
                if node:
                    yield Process(pid, node[1], task[1] if task else "")
