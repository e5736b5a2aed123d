"""Errors that end a program, and the command line to type instead."""

import os
import shlex
import sys
from collections.abc import Iterable, Sequence

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
AS_MODULE, AS_COMMAND = "python3 -m neardup", "neardup"  # before the name of a command
TASK = "mapreduce_map_input_file"
LONGEST = 300  # of a longer line the options are easier to see alone


class StageError(Exception):
    """The input, or the machine, prevents the program from going on: exit code 1."""


class UsageError(Exception):
    """The command line asks for something wrong or impossible: exit code 2."""


class WireError(StageError):
    """A line between two stages that no stage of this program wrote."""


def as_called(text: str) -> str:
    """Return a text that names commands, `python3 -m neardup why`, as the user calls them."""
    return text.replace(AS_MODULE, AS_COMMAND) if sys.argv[0].startswith(AS_COMMAND) else text


def nearest(word: str, names: Iterable[str]) -> str:
    """Return "; did you mean …?", or "" where no name is like the word.

    >>> nearest("--treshold", ["--threshold", "--recall"])
    '; did you mean --threshold?'
    """
    import difflib

    found = difflib.get_close_matches(word, names, n=1, cutoff=0.75)
    return f"; did you mean {found[0]}?" if found else ""


def not_one_of(word: str, names: Iterable[str]) -> str:
    """
    >>> not_one_of("json", ["text", "jsonl"])
    "'json' is not one of text, jsonl; did you mean jsonl?"
    """
    names = list(names)
    return f"{word!r} is not one of {', '.join(names)}{nearest(word, names)}"


def shown(line: bytes, limit: int = 60) -> str:
    """Return a line as a message shows it: cut, and without control characters."""
    text = line[:limit].decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return f"'{text}'" + ("…" if len(line) > limit else "")


def typed_with(*options: str) -> str:
    """Return the user's command with these options, or the options alone where it is not known.

    >>> typed_with("--text", "body", "--id", "key")  # called by no program of ours
    '--text body --id key'
    """
    return _line(_with(_words(), options)) or " ".join(map(shlex.quote, options))


def typed_numbering() -> str:
    """Return the command with numbered rows, or for tasks the one that numbers them first."""
    by_tasks = _words()[:1] in ([], [ON_CLUSTER], [ON_SPARK], [JOB])
    return NUMBER_ROWS if by_tasks else typed_with("--id", "")


def piped(command: str, name: str = "", *options: str) -> str:
    """Return the user's command on the output of `command` for a file, by default the only one.

    >>> piped("xz -dc", "a b.txt")  # called by no program of ours
    "xz -dc 'a b.txt' | … -"
    """
    words, files = _words(), typed_files()
    if words[:1] == [ON_CLUSTER]:
        return f"{command} {name or 'FILE'} | hdfs dfs -put - INPUT"
    if not name:
        name = files[0] if len(files) == 1 else "-" if words and not files else "FILE"
    line = ""
    if name in words or (words and name == "-" and not files):
        line = _line(_with(["-" if word == name else word for word in words], options))
    source = {"-": "", "FILE": " FILE"}.get(name, f" {shlex.quote(name)}")
    return f"{command}{source} | {line or '… -'}"


def typed_files() -> list[str]:
    """Return the arguments that are files, or standard input."""
    return [word for word in _words()[1:] if word == "-" or os.path.isfile(word)]


def _words() -> list[str]:
    """Return program and arguments; [] in a task, and for a program that is not ours."""
    if TASK in os.environ or not sys.argv:
        return []
    called, *words = sys.argv
    if called.startswith((f"{AS_MODULE} ", f"{AS_COMMAND} ")):
        return [called, *words]
    program = PROGRAMS.get(os.path.basename(called))
    if program == COUNT_TOKENS and words:
        return [f"{program} {words[0]}", *words[1:]]
    return [program, *words] if program else []


def _with(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return a command with options (flag, value, …) in front, without other values of theirs.

    >>> _with(["./mapper.py", "--input=text", "--seed", "1", "a.txt"], ["--input", "csv"])
    ['./mapper.py', '--input', 'csv', '--seed', '1', 'a.txt']
    """
    flags = options[::2]
    others = [
        word
        for before, word in zip(words, words[1:])
        if before not in flags and word.partition("=")[0] not in flags
    ]
    return [*words[:1], *options, *others]


def _line(words: list[str]) -> str:
    """Return a line for a shell, or "" where it is too long."""
    line = " ".join([*words[:1], *map(shlex.quote, words[1:])])
    return line if len(line) <= LONGEST else ""
