"""Pipes of several kinds, run_local.sh, and mrjob inline and local give the same lines.

The expected lines come from a nested loop, or for data/videos.txt from its answer file.
"""

from __future__ import annotations

import bz2
import gzip
import random
import shlex
import sys
from collections.abc import Callable, Hashable
from pathlib import Path

import pytest

from tests.support.cases import in_turn
from tests.support.engines import (
    ANSWER,
    ENGINES,
    INLINE,
    RUN_LOCAL,
    VIDEOS,
    Input,
    a_file,
    in_order,
    run,
    succeed,
)
from tests.support.oracle import pair_lines

Records = list[tuple[bytes, frozenset[Hashable]]]


def shuffled(rng: random.Random, items: list) -> list:
    return rng.sample(items, len(items))


def repeating_records() -> Records:
    """Return near-copies of a few sets; up to 90 ids repeat with equal or different sets."""
    rng = random.Random(5)
    sets = [rng.sample(range(20_000), 60) for _ in range(6)]
    records: Records = []
    for _ in range(180):
        near = list(rng.choice(sets))
        for _ in range(rng.randrange(5)):
            near[rng.randrange(60)] = rng.randrange(20_000)
        # In byte order, what follows an id is a tab: some characters come before it.
        id_ = b"v%d" % rng.randrange(45) + rng.choice([b"", b"\1"])
        records.append((id_, frozenset(near)))
    return [*records, *records[:20]]


def odd_files(folder: Path) -> Input:
    """Write the records to three files: CRLF and tabs; .gz; and .bz2 without a last line end."""
    rng = random.Random(6)
    lines = [
        b" ".join([id_, *(b"%d" % value for value in shuffled(rng, [*x, min(x)]))])
        for id_, x in repeating_records()
    ]
    parts = [
        b"".join(line.replace(b" ", b"\t") + b"\r\n" for line in lines[:70]),
        b"".join(b"  " + line + b" \n\n" for line in lines[70:140]),
        b"\n".join(lines[140:]),
    ]
    names = ["plain file.txt", "packed.gz", "packed.bz2"]
    for name, pack, part in zip(names, (bytes, gzip.compress, bz2.compress), parts):
        (folder / name).write_bytes(pack(part))
    return Input(b"".join(parts), [str(folder / name) for name in names])


def texts(folder: Path) -> tuple[Input, bytes]:
    """Return sentences, two in three of which vary an earlier one, and the expected pairs."""
    rng = random.Random(7)
    words = ["Straße", "über", "den", "Fluß", "the", "quick", "brown", "fox", "ΣΊΣΥΦΟΣ", "dogs"]
    written: list[list[str]] = []
    for i in range(90):
        text = rng.choices(words, k=30)
        if i % 3:
            text = list(rng.choice(written))
            text[rng.randrange(30)] = rng.choice(words)
        written.append(text)
    lines, records = [], []
    for i, text in enumerate(written):
        separator, blank = rng.choice([("\t", " \u00a0"), ("\t", "\t"), (" ", "  ")])
        shown = blank.join(text)
        lines.append(f"t{i}{separator}{rng.choice([shown, shown.upper()])}\n".encode())
        folded = [word.casefold() for word in text]
        records.append((b"t%d" % i, frozenset(zip(folded, folded[1:]))))
    path = a_file(folder / "texts.txt", b"".join(lines))
    return Input(b"".join(lines), [str(path)]), pair_lines(records, "0.8")


def videos() -> Input:
    return Input(VIDEOS.read_bytes(), [str(VIDEOS)])


