"""A running program in its own session, to be interrupted and then checked for leftovers."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.programs import environment

PATIENCE = 30  # seconds until a test gives up; far more than is needed


class Session:
    """A command in a session of its own."""

    def __init__(self, command: list[str], tmp: Path, stdin: int, **env: str):
        self.tmp = tmp
        with (tmp / "stderr").open("wb") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment(tmp, **env),
                start_new_session=True,
            )

    def pids(self, word: str = "") -> list[int]:
        """Return the ids of the session's live processes whose name or command line has `word`."""
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                pid = int(entry.name)
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                name, command = ((entry / file).read_text("utf-8") for file in ("comm", "cmdline"))
                if (
                    int(session) == self.process.pid
                    and state not in "ZX"
                    and word in name + command
                ):
                    found.append(pid)
        return found

    def wait_for(self, word: str, seconds: float = 0) -> int:
        """Wait for a process whose command has `word`, and then `seconds` more; return its id."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            found = self.pids(word)
            if found and not seconds:
                return found[0]
            if found:
                time.sleep(seconds)
                seconds = 0
            time.sleep(0.01)
        raise AssertionError(f"no {word}: {self.process.poll()}, {self.stderr()}")

    def ended(self) -> int:
        """Return the exit code; the end must come soon, and no process may be left."""
        code = self.process.wait(PATIENCE)
        end = time.monotonic() + 5
        while self.pids() and time.monotonic() < end:
            time.sleep(0.01)
        assert self.pids() == []
        assert "Traceback" not in self.stderr()
        return code

    def ended_clean(self) -> int:
        """Return the exit code, as `ended` does; no file may be left either."""
        code = self.ended()
        assert os.listdir(self.tmp / "tmpdir") == []
        return code

    def stderr(self) -> str:
        return (self.tmp / "stderr").read_text("utf-8", "replace")


@contextmanager
def session(
    command: list[str], tmp: Path, stdin: int = subprocess.DEVNULL, **env: str
) -> Iterator[Session]:
    it = Session(command, tmp, stdin, **env)
    try:
        yield it
    finally:
        for pid in it.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        it.process.wait(PATIENCE)
        for stream in (it.process.stdin, it.process.stdout):
            if stream:
                stream.close()


def interrupt(it: Session, how: str) -> int:
    """Send SIGINT to the process group for Ctrl-C, or SIGTERM; return the expected exit code."""
    if how == "Ctrl-C":
        os.killpg(it.process.pid, signal.SIGINT)
        return 130
    os.kill(it.process.pid, signal.SIGTERM)
    return 143


def interrupt_at(it: Session, word: str, how: str, seconds: float = 0) -> None:
    """Interrupt a session that has a process with `word`; it must end clean, with its code."""
    it.wait_for(word, seconds)
    code = interrupt(it, how)
    assert it.ended_clean() == code


EITHER_WAY = ["Ctrl-C", "kill"]
either_way = pytest.mark.parametrize("how", EITHER_WAY)


def path_with_sort(tmp: Path, text: str) -> str:
    """Write a shell script named `sort`; return a PATH on which it comes first."""
    sort = tmp / "bin" / "sort"
    sort.parent.mkdir(exist_ok=True)
    sort.write_text(text)
    sort.chmod(stat.S_IRWXU)
    return f"{sort.parent}{os.pathsep}{os.environ['PATH']}"


def path_with_other_sort(tmp: Path, word: str, instead: str) -> str:
    """Return a PATH whose `sort` does something else if `word` is in its arguments."""
    script = f'#!/bin/sh\ncase "$*" in *{word}*) {instead} ;; esac\n'
    return path_with_sort(tmp, f'{script}exec {shutil.which("sort")} "$@"\n')


def started(it: Session, processes: int) -> None:
    """Wait until the session has this many processes, for 30 seconds at most."""
    end = time.monotonic() + PATIENCE
    while len(it.pids()) < processes and time.monotonic() < end:
        time.sleep(0.01)
    assert len(it.pids()) >= processes
    assert it.process.poll() is None


def wait_for_results(cache: Path) -> None:
    """Wait until a cache that another process writes has a result."""
    end = time.monotonic() + PATIENCE
    while not cache.exists() and time.monotonic() < end:
        time.sleep(0.01)
    while time.monotonic() < end:
        opened = closing(sqlite3.connect(f"file:{cache}?mode=ro", uri=True))
        with suppress(sqlite3.OperationalError), opened as connection:  # no table yet, or locked
            if connection.execute("select 1 from results limit 1").fetchone():
                return
        time.sleep(0.01)
    raise AssertionError(f"{cache} has no result after {PATIENCE} s")
