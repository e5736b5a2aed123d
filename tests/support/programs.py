"""The programs, and how a test runs one to its end and checks its output and leftover files.

Every program runs in a session of its own with a TMPDIR of its own; none may ever show a traceback.
Those of this repository are children of a process that has their modules loaded, see `fork_server`.
With `process=True`, or where the environment speaks to Python itself, they start as in real life.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, Union

from tests.support.fork_server import run_forked

ROOT = Path(__file__).resolve().parents[2]
VIDEOS = ROOT / "data" / "videos.txt"
ANSWER = ROOT / "data" / "videos.pairs.tsv"
MAPPER, REDUCER, DEDUP, STEP, JOB = (
    [sys.executable, str(ROOT / f"{name}.py")]
    for name in ("mapper", "reducer", "dedup_reducer", "step", "job")
)
COUNT_TOKENS, SHARE_KEYS, DECIDE, KEEP = (
    [*STEP, name] for name in ("count", "share", "decide", "keep")
)
NEARDUP = [sys.executable, "-m", "neardup"]  # in the folder ROOT
RUN_LOCAL = [str(ROOT / "run_local.sh")]
RUN_HADOOP = [str(ROOT / "run_hadoop.sh")]
RUN_SPARK = [str(ROOT / "run_spark.sh")]
INLINE = [*JOB, "--no-conf", "-r", "inline"]
LOCAL = [*JOB, "--no-conf", "-r", "local", "--num-cores", "1"]  # two tasks a stage
RUNNERS = {
    RUN_LOCAL[0]: "neardup/engines/local/run.py",
    RUN_HADOOP[0]: "neardup/engines/hadoop/submit.py",
    RUN_SPARK[0]: "neardup/engines/spark/spark_submit.py",
}
COVERAGE = re.compile("COV_CORE|COVERAGE", re.IGNORECASE)
HIDDEN = re.compile(
    f"PYTHONUNBUFFERED|NEARDUP|MAPREDUCE|MAPRED_|MRJOB|COLUMNS|{COVERAGE.pattern}", re.IGNORECASE
)
AT_START = re.compile("PYTHON|LC_|LANG")  # what an interpreter looks at when it starts
SHORT_COUNTS = {
    "records": r"^(?!line )(?:.* )?([\d,]+) records?\b(?! without)",
    "bad lines": r"^([\d,]+) bad lines?\b",
    "records without shingles": r"^([\d,]+) records? without shingles",
    "repeated ids": r"^([\d,]+) repeated ids?\b",
    "pairs": r"([\d,]+) pairs?\b",
    "unique pairs": r"([\d,]+) (?:unique )?pairs?\b",
    "records kept": r"([\d,]+) of [\d,]+ records? kept",
    "records removed": r"\b([\d,]+) removed\b",
}
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
        """Return the lines on stderr that name a line of the input."""
        return [line for line in self.err.splitlines() if re.search(r"\bline \d+: ", line)]

    def count(self, name: str) -> int:
        """Return a number of the summary, full or short; the short one leaves out zeros."""
        found = re.search(rf"^{re.escape(name)}\s+([\d,]+)", self.err, re.MULTILINE)
        in_short = re.search(SHORT_COUNTS.get(name, r"\Z\A"), self.err, re.MULTILINE)
        found = found or in_short
        if not found and name in SHORT_COUNTS and re.search(r"\d seconds$", self.err, re.MULTILINE):
            return 0
        assert found, f"no {name!r} in:\n{self.err}"
        return int(found[1].replace(",", ""))


def environment(tmp: Path, **more: str) -> dict[str, str]:
    """Return this process's environment without the scripts' settings; TMPDIR is `tmp`/tmpdir."""
    folder = tmp / "tmpdir"
    folder.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not HIDDEN.match(name)}
    return {**kept, "TMPDIR": str(folder), **more}


def _covered(command: Command) -> dict[str, str]:
    """Return the variables for coverage, which covers the tools but not the job's programs."""
    tool = list(command[: len(NEARDUP)]) == NEARDUP
    return {name: value for name, value in os.environ.items() if tool and COVERAGE.match(name)}


def run(
    command: Command,
    tmp: Path,
    stdin: bytes = b"",
    stdout: int = subprocess.PIPE,
    cwd: Path = ROOT,
    seconds: int = 300,
    process: bool = False,
    **env: str,
) -> Result:
    """Run a command to its end; a traceback or a hang fails the test."""
    words = list(map(str, command))
    ours = None if process or any(map(AT_START.match, env)) else _ours(words, cwd)
    env = environment(tmp, **_covered(command), **env)
    if ours:
        code, out, err = _forked(ours, cwd, env, stdin, stdout, seconds)
    else:
        code, out, err = _started(words, cwd, env, stdin, stdout, seconds)
    text = err.decode("utf-8", "backslashreplace")
    keys = set(re.findall(r"job\.\w+\.\d{8}\.\d{6}\.\d{6}", text))
    locks = [lock for key in keys for lock in Path("/tmp").glob(f"wrapper.lock.{key}")]
    for lock in locks:
        lock.unlink()
    assert "Traceback" not in text, text
    return Result(code, out, text, sorted(os.listdir(tmp / "tmpdir")), locks)


def _ours(words: list[str], cwd: Path) -> list[str] | None:
    """Return the script, or -m and the module, with arguments, if the fork server can run it."""
    if words[0] in RUNNERS:
        return [str(ROOT / RUNNERS[words[0]]), *words[1:]]
    python, first, second, *_ = [*words, "", ""]
    script = Path(first).parent == ROOT and first.endswith(".py")
    module = first == "-m" and (cwd == ROOT or second == "neardup")
    return words[1:] if python == sys.executable and (script or module) else None


def _forked(
    words: list[str], cwd: Path, env: dict[str, str], stdin: bytes, stdout: int, seconds: int
) -> tuple[int, bytes, bytes]:
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        target = out.fileno() if stdout == subprocess.PIPE else stdout
        streams = given.fileno(), target, err.fileno()
        code = run_forked(words, cwd, env, streams, seconds)
        for file in (out, err):
            file.seek(0)
        return code, out.read(), err.read()


def _started(
    words: list[str], cwd: Path, env: dict[str, str], stdin: bytes, stdout: int, seconds: int
) -> tuple[int, bytes, bytes]:
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=env,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(stdin, timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out or b"", err


def succeed(
    command: Command, tmp: Path, stdin: bytes = b"", process: bool = False, **env: str
) -> Result:
    """Run a command that must exit with 0 and leave no file; return its result."""
    result = run(command, tmp, stdin, process=process, **env)
    assert result.code == 0, result.err
    assert not result.left
    return result


def refuse(command: Command, tmp: Path, *said: str, code: int = 2, **how: Any) -> Result:
    """Run a command that must fail with this code and message, print nothing and leave no file."""
    result = run(command, tmp, **how)
    assert (result.code, result.out, result.left) == (code, b"", []), result
    assert all(each in result.err for each in said), result.err
    return result


def a_file(path: Path, content: bytes | str) -> Path:
    """Write a file; return its path."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def program(path: Path, *lines: str) -> Path:
    """Write a shell script; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(stat.S_IRWXU)
    return path


def in_order(data: bytes) -> bytes:
    """Return the lines of `data` in the order of `LC_ALL=C sort`."""
    return b"".join(sorted(data.splitlines(keepends=True)))
