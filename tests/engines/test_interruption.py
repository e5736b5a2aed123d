"""However a run ends, no process is left; only kill -9 leaves files, until the next run."""

from __future__ import annotations

import fcntl
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import termios
import time
from array import array
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.cases import in_turn
from tests.support.engines import (
    ANSWER,
    IN_FILES,
    MAPPER,
    NEARDUP,
    REDUCER,
    ROOT,
    RUN_LOCAL,
    VIDEOS,
    a_file,
    environment,
    in_order,
    refuse,
    run,
)
from tests.support.sessions import (
    PATIENCE,
    either_way,
    interrupt,
    interrupt_at,
    path_with_other_sort,
    path_with_sort,
    session,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc"),
]


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file that takes some seconds to map."""
    path = a_file(tmp_path_factory.mktemp("long") / "long.txt", VIDEOS.read_bytes() * 120)
    return path


@pytest.fixture(scope="module")
def some_seconds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file whose pruning takes long enough to be observed."""
    path = a_file(tmp_path_factory.mktemp("some") / "some.txt", VIDEOS.read_bytes() * 8)
    return path


@pytest.fixture(scope="module")
def hot_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with one bucket of many mebibytes, on which a reducer works for minutes."""
    rng = random.Random(1)
    sets = [[*range(240), *rng.sample(range(1000, 2000), 10)] for _ in range(40)]
    lines = [b" ".join(map(b"%d".__mod__, shingles)) for shingles in sets]
    path = tmp_path_factory.mktemp("hot") / "hot.txt"
    path.write_bytes(b"".join(b"v%05d %b\n" % (i, rng.choice(lines)) for i in range(30_000)))
    return path


ONE_BUCKET = ["--bands=1", "--rows=1"]
SORTING = [*REDUCER, *ONE_BUCKET, "--output=links"]


@pytest.fixture
def large_bucket(tmp_path: Path) -> Path:
    """Return keyed lines, not in order, of a bucket so large that SORTING sorts it in a child."""
    shingles = " ".join(map(str, range(100, 10_000, 7)))
    lines = "".join(f"v{i:04d} {shingles}\n" for i in range(6000))
    keyed = run([*MAPPER, *ONE_BUCKET], tmp_path, lines.encode()).out.splitlines(keepends=True)
    assert sum(map(len, keyed)) > 8 << 20
    (tmp_path / "keyed").write_bytes(b"".join(reversed(keyed)))
    return tmp_path / "keyed"


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """Return a file whose pairs are more than a pipe holds."""
    path = tmp_path / "copies.txt"
    path.write_bytes(b"".join(b"copy%06d 1 2 3 4 5\n" % i for i in range(400)))
    return path


@either_way
def test_while_it_reads_standard_input(how: str, tmp_path: Path) -> None:
    with session([*RUN_LOCAL, "-"], tmp_path, subprocess.PIPE) as it:
        assert it.process.stdin is not None
        it.process.stdin.write(b"a 1 2 3\n")
        it.process.stdin.flush()
        end = time.monotonic() + PATIENCE
        while not os.listdir(tmp_path / "tmpdir") and time.monotonic() < end:
            time.sleep(0.01)
        code = interrupt(it, how)
        assert it.ended_clean() == code


@either_way
@pytest.mark.parametrize("seconds", [0, 0.5])
def test_in_the_map_phase(how: str, seconds: float, long_file: Path, tmp_path: Path) -> None:
    """An interrupted map phase leaves nothing, even while Python and numpy are still loading."""
    with session([*RUN_LOCAL, "--jobs", "2", str(long_file)], tmp_path) as it:
        interrupt_at(it, "mapper", how, seconds)
        assert it.process.stdout is not None
        assert it.process.stdout.read() == b""


@either_way
def test_while_its_reader_is_slow(how: str, copies: Path, tmp_path: Path) -> None:
    """A run that is interrupted while its output is not read leaves nothing."""
    with session([*RUN_LOCAL, str(copies)], tmp_path) as it:
        interrupt_at(it, "dedup", how, seconds=0.3)


@in_turn(
    2,
    step=["mapper", "join", "prune", "reducer", "hot bucket", "sleep"],
    how=["kill -9", "Ctrl-C", "kill"],
)
def test_in_any_step(
    step: str, how: str, some_seconds: Path, hot_file: Path, tmp_path: Path
) -> None:
    """An interrupted step leaves nothing; after kill -9, the next run removes the folder."""
    path = path_with_other_sort(tmp_path, "pairs.0", "exec sleep 1000")
    file = {"reducer": hot_file, "hot bucket": hot_file, "sleep": VIDEOS}.get(step, some_seconds)
    flags = [] if step in ("mapper", "join") else IN_FILES
    flags = [*flags, "--bands=1", "--rows=1"] if step == "hot bucket" else flags
    word, seconds = ("reducer", 1) if step == "hot bucket" else (step, 0)
    with session([*RUN_LOCAL, *flags, "--jobs", "2", str(file)], tmp_path, PATH=path) as it:
        if how != "kill -9":
            interrupt_at(it, word, how, seconds)
            return
        it.wait_for(word, seconds)
        if step == "sleep":  # what is left is of the run that is at work
            assert len(run([*RUN_LOCAL, VIDEOS], tmp_path).left) == 1
        os.kill(it.process.pid, signal.SIGKILL)
        assert it.ended() == -signal.SIGKILL
        assert len(os.listdir(it.tmp / "tmpdir")) == 1
        assert run([*RUN_LOCAL, VIDEOS], tmp_path).left == []


def test_kill_9_while_a_reducer_sorts(large_bucket: Path, tmp_path: Path) -> None:
    """After kill -9 of a reducer that sorts a large bucket in a child process, the child ends."""
    path = path_with_sort(tmp_path, "#!/bin/sh\nexec sleep 1000\n")
    with (
        large_bucket.open("rb") as stdin,
        session(SORTING, tmp_path, stdin.fileno(), PATH=path) as it,
    ):
        it.wait_for("sleep")
        os.kill(it.process.pid, signal.SIGKILL)
        assert it.ended() == -signal.SIGKILL


def test_a_script_by_itself(tmp_path: Path) -> None:
    with session(MAPPER, tmp_path, subprocess.PIPE) as it:
        time.sleep(1)
        interrupt(it, "Ctrl-C")
        assert it.ended_clean() in (130, -signal.SIGINT)
        assert it.stderr() == ""


@in_turn(
    1,
    words=[
        "example --records 10000",
        "convert --input text long.txt",
        "passages --input text --output kept long.txt",
        "run --output kept long.txt",
        "documents --output lines long.txt",
    ],
    how=["Ctrl-C", "kill"],
)
def test_while_nobody_reads_its_output(how: str, words: str, tmp_path: Path) -> None:
    """What the reader of a pipe has not taken is dropped: it may never take it."""
    with open(tmp_path / "long.txt", "w") as file:
        file.writelines(
            f"r{n} {' '.join(str(n * 100 + i) for i in range(99))}\n" for n in range(999)
        )
    command = [str(tmp_path / word) if word == "long.txt" else word for word in words.split()]
    with session([*NEARDUP, *command], tmp_path) as it:
        assert it.process.stdout is not None
        pipe, end = it.process.stdout.fileno(), time.monotonic() + PATIENCE
        waiting, before = array("i", [0]), -1
        while (waiting[0] < 4096 or waiting[0] != before) and time.monotonic() < end:
            before = waiting[0]
            time.sleep(0.2)
            fcntl.ioctl(pipe, termios.FIONREAD, waiting)
        assert waiting[0] >= 4096, it.stderr()
        assert it.process.poll() is None
        code = interrupt(it, how)
        assert it.ended_clean() in (code, -signal.SIGTERM)  # where SIGTERM has nothing to clean up


def test_ctrl_c_while_numpy_is_loaded(tmp_path: Path) -> None:
    """Ctrl-C while numpy is loaded ends the program without a traceback."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Now:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.startswith('numpy.'):\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Now())\n"
    )
    result = run(MAPPER, tmp_path, PYTHONPATH=str(tmp_path))
    assert result.code in (130, -signal.SIGINT)
    assert result.err == ""


