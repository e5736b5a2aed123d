"""No input, however bad, makes a traceback, a hang or a wrong pair; and each has a defined answer.

`engines.run` fails on any traceback and on whatever hangs.
"""

from __future__ import annotations

import bz2
import gzip
import os
import random
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.process.errors import StageError
from tests.support.drawn import mapped, reduced, settings_of
from tests.support.engines import (
    ANSWER,
    DEDUP,
    INLINE,
    JOB,
    LOCAL,
    MAPPER,
    REDUCER,
    RUN_LOCAL,
    VIDEOS,
    environment,
    in_order,
    run,
    succeed,
)

MEBIBYTE = 1 << 20
GOOD = b"a 1 2 3 4 5\nb 1 2 3 4 5\nc 7 8 9\n"
PAIRS = b"a\tb\t1.000000\n"
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


quick = each("mapper", "run_local", "inline")
# Runs a command and adds its peak memory, in kilobytes, to stderr.
MEASURED = [
    sys.executable,
    "-c",
    "import os, sys; pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]); "
    "_, status, usage = os.wait4(pid, 0); print(usage.ru_maxrss, file=sys.stderr); "
    "sys.exit(status != 0)",
]
Stages = dict[str, tuple[list[str], bytes]]
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")


def videos_with_bad_lines(line_end: bytes) -> tuple[bytes, list[tuple[int, str]]]:
    """data/videos.txt in three blocks, and (line number, reason) of the bad lines in it."""
    lines = VIDEOS.read_bytes().splitlines()
    for i, line in enumerate([*BAD, b"", b" \t", b"long" + b" x" * (MEBIBYTE // 2)]):
        lines.insert(130 * i + 100, line)
    reasons = {**BAD, lines[130 * 14 + 100]: "not an integer"}
    bad = [(i, reasons[line]) for i, line in enumerate(lines, 1) if line in reasons]
    assert len(bad) == 13
    return line_end.join(lines), bad


# Lines that are no records.


@pytest.mark.parametrize(
    ("command", "line_end"),
    [
        (MAPPER, b"\n"),
        (MAPPER, b"\r\n"),
        ([*RUN_LOCAL, "--jobs", "1"], b"\r\n"),
        (JOBS_2, b"\n"),
        (INLINE, b"\r\n"),
        (LOCAL, b"\n"),
    ],
    ids=["mapper", "mapper CRLF", "run_local 1 CRLF", "run_local 2", "inline CRLF", "local"],
)
def test_bad_lines_are_counted_and_shown(
    command: list[str], line_end: bytes, tmp_path: Path
) -> None:
    data, bad = videos_with_bad_lines(line_end)
    path = tmp_path / "ein Pfad ü.txt"
    path.write_bytes(data)
    result = succeed([*command, path], tmp_path)
    assert len(result.messages()) == 10
    for message, (line, reason) in zip(result.messages(), bad):
        assert f"{path}: line {line}: {reason}: '" in message
        assert len(message) < 200 + len(str(path))
    assert result.count("records") == 2000
    assert result.count("bad lines") == 13
    if command is not MAPPER:
        assert in_order(result.out) == ANSWER.read_bytes()


@quick
@pytest.mark.parametrize("bad", [BAD, BAD_TEXT], ids=["shingles", "text"])
def test_strict_stops_at_the_first_bad_line(
    command: list[str], bad: dict[bytes, str], tmp_path: Path
) -> None:
    flags = ["--strict", "--input", "text" if bad is BAD_TEXT else "shingles"]
    path = tmp_path / "bad.txt"
    for line, reason in list(bad.items())[:: 1 if command is MAPPER else 5]:
        path.write_bytes(GOOD + line + b"\n" + GOOD)
        result = run([*command, *flags, path], tmp_path)
        assert result.code == 1
        assert len(result.messages()) == 1
        assert f"{path}: line 4: {reason}: '" in result.messages()[0]
        if command is not MAPPER:
            assert result.out == b""


def test_strict_in_mrjob_local(tmp_path: Path) -> None:
    """The second of two tasks meets it, and counts lines from the start of the file."""
    path = tmp_path / "bad.txt"
    path.write_bytes(GOOD * 20 + b"bad x\n")
    result = run([*LOCAL, "--strict", path], tmp_path)
    assert result.code == 1
    assert result.out == b""
    (message,) = result.messages()
    assert f"{path}: line 61: not an integer: 'bad x'" in message


def test_strict_says_so_once(tmp_path: Path) -> None:
    """Every mapper meets bad lines."""
    path = tmp_path / "bad.txt"
    path.write_bytes(b"bad %b\n" % (b"x" * 1000) * 4000)
    result = run([*JOBS_2, "--strict", path], tmp_path)
    assert result.code == 1
    assert len(result.messages()) == 1
    assert not result.left


@pytest.mark.parametrize("form", ["shingles", "text"])
def test_a_line_of_100_megabytes(form: str, tmp_path: Path) -> None:
    """It is never held: the mapper stays small."""
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
    assert re.search(r"^records +6$", said, re.MULTILINE)
    assert re.search(r"^bad lines +1 ", said, re.MULTILINE)
    assert int(said.splitlines()[-1]) < 300_000


def test_a_split_of_a_huge_file(tmp_path: Path) -> None:
    """An mrjob task that starts far into a file looks for its line number without holding it."""
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.truncate(500_000_000)  # takes no room on the disk
    task = {"mapreduce_map_input_file": f"file://{path}", "mapreduce_map_input_start": "500000000"}
    result = run([*MEASURED, *JOB, "--step-num=0", "--mapper"], tmp_path, GOOD, **task)
    assert result.code == 0
    assert result.out
    assert int(result.err.splitlines()[-1]) < 300_000


@quick
def test_the_longest_line(command: list[str], tmp_path: Path) -> None:
    """--max-line counts bytes without the line end."""
    path = tmp_path / "long.txt"
    longest = b"x 1" + b" 2" * (MEBIBYTE // 2 - 2) + b"3"
    assert len(longest) == MEBIBYTE
    path.write_bytes(b"\n".join([longest, longest + b"4", b"y" + longest[1:], longest + b"4"]))
    result = succeed([*command, "--max-line", "1", path], tmp_path)
    assert result.count("records") == 2
    assert [re.findall("line .: line too long", m) for m in result.messages()] == [
        ["line 2: line too long"],
        ["line 4: line too long"],
    ]


@each("run_local", "inline")
def test_ids_that_come_again(command: list[str], tmp_path: Path) -> None:
    """With the same set: counted.  With another: both count.  Never paired with itself."""
    path = tmp_path / "again.txt"
    path.write_bytes(
        b"x 1 2 3 4 5 6 7 8 9\nx 9 8 7 6 5 4 3 2 1\ny 1 2 3 4 5 6 7 8 9\n"
        b"x 1 2 3 4 5 6 7 8 9 10\nz 1 2 3 4 5 6 7 8 9 10\n"
    )
    result = succeed([*command, path], tmp_path)
    assert in_order(result.out) == b"x\ty\t1.000000\nx\tz\t1.000000\ny\tz\t0.900000\n"
    assert result.count("repeated ids") == 2  # once with the same set, once with a similar one


@quick
@pytest.mark.parametrize("data", [b"", b" \t\r\n\n\n"], ids=["empty", "blank"])
def test_no_records_at_all(command: list[str], data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "empty.txt"
    path.write_bytes(data)
    result = succeed([*command, path], tmp_path)
    assert result.out == b""
    assert result.count("records") == 0
    assert result.count("bad lines") == 0


@each("run_local", "inline")
def test_an_empty_result_says_so(command: list[str], tmp_path: Path) -> None:
    path = tmp_path / "apart.txt"
    path.write_bytes(b"a 1 2 3\nb 4 5 6\n")
    result = succeed([*command, path], tmp_path)
    assert result.out == b""
    assert "No two records are similar enough" in result.err


# Files that cannot be read.


@each("mapper", "run_local", "inline", "local")
@pytest.mark.parametrize("wrong", ["missing", "folder"])
def test_a_file_that_is_none(command: list[str], wrong: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    result = run([*command, VIDEOS, tmp_path / wrong], tmp_path)
    assert result.code == 1
    assert result.out == b""
    assert str(tmp_path / wrong) in result.err.splitlines()[-1]
    assert not result.left


def damaged_files() -> dict[str, bytes]:
    noise = random.Random(1).randbytes(2000)
    zipped, bzipped = (pack(VIDEOS.read_bytes()) for pack in (gzip.compress, bz2.compress))
    return {
        "cut.gz": zipped[:-100_000],
        "cut.bz2": bzipped[:-100_000],
        "flipped.gz": zipped[:300_000] + b"\xff" * 9 + zipped[300_009:],
        "flipped.bz2": bzipped[:300_000] + b"\xff" * 9 + bzipped[300_009:],
        "tail.gz": zipped + b"no gzip",
        "noise.gz": noise,
        "noise.bz2": noise,
    }


@pytest.mark.parametrize(
    ("command", "name"),
    [(command, name) for command in (MAPPER, INLINE) for name in damaged_files()]
    + [(JOBS_2, "cut.gz"), (JOBS_2, "noise.bz2")],
    ids=lambda value: value if isinstance(value, str) else Path(value[-1]).name,
)
def test_a_damaged_file(command: list[str], name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(damaged_files()[name])
    result = run([*command, path], tmp_path)
    assert result.code == 1
    assert result.err.count(f"{path}: damaged: ") == 1
    if command is not MAPPER:
        assert result.out == b""
    if command is JOBS_2:
        assert not result.left
        assert len(result.err.splitlines()) == 1


@quick
@pytest.mark.parametrize("form", ["shingles", "text"])
def test_noise(command: list[str], form: str, tmp_path: Path) -> None:
    path = tmp_path / "noise.txt"
    path.write_bytes(GOOD + random.Random(2).randbytes(200_000) + b"\n" + GOOD)
    result = succeed([*command, "--input", form, "--max-bad=1", path], tmp_path)
    assert result.count("bad lines") > 100
    if command is not MAPPER:
        assert PAIRS in result.out


# Standard output, input and error that fail.


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[str], bytes]]:
    """Each script with an input that gives more output than a pipe holds."""
    folder = tmp_path_factory.mktemp("stages")
    path = folder / "copies.txt"
    path.write_bytes(b"".join(b"copy%06d 1 2 3 4 5\n" % i for i in range(400)))
    keyed = in_order(succeed([*MAPPER, path], folder).out)
    pairs = in_order(succeed(REDUCER, folder, keyed).out)
    return {
        "mapper": (MAPPER, path.read_bytes()),
        "reducer": (REDUCER, keyed),
        "dedup": (DEDUP, pairs),
        "run_local": ([*RUN_LOCAL, str(path)], b""),
        "inline": ([*INLINE, str(path)], b""),
    }


SCRIPTS = pytest.mark.parametrize("name", ["mapper", "reducer", "dedup", "run_local", "inline"])


@needs_full
@SCRIPTS
def test_a_full_disk(name: str, stages: Stages, tmp_path: Path) -> None:
    command, data = stages[name]
    with open("/dev/full", "wb") as full:
        result = run(command, tmp_path, data, stdout=full.fileno(), process=True)
    assert result.code == 1
    assert "No space left on device" in result.err.splitlines()[-1]
    assert not result.left


def test_a_full_disk_without_buffers(tmp_path: Path) -> None:
    """PYTHONUNBUFFERED=1, as in many containers: a write may then take a part only."""
    limited = ["bash", "-c", 'ulimit -f 50; exec "$@" > out', "-", *MAPPER]
    lines = b"".join(VIDEOS.read_bytes().splitlines(keepends=True)[:100])
    result = run(limited, tmp_path, lines, cwd=tmp_path, PYTHONUNBUFFERED="1")
    assert result.code == 1
    assert "File too large" in result.err


def test_no_room_for_temporary_files(tmp_path: Path) -> None:
    result = run(["bash", "-c", 'ulimit -f 100; exec "$@"', "-", *RUN_LOCAL, VIDEOS], tmp_path)
    assert result.code not in (0, 2)
    assert result.out == b""
    assert "File too large" in result.err
    assert not result.left


@SCRIPTS
def test_a_closed_pipe_is_a_quiet_success(name: str, stages: Stages, tmp_path: Path) -> None:
    command, data = stages[name]
    with (tmp_path / "in").open("wb+") as stdin, (tmp_path / "err").open("wb+") as stderr:
        stdin.write(data)
        stdin.seek(0)
        with subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment(tmp_path),
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            process.stdout.close()
            assert process.wait(60) == 0
        stderr.seek(0)
        said = stderr.read().decode()
    assert "rror" not in said
    assert "roken pipe" not in said
    assert not os.listdir(tmp_path / "tmpdir")


def test_nobody_hears_the_messages(tmp_path: Path) -> None:
    """A closed pipe at stderr is no reason to leave lines out and say all is well."""
    read, write = os.pipe()
    os.close(read)
    command = ["bash", "-c", f'exec "$@" 2>&{write}', "-", *MAPPER]
    done = subprocess.run(
        command,
        input=b"bad\n" + GOOD,
        stdout=subprocess.PIPE,
        pass_fds=[write],
        env=environment(tmp_path),
        timeout=60,
        check=False,
    )
    os.close(write)
    assert done.returncode == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
@SCRIPTS
def test_closed_from_the_start(name: str, closed: str, stages: Stages, tmp_path: Path) -> None:
    """As cron and some schedulers do."""
    command, data = stages[name]
    result = run(["bash", "-c", f'exec "$@" {closed}', "-", *command], tmp_path, data)
    if closed == ">&-":  # nothing is lost in silence
        assert result.code == 1
        assert result.err
    elif closed == "2>&-" or not data:
        assert result.code == 0
        assert result.out
    assert not result.left


# Lines between the stages that are wrong.

KEY = b"000:0123456789\t"
GARBAGE = {
    "noise": random.Random(3).randbytes(300) + b"\n",
    "records": GOOD,
    "pairs": PAIRS * 2,
    "blank": b"\n\n",
    "key only": KEY.strip() + b"\n",
    "key and tab": KEY + b"\n" + KEY + b"\n",
    "three fields": (KEY + b"00000001\ta\n") * 2,
    "five fields": (KEY + b"00000001\ta\t3\t\n") * 2,
    "no hex": b"xyz:0123456789\t00000001\ta\t3\nxyz:0123456789\t00000001\tb\t3\n",
    "no colon": b"00000123456789\t00000001\ta\t3\n00000123456789\t00000001\tb\t3\n",
    "negative band": b"-01:0123456789\t00000001\ta\t3\n-01:0123456789\t00000001\tb\t3\n",
    "negative hash": b"000:-123456789\t00000001\ta\t3\n000:-123456789\t00000001\tb\t3\n",
    "underscored": b"0_0:01234567_9\t00000001\ta\t3\n0_0:01234567_9\t00000001\tb\t3\n",
    "empty sets": KEY + b"00000000\ta\t\n" + KEY + b"00000000\tb\t\n",
    "one empty set": KEY + b"00000000\ta\t\n" + KEY + b"00000001\tb\t3\n",
    "wrong size": KEY + b"00000002\ta\t3\n" + KEY + b"00000002\tb\t3\n",
    "no size": KEY + b"x\ta\t3\n" + KEY + b"x\tb\t3\n",
    "no digits": KEY + b"00000001\ta\t~~\n" + KEY + b"00000001\tb\t~~\n",
    "no last digit": KEY + b"00000001\ta\to\n" + KEY + b"00000001\tb\to\n",
    "many digits": (KEY + b"00000001\ta\t" + b"o" * 30 + b"3\n") * 2,
    "not ascending": KEY + b"00000002\ta\t30\n" + KEY + b"00000002\tb\t30\n",
    "another key": KEY + b"00000001\ta\t3\n" + KEY + b"00000001\tb\t3\n",
    "carriage return": KEY + b"00000001\ta\t3\r\n" + KEY + b"00000001\tb\t3\r\n",
}


@pytest.mark.parametrize("name", GARBAGE)
def test_reducer_gets_garbage(name: str, tmp_path: Path) -> None:
    result = run(REDUCER, tmp_path, GARBAGE[name])
    assert result.code == 1
    assert result.out == b""
    (message,) = result.err.splitlines()
    assert message.startswith("reducer.py: ")


def test_reducer_gets_unsorted_lines(tmp_path: Path) -> None:
    ordered = sorted(succeed([*MAPPER, VIDEOS], tmp_path).out.splitlines(keepends=True))
    turned = [*ordered[15:], *ordered[:15]]
    for wrong, number in ((turned, len(ordered) - 14), ([*ordered, ordered[0]], len(ordered) + 1)):
        result = run(REDUCER, tmp_path, b"".join(wrong))
        assert result.code == 1
        assert f"line {number}: keys are not in order" in result.err


@pytest.mark.parametrize(
    "flags", ["--seed=1", "--bands=9 --rows=7", "--threshold=0.8", "--bands=15 --rows=6"]
)
def test_reducer_gets_other_options(flags: str, tmp_path: Path) -> None:
    keyed = in_order(succeed([*MAPPER, VIDEOS], tmp_path).out)
    result = run([*REDUCER, *flags.split()], tmp_path, keyed)
    assert result.code == 1
    assert "mapper and reducer need the same" in result.err
    assert set(result.out.splitlines()) <= set(ANSWER.read_bytes().splitlines())


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"a\tb\n",
        b"a\t\t\n",
        b"a\tb\t0.9\tc\n",
        b"a b 0.900000\n",
        b"a\tb\tx\n",
        b"\0\xff\n",
    ],
)
def test_dedup_gets_garbage(data: bytes, tmp_path: Path) -> None:
    result = run(DEDUP, tmp_path, data)
    assert result.code == 1
    (message,) = result.err.splitlines()
    assert message.startswith("dedup_reducer.py: ")


def test_dedup_gets_partners_in_any_order(tmp_path: Path) -> None:
    """Hadoop and mrjob group by the first field alone."""
    lines = b"a\tb\t0.900000\na\tc\t0.950000\na\tb\t1.000000\n"
    assert succeed(DEDUP, tmp_path, lines).out == b"a\tb\t1.000000\na\tc\t0.950000\n"


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    keyed = succeed(MAPPER, tmp_path, GOOD[:-1])
    assert keyed.lines() == succeed(MAPPER, tmp_path, GOOD).lines()
    pairs = succeed(REDUCER, tmp_path, in_order(keyed.out)[:-1])
    assert pairs.out == PAIRS
    assert succeed(DEDUP, tmp_path, PAIRS + PAIRS[:-1]).out == PAIRS


# Whatever else there may be.

odd_tokens = st.sampled_from(
    [b"1", b"007", b"-3", b"18446744073709551615", b"18446744073709551616", b"\0", b"\xff", b"\xc3"]
    + [b"\xc3\xa9", b"\xe2\x80\xa8", b"\x0b", b"\x85", b"1_0", b"+1", b"1e3", b"0x1f", b"9" * 25]
)
odd_lines = st.binary(max_size=30) | st.lists(odd_tokens, max_size=6).map(b" ".join)
odd_lines |= st.lists(odd_tokens, max_size=3).map(b"\t".join)


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


KEYED = mapped(GOOD, settings_of())


@given(
    place=st.integers(0, sum(map(len, KEYED))),
    cut=st.integers(0, 20),
    put=st.binary(max_size=8) | st.text("0123456789abcdef:\t\n-_ oP", max_size=8).map(str.encode),
    at_once=st.integers(1, 50),
)
@example(place=0, cut=0, put=b"\n", at_once=50)
def test_damaged_keyed_lines(place: int, cut: int, put: bytes, at_once: int) -> None:
    """A wrong pair cannot be told from a right one here, but anything else can."""
    data = b"".join(KEYED)
    data = data[:place] + put + data[place + cut :]
    lines = [line + b"\n" for line in data.split(b"\n") if line or put]
    with suppress(StageError):
        assert all(
            line.count(b"\t") == 2 for line in reduced(lines, settings_of(), at_once=at_once)
        )
