"""The benchmark measures a command's output, time and memory, and how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bench.measure
from bench.measure import DONE, ROOT, TIME_LIMIT, measured, measured_apart

MIB = 1 << 20


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def shell(script: str) -> list[str]:
    return ["bash", "-c", script]


def eventually_gone(pid: int) -> bool:
    """Return whether the process ends within five seconds; a zombie counts as ended."""
    for _ in range(100):
        status = Path(f"/proc/{pid}/stat")
        try:
            if status.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def test_output_seconds_and_end(tmp_path: Path) -> None:
    output = tmp_path / "out"
    run = measured(shell("sleep 0.2; echo pairs; echo noise >&2; echo last words >&2"), output, 9)
    assert (run.status, run.said) == (DONE, "last words")
    assert 0.2 <= run.seconds < 5
    assert output.read_bytes() == b"pairs\n"


@pytest.mark.slow
def test_cpu_seconds_are_those_of_children_too(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    run = measured(python(code), tmp_path / "out", 20)
    assert run.status == DONE
    assert 0.3 <= run.cpu < 5


@pytest.mark.slow
def test_memory_is_that_of_the_largest_process(tmp_path: Path) -> None:
    child = f"x = bytearray({100 * MIB})"
    start = f"subprocess.run([sys.executable, '-c', {child!r}])"
    two = python(f"import subprocess, sys\nfor _ in range(2): {start}")
    run = measured_apart(two, str(tmp_path / "out"), 20)
    assert 100 <= run.mebibytes < 150


def test_memory_is_not_that_of_the_benchmark(tmp_path: Path) -> None:
    ballast = bytearray(200 * MIB)
    run = measured_apart(["true"], str(tmp_path / "out"), 20)
    assert len(ballast) == 200 * MIB
    assert run.status == DONE
    assert 0 < run.mebibytes < 60


def test_a_failure_and_its_last_words(tmp_path: Path) -> None:
    run = measured(shell("echo no memory >&2; exit 3"), tmp_path / "out", 9)
    assert (run.status, run.said) == ("failed with 3", "no memory")


@pytest.mark.slow
def test_a_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    output = tmp_path / "out"
    started = time.monotonic()
    run = measured(shell("sleep 60 & echo $!; wait"), output, 0.3)
    assert run.status == TIME_LIMIT
    assert 0.3 <= run.seconds < 10
    assert time.monotonic() - started < 10
    assert eventually_gone(int(output.read_text()))


@pytest.mark.slow
def test_what_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.measure, "GRACE", 0.3)
    run = measured(shell("trap '' TERM; while :; do sleep 0.1; done"), tmp_path / "out", 0.2)
    assert run.status == TIME_LIMIT
    assert run.seconds < 10


def test_what_is_left_behind_is_ended(tmp_path: Path) -> None:
    output = tmp_path / "out"
    assert measured(shell("sleep 60 & echo $!"), output, 9).status == DONE
    assert eventually_gone(int(output.read_text()))


@pytest.mark.first_case
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_benchmark_ends_the_command(number: signal.Signals, tmp_path: Path) -> None:
    output = tmp_path / "out"
    command = [sys.executable, "-m", "bench.measure", "--output", str(output), "--", "bash", "-c"]
    script = "trap 'sleep 0.2; exit' TERM; echo $$; while :; do sleep 0.05; done"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([*command, script], cwd=ROOT, env=environment) as helper:
        while not (output.exists() and output.read_text().endswith("\n")):
            time.sleep(0.02)
        helper.send_signal(number)
        time.sleep(0.1)
        helper.send_signal(signal.SIGTERM)  # once more, while it tidies up
        assert helper.wait(20) == 128 + number
    assert eventually_gone(int(output.read_text()))
    assert os.listdir(tmp_path) == ["out"]
