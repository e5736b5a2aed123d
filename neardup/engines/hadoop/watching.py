"""Hadoop's command-line programs: find them, run jobs, and report why a job failed."""

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

from neardup.engines.hadoop.shipping import FLAG
from neardup.runtime.interpreter import SCRIPTS
from neardup.runtime.program import StageError
from neardup.runtime.summary import from_hadoop

JARS = "hadoop-streaming*[0-9g].jar"  # but not the jars of sources or tests
JAR_FOLDERS = ("share/hadoop/tools/lib", "lib", "hadoop-mapreduce", "../hadoop-mapreduce", ".")
SECONDS = 60  # how long after a job's end its logs may take to appear
OUR_MESSAGE = re.compile(rf"(?:{'|'.join(map(re.escape, SCRIPTS))})(?: \w+)*: .*")
STILL_COMING = re.compile(r"Log Aggregation Status : (?:NOT_START|RUNNING)")
EXPLAINED = re.compile(
    r"Output directory .+ already exists|Input path does not exist: .*"
    r"|Input Pattern .* matches 0 files|Cannot run program .*"
)
# Hadoop before 3.3.1 may be built without Snappy, and nodes may be unable to load it.
NO_SNAPPY = re.compile(r"native snappy library|SnappyError|Error: .*snappy", re.I)
SUBMITTED = re.compile(r"(?:Submitted application application|Running job: job)_(\w+)")
SUCCEEDED = "completed successfully"
WRITTEN = "Bytes Written"  # Hadoop's counter of a job's output
ENDED = re.compile(r"Job job_\w+ (?:completed|failed) ")


def hadoop() -> str:
    """Return the path of the hadoop command; raise StageError if it is not found."""
    home = os.environ.get("HADOOP_HOME")
    found = shutil.which("hadoop", path=f"{home}/bin" if home else None)
    if not found:
        where = (
            f"in HADOOP_HOME ({home}/bin); correct or unset it"
            if home
            else "on the PATH; add it there, or set HADOOP_HOME"
        )
        raise StageError(f"no hadoop command found {where}")
    return found


def fs(*words: str, program: Sequence[str] = ()) -> subprocess.CompletedProcess[bytes]:
    """Run `hadoop fs WORDS…`, or `PROGRAM fs WORDS…`; return its exit code and output."""
    command = [*(program or [hadoop()]), "fs", *words]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)


def streaming_jar() -> str:
    """Return the path of the Streaming jar: HADOOP_STREAMING_JAR, or one that is installed."""
    if named := os.environ.get("HADOOP_STREAMING_JAR"):
        return named
    homes = [os.environ.get(name) for name in ("HADOOP_HOME", "HADOOP_MAPRED_HOME")]
    homes += [str(Path(hadoop()).resolve().parent.parent), "/usr/lib", "/usr/lib/hadoop"]
    for home in filter(None, homes):
        for folder in JAR_FOLDERS:
            if jars := sorted(Path(home, folder).glob(JARS)):
                return str(jars[-1])
    raise StageError("no hadoop-streaming jar found; set HADOOP_STREAMING_JAR to its path")


