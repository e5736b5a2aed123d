"""The ways to run the whole job, for tests: each an *engine*, from an input to its pair lines.

Every program runs in a session of its own with a TMPDIR of its own, so a test can tell what it
left behind; none may ever show a traceback.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Union
from zlib import crc32

ROOT = Path(__file__).resolve().parents[2]
VIDEOS = ROOT / "data" / "videos.txt"
ANSWER = ROOT / "data" / "videos.pairs.tsv"
MAPPER, REDUCER, DEDUP, COUNT_TOKENS, JOB = (
    [sys.executable, str(ROOT / name)]
    for name in ("mapper.py", "reducer.py", "dedup_reducer.py", "count_tokens.py", "job.py")
)
NEARDUP = [sys.executable, "-m", "neardup"]  # in the folder ROOT
RUN_LOCAL = [str(ROOT / "run_local.sh")]
RUN_HADOOP = [str(ROOT / "run_hadoop.sh")]
INLINE = [*JOB, "--no-conf", "-r", "inline"]
LOCAL = [*JOB, "--no-conf", "-r", "local", "--num-cores", "1"]  # two tasks a stage
COVERAGE = re.compile("COV_CORE|COVERAGE", re.IGNORECASE)
HIDDEN = re.compile(f"NEARDUP|MAPREDUCE|MAPRED_|MRJOB|COLUMNS|{COVERAGE.pattern}", re.IGNORECASE)
Command = Sequence[Union[str, Path]]


class Result(NamedTuple):
    code: int
    out: bytes
    err: str
    left: list[str]  # the names in TMPDIR afterwards
    locks: list[Path]  # what mrjob's local runner leaves in /tmp, gone by now

    def lines(self) -> list[bytes]:
        return sorted(self.out.splitlines(keepends=True))

    def messages(self) -> list[str]:
        """The lines on stderr that speak of a line of the input."""
        return [line for line in self.err.splitlines() if re.search(r"\bline \d+: ", line)]

    def count(self, name: str) -> int:
        """A number in the summary."""
        found = re.search(rf"^{re.escape(name)}\s+([\d,]+)", self.err, re.MULTILINE)
        assert found, f"no {name!r} in:\n{self.err}"
        return int(found[1].replace(",", ""))


def environment(tmp: Path, **more: str) -> dict[str, str]:
    """This process's, without what would steer the scripts; TMPDIR is `tmp`/tmpdir."""
    folder = tmp / "tmpdir"
    folder.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not HIDDEN.match(name)}
    return {**kept, "TMPDIR": str(folder), **more}


def _covered(command: Command) -> dict[str, str]:
    """Coverage follows the tools; the job's programs are tested with full disks, and killed."""
    tool = list(command[: len(NEARDUP)]) == NEARDUP
    return {name: value for name, value in os.environ.items() if tool and COVERAGE.match(name)}


def run(
    command: Command,
    tmp: Path,
    stdin: bytes = b"",
    stdout: int = subprocess.PIPE,
    cwd: Path = ROOT,
    seconds: int = 60,
    **env: str,
) -> Result:
    """Run to the end; a traceback, or a program that hangs, fails the test."""
    with subprocess.Popen(
        list(map(str, command)),
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=environment(tmp, **_covered(command), **env),
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(stdin, timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    text = err.decode("utf-8", "backslashreplace")
    keys = set(re.findall(r"job\.\w+\.\d{8}\.\d{6}\.\d{6}", text))
    locks = [lock for key in keys for lock in Path("/tmp").glob(f"wrapper.lock.{key}")]
    for lock in locks:
        lock.unlink()
    assert "Traceback" not in text, text
    return Result(process.returncode, out or b"", text, sorted(os.listdir(tmp / "tmpdir")), locks)


def succeed(command: Command, tmp: Path, stdin: bytes = b"", **env: str) -> Result:
    """Run a command that must end well and leave nothing behind."""
    result = run(command, tmp, stdin, **env)
    assert result.code == 0, result.err
    assert not result.left
    return result


def program(path: Path, *lines: str) -> Path:
    """A shell script at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(stat.S_IRWXU)
    return path


class Input(NamedTuple):
    """Files, and what they hold together as plain lines; files of ["-"] are standard input."""

    data: bytes
    files: list[str]


def pipe(given: Input, flags: list[str], tmp: Path) -> bytes:
    """cat FILE | ./mapper.py | LC_ALL=C sort | ./reducer.py"""
    line = f"{shlex.join([*MAPPER, *flags])} | LC_ALL=C sort | {shlex.join([*REDUCER, *flags])}"
    return succeed(["bash", "-o", "pipefail", "-c", line], tmp, given.data).out


def counted_pipe(given: Input, flags: list[str], tmp: Path) -> bytes:
    """The tokens are counted first: count_tokens.py between sorts."""
    lines = in_order(succeed([*COUNT_TOKENS, "map", *flags], tmp, given.data).out)
    sums = in_order(succeed([*COUNT_TOKENS, "sum"], tmp, lines).out)
    counts = tmp / "counts.tsv"
    counts.write_bytes(succeed([*COUNT_TOKENS, "order"], tmp, sums).out)
    return pipe_dedup(given, [*flags, f"--counts={counts}"], tmp)


def pipe_dedup(given: Input, flags: list[str], tmp: Path) -> bytes:
    return succeed(DEDUP, tmp, in_order(pipe(given, flags, tmp))).out


def split_pipe(given: Input, flags: list[str], tmp: Path) -> bytes:
    """Three mappers, each for a third of the lines; three reducers, each for a third of keys."""
    lines = given.data.splitlines(keepends=True)
    thirds = [lines[i * len(lines) // 3 : (i + 1) * len(lines) // 3] for i in range(3)]
    mapped = b"".join(succeed([*MAPPER, *flags], tmp, b"".join(part)).out for part in thirds)
    pairs = b""
    for number in range(3):
        mine = [
            line
            for line in in_order(mapped).splitlines(keepends=True)
            if crc32(line.split(b"\t")[0]) % 3 == number
        ]
        pairs += succeed([*REDUCER, *flags], tmp, b"".join(mine)).out
    return succeed(DEDUP, tmp, in_order(pairs)).out


def run_local(jobs: int) -> Callable[[Input, list[str], Path], bytes]:
    def engine(given: Input, flags: list[str], tmp: Path) -> bytes:
        stdin = given.data if "-" in given.files else b""
        command = [*RUN_LOCAL, "--jobs", str(jobs), *flags, *given.files]
        out = succeed(command, tmp, stdin).out
        assert out == in_order(out)
        return out

    return engine


def mrjob(command: list[str]) -> Callable[[Input, list[str], Path], bytes]:
    def engine(given: Input, flags: list[str], tmp: Path) -> bytes:
        stdin = given.data if "-" in given.files else b""
        return succeed([*command, *flags, *given.files], tmp, stdin).out

    return engine


def in_order(data: bytes) -> bytes:
    return b"".join(sorted(data.splitlines(keepends=True)))


ENGINES = {
    "pipe": pipe,
    "pipe+dedup": pipe_dedup,
    "counted pipe": counted_pipe,
    "split pipe": split_pipe,
    "run_local 1": run_local(1),
    "run_local 2": run_local(2),
    "run_local 3": run_local(3),
    "mrjob inline": mrjob(INLINE),
    "mrjob local": mrjob(LOCAL),
}
