"""A job that runs on the cluster: its client's messages, its counters, its end."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from typing import IO

from neardup.engines.hadoop.installation import hadoop, mapred
from neardup.engines.hadoop.task_logs import first_message, first_of_ours, for_nodes
from neardup.process.errors import StageError

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


def say(text: str) -> None:
    """On stderr, if anybody listens: what is to be done is done all the same."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class Job:
    """One `hadoop jar …`: the client, which submits a job, waits for it, and tells about it."""

    def __init__(self, command: list[str], program: Sequence[str] = ()):
        """`program`: the command that ends the job, unless it is Hadoop's own."""
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
                self._listen(client.stderr)
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

    def _listen(self, stderr: IO[bytes]) -> None:
        """Show what the client says, and keep it."""
        for raw in iter(stderr.readline, b""):
            self._hear(raw)

    def _hear(self, raw: bytes) -> None:
        line = raw.decode("utf-8", "backslashreplace")
        self.said.append(line.rstrip("\n"))
        sys.stderr.write(line)
        sys.stderr.flush()

    # What it is, and how it ends.

    @property
    def submitted(self) -> bool:
        """Whether the job was taken on; before, Hadoop has made sure that its OUTPUT is new."""
        return bool(self.number)

    @property
    def succeeded(self) -> bool:
        return any("completed successfully" in line for line in self.said)

    @property
    def may_run(self) -> bool:
        """Whether it may go on without its client, as one on YARN does."""
        on_yarn = self.submitted and not self.number.startswith("local")
        return on_yarn and not any(map(ENDED.search, self.said))

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
        """What Hadoop calls it, as 1700000000000_0001; "" if it was not submitted."""
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
        application = f"application_{self.number}" if self.submitted else ""
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
