"""Hadoop on this machine: its programs, its jobs while they run, and why they failed."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from neardup.engines.hadoop.shipping import FLAG, SCRIPTS
from neardup.runtime.errors import StageError

JARS = "hadoop-streaming*[0-9g].jar"  # not its sources, nor its tests
JAR_FOLDERS = ("share/hadoop/tools/lib", "lib", "hadoop-mapreduce", "../hadoop-mapreduce", ".")
SECONDS = 60  # how long after a job's end its logs may take to appear
OUR_MESSAGE = re.compile(rf"(?:{'|'.join(map(re.escape, (*SCRIPTS, 'job.py')))})(?: \w+)*: .*")
OTHER_PYTHON = re.compile(r"made for another Python than \S+$")  # numpy that was sent along
FOR_ONE_MACHINE = re.compile(r" has not; run make, or: .*")  # where a script lacks numpy
STILL_COMING = re.compile(r"Log Aggregation Status : (?:NOT_START|RUNNING)")
EXPLAINED = re.compile(
    r"Output directory .+ already exists|Input path does not exist: .*"
    r"|Input Pattern .* matches 0 files|Cannot run program .*"
)
# By Hadoop before 3.3.1 where it was built without Snappy, or by nodes that cannot load it.
NO_SNAPPY = re.compile(
    r"native snappy library not available|SnappyError"
    r"|(?:UnsatisfiedLink|NoClassDefFound)Error: .*snappy",
    re.IGNORECASE,
)
SUBMITTED = re.compile(r"(?:Submitted application application|Running job: job)_(\w+)")
ENDED = re.compile(r"Job job_\w+ (?:completed|failed) ")


def hadoop() -> str:
    """The hadoop command; StageError if there is none."""
    home = os.environ.get("HADOOP_HOME")
    found = shutil.which("hadoop", path=f"{home}/bin" if home else None)
    if not found:
        where = f"in HADOOP_HOME ({home}/bin)" if home else "on the PATH; or set HADOOP_HOME"
        raise StageError(f"there is no hadoop command {where}")
    return found


def fs(*words: str, program: Sequence[str] = ()) -> subprocess.CompletedProcess[bytes]:
    """Run `hadoop fs`; `program` is the command of Hadoop, if it is not the one of `hadoop()`."""
    command = [*(program or [hadoop()]), "fs", *words]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)


def mapred() -> str:
    """The mapred command; where there is none, `hadoop` still takes what it took once."""
    beside = os.path.dirname(hadoop())
    return shutil.which("mapred", path=beside) or shutil.which("mapred") or hadoop()


def streaming_jar() -> str:
    """What HADOOP_STREAMING_JAR names, or where distributions of Hadoop keep it."""
    if named := os.environ.get("HADOOP_STREAMING_JAR"):
        return named
    homes = [os.environ.get(name) for name in ("HADOOP_HOME", "HADOOP_MAPRED_HOME")]
    homes += [str(Path(hadoop()).resolve().parent.parent), "/usr/lib", "/usr/lib/hadoop"]
    for home in filter(None, homes):
        for folder in JAR_FOLDERS:
            if jars := sorted(Path(home, folder).glob(JARS)):
                return str(jars[-1])
    raise StageError("there is no hadoop-streaming jar; say where it is: HADOOP_STREAMING_JAR")


def first_message(application: str, hadoop: str, seconds: float = SECONDS) -> str:
    """The first of our messages in the logs of an application; "" if there is none.

    Each node hands in its logs after the end, and some do so later than others: so ask until our
    message is there, or until YARN says that all nodes are done.
    """
    yarn = shutil.which("yarn", path=os.path.dirname(hadoop)) or shutil.which("yarn")
    if not yarn or not application:
        return ""
    end = time.monotonic() + seconds

    def said(*words: str) -> str:  # by a client of YARN, which takes seconds
        with suppress(subprocess.TimeoutExpired):
            return subprocess.run(
                [yarn, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                errors="backslashreplace",
                timeout=max(0.1, end - time.monotonic()),
            ).stdout
        return ""

    message, more = "", True
    while not message and more and time.monotonic() < end:
        time.sleep(0.2)
        status = said("application", "-status", application)
        more = not status or bool(STILL_COMING.search(status))
        logs = said("logs", "-applicationId", application, "-log_files", "stderr")
        message = first_of_ours(logs.splitlines())
    return message


def first_of_ours(lines: Iterable[str]) -> str:
    """
    >>> first_of_ours(["LogType:stderr", "mapper.py: line 3: no shingles: 'd'"])
    "mapper.py: line 3: no shingles: 'd'"
    """
    return next((line for line in lines if OUR_MESSAGE.match(line)), "")


def for_nodes(message: str, advice: str) -> str:
    """What a task said, with advice for a cluster where it lacks numpy.

    >>> for_nodes("mapper.py: needs numpy, and /bin/python3 has not; run make, or: …", "type -x")
    'mapper.py: needs numpy, and /bin/python3 of a node has not; type -x'
    >>> for_nodes("mapper.py: …, or made for another Python than python3", "type -x")
    'mapper.py: …, or made for another Python than python3 of a node; name its version, as \
--ship-numpy=3.9'
    """
    message = OTHER_PYTHON.sub(rf"\g<0> of a node; name its version, as {FLAG}=3.9", message)
    return FOR_ONE_MACHINE.sub(f" of a node has not; {advice}", message)


def say(text: str) -> None:
    """Print a line on stderr; that nobody can read it, as of a lost terminal, is no error."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class Job:
    """One `hadoop jar …`: the client, which submits a job, waits for it, and reports on it."""

    def __init__(self, command: list[str], program: Sequence[str] = ()):
        """`program` is the command that ends the job, if it is not Hadoop's own."""
        self.command = command
        self.program = program
        self.said: list[str] = []

    def run(self) -> None:
        """StageError where the job fails; whatever ends this early ends the client, too."""
        print(f"\n{shlex.join(self.command)}\n", file=sys.stderr, flush=True)
        with subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,  # stdout is for pairs, and these go to OUTPUT
            stderr=subprocess.PIPE,
        ) as client:
            assert client.stderr
            try:
                for raw in iter(client.stderr.readline, b""):
                    self._hear(raw)
            except BaseException:  # Ctrl-C, most of all
                client.terminate()
                client.wait()
                # It may have said meanwhile that it has submitted the job.
                os.set_blocking(client.stderr.fileno(), False)
                while raw := client.stderr.readline():
                    with suppress(OSError):  # where it is stderr that is closed
                        self._hear(raw)
                raise
        if client.returncode:
            raise StageError(self._reason() or "Hadoop gave up, and said why above")

    def _hear(self, raw: bytes) -> None:
        """Show a line of the client, and keep it."""
        line = raw.decode("utf-8", "backslashreplace")
        self.said.append(line.rstrip("\n"))
        sys.stderr.write(line)
        sys.stderr.flush()

    # What it is, and how it ends.

    @property
    def succeeded(self) -> bool:
        return any("completed successfully" in line for line in self.said)

    @property
    def may_run(self) -> bool:
        """Whether it may go on without its client, as one on YARN does."""
        on_yarn = self.number and not self.number.startswith("local")
        return bool(on_yarn) and not any(map(ENDED.search, self.said))

    def killing(self) -> list[str]:
        """The command that ends it."""
        return [*(self.program or [mapred()]), "job", "-kill", f"job_{self.number}"]

    def kill(self) -> bool:
        """End it, if it may still run; whether it has surely ended."""
        if not self.may_run:
            return True
        say(f"\n{shlex.join(self.killing())}\n")
        # In a session of its own: another Ctrl-C is for this program.
        done = subprocess.run(
            self.killing(), stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True
        )
        return done.returncode == 0

    @property
    def number(self) -> str:
        """What Hadoop calls it, as 1700000000000_0001; "" if it was not submitted.

        Before Hadoop submits a job, it makes sure that its OUTPUT is new.
        """
        found = SUBMITTED.search("\n".join(self.said))
        return found[1] if found else ""

    def _reason(self) -> str:
        """Why it failed: what Hadoop found wrong before it started, or our first message."""
        explained = [found[0] for line in self.said if (found := EXPLAINED.search(line))]
        if explained:
            advice = "already exists; --overwrite removes an earlier answer"
            return explained[0].replace("already exists", advice)
        if any(map(NO_SNAPPY.search, self.said)):
            return "the nodes have no Snappy; type -D mapreduce.map.output.compress=false"
        application = f"application_{self.number}" if self.number else ""
        said = first_of_ours(self.said) or first_message(application, hadoop())
        return for_nodes(said, "type --ship-numpy, or --python PATH of one that has it")

    def counters(self) -> dict[str, int]:
        """Our own, of all its tasks."""
        return _counters(self.said)

    def hadoop_counter(self, name: str) -> int:
        """One of Hadoop's own, of all its tasks; 0 where nothing is counted."""
        found = [line.rpartition("=") for line in self.said if line.startswith(f"\t\t{name}=")]
        return int(found[-1][2]) if found else 0


def _counters(said: list[str]) -> dict[str, int]:
    r"""Ours among those that Hadoop prints at the end of a job; without YARN, of each task too.

    >>> task, job = ["\tneardup", "\t\tkeys=10"], ["\tneardup", "\t\tkeys=30", "\t\trecords=2"]
    >>> _counters([*task, *job, "\tFile Input Format Counters "])
    {'keys': 30, 'records': 2}
    """
    if "\tneardup" not in said:
        return {}
    last = len(said) - said[::-1].index("\tneardup")
    ours = takewhile(lambda line: line.startswith("\t\t"), said[last:])
    fields = (line.strip().rpartition("=") for line in ours)
    return {name: int(value) for name, _, value in fields}