# A stage that fails.


STARTS = {
    "run_local.sh": [*RUN_LOCAL, VIDEOS],
    "mapper.py": [*MAPPER, VIDEOS],
    "tune": [*NEARDUP, "tune", VIDEOS],
    "documents": [*NEARDUP, "documents", ROOT / "docs"],
}


@pytest.mark.parametrize("name", STARTS)
def test_ctrl_c_at_any_moment_of_the_start(name: str, tmp_path: Path) -> None:
    """From the first line of ours on, Ctrl-C prints no traceback, also while modules are loaded."""
    rng = random.Random(name)
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "tmpdir").mkdir()
        with session(list(map(str, STARTS[name])), folder) as it:
            status, caught = Path(f"/proc/{it.process.pid}/status"), False
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end and it.process.poll() is None:
                mask = int(re.findall(r"^SigCgt:\s*(\w+)", status.read_text(), re.M)[0], 16)
                python = "python" in Path(f"/proc/{it.process.pid}/comm").read_text()
                now = python and bool(mask & 1 << signal.SIGINT - 1)
                if caught and not now:  # Python has begun, and the program has silenced Ctrl-C
                    break
                caught = now
            time.sleep(rng.uniform(0, 0.6))
            with suppress(ProcessLookupError):
                os.killpg(it.process.pid, signal.SIGINT)
            assert it.ended() in (0, 130, -signal.SIGINT)  # and prints no traceback


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'sort: no luck' >&2; exit 2", "sort: no luck"),
        ('SORT "$@"; exit 2', "run_local.sh: sort ended with status 2"),
        ('SORT "$@" | head -n 100; kill -PIPE $$', "sort ended with signal 13: Broken pipe"),
    ],
    ids=["at once", "after all its lines", "as if nobody read"],
)
def test_a_sort_that_fails(script: str, said: str, tmp_path: Path) -> None:
    """A run fails if a `sort` fails, even after it has printed all or some of its lines."""
    script = script.replace("SORT", shutil.which("sort") or "sort")
    path = path_with_other_sort(tmp_path, "pairs.0", script)
    result = run([*RUN_LOCAL, *IN_FILES, "--jobs", "2", VIDEOS], tmp_path, PATH=path)
    assert (result.code, result.left) == (1, [])
    assert said in result.err


