"""A `hadoop` that is a shell script, to test run_hadoop.sh without a cluster.

It says what a test has it say, and notes in `asked` what it was asked for.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.programs import program

LOOKED = "fs -ls -R /in"  # how large the input is
LISTS_NOTHING = '[ "$1 $2" = "fs -ls" ]'
FILE = "-rw-r--r--   1 me us     5 2026-01-31 09:00"  # as it is listed, before its name


def fake_hadoop(tmp_path: Path, *lines: str) -> dict[str, str]:
    """Return the environment of a Hadoop whose command runs these lines of shell."""
    program(tmp_path / "bin" / "hadoop", f'echo "$*" >>{tmp_path}/asked', *lines)
    return {"HADOOP_HOME": str(tmp_path), "HADOOP_STREAMING_JAR": "streaming.jar"}


def was_asked(tmp_path: Path) -> list[str]:
    return (tmp_path / "asked").read_text().splitlines()


def listing(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a Hadoop that lists two new files, _SUCCESS, and an old file."""
    new = f"{FILE} /in/b c.txt\n{FILE} /in/_SUCCESS\n{FILE} /in/a.gz\n"
    (tmp_path / "new").write_text("drwxr-xr-x   - me us     0 2026-01-31 09:00 /in/d\n" + new)
    (tmp_path / "old").write_text(f"{FILE} /old/o.txt\n")
    case = f'case "$*" in *" /old") cat {tmp_path}/old ;; *) cat {tmp_path}/new ;; esac'
    return fake_hadoop(tmp_path, case)


def value(command: list[str], flag: str) -> str:
    return command[command.index(flag) + 1]


def last(command: list[str], name: str) -> str:
    """Return the last value that a command gives a property."""
    return [word for word in command if word.startswith(f"{name}=")][-1].partition("=")[2]
