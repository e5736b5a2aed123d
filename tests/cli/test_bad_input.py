"""Bad input never causes a traceback, a hang or a wrong pair; each kind has a defined answer.

`run` fails on any traceback and on whatever hangs.
"""

from __future__ import annotations

import random
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import in_turn
from tests.support.drawn import mapped, reduced, settings_of
from tests.support.engines import (
    ANSWER,
    INLINE,
    JOB,
    LOCAL,
    MAPPER,
    RUN_LOCAL,
    VIDEOS,
    a_file,
    environment,
    in_order,
    refuse,
    run,
    succeed,
)
from tests.support.failing import GOOD, MEASURED, PAIRS

MEBIBYTE = 1 << 20
BAD = {
    b"lonely": "no shingles",
    b"word 1 two 3": "not an integer",
    b"fraction 1.5": "not an integer",
    b"plus +5": "not an integer",
    b"latin1 1 \xe9": "not an integer",
    b"minus 1 -2 x": "negative shingle",
    b"large 18446744073709551616": "shingle over 2^64-1",
    b"digits " + b"9" * 5000: "shingle over 2^64-1",
    b"\xff\xfe 1 2": "not UTF-8",
    b"\xed\xa0\x80 1 2": "not UTF-8",
    b"n\0l 1 2": "NUL byte",
    b"nul 1 \0 2": "NUL byte",
}
BAD_TEXT = {
    b"lonely": "no shingles",
    b"\ttext without an id": "no id",
    b"blank\t \xc2\xa0 ": "no shingles",
    b"latin1\tcaf\xe9": "not UTF-8",
    b"\xff\tan id that is no text": "not UTF-8",
    b"nul\ta text\0": "NUL byte",
}
JOBS_2 = [*RUN_LOCAL, "--jobs", "2"]
COMMANDS = {"mapper": MAPPER, "run_local": JOBS_2, "inline": INLINE, "local": LOCAL}


