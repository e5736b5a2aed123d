"""Errors that end a program, and the command line to type instead."""

import os
import shlex
import sys
from collections.abc import Mapping

ON_CLUSTER, ON_SPARK, COUNT_TOKENS = "./run_hadoop.sh", "./run_spark.sh", "./step.py count"
JOB = "./job.py"
NUMBER_ROWS = "python3 -m neardup convert --id '' FILE… > records.jsonl"
PROGRAMS = {
    "run.py": "./run_local.sh",
    "submit.py": ON_CLUSTER,
    "spark_submit.py": ON_SPARK,
    "spark_job.py": ON_SPARK,
    "job.py": JOB,
    "mapper.py": "./mapper.py",
    "step.py count": COUNT_TOKENS,
}
COMMAND = "neardup "  # and a name, as a command is called
TASK = "mapreduce_map_input_file"
LONGEST = 300  # with more, an option alone is easier to see


class StageError(Exception):
    """The input, or the machine, prevents the program from going on: exit code 1."""


class UsageError(Exception):
    """The command line asks for something wrong or impossible: exit code 2."""


class WireError(StageError):
    """A line between two stages that no stage of this program wrote."""


def shown(line: bytes, limit: int = 60) -> str:
    """A line as a message shows it: cut, and without control characters."""
    text = line[:limit].decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return f"'{text}'" + ("…" if len(line) > limit else "")


def typed_with(flag: str, value: str) -> str:
    """The user's command with this option set; or the option alone, where that is not known."""
    return typed_with_all({flag: value})


def typed_with_all(options: Mapping[str, str]) -> str:
    """The user's command with several options set.

    >>> typed_with_all({"--text": "body", "--id": "key"})  # by no program of ours
    '--text body --id key'
    """
    words = _words()
    for flag, value in reversed(list(options.items())):
        words = _with(words, flag, value)
    given = [part for flag, value in options.items() for part in _option(flag, value)]
    return _line(words) or " ".join(map(shlex.quote, given))


def typed_numbering() -> str:
    """Return the command with numbered rows, or for tasks the command that numbers them first."""
    words = _words()
    if words[:1] not in ([], [ON_CLUSTER], [ON_SPARK], [JOB]):
        return typed_with("--id", "")
    spaced = [part for word in words for part in word.split("=", 1)]
    of_rows = [pair for pair in zip(spaced, spaced[1:]) if pair[0] in ("--input", "--text")]
    given = [shlex.quote(word) for pair in of_rows for word in _option(*pair)]
    return NUMBER_ROWS.replace("FILE", " ".join([*given, "FILE"]))


def piped(command: str, name: str = "", flag: str = "", value: str = "") -> str:
    """The user's command on the output of `command` for the file `name`, or for the only file.

    >>> piped("xz -dc", "a b.txt")  # by no program of ours
    "xz -dc 'a b.txt' | … -"
    """
    words, files = _words(), typed_files()
    if words[:1] == [ON_CLUSTER]:
        return f"{command} {name or 'FILE'} | hdfs dfs -put - INPUT"
    if not name:
        name = files[0] if len(files) == 1 else "-" if words and not files else "FILE"
    line = ""
    if name in words or (name == "-" and not files):
        line = _line(_with(["-" if word == name else word for word in words], flag, value))
    read = "" if name == "-" else f" {name if name == 'FILE' else shlex.quote(name)}"
    return f"{command}{read} | {line or '… -'}"


def typed_files() -> list[str]:
    """Return the arguments that are files, or standard input."""
    return [word for word in _words()[1:] if word == "-" or os.path.isfile(word)]


def _words() -> list[str]:
    """Program and arguments; [] in a task, and for a program that is not ours."""
    if TASK in os.environ or not sys.argv:
        return []
    called, *words = sys.argv
    if called.startswith(COMMAND):
        return [f"python3 -m {called}", *words]
    program = PROGRAMS.get(os.path.basename(called))
    if program == COUNT_TOKENS and words:
        return [f"{program} {words[0]}", *words[1:]]
    return [program, *words] if program else []


def _with(words: list[str], flag: str, value: str) -> list[str]:
    """A command with an option first, in place of another value of it.

    >>> _with(["./mapper.py", "--input=text", "--seed", "1", "a.txt"], "--input", "csv")
    ['./mapper.py', '--input', 'csv', '--seed', '1', 'a.txt']
    """
    if not flag or not words:
        return words
    rest, skip = [], False
    for word in words[1:]:
        if not skip and word != flag and not word.startswith(f"{flag}="):
            rest.append(word)
        skip = word == flag
    return [words[0], *_option(flag, value), *rest]


def _option(flag: str, value: str) -> list[str]:
    """An option as it is typed.

    >>> _option("--text", "body"), _option("--text", "--id")
    (['--text', 'body'], ['--text=--id'])
    """
    return [f"{flag}={value}"] if value.startswith("-") else [flag, value]


def _line(words: list[str]) -> str:
    """A line for a shell; "" where there are no words, or it is too long."""
    line = " ".join([*words[:1], *map(shlex.quote, words[1:])])
    return line if len(line) <= LONGEST else ""
