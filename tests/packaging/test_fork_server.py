"""Programs forked by the test server print and return what new processes do."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.programs import (
    COUNT_TOKENS,
    INLINE,
    MAPPER,
    NEARDUP,
    REDUCER,
    RUN_HADOOP,
    RUN_LOCAL,
    VIDEOS,
    Command,
    run,
)

RECORDS = b"a 1 2 3\nb 3 2 1\nbad\n"
CALLS: dict[str, tuple[Command, bytes, int]] = {
    "mapper": (MAPPER, RECORDS, 0),
    "mapper, text": ([*MAPPER, "--input=text"], "ä\tÄpfel und Öl\n".encode(), 0),
    "strict mapper": ([*MAPPER, "--strict"], RECORDS, 1),
    "unknown option": ([*MAPPER, "--treshold=1"], b"", 2),
    "impossible option": ([*MAPPER, "--threshold=2"], b"", 2),
    "reducer of noise": (REDUCER, b"\xff\xfe\n", 1),
    "run_local of stdin": ([*RUN_LOCAL, "--quiet", "-"], RECORDS, 2),
    "run_local of nothing": ([*RUN_LOCAL, "gone"], b"", 1),
    "run_hadoop of nothing": ([*RUN_HADOOP, "IN"], b"", 2),
    "inline": ([*INLINE, "--quiet", "-"], RECORDS, 0),
    "count_tokens": ([*COUNT_TOKENS, "sum"], b"", 0),
    "a command": ([*NEARDUP, "curve", "--threshold=0.8"], b"", 0),
    "no command": ([*NEARDUP, "nonsense"], b"", 2),
}


def said(text: str) -> list[str]:
    """Return the lines of a text, with the times removed."""
    steady = re.sub(r"\d+\.\d seconds", "… seconds", text)
    return [line for line in steady.splitlines() if not line.startswith("seconds")]


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_forked_is_as_started(name: str, tmp_path: Path) -> None:
    command, data, code = CALLS[name]
    forked, started = (run(command, tmp_path, data, process=how) for how in (False, True))
    assert forked.code == started.code == code
    assert forked.out == started.out
    assert said(forked.err) == said(started.err)
    assert forked.out or forked.err or command == [*COUNT_TOKENS, "sum"]


@pytest.mark.slow
def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    """If output or --help cannot be written, the exit code is that of a new process."""
    for command in ([*MAPPER, str(VIDEOS)], [*MAPPER, "--help"]):
        read, write = os.pipe()
        os.close(read)
        codes = [run(command, tmp_path, stdout=write, process=how).code for how in (False, True)]
        os.close(write)
        assert codes[0] == codes[1]


@pytest.mark.slow
def test_one_that_hangs_is_killed(tmp_path: Path) -> None:
    """A forked program that hangs is killed, and the server continues to work."""
    os.mkfifo(tmp_path / "pipe")
    started = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run([*MAPPER, tmp_path / "pipe"], tmp_path, seconds=1)
    assert time.monotonic() - started < 50
    assert run(MAPPER, tmp_path, RECORDS).code == 0


def test_nothing_is_left_from_one_to_the_next(tmp_path: Path) -> None:
    """A forked program keeps no environment and no temporary folder of an earlier one."""
    other = tmp_path / "other"
    other.mkdir()
    task = {"mapreduce_task_attempt_id": "attempt_1_0001_m_000000_0"}
    assert "reporter:counter" in run(MAPPER, other, RECORDS, **task).err
    assert "reporter:counter" not in run(MAPPER, tmp_path, RECORDS).err
    assert run([*RUN_LOCAL, "-"], tmp_path, RECORDS).out == b"a\tb\t1.000000\n"
    assert run([*INLINE, "-"], other, RECORDS, process=False).left == []