def test_a_reader_that_has_all_it_wants(copies: Path, tmp_path: Path) -> None:
    """A run succeeds and leaves nothing if its reader closes the pipe after one line."""
    script = '"$@" | head -n 1; exit ${PIPESTATUS[0]}'
    result = run(["bash", "-c", script, "-", *RUN_LOCAL, copies], tmp_path)
    assert (result.code, result.left) == (0, [])
    assert result.out == b"copy000000\tcopy000001\t1.000000\n"


def test_a_reducer_whose_own_sort_fails(large_bucket: Path, tmp_path: Path) -> None:
    """A reducer fails if the `sort` that it runs for a large bucket fails."""
    path = path_with_sort(tmp_path, "#!/bin/sh\nexit 2\n")
    refuse(SORTING, tmp_path, "sort", code=1, stdin=large_bucket.read_bytes(), PATH=path)


@pytest.mark.parametrize("victim", ["mapper", "reducer", "sleep"])
def test_a_stage_that_is_killed(
    victim: str, long_file: Path, hot_file: Path, tmp_path: Path
) -> None:
    """If a stage is killed, for example when memory runs out, the run fails and leaves nothing."""
    path = path_with_sort(tmp_path, "#!/bin/sh\nexec sleep 1000\n")
    file = {"mapper": long_file, "reducer": hot_file}.get(victim, VIDEOS)
    with session([*RUN_LOCAL, *IN_FILES, "--jobs", "2", str(file)], tmp_path, PATH=path) as it:
        os.kill(it.wait_for(victim, seconds=0.3), signal.SIGKILL)
        assert it.ended_clean() not in (0, None)
        assert it.process.stdout is not None
        assert it.process.stdout.read() == b""


# On a terminal.


@pytest.mark.parametrize("ctrl_c", [False, True])
def test_on_a_terminal(ctrl_c: bool, long_file: Path, tmp_path: Path) -> None:
    """A run does not take over the terminal, so that `./run_local.sh … | less` works."""
    command = ["bash", "-c", '"$@" | cat', "-", *RUN_LOCAL, str(long_file if ctrl_c else VIDEOS)]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("bash", command, environment(tmp_path))
    shown = bytearray()
    groups = set()
    interrupted = False
    end = time.monotonic() + PATIENCE
    with suppress(OSError):  # Linux says so when the last program has closed its side
        while time.monotonic() < end:
            groups.add(os.tcgetpgrp(terminal))
            shown += os.read(terminal, 65536)
            if ctrl_c and b"/2 " in shown:  # the first progress line
                os.write(terminal, b"\x03")
                ctrl_c, interrupted = False, True
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert groups - {0} == {pid}
    while os.listdir(tmp_path / "tmpdir") and time.monotonic() < end:
        time.sleep(0.01)
    assert os.listdir(tmp_path / "tmpdir") == []
    if interrupted:
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) != 0
    else:
        assert status == 0
        text = re.sub(rb"\r\x1b\[K(?:\[\d/\d \w+\] [^\r]+\r)?", b"", shown)  # progress
        lines = text.replace(b"\r\n", b"\n").splitlines(keepends=True)
        pairs = in_order(b"".join(line for line in lines if line.count(b"\t") == 2))
        assert pairs == ANSWER.read_bytes()
        assert b"790 pairs among 2,000 records" in shown


@pytest.mark.parametrize("flags", [[], ["-o", "answer.tsv"]])
def test_ctrl_c_names_what_is_left(flags: list[str], long_file: Path, tmp_path: Path) -> None:
    answer = a_file(tmp_path / "answer.tsv", "of another run\n")
    flags = [str(answer) if flag == "answer.tsv" else flag for flag in flags]
    with session([*RUN_LOCAL, "--jobs", "2", *flags, str(long_file)], tmp_path) as it:
        it.wait_for("mapper", 0.5)
        interrupt(it, "Ctrl-C")
        code, said = it.ended_clean(), it.stderr()
    left = f"{answer} left as before" if flags else "the answer is not complete"
    assert (code, said) == (130, f"run_local.sh: interrupted; {left}\n")
    assert answer.read_text() == "of another run\n"
