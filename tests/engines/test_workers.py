"""A process group: if one worker fails, the others end, and the first failure is reported."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from neardup.engines.local.workers import Workers, program, turns
from neardup.runtime.program import StageError, write_all


def write(path: Path, text: str) -> None:
    path.write_text(text)


def test_tasks_run_at_the_same_time(tmp_path: Path) -> None:
    """Two tasks run at the same time: each waits until the other opens a named pipe."""
    os.mkfifo(tmp_path / "a")
    with Workers("test") as workers:
        workers.start("writer", lambda: write(tmp_path / "a", "hello"))
        workers.start("reader", lambda: write(tmp_path / "b", (tmp_path / "a").read_text()))
        workers.together()
    assert (tmp_path / "b").read_text() == "hello"


def test_a_program_writes_where_it_should(tmp_path: Path) -> None:
    with Workers("test") as workers, open(tmp_path / "out", "wb") as out:
        workers.start("echo", program(["echo", "hello"], out.fileno()))
        workers.together()
    assert (tmp_path / "out").read_text() == "hello\n"


def fails() -> None:
    raise StageError("line 3: no shingles")


def test_one_that_fails_ends_the_others(capfd: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    with Workers("test") as workers:
        workers.start("sleeper", lambda: time.sleep(60))
        workers.start("failing", fails)
        with pytest.raises(SystemExit) as end:
            workers.together()
    assert end.value.code == 1
    assert time.monotonic() - started < 50
    assert capfd.readouterr().err == "test: line 3: no shingles\n"


def test_one_that_is_killed(capfd: pytest.CaptureFixture[str]) -> None:
    with Workers("test") as workers:
        workers.start("sleeper", lambda: time.sleep(60))
        workers.start("victim", lambda: os.kill(os.getpid(), signal.SIGKILL))
        with pytest.raises(
            StageError, match=r"^victim was killed, probably because memory ran out"
        ):
            workers.together()
    assert capfd.readouterr().err == ""


def test_a_program_that_fails(tmp_path: Path) -> None:
    with Workers("test") as workers:
        workers.start("false", program(["sh", "-c", "exit 3"], 1))
        with pytest.raises(StageError, match=r"^false ended with status 3$"):
            workers.together()


def test_a_program_that_is_not_there(capfd: pytest.CaptureFixture[str]) -> None:
    with Workers("test") as workers:
        workers.start("nothing", program(["no-such-program"], 1))
        with pytest.raises(SystemExit):
            workers.together()
    assert "no-such-program" in capfd.readouterr().err


def test_a_mistake_in_a_task_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with Workers("test") as workers:
        workers.start("wrong", lambda: print(1 // 0))
        with pytest.raises(SystemExit):
            workers.together()
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_whatever_ends_the_block_ends_the_tasks() -> None:
    pids = []

    def interrupted() -> None:
        with Workers("test") as workers:
            workers.start("sleeper", lambda: time.sleep(60))
            pids.extend(workers._names)
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def read_once(read: int, path: Path, stdout: int) -> None:
    """Read one byte, then write to `stdout`, as the last stage does."""
    os.dup2(stdout, 1)
    path.write_bytes(os.read(read, 1))
    write_all([b"y"])


def test_a_program_that_nobody_reads(tmp_path: Path) -> None:
    """If a reader stops because its output is closed, the program before it ends without error."""
    read, write = os.pipe()
    nobody, stdout = os.pipe()
    os.close(nobody)
    with Workers("test") as workers:
        workers.start("yes", program(["yes"], write))
        os.close(write)
        workers.start("reader", lambda: read_once(read, tmp_path / "out", stdout))
        os.close(read)
        workers.together()
    os.close(stdout)
    assert (tmp_path / "out").read_bytes() == b"y"


def test_a_program_that_ends_as_if_nobody_read(tmp_path: Path) -> None:
    """A program that dies of SIGPIPE while its reader still reads is reported as a failure."""
    read, write = os.pipe()
    with Workers("test") as workers:
        workers.start("short", program(["sh", "-c", "echo 1; kill -PIPE $$"], write))
        os.close(write)
        workers.start("reader", lambda: read_to_the_end(read, tmp_path / "out"))
        os.close(read)
        with pytest.raises(StageError, match=r"^short ended with signal 13: Broken pipe$"):
            workers.together()
    assert (tmp_path / "out").read_bytes() == b"1\n"


def read_to_the_end(read: int, path: Path) -> None:
    with open(read, "rb") as pipe:
        path.write_bytes(pipe.read())


def test_the_reader_is_to_blame_for_a_broken_pipe() -> None:
    read, write = os.pipe()
    with Workers("test") as workers:
        workers.start("yes", program(["yes"], write))
        os.close(write)
        workers.start("reader", lambda: os.kill(os.getpid(), signal.SIGKILL))
        os.close(read)
        with pytest.raises(StageError, match=r"^reader was killed"):
            workers.together()


def test_a_signal_without_a_name() -> None:
    with Workers("test") as workers:
        workers.start("victim", lambda: os.kill(os.getpid(), 37))
        with pytest.raises(StageError, match=r"^victim ended with signal 37: "):
            workers.together()


def test_processes_take_turns(tmp_path: Path) -> None:
    """Two processes take turns: each number goes to one process, and both get several numbers."""
    mine = turns()

    def take(name: str) -> None:
        (tmp_path / f"{name}.ready").touch()
        end = time.monotonic() + 20
        while len(list(tmp_path.glob("*.ready"))) < 2 and time.monotonic() < end:
            time.sleep(0.001)
        numbers = []
        for number in mine():
            numbers.append(number)
            time.sleep(0.002)
            if number >= 100:
                break
        (tmp_path / name).write_text(" ".join(map(str, numbers)))

    with Workers("test") as workers:
        workers.start("one", lambda: take("one"))
        workers.start("other", lambda: take("other"))
        workers.together()
    taken = [list(map(int, (tmp_path / name).read_text().split())) for name in ("one", "other")]
    assert sorted(taken[0] + taken[1]) == list(range(102))
    assert min(map(len, taken)) > 1
    assert all(numbers == sorted(numbers) for numbers in taken)


def test_workers_end_where_sigterm_is_ignored(tmp_path: Path) -> None:
    """Workers end even if SIGTERM is ignored, as it may be under a supervisor."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def sleep() -> None:
        time.sleep(60)
        (tmp_path / "slept").touch()

    try:
        with Workers("x") as workers:
            workers.start("sleeping", sleep)
            workers.start("failing", lambda: os._exit(3))
            with pytest.raises(StageError, match="failing ended with status 3"):
                workers.together()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not (tmp_path / "slept").exists()
