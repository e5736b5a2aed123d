"""run_local.sh handles named pipes, ignored signals and full disks, within bounded memory."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.engines import ANSWER, IN_FILES, RUN_LOCAL, VIDEOS, program, run
from tests.support.sessions import session

GOOD = b"a 1 2 3 4 5\nb 1 2 3 4 5\nc 7 8 9\n"


@contextmanager
def named_pipe(path: Path, data: bytes) -> Iterator[Path]:
    """Yield a named pipe to which a thread writes `data` once."""
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    yield path
    writer.join(10)
    assert not writer.is_alive()


@pytest.mark.parametrize(("name", "data"), [("p", GOOD), ("p.gz", gzip.compress(GOOD, mtime=0))])
def test_a_named_pipe_is_read_like_a_file(name: str, data: bytes, tmp_path: Path) -> None:
    with named_pipe(tmp_path / name, data) as pipe:
        result = run([*RUN_LOCAL, "--jobs", "2", pipe], tmp_path)
    assert result.code == 0
    assert result.out == b"a\tb\t1.000000\n"
    assert result.count("records") == 3
    assert not result.left


def test_messages_name_a_pipe_as_the_user_does(tmp_path: Path) -> None:
    with named_pipe(tmp_path / "p", GOOD + b"bad x\n") as pipe:
        result = run([*RUN_LOCAL, "--strict", pipe], tmp_path)
    assert result.code == 1
    assert result.err == f"run_local.sh: {pipe}: line 4: not an integer: 'bad x'\n"


def stuck(*names: str | Path) -> str:
    """Return the start of the message for two names of one pipe, which can be read only once."""
    return f"run_local.sh: {names[-1]}: the same as {names[0]}, and can be read only once"


def test_a_pipe_that_is_named_twice(tmp_path: Path) -> None:
    pipe, link = tmp_path / "p", tmp_path / "link"
    os.mkfifo(pipe)
    os.link(pipe, link)
    result = run([*RUN_LOCAL, pipe, pipe], tmp_path)
    said = f"run_local.sh: {pipe}: named twice, and can be read only once; name it once\n"
    assert (result.code, result.err) == (2, said)
    result = run([*RUN_LOCAL, pipe, link], tmp_path)
    assert (result.code, result.err) == (2, stuck(pipe, link) + "; name it once\n")
    assert not result.left


@pytest.mark.first_case
@pytest.mark.parametrize("second", ["/dev/stdin", "/dev/fd/0"])
def test_standard_input_by_two_names(second: str, tmp_path: Path) -> None:
    result = run([*RUN_LOCAL, "-", second], tmp_path, GOOD, process=True)  # by a pipe
    assert (result.code, result.err) == (2, stuck("-", second) + "; name it once\n")


def test_what_can_be_read_twice_may_be_named_twice(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_bytes(GOOD)
    files = [tmp_path / "good.txt", os.devnull, tmp_path / "good.txt", os.devnull]
    result = run([*RUN_LOCAL, *files], tmp_path)
    assert result.code == 0
    assert result.count("records") == 6


@pytest.mark.slow
def test_a_name_that_looks_like_an_option(tmp_path: Path) -> None:
    (tmp_path / "-x.txt").write_bytes(GOOD)
    for words in (["--", "-x.txt"], ["--strict", "--", "-x.txt"], ["-", "--", "-x.txt"]):
        result = run([*RUN_LOCAL, *words], tmp_path, b"d 7 8 9\n", cwd=tmp_path)
        assert result.code == 0, result.err
        assert result.out.startswith(b"a\tb\t1.000000\n")
        assert result.count("records") == 3 + ("-" in words)


@pytest.mark.slow
def test_no_more_workers_than_there_is_work(tmp_path: Path) -> None:
    """With --jobs 999, only as many workers start as there is work, so few files are made."""
    sort = shutil.which("sort")
    script = f'ls "${{TMPDIR}}" >>{tmp_path}/files; exec {sort} "$@"'
    folder = program(tmp_path / "bin" / "sort", script).parent
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    result = run([*RUN_LOCAL, *IN_FILES, "--jobs", "999", "-"], tmp_path, GOOD, PATH=path)
    assert result.code == 0
    assert result.out == b"a\tb\t1.000000\n"
    files = (tmp_path / "files").read_text().split()
    assert 1 < sum(name.startswith("pairs.") for name in files) < 20
    assert len(files) < 500


def limited(kibibytes: int) -> list[str]:
    """Return the start of a command whose files cannot be larger than `kibibytes`."""
    return ["bash", "-c", f'ulimit -f {kibibytes}; exec "$@"', "-"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kibibytes", "words", "end"),
    [
        (100, str(VIDEOS), ""),
        (1, "-", "/input.0"),
        # 640,000 bytes of keys, and 960,000 once they are pruned
        (800, "--jobs=1 --bands=10 --rows=1 equal.txt", ""),
    ],
    ids=["a file", "standard input", "keys that are known"],
)
def test_a_full_working_folder_is_named(
    kibibytes: int, words: str, end: str, tmp_path: Path
) -> None:
    """If a temporary file exceeds the limit on file sizes, the run fails and names its folder."""
    (tmp_path / "equal.txt").write_bytes(b"".join(b"%d 1 2 3\n" % i for i in range(4000)))
    command = [*limited(kibibytes), *RUN_LOCAL, *words.split()]
    result = run(command, tmp_path, GOOD * 99, cwd=tmp_path)
    assert (result.code, result.out, result.left) == (1, b"", [])
    assert f"run_local.sh: {tmp_path / 'tmpdir' / 'neardup.'}" in result.err
    assert result.err.endswith(f"{end}: File too large\n")


@pytest.mark.slow
def test_a_hangup_that_is_ignored_stays_so(tmp_path: Path) -> None:
    """An ignored SIGHUP, as under nohup, stays ignored when the terminal closes."""
    long = tmp_path / "long.txt"
    long.write_bytes(VIDEOS.read_bytes() * 40)
    command = ["bash", "-c", 'trap "" HUP; exec "$@"', "-", *RUN_LOCAL, "--jobs", "2", str(long)]
    with session(command, tmp_path) as it:
        it.wait_for("mapper", seconds=0.1)
        os.killpg(it.process.pid, signal.SIGHUP)
        assert it.ended_clean() == 0
        assert it.process.stdout is not None
        assert it.process.stdout.read() == ANSWER.read_bytes()


@pytest.mark.slow
def test_children_that_the_system_would_reap(tmp_path: Path) -> None:
    """A run works under a supervisor that starts it with SIGCHLD ignored."""
    start = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    result = run([sys.executable, "-c", start, *RUN_LOCAL, VIDEOS], tmp_path)
    assert result.code == 0
    assert result.out == ANSWER.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("how", "most"), [(IN_FILES, 450_000), (["--memory=150M"], 225_000)])
def test_many_bands_and_tiny_records_stay_in_bounds(
    how: list[str], most: int, tmp_path: Path
) -> None:
    """With 200 bands, the keys exceed an input of tiny records; `most` is in KiB."""
    path = tmp_path / "tiny.txt"
    path.write_bytes(b"".join(b"v%d %d %d\n" % (i, i // 2, i // 2 + 1) for i in range(30_000)))
    peak = "import os, sys; p = os.spawnv(os.P_WAIT, sys.argv[1], sys.argv[1:]); import resource; "
    peak += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
    flags = ["--jobs=1", "--bands=200", "--rows=1", *how]
    result = run([sys.executable, "-c", peak, *RUN_LOCAL, *flags, path], tmp_path)
    assert len(result.out.splitlines()) == 15_000
    assert int(result.err.splitlines()[-1]) < most
