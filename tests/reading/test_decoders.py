"""A pool of processes: a task that hangs or crashes costs only its own item."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from neardup.reading.decoders import CRASHED, FAILED, TIMED_OUT, Failure, TaskError, outcomes
from neardup.runtime.program import PROGRAM_ERRORS


def minute(_: int) -> float:
    return 60


def square(item: int) -> int:
    return item * item


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_every_item_has_its_outcome(count: int, jobs: int) -> None:
    found = dict(outcomes(range(count), square, jobs, minute))
    assert found == {item: item * item for item in range(count)}


def harmful(item: int) -> int:
    if item == 3:
        faulthandler.disable()  # which pytest enables: it would print a trace of this crash
        os.kill(os.getpid(), signal.SIGSEGV)
    if item in (5, 6):
        time.sleep(1000)
    if item == 7:
        os._exit(9)
    if item == 8:
        raise ValueError("not expected")
    if item == 9:
        os.close(1), os.close(2)
    return item


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_harm_is_done_to_one_item(jobs: int) -> None:
    found = dict(outcomes(range(20), harmful, jobs, lambda _: 3))
    assert sorted(found) == list(range(20))
    lost = {item: outcome for item, outcome in found.items() if isinstance(outcome, Failure)}
    assert {item: outcome.reason for item, outcome in lost.items()} == {
        3: CRASHED,
        5: TIMED_OUT,
        6: TIMED_OUT,
        7: CRASHED,
        8: FAILED,
    }
    assert lost[3].detail == f"by signal {signal.SIGSEGV.value}"
    assert lost[7].detail == "with exit code 9"
    assert all(found[item] == item for item in found.keys() - lost)


@pytest.mark.parametrize("error", PROGRAM_ERRORS, ids=lambda error: error.__name__)
def test_an_error_of_the_program_ends_the_run(error: type[Exception]) -> None:
    def task(item: int) -> int:
        raise error("no such option")

    with pytest.raises(TaskError, match=f"at 7:(.|\n)*{error.__name__}: no such option"):
        list(outcomes([7], task, 1, minute))


@pytest.mark.slow
def test_work_is_shared(tmp_path: Path) -> None:
    def task(item: int) -> int:
        time.sleep(0.02)
        return os.getpid()

    pids = {pid for _, pid in outcomes(range(30), task, 3, minute)}
    assert len(pids) == 3
    assert os.getpid() not in pids


def test_no_process_is_left() -> None:
    pids = {pid for _, pid in outcomes(range(8), lambda _: os.getpid(), 2, minute)}
    half = outcomes(range(100), lambda _: os.getpid(), 2, minute)
    pids.add(next(half)[1])
    half.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(int(str(pid)), 0)


def test_an_item_is_taken_when_it_is_needed() -> None:
    taken = []

    def items() -> Iterator[int]:
        for item in range(100):
            taken.append(item)
            yield item

    found = outcomes(items(), square, 2, minute)
    next(found)
    assert len(taken) <= 4
    found.close()


def test_start_is_called_in_each_process(tmp_path: Path) -> None:
    def start() -> None:
        (tmp_path / str(os.getpid())).touch()

    pids = {pid for _, pid in outcomes(range(9), lambda _: os.getpid(), 2, minute, start)}
    assert {path.name for path in tmp_path.iterdir()} >= set(map(str, pids))
    assert not (tmp_path / str(os.getpid())).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="a process ends with its parent on Linux")
def test_processes_end_with_their_parent(tmp_path: Path) -> None:
    read, write = os.pipe()
    parent = os.fork()
    if not parent:
        for _, pid in outcomes([1, 2], lambda _: os.getpid(), 1, minute):
            os.write(write, b"%d " % pid)
            time.sleep(1000)
    child = int(os.read(read, 20).split()[0])
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    end = time.monotonic() + 30
    while Path(f"/proc/{child}/stat").exists() and time.monotonic() < end:
        if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.01)
    else:
        assert time.monotonic() < end
    os.close(read), os.close(write)


def test_a_hangup_ignored_by_the_run_ends_no_process() -> None:
    """After nohup, a terminal that closes costs no item."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        hung_up = outcomes([1, 2], lambda _: os.kill(os.getpid(), signal.SIGHUP), 1, minute)
        assert list(hung_up) == [(1, None), (2, None)]
    finally:
        signal.signal(signal.SIGHUP, before)
