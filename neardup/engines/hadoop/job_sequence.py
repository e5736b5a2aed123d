"""The jobs of one run: what they leave behind, and those that an earlier run has finished.

    /data/_neardup-0123456789abcdef.pairs/counts/part-00000
    /data/_neardup-0123456789abcdef.pairs/counts.finished    once the job has succeeded

The second has a hash of all that determines the job's output.  A run with the same hash uses that
output instead of running the job.  It writes to a new folder, since the job that was under way when
the earlier run was killed may still be writing to the old one.
"""

import hashlib
import json
import os
import posixpath
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from neardup.engines.hadoop import hdfs_folders, shipping, sizes, watching
from neardup.runtime.program import StageError

RECORD = ".finished"  # not in the folder, which the nodes may be copying


def work(files: Sequence[sizes.File], options: object, *contents: "str | None") -> str:
    """Return a hash of the program, the input, the options, and the contents of local files.

    It is "" if a file was modified in this minute: Hadoop lists no seconds, so that a change after
    the listing might not be seen.
    """
    if any(file.modified >= datetime.now().strftime("%Y-%m-%d %H:%M") for file in files):
        return ""
    paths = [shipping.our_code(), *(Path(path) for path in contents if path)]
    hashes = [hashlib.sha256(path.read_bytes()).digest() for path in paths]
    return hashlib.sha256(os.fsencode(repr((hashes, [*files], options)))).hexdigest()


class JobSequence:
    """Jobs that run one after the other; `folder` is for data between them.

    answers: the job that writes each output folder, by name.  work: see `work`; if "", a later run
    uses no job of this one.
    """

    def __init__(
        self,
        answers: Mapping[str, str],
        work: str = "",
        several: bool = True,
        if_exists: str = "--overwrite removes an earlier answer",
    ):
        self.answers, self.work, self.if_exists = answers, work, if_exists
        self.output = next(iter(answers))
        self.folder = hdfs_folders.between_jobs(self.output) if several else ""
        self.started: dict[str, watching.Job] = {}
        self._done: dict[str, tuple[str, list[str]]] = {}  # by name, folders and clients' lines
        self._records: list[subprocess.Popen[bytes]] = []

    def of(self, name: str) -> str:
        """Return the folder of a job whose output other jobs read."""
        return self._done[name][0] if name in self._done else f"{self.folder}/{name}"

    def check_new(self) -> None:
        """Raise StageError if an output folder exists."""
        for folder in filter(hdfs_folders.exists, self.answers):
            line = hdfs_folders.removing([folder])
            unfinished = f"; if a killed run has left it unfinished, type: {line}"
            raise StageError(
                f"{folder} already exists; {self.if_exists}{unfinished if self._done else ''}"
            )

    def find_finished(self) -> None:
        """Find the jobs that earlier runs have finished, and name them on stderr."""
        if not self.work or not self.folder:
            return
        pattern = f"{hdfs_folders.between_jobs(self.output, '?' * 16)}/*{RECORD}"
        start, end = map(re.escape, hdfs_folders.between_jobs(self.output, "\0").split("\0"))
        own = re.compile(rf"{start}[0-9a-f]{{16}}{end}/\w+")
        for line in watching.fs("-cat", pattern).stdout.splitlines():
            if not line.startswith(f'["{self.work}"'.encode()):
                continue  # of another run
            _, name, folder, said = json.loads(line)
            if own.fullmatch(folder) and _is_whole(folder, said):
                self._done[name] = folder, said
        for name in self._done:
            watching.say(f"{name}: an earlier run has finished this job; see {self.of(name)}")
        if self._done:
            watching.say(f"To begin anew instead: {hdfs_folders.removing(self._earlier())}")

    def job(self, name: str, command: list[str]) -> watching.Job:
        """Run a job, unless an earlier run has finished it; StageError if it fails."""
        job = self.started[name] = watching.Job(command, if_exists=self.if_exists)
        if name in self._done:
            job.said = self._done[name][1]
            return job
        job.run()
        if self.work and job.succeeded and name not in self.answers.values():
            self._record(name, job.said)
        return job

    def _record(self, name: str, said: Sequence[str]) -> None:
        """Begin to write down that a job is finished; the next job need not wait for it."""
        ended = next(place for place, line in enumerate(said) if watching.SUCCEEDED in line)
        folder = self.of(name)
        line = json.dumps([self.work, name, folder, said[ended:]])
        words = ["fs", "-put", "-", f"{folder}{RECORD}"]
        # Its own session: Ctrl-C leaves it alone.
        put = subprocess.Popen(
            [watching.hadoop(), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert put.stdin
        with suppress(BrokenPipeError), put.stdin as pipe:
            pipe.write(f"{line}\n".encode())
        self._records.append(put)

    def _earlier(self) -> list[str]:
        """Return the folders of earlier runs whose jobs this run uses."""
        return [*dict.fromkeys(posixpath.dirname(folder) for folder, _ in self._done.values())]

    def remove(self) -> None:
        """Remove the data between the jobs."""
        if self.folder:
            self._wait()
            hdfs_folders.remove([self.folder, *self._earlier()])

    def _wait(self) -> bool:
        """Wait until finished jobs are written down; return whether any is."""
        for put in self._records:
            with suppress(subprocess.TimeoutExpired):
                put.wait(watching.SECONDS)
        return any(put.returncode == 0 for put in self._records)

    def clean_up(self, error: BaseException, detach: bool = False) -> None:
        """After an error, kill the job and remove folders; if `detach`, only print commands.

        If a job did not succeed, finished ones are kept for a later run; after Ctrl-C, only those
        of earlier runs.  Another run may have made an answer's folder at the same time, unnoticed
        by Hadoop.
        """
        jobs = [*self.started.values()]
        last = jobs[-1] if jobs else None
        stopped = isinstance(error, KeyboardInterrupt)
        unfinished = last is not None and not last.succeeded
        own = [self.folder] if self.folder else []
        made = {
            folder: self.started[name]
            for folder, name in self.answers.items()
            if name in self.started and self.started[name].number
        }
        if last and last.may_run and (detach or not last.kill()):
            watching.say(f"The job is still running; to end it: {shlex.join(last.killing())}")
            if own or made:
                removing = hdfs_folders.removing([*own, *made])
                watching.say(f"and then, to remove what it has written: {removing}")
            return
        keeps_own = self._wait() and unfinished and not stopped
        left = [*[self.folder] * keeps_own, *self._earlier() * (unfinished or stopped)]
        own = [folder for folder in (*own, *self._earlier()) if folder not in left]
        for folder, job in made.items():
            if job.succeeded or hdfs_folders.is_of_job(folder, job.number):
                own.append(folder)
            else:
                watching.say(f"{folder} was written by another run; left unchanged")
        if own and any(job.number for job in jobs):
            hdfs_folders.remove(own)
        if left:
            watching.say(
                "Finished jobs are kept, and the same line goes on from them.  To remove them: "
                f"{hdfs_folders.removing(left)}"
            )


def _is_whole(folder: str, said: list[str]) -> bool:
    """Return whether a folder holds as many bytes as its job has written."""
    job = watching.Job([])
    job.said = said
    try:
        written = sum(file.bytes for file in sizes.listed([folder]))
    except StageError:
        return False
    return written == job.hadoop_counter(watching.WRITTEN)
