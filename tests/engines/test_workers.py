"""A process group: if one worker fails, the others end, and the first failure is reported."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from neardup.engines.local.workers import Workers, program, turns
from neardup.runtime.program import StageError


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


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (program(["no-such-program"], 1), "no-such-program"),
        (lambda: print(1 // 0), "ZeroDivisionError"),
    ],
)
def test_an_error_in_a_task_is_shown(
    task: Callable[[], None], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with Workers("test") as workers:
        workers.start("wrong", task)
        with pytest.raises(SystemExit):
            workers.together()
    assert said in capfd.readouterr().err


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
