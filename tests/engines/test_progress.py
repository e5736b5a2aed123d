"""Progress: one line on a terminal, removed before other output; elsewhere, plain lines."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from neardup.engines.local import workers as module
from neardup.engines.local.workers import CLEAR_LINE, Progress, Workers
from neardup.runtime.summary import QUIET, SHORT_SUMMARY, VERBOSE
from tests.support.engines import ANSWER, IN_FILES, RUN_LOCAL, VIDEOS, environment, succeed
from tests.support.sessions import path_with_sort

PATIENCE = 60
LONG_WORDS = "sort: no luck this time, told in more words than progress ever takes"


class Seen(NamedTuple):
    code: int
    shown: bytes
    seconds: float


def on_terminal(words: list[str], tmp_path: Path, columns: int, step: bytes, **more: str) -> Seen:
    """Run a program on a terminal; its `sort` waits until `step` is shown. Return the outcome."""
    gate = tmp_path / "gate"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(words[0], words, environment(tmp_path, **more))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown, began, closed = b"", time.monotonic(), True
    with suppress(OSError):  # Linux says so when the last program has closed its side
        while select.select([terminal], [], [], max(0, began + PATIENCE - time.monotonic()))[0]:
            shown += os.read(terminal, 65536)
            if closed and step in shown:
                gate.write_bytes(b"")  # opens it, and waits for who reads there
                closed = False
    os.close(terminal)  # which ends a program that still waits
    _, status = os.waitpid(pid, 0)
    assert not closed, shown
    return Seen(os.waitstatus_to_exitcode(status), shown, time.monotonic() - began)


def screen(shown: bytes) -> list[str]:
    """Return the lines that the terminal shows in the end."""
    lines = []
    for row in shown.decode().split("\n"):
        line: list[str] = []
        at = 0
        for part in re.findall(r"\r|\x1b\[K|[^\r\x1b]", row):
            if part == "\r":
                at = 0
            elif part == CLEAR_LINE[1:].decode():
                del line[at:]
            else:
                line[at : at + 1] = part
                at += 1
        lines.append("".join(line))
    return lines


def gated_sort(tmp_path: Path, end: str = "") -> str:
    os.mkfifo(tmp_path / "gate")
    end = end or f'exec {shutil.which("sort")} "$@"'
    return path_with_sort(tmp_path, f"#!/bin/sh\ncat {tmp_path}/gate\n{end}\n")


def test_what_a_screen_shows() -> None:
    assert screen(b"one\rT\r\n\r\x1b[Kthree\r\x1b[Kfour") == ["Tne", "four"]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 12])
def test_a_run_shows_one_line_and_leaves_none(columns: int, tmp_path: Path) -> None:
    words = [*RUN_LOCAL, *IN_FILES, "--jobs=1", f"-o{tmp_path}/pairs.tsv", str(VIDEOS)]
    step = b"[4/4 dedup] "[: columns - 1]
    seen = on_terminal(words, tmp_path, columns, step, PATH=gated_sort(tmp_path))
    assert seen.code == 0
    assert (tmp_path / "pairs.tsv").read_bytes() == ANSWER.read_bytes()
    lines = re.findall(rb"\r\x1b\[K([^\r\x1b]+)\r(?!\n)", seen.shown)
    assert 1 <= len(lines) <= seen.seconds + 1
    assert max(map(len, lines)) < columns
    if columns > 40:
        form = rb"\[\d/4 (count|prune|send|reduce|dedup)\] \d+ %(  \d+:\d\d left)?"
        assert all(re.fullmatch(form, line) for line in lines)
    plain = succeed([*RUN_LOCAL, *IN_FILES, "--jobs=1", VIDEOS], tmp_path).err
    found, promise, seconds, _ = screen(seen.shown)
    assert [found.partition("; wrote ")[0], promise] == plain.splitlines()[:-1]
    assert seconds.endswith(" seconds")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "lines"),
    [
        (f"echo {LONG_WORDS} >&2; exit 2", [LONG_WORDS, "run_local.sh: sort ended with status 2"]),
        ("echo x", ["run_local.sh: "]),  # a worker fails
    ],
)
def test_a_failure_is_read_in_full(script: str, lines: list[str], tmp_path: Path) -> None:
    """The message of a failing program or worker is shown in full, in place of the progress."""
    words = [*RUN_LOCAL, *IN_FILES, "--jobs=1", str(VIDEOS)]
    path = gated_sort(tmp_path, script)
    seen = on_terminal(words, tmp_path, 80, b"[4/4 dedup] ", PATH=path)
    assert seen.code == 1
    *shown, end = screen(seen.shown)
    assert (len(shown), end) == (len(lines), "")
    assert all(line.startswith(start) and "[4/4" not in line for line, start in zip(shown, lines))


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ([], "parse join"),
        (["--output=kept"], "parse join decide keep"),
        (IN_FILES, "count prune send reduce"),
        (["--output=kept", *IN_FILES], "count prune send reduce decide keep"),
        (["--output=clusters", *IN_FILES], "count prune send reduce decide"),
        (["--scheme=prefix", *IN_FILES], "tokens count prune send reduce"),
    ],
)
def test_which_stages_there_are(
    flags: list[str], names: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stage is shown in its turn, ends at its total, and no other stage is shown."""
    from neardup.engines.local.run import NAME, main
    from neardup.runtime.program import run

    told = tmp_path / "told"
    ends = Progress.stage

    def stage(self: Progress, name: str, total: int, together: bool = False) -> None:
        with open(told, "a") as file:
            file.write("\n".join([*self.parts()[:1], ""]))
        ends(self, name, total, together)

    @contextmanager
    def shown(self: Progress, verbosity: int) -> Iterator[None]:
        yield
        stage(self, "", 0)

    pid = os.fork()
    if pid == 0:
        monkeypatch.setattr(Progress, "stage", stage)
        monkeypatch.setattr(Progress, "shown", shown)
        os.environ["TMPDIR"] = str(tmp_path)
        os.dup2(os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT), 1)
        sys.argv = [NAME, "--jobs=2", *flags, str(VIDEOS)]
        os._exit(run(NAME, main))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    known = names.split()
    expected = [f"[{i}/{len(known)} {name}] 100 %" for i, name in enumerate(known, 1)]
    lines = told.read_text().splitlines()
    if "decide" not in known:
        assert lines.pop() == expected[-1].replace(known[-1], "dedup")
    assert lines == expected


