"""Nonsense values of options and odd file names cause no traceback in any program.

Nothing ends in a traceback, or in silence: the exit code is 0, 1 or 2, and what refuses names the
program and what it refuses.
"""

from __future__ import annotations

import gzip
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from neardup.__main__ import COMMANDS
from neardup.options.table import OPTIONS
from tests.support.engines import (
    INLINE,
    NEARDUP,
    ROOT,
    RUN_HADOOP,
    RUN_LOCAL,
    Result,
    program,
    run,
    succeed,
)

NO_TEXT = "\udcff"  # the byte 0xff in sys.argv
VALUES = (
    *("", "--", "-", "-1", "0", "1", "nan", "inf", "1e400", "1e-17", "0.99999999999999999", "1/3"),
    *(NO_TEXT, "a b", "９", "1:2", ":", "9" * 5000, "x" * 5000, "\n", "%s", "{}", "/"),
)
RECORDS = b"a 1 2 3 4 5\nb 1 2 3 4 5\nc 7 8 9\n"
SOME = ("", "--", NO_TEXT)  # for options of mapper.py: one of them with each other program
PAIRS = b"a\tb\t1.000000\n"


class Program(NamedTuple):
    """A program to test, what its messages begin with, and words without which it does nothing."""

    command: list[str]
    names: tuple[str, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def script(name: str, *words: str) -> Program:
    return Program([sys.executable, str(ROOT / name)], (name,), words)


def tool(name: str, *after: str) -> Program:
    return Program(NEARDUP, (f"neardup {name}", f"python3 -m neardup {name}"), (name,), after)


PROGRAMS = {
    "mapper.py": script("mapper.py"),
    "reducer.py": script("reducer.py"),
    "dedup_reducer.py": script("dedup_reducer.py"),
    "step.py count map": script("step.py", "count", "map"),
    "step.py count sum": script("step.py", "count", "sum"),
    "step.py share map": script("step.py", "share", "map"),
    "step.py share reduce": script("step.py", "share", "reduce"),
    "job.py": Program(INLINE, ("job.py", "usage: job.py")),
    "run_local.sh": Program(RUN_LOCAL, ("run_local.sh",), after=("-",)),
    "run_hadoop.sh": Program(RUN_HADOOP, ("run_hadoop.sh",), ("--show",), ("in", "out")),
    "curve": tool("curve"),
    "example": tool("example"),
    "tune": tool("tune", "-"),
    "truth": tool("truth", "-"),
    "audit": tool("audit", "records.txt", "pairs.tsv"),
    "why": tool("why", "-", "a", "b"),
    "report": tool("report", "pairs.tsv", "--records=records.txt", "-o", "new.html"),
    "evaluate": tool("evaluate", "pairs.tsv", "pairs.tsv"),
    "sketch": tool("sketch", "-", "--to", "new.sketches"),
    "similar": tool("similar", "records.sketches"),
    "index": tool("index", "records.txt", "--to", "new.index"),
    "find": tool("find", "old.index", "records.txt"),
    "leaks": tool("leaks", "records.txt", "--test", "other.txt"),
    "convert": tool("convert", "texts.tsv"),
    "documents": tool("documents", "texts"),
    "folders": tool("folders", "texts"),
    "images": tool("images", "texts"),
    "videos": tool("videos", "texts"),
}
every_program = pytest.mark.parametrize("name", PROGRAMS)


@pytest.fixture(scope="module")
def sketches(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the sketches of the test's records."""
    made = tmp_path_factory.mktemp("sketches") / "made"
    succeed([*NEARDUP, "sketch", "-", "--to", made], made.parent, RECORDS)
    return made.read_bytes()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of the test's records."""
    made = tmp_path_factory.mktemp("index") / "old.index"
    (made.parent / "records.txt").write_bytes(RECORDS)
    succeed([*NEARDUP, "index", made.parent / "records.txt", "--to", made], made.parent)
    return made


@pytest.fixture
def folder(tmp_path: Path, sketches: bytes, index: Path) -> Path:
    """Return the folder in which the programs run, with their input files."""
    (tmp_path / "records.sketches").write_bytes(sketches)
    shutil.copytree(index, tmp_path / "old.index")
    (tmp_path / "other.txt").write_bytes(b"d 98 99\n")
    (tmp_path / "texts.tsv").write_bytes(b"id\ttext\n1\ta b c\n")
    (tmp_path / "texts").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "texts" / name).write_bytes(b"some words of a text\n")
    (tmp_path / "records.txt").write_bytes(RECORDS)
    (tmp_path / "pairs.tsv").write_bytes(PAIRS)
    (tmp_path / "hadoop" / "bin").mkdir(parents=True)
    lists_nothing = '[ "$1 $2" = "fs -ls" ] || { echo This is no Hadoop. >&2; exit 1; }'
    program(tmp_path / "hadoop" / "bin" / "hadoop", lists_nothing)
    (tmp_path / "hadoop" / "hadoop-streaming-3.jar").touch()
    return tmp_path


def result_of(it: Program, words: Sequence[str], folder: Path, stdin: bytes = b"") -> Result:
    home = str(folder / "hadoop")
    return run([*it.command, *words], folder, stdin, cwd=folder, seconds=60, HADOOP_HOME=home)


def check(it: Program, words: Sequence[str], result: Result) -> None:
    """Check that a call succeeded, or failed with a message that begins with the program's name."""
    about = f"{words}\n{result}"
    assert result.code in (0, 1, 2), about
    assert "None" not in result.err, about
    said = [line for line in result.err.splitlines() if line.startswith(it.names)]
    assert said or not result.code, about


def flags_of(it: Program, folder: Path) -> list[str]:
    """Return the options that take a value, from --help; for job.py, only the project's options."""
    if it.command is INLINE:
        return [name for name, flag in OPTIONS.items() if "action" not in flag.spec]
    help_ = result_of(it, [*it.before, "--help"], folder)
    assert help_.code == 0, help_
    return re.findall(r"^  (?:-\w \S+, )?(--?[\w-]+) [A-Z]", help_.out.decode(), re.MULTILINE)


@pytest.mark.slow
@every_program
def test_every_option_gets_nonsense(name: str, folder: Path) -> None:
    it = PROGRAMS[name]
    flags = flags_of(it, folder)
    assert flags or name in ("dedup_reducer.py", "step.py count sum")
    stdin = RECORDS if name in COMMANDS or name in ("mapper.py", "run_local.sh") else b""
    number = list(PROGRAMS).index(name)
    calls = [
        words
        for place, flag in enumerate(flags, number)
        for one in [SOME[place % len(SOME)]]
        for value in ([one] if flag in OPTIONS and name != "mapper.py" else VALUES[place % 3 :: 3])
        for words in [[f"{flag}={value}"], [flag, value]][: 1 + (value == "--")]
    ]
    codes = set()
    for words in [*calls, ["--="], ["--=x"], ["-="], ["---"]]:
        result = result_of(it, [*it.before, *words, *it.after], folder, stdin)
        codes.add(result.code)
        check(it, words, result)
        flag, equals, value = words[0].partition("=")
        if result.code == 2 and equals:
            again = "new.index: already exists" in result.err  # an earlier call made it
            assert again or flag.strip("-") in result.err or value in result.err, (words, result)
    assert 2 in codes


# Files.

NO_FILES = ("reducer.py", "step.py share reduce", " sum", "example", "curve")
TAKES_FILES = [name for name in PROGRAMS if not name.endswith(NO_FILES)]
NAMES = (
    *("-x.txt", "a[1].txt", f"{NO_TEXT}.txt", "a b.txt", "ä.txt", "a\nb.txt", "%s{}.txt", "--"),
    *("folder", "folder.gz", "missing", "missing.gz", "empty.txt", "empty.gz", "empty.bz2"),
    *("none.gz", "none.bz2", "blank.txt", "blank.gz", "x" * 300, "records.txt/under", ""),
    *("/dev/null", "cut.gz", "one.txt"),
)


def write_files(folder: Path) -> None:
    for name in NAMES[:8]:
        (folder / name).write_bytes(RECORDS)
    for name in ("folder", "folder.gz"):
        (folder / name).mkdir()
    for name in ("empty.txt", "empty.gz", "empty.bz2"):
        (folder / name).touch()
    for name in ("none.gz", "none.bz2"):
        (folder / name).write_bytes(b"no archive")
    (folder / "blank.txt").write_bytes(b"\n \n\n")
    (folder / "blank.gz").write_bytes(gzip.compress(b""))
    (folder / "cut.gz").write_bytes(gzip.compress(RECORDS * 1000)[:-20])
    (folder / "one.txt").write_bytes(b"a 1 2 3\n")


OTHERS_SAY = ("pairs.tsv", "records.txt", "INPUT", "in a sample of ", "none of ", "found no ")
OTHERS_SAY += ("got ''", "'': no such file", "is not UTF-8")


def calls_with(name: str, it: Program, file: str) -> list[list[str]]:
    """Return calls with `file` as input or output and, for `similar`, also a call without it."""
    alone = [*it.before, "--", file]
    first, last = [*alone, "pairs.tsv"], [*it.before, "--", "records.txt", file]
    new = [f"-o{file}"] if file else ["-o", ""]
    counts = [*it.before, "--scheme=prefix", f"--counts={file}", *(it.after or ["-"])]
    lines = {
        "mapper.py": [alone, counts],
        "audit": [first, last],
        "evaluate": [first, last],
        "report": [
            [*it.before, "--records=records.txt", "-o", "new.html", "--", file],
            [*it.before, "pairs.tsv", f"--records={file}", "-o", "new.html"],
            [*it.before, "pairs.tsv", "--records=records.txt", *new],
            [*it.before, "pairs.tsv", "--records=records.txt", "-onew.html", f"--removed={file}"],
            [*it.before, "pairs.tsv", "--records=records.txt", "-onew.html", f"--audit={file}"],
        ],
        "why": [[*alone, "a", "b"], [*it.before, f"--run={file}", "a", "b"], counts],
        "run_hadoop.sh": [[*alone, "out"]],
        "tune": [alone, last],
        "sketch": [
            [*it.before, f"--to=made.{NAMES.index(file)}", "--", file],
            [*it.before, f"--to={file}", "records.txt"],
        ],
        "similar": [alone, [*it.before, "records.sketches"]],
        "index": [
            [*it.before, f"--to=made.{NAMES.index(file)}.index", "--", file],
            [*it.before, f"--to={file}", "records.txt"],
        ],
        "find": [[*it.before, "--", "old.index", file], [*alone, "records.txt"]],
        "leaks": [
            [*it.before, "--test=other.txt", "--", file],
            [*it.before, f"--test={file}", "other.txt"],
        ],
        "convert": [[*it.before, "--input=text", "--", file]],
    }
    return lines.get(name, [alone])


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKES_FILES)
def test_every_kind_of_file_name(name: str, folder: Path) -> None:
    it = PROGRAMS[name]
    write_files(folder)
    codes = set()
    some = NAMES[TAKES_FILES.index(name) % 2 :: 2]
    for file, words in ((each, words) for each in some for words in calls_with(name, it, each)):
        result = result_of(it, words, folder)
        codes.add(result.code)
        check(it, words, result)
        shown = file.encode("utf-8", "backslashreplace").decode().strip() or "empty"
        said = [shown, *OTHERS_SAY]
        assert not result.code or any(each in result.err for each in said), (words, result)
    assert 0 in codes or name in ("images", "videos")