@pytest.fixture(scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """Return a case: an input, the options and the expected lines."""
    folder = tmp_path_factory.mktemp("input")
    if request.param == "links":
        flags = ["--output", "links"]
        return videos(), flags, ENGINES["run_local 1"](videos(), flags, folder)
    if request.param == "low threshold":
        command = [
            sys.executable,
            "-m",
            "bench.data.exact_answer",
            "--threshold",
            "0.8",
            str(VIDEOS),
        ]
        flags = ["--threshold", "0.8", "--max-bands", "40", "--seed", "1"]
        return videos(), flags, succeed(command, folder).out
    if request.param == "text":
        given, expected = texts(folder)
        flags = ["--input", "text", "--shingle", "word:2", "--threshold=0.8", "--max-bands=40"]
        return given, flags, expected
    if request.param == "prefix":  # which asks how rare tokens are
        return videos(), ["--scheme", "prefix"], ANSWER.read_bytes()
    given = odd_files(folder)
    expected = pair_lines(repeating_records(), "0.9")
    if request.param == "odd files":
        return given, [], expected
    if request.param == "prefix, odd files":
        return given, ["--scheme=prefix"], expected
    if request.param == "prefix, stdin":
        return Input(given.data, ["-"]), ["--scheme=prefix"], expected
    assert request.param == "stdin"
    return Input(given.data, ["-"]), ["--bands=20", "--rows=5", f"--seed={2**64 - 1}"], expected


# Every engine has two cases in `make test`, and every case run_local.sh with two jobs and an engine
# without; mrjob local, whose tasks take a second each to start, has one: several files, and an id
# with two sets.  The answer file itself is for `test_as_processes`.
FAST = {
    "links": ["pipe", "run_local 2", "run_local 3"],
    "low threshold": ["split pipe", "run_local 2"],
    "text": ["two rounds", "run_local 2", "mrjob inline"],
    # An id that comes with two sets needs the second reduce.
    "odd files": ["pipe+dedup", "run_local 1", "run_local 2", "mrjob local"],
    "stdin": ["pipe+dedup", "run_local 2", "mrjob inline"],
    "prefix": ["pipe", "split pipe", "two rounds", "counted pipe", "run_local 1", "run_local 2"],
    "prefix, odd files": ["counted pipe", "run_local 3"],
    "prefix, stdin": ["run_local 2"],
}
SLOW = {
    "links": ["two rounds", "mrjob inline"],
    "low threshold": ["two rounds"],
    "prefix": ["mrjob inline"],
    "prefix, odd files": ["mrjob local"],
}


@pytest.mark.parametrize(
    ("case", "engine"),
    [
        pytest.param(case, engine, marks=[pytest.mark.slow] * (engine not in FAST[case]))
        for case in FAST
        for engine in FAST[case] + SLOW.get(case, [])
    ],
    indirect=["case"],
)
def test_same_lines(case: tuple[Input, list[str], bytes], engine: str, tmp_path: Path) -> None:
    given, flags, expected = case
    assert in_order(ENGINES[engine](given, flags, tmp_path)).splitlines() == expected.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["counted pipe", "two rounds", "run_local 2", "mrjob inline"])
def test_as_processes(engine: str, tmp_path: Path) -> None:
    """Programs started as new processes, not as forks of the tests, print the expected pairs."""
    flags = ["--scheme=prefix"] if engine == "counted pipe" else []
    found = in_order(ENGINES[engine](videos(), flags, tmp_path, process=True))
    assert found.splitlines() == ANSWER.read_bytes().splitlines()


@pytest.mark.first_case
@in_turn(
    1,
    command={"run_local": RUN_LOCAL, "inline": INLINE},
    packed={".gz": (gzip.compress, ".gz"), ".bz2": (bz2.compress, ".bz2")},
)
def test_files_of_several_members(
    command: list[str], packed: tuple[Callable[[bytes], bytes], str], tmp_path: Path
) -> None:
    """Compressed files of several members, as made by `cat a.gz b.gz` or pbzip2, are read."""
    pack, suffix = packed
    data = VIDEOS.read_bytes()
    path = a_file(tmp_path / f"videos{suffix}", pack(data[:400_000]) + pack(data[400_000:]))
    assert in_order(succeed([*command, path], tmp_path).out) == ANSWER.read_bytes()


@pytest.mark.first_case
@in_turn(
    1,
    command={"2 jobs": [*RUN_LOCAL, "--jobs", "2"], "inline": INLINE},
    source=["<(cat VIDEOS)", "/dev/stdin"],
)
def test_a_pipe_as_a_file(command: list[str], source: str, tmp_path: Path) -> None:
    """A pipe given as a file is read completely, or the run fails with a message."""
    line = f"cat VIDEOS | {shlex.join(command)} {source}".replace(
        "VIDEOS", shlex.quote(str(VIDEOS))
    )
    result = run(["bash", "-c", line], tmp_path, seconds=15)
    if result.code == 0:
        assert in_order(result.out) == ANSWER.read_bytes()
    else:
        assert result.out == b""
        assert "/dev/" in result.err


@pytest.mark.slow
@in_turn(
    1, command={"run_local": RUN_LOCAL, "inline": INLINE}, stray=["json.py", "neardup/__init__.py"]
)
def test_a_stray_module_in_the_current_folder(
    command: list[str], stray: str, tmp_path: Path
) -> None:
    folder = tmp_path / "with a blank"
    (folder / stray).parent.mkdir(parents=True)
    (folder / stray).write_text("raise SystemExit('the wrong module')\n")
    result = run([*command, VIDEOS], tmp_path, cwd=folder, process=True)
    assert result.code == 0, result.err
    assert in_order(result.out) == ANSWER.read_bytes()