def first_message(application: str, hadoop: str, seconds: float = SECONDS) -> str:
    """Return the first message of our programs in an application's logs, or "".

    Nodes deliver their logs after the job's end, some later than others: so ask until our message
    is found, or until YARN reports that all logs have been collected.
    """
    yarn = shutil.which("yarn", path=os.path.dirname(hadoop)) or shutil.which("yarn")
    if not yarn or not application:
        return ""
    end = time.monotonic() + seconds

    def output(*words: str) -> str:  # run a YARN client, which takes seconds
        left = max(0.1, end - time.monotonic())
        try:
            done = subprocess.run(
                [yarn, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=left
            )
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout.decode("utf-8", "backslashreplace")

    while time.monotonic() < end:
        time.sleep(0.2)
        status = output("application", "-status", application)
        logs = output("logs", "-applicationId", application, "-log_files", "stderr")
        message = first_of_ours(logs.splitlines())
        if message or (status and not STILL_COMING.search(status)):
            return message
    return ""


def first_of_ours(lines: Iterable[str]) -> str:
    """Return the first of `lines` that one of our scripts wrote, or ""."""
    return next((line for line in lines if OUR_MESSAGE.match(line)), "")


def for_nodes(message: str, advice: str) -> str:
    """Return a task's message, with advice for clusters if numpy is the problem.

    >>> for_nodes("mapper.py: needs numpy, which /bin/python3 lacks; run make, or: …", "type -x")
    'mapper.py: needs numpy, which /bin/python3 of a node lacks; type -x'
    """
    who, lacks, _ = message.partition(" lacks; run make, or: ")
    if lacks:
        return f"{who} of a node lacks; {advice}"
    if "made for another Python than" in message:  # numpy was shipped with the job
        return f"{message} of a node; name its version, as in {FLAG}=3.9"
    return message


def succeeds(command: Sequence[str]) -> bool:
    """Run a command in its own session, safe from Ctrl-C; return whether it succeeds."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True
    )
    return done.returncode == 0


def say(text: str) -> None:
    """Print a line on stderr; do nothing if stderr is closed."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class Job:
    """A client process, `hadoop jar …`, that submits a job and waits for it.

    program: the command whose `job -kill` ends the job; () for Hadoop's own; if_exists: what to do
    about an OUTPUT that exists
    """

    def __init__(
        self,
        command: list[str],
        program: Sequence[str] = (),
        if_exists: str = "--overwrite removes an earlier answer",
    ):
        self.command = command
        self.program = program
        self.if_exists = if_exists
        self.said: list[str] = []

    def run(self) -> None:
        """Run the client and wait; terminate it on an exception; StageError if the job fails."""
        print(f"\n{shlex.join(self.command)}\n", file=sys.stderr, flush=True)
        with subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,  # stdout is for results, and these are in OUTPUT
            stderr=subprocess.PIPE,
        ) as client:
            assert client.stderr
            try:
                for raw in iter(client.stderr.readline, b""):
                    self._hear(raw)
            except BaseException:  # mostly Ctrl-C
                client.terminate()
                client.wait()
                # It may have submitted the job meanwhile.
                os.set_blocking(client.stderr.fileno(), False)
                while raw := client.stderr.readline():
                    with suppress(OSError):  # stderr may be closed
                        self._hear(raw)
                raise
        if client.returncode:
            raise StageError(self._reason() or "the job failed; see Hadoop's messages above")

    def _hear(self, raw: bytes) -> None:
        """Print a line from the client on stderr, and append it to `said`."""
        line = raw.decode("utf-8", "backslashreplace")
        self.said.append(line.rstrip("\n"))
        sys.stderr.write(line)
        sys.stderr.flush()

    @property
    def succeeded(self) -> bool:
        return any(SUCCEEDED in line for line in self.said)

    @property
    def may_run(self) -> bool:
        """True if the job may continue without its client, as on YARN."""
        on_yarn = self.number and not self.number.startswith("local")
        return bool(on_yarn) and not any(map(ENDED.search, self.said))

    def killing(self) -> list[str]:
        program = self.program
        if not program:
            beside = os.path.dirname(hadoop())
            program = [shutil.which("mapred", path=beside) or shutil.which("mapred") or hadoop()]
        return [*program, "job", "-kill", f"job_{self.number}"]

    def kill(self) -> bool:
        """Kill the job if it may still run; return whether it has certainly ended."""
        if not self.may_run:
            return True
        say(f"\n{shlex.join(self.killing())}\n")
        return succeeds(self.killing())

    @property
    def number(self) -> str:
        """The job's number, such as 1_0001; "" if none was submitted."""
        found = SUBMITTED.search("\n".join(self.said))
        return found[1] if found else ""

    def _reason(self) -> str:
        """Return why the job failed: a message of Hadoop or of a task, with advice, or ""."""
        explained = [found[0] for line in self.said if (found := EXPLAINED.search(line))]
        if explained:
            return explained[0].replace("already exists", f"already exists; {self.if_exists}")
        if any(map(NO_SNAPPY.search, self.said)):
            return "the nodes have no Snappy; type -D mapreduce.map.output.compress=false"
        application = f"application_{self.number}" if self.number else ""
        said = first_of_ours(self.said) or first_message(application, hadoop())
        return for_nodes(said, "type --ship-numpy, or --python PATH of one that has it")

    def counters(self) -> dict[str, int]:
        """Return our counters of the whole job, from the client's last lines; {} if none."""
        if "\tneardup" not in self.said:
            return {}
        last = len(self.said) - self.said[::-1].index("\tneardup")
        ours = takewhile(lambda line: line.startswith("\t\t"), self.said[last:])
        fields = (line.strip().rpartition("=") for line in ours)
        return from_hadoop((name, int(value)) for name, _, value in fields)

    def hadoop_counter(self, name: str) -> int:
        """Return one of Hadoop's own counters, or 0."""
        found = [line.rpartition("=") for line in self.said if line.startswith(f"\t\t{name}=")]
        return int(found[-1][2]) if found else 0