# By itself.


def test_how_much_of_a_stage() -> None:
    progress = Progress("x", ["count", "send"], 2)
    assert progress.parts() == []
    progress.stage("count", total=200, together=True)
    progress.of(0)(40)
    progress.of(1)(99)
    assert progress.parts() == ["[1/2 count] 49 %"]
    progress.stage("send", total=200)
    assert progress.parts() == ["[2/2 send] 0 %"]
    assert list(progress.counted(0, [b"a", b"bc"], len)) == [b"a", b"bc"]
    assert list(progress.followed(1, "xy", lambda: 97)) == ["x", "y"]
    assert progress.parts() == ["[2/2 send] 50 %"]
    progress.of(1)(1000)  # a file may grow
    assert progress.parts() == ["[2/2 send] 100 %"]
    progress.stage("its end", total=0)
    assert progress.parts() == ["[2/2 its end] 0 %"]


def test_what_is_left_is_known_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    progress = Progress("x", ["count"], 1)
    progress.stage("count", total=100)
    progress.of(0)(20)
    now += 0.9
    assert progress.parts() == ["[1/1 count] 20 %"]
    now += 9.1
    assert progress.parts() == ["[1/1 count] 20 %", "0:40 left"]
    progress.of(0)(0)
    assert progress.parts() == ["[1/1 count] 0 %"]


def test_elsewhere_there_are_lines(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal, a timer prints the workers' progress as lines while the parent waits."""
    monkeypatch.setattr(module, "PLAIN_SECONDS", 0.05)
    handler = signal.getsignal(signal.SIGALRM)

    def work() -> None:
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        progress.of(1)(49)
        end = time.monotonic() + PATIENCE
        while not os.fstat(2).st_size and time.monotonic() < end:
            time.sleep(0.01)

    progress = Progress("x", ["count", "send"], 2)
    with progress.shown(), Workers("x", progress.clear) as workers:
        progress.stage("count", total=100)
        progress.of(0)(0)
        workers.start("worker", work)
        workers.together()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == handler
    lines = capfd.readouterr().err.splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(r"x: \[1/2 count\] (0|49) %(, \d+:\d\d left)?", line)


def test_a_reader_of_messages_that_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    monkeypatch.setattr(module, "STDERR", write)
    progress = Progress("x", ["count"], 1)
    progress.stage("count", total=100)
    with pytest.raises(BrokenPipeError):
        os.write(write, b"x")
    progress.show()
    os.close(write)


def test_the_alarm_of_somebody_else_stays() -> None:
    """An alarm set by someone else, such as `perl -e 'alarm 60; exec @ARGV'`, is left alone."""
    handler = signal.getsignal(signal.SIGALRM)
    signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        with Progress("x", ["count"], 1).shown():
            assert signal.getsignal(signal.SIGALRM) == handler
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 100
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 100
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_without_messages_there_is_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without stderr there is no timer, since descriptor 2 may be another file."""
    monkeypatch.setattr(sys, "stderr", None)
    with Progress("x", ["count"], 1).shown():
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("verbosity", "running"), [(QUIET, False), (SHORT_SUMMARY, True), (VERBOSE, True)]
)
def test_the_timer_runs_unless_q_is_given(verbosity: int, running: bool) -> None:
    with Progress("x", ["count"], 1).shown(verbosity):
        assert any(signal.getitimer(signal.ITIMER_REAL)) == running
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