def each(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("command", [COMMANDS[name] for name in names], ids=names)


QUICK = {name: COMMANDS[name] for name in ("mapper", "run_local", "inline")}


def videos_with_bad_lines(line_end: bytes) -> tuple[bytes, list[tuple[int, str]]]:
    """Return data/videos.txt with blank and bad lines, and the bad lines' numbers and reasons."""
    lines = VIDEOS.read_bytes().splitlines()
    for i, line in enumerate([*BAD, b"", b" \t", b"long" + b" x" * (MEBIBYTE // 2)]):
        lines.insert(130 * i + 100, line)
    reasons = {**BAD, lines[130 * 14 + 100]: "not an integer"}
    bad = [(i, reasons[line]) for i, line in enumerate(lines, 1) if line in reasons]
    assert len(bad) == 13
    return line_end.join(lines), bad


# Lines that are no records.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "line_end"),
    [
        (MAPPER, b"\r\n"),
        (JOBS_2, b"\n"),
        (INLINE, b"\r\n"),
        (LOCAL, b"\n"),
        ([*JOBS_2, "-v"], b"\n"),
    ],
    ids=["mapper CRLF", "2", "inline CRLF", "local", "2 -v"],
)
def test_bad_lines_are_counted_and_shown(
    command: list[str], line_end: bytes, tmp_path: Path
) -> None:
    data, bad = videos_with_bad_lines(line_end)
    path = a_file(tmp_path / "ein Pfad ü.txt", data)
    result = succeed([*command, path], tmp_path)
    assert len(result.messages()) == (13 if "-v" in command else 10)
    for message, (line, reason) in zip(result.messages(), bad):
        assert f"{path}: line {line}: {reason}: '" in message
        assert len(message) < 200 + len(str(path))
    assert result.count("records") == 2000
    assert result.count("bad lines") == 13
    if command[: len(MAPPER)] != MAPPER:
        assert in_order(result.out) == ANSWER.read_bytes()


@pytest.mark.slow
@in_turn(1, command=QUICK, bad={"text": BAD_TEXT, "shingles": BAD})
def test_strict_stops_at_the_first_bad_line(
    command: list[str], bad: dict[bytes, str], tmp_path: Path
) -> None:
    flags = ["--strict", "--input", "text" if bad is BAD_TEXT else "shingles"]
    path = tmp_path / "bad.txt"
    for line, reason in list(bad.items())[:: 1 if command is MAPPER else 5]:
        path.write_bytes(GOOD + line + b"\n" + GOOD)
        result = refuse([*command, *flags, path], tmp_path, code=1)
        assert len(result.messages()) == 1
        assert f"{path}: line 4: {reason}: '" in result.messages()[0]


@pytest.mark.slow
def test_strict_in_mrjob_local(tmp_path: Path) -> None:
    """With --strict, the second of two mrjob tasks numbers a bad line from the file's start."""
    path = a_file(tmp_path / "bad.txt", GOOD * 20 + b"bad x\n")
    result = refuse([*LOCAL, "--strict", path], tmp_path, code=1)
    (message,) = result.messages()
    assert f"{path}: line 61: not an integer: 'bad x'" in message


def test_strict_says_so_once(tmp_path: Path) -> None:
    """With --strict, only one message is printed, although every mapper reads bad lines."""
    path = a_file(tmp_path / "bad.txt", b"bad %b\n" % (b"x" * 1000) * 4000)
    result = refuse([*JOBS_2, "--strict", path], tmp_path, code=1)
    assert len(result.err.splitlines()) == 1, result.err


@pytest.mark.first_case
@pytest.mark.parametrize("form", ["shingles", "text"])
def test_a_line_of_100_megabytes(form: str, tmp_path: Path) -> None:
    """A line of 100 MB is reported as too long; the mapper needs under 300,000 KiB of memory."""
    command = [*MEASURED, *MAPPER, "--input", form]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(GOOD + b"huge")
        for _ in range(100):
            process.stdin.write(b" 1234567" * (1_000_000 // 8))
        process.stdin.write(b"\n" + GOOD)
        process.stdin.close()
        said = process.stderr.read().decode()
        assert process.wait() == 0
    assert "line 4: line too long: 'huge 1234567" in said
    assert re.search(r"^mapper: 6 records, ", said, re.MULTILINE)
    assert re.search(r"^1 bad line ", said, re.MULTILINE)
    assert int(said.splitlines()[-1]) < 300_000


@pytest.mark.slow
def test_a_split_of_a_huge_file(tmp_path: Path) -> None:
    """An mrjob task that starts 500 MB into a file needs less than 300,000 KiB of memory."""
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.truncate(500_000_000)  # takes no room on the disk
    task = {"mapreduce_map_input_file": f"file://{path}", "mapreduce_map_input_start": "500000000"}
    result = run([*MEASURED, *JOB, "--step-num=0", "--mapper"], tmp_path, GOOD, **task)
    assert result.code == 0
    assert result.out
    assert int(result.err.splitlines()[-1]) < 300_000


@each("run_local", "inline")
def test_ids_that_come_again(command: list[str], tmp_path: Path) -> None:
    """Lines with a repeated id are counted and compared, but an id is never paired with itself."""
    path = tmp_path / "again.txt"
    path.write_bytes(
        b"x 1 2 3 4 5 6 7 8 9\nx 9 8 7 6 5 4 3 2 1\ny 1 2 3 4 5 6 7 8 9\n"
        b"x 1 2 3 4 5 6 7 8 9 10\nz 1 2 3 4 5 6 7 8 9 10\n"
    )
    result = succeed([*command, path], tmp_path)
    assert in_order(result.out) == b"x\ty\t1.000000\nx\tz\t1.000000\ny\tz\t0.900000\n"
    assert result.count("repeated ids") == 2  # once with the same set, once with a similar one


@in_turn(1, command=QUICK, data={"empty": b"", "blank": b" \t\r\n\n\n"})
def test_no_records_at_all(command: list[str], data: bytes, tmp_path: Path) -> None:
    path = a_file(tmp_path / "empty.txt", data)
    result = succeed([*command, path], tmp_path)
    assert result.out == b""
    assert result.count("records") == 0
    assert result.count("bad lines") == 0


@each("run_local", "inline")
def test_an_empty_result_says_so(command: list[str], tmp_path: Path) -> None:
    path = a_file(tmp_path / "apart.txt", b"a 1 2 3\nb 4 5 6\n")
    result = succeed([*command, path], tmp_path)
    assert result.out == b""
    assert "No two records are similar enough" in result.err


# Files that cannot be read.


@in_turn(1, command=COMMANDS, wrong=["missing", "folder"])
def test_a_file_that_is_none(command: list[str], wrong: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    result = refuse([*command, VIDEOS, tmp_path / wrong], tmp_path, code=1)
    assert str(tmp_path / wrong) in result.err.splitlines()[-1]


@in_turn(1, command=QUICK, form=["text", "shingles"])
def test_noise(command: list[str], form: str, tmp_path: Path) -> None:
    path = a_file(tmp_path / "noise.txt", GOOD + random.Random(2).randbytes(200_000) + b"\n" + GOOD)
    result = succeed([*command, "--input", form, "--max-bad=1", path], tmp_path)
    assert result.count("bad lines") > 100
    if command is not MAPPER:
        assert PAIRS in result.out


@pytest.mark.parametrize("name", ["-x.csv", "--exacts", "-é.txt"])
def test_a_file_whose_name_looks_like_an_option(name: str, tmp_path: Path) -> None:
    """The refusal has the name to type."""
    (tmp_path / name).write_text("a 1 2\n")
    result = refuse([*RUN_LOCAL, name], tmp_path, cwd=tmp_path)
    typed = re.search(r"a file is (\./.*); ", result.err)
    assert typed
    name = shlex.split(typed[1])[0]
    assert succeed([*RUN_LOCAL, "--input=shingles", name], tmp_path, cwd=tmp_path).out == b""


# Whatever else there may be.

odd_tokens = st.sampled_from(
    [b"1", b"007", b"-3", b"18446744073709551615", b"18446744073709551616", b"\0", b"\xff", b"\xc3"]
    + [b"\xc3\xa9", b"\xe2\x80\xa8", b"\x0b", b"\x85", b"1_0", b"+1", b"1e3", b"0x1f", b"9" * 25]
)
odd_lines = st.binary(max_size=30) | st.lists(odd_tokens, max_size=6).map(b" ".join)
odd_lines |= st.lists(odd_tokens, max_size=3).map(b"\t".join)


@pytest.mark.first_case
@pytest.mark.parametrize("form", ["shingles", "text"])
@given(
    noise=st.lists(odd_lines.map(lambda line: line.replace(b"\n", b"")), max_size=20),
    rng=st.randoms(use_true_random=False),
)
def test_good_lines_keep_their_pairs(form: str, noise: list[bytes], rng: random.Random) -> None:
    good = [b"GOOD_%d %d 5 6 7 8" % (i, 1 + i // 2) for i in range(6)]
    lines = [*good, *noise]
    rng.shuffle(lines)
    settings = settings_of("--input", form)
    pairs = reduced(mapped(b"".join(line + b"\n" for line in lines), settings), settings)
    mine = [line for line in pairs if line.count(b"GOOD_") == 2]
    assert sorted(mine) == [b"GOOD_%d\tGOOD_%d\t1.000000\n" % (i, i + 1) for i in (0, 2, 4)]
