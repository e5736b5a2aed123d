"""If standard output, input or error fails, nothing is lost silently, and no file is left."""

from __future__ import annotations

import gzip
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from neardup.reading.blocks import TASK_FILE
from tests.support.cases import in_turn, some
from tests.support.engines import (
    COUNT_TOKENS,
    DECIDE,
    DEDUP,
    INLINE,
    KEEP,
    MAPPER,
    REDUCER,
    RUN_LOCAL,
    SHARE_KEYS,
    VIDEOS,
    a_file,
    environment,
    in_order,
    refuse,
    run,
    succeed,
)
from tests.support.failing import GOOD, needs_full

COUNT_MAP, KEEP_NONE = [*COUNT_TOKENS, "map"], [*KEEP, "--decided=/dev/null"]
Stages = dict[str, tuple[list[str], bytes]]


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[str], bytes]]:
    """Return, by name, commands and their standard input; each prints more than a pipe holds."""
    folder = tmp_path_factory.mktemp("stages")
    path = a_file(folder / "copies.txt", b"".join(b"copy%06d 1 2 3 4 5\n" % i for i in range(400)))
    keyed = in_order(succeed([*MAPPER, path], folder).out)
    pairs = in_order(succeed(REDUCER, folder, keyed).out)
    return {
        "mapper": (MAPPER, path.read_bytes()),
        "reducer": (REDUCER, keyed),
        "dedup": (DEDUP, pairs),
        "run_local": ([*RUN_LOCAL, str(path)], b""),
        "inline": ([*INLINE, str(path)], b""),
        **{name: ([*RUN_LOCAL, f"--output={name}", str(path)], b"") for name in DECISIONS},
    }


DECISIONS = ["kept", "removed", "clusters"]
NAMES = ["mapper", "reducer", "dedup", "run_local", "inline"]
SCRIPTS = some("name", NAMES, "mapper", "reducer", "run_local")


@pytest.mark.slow
@needs_full
@pytest.mark.parametrize("name", [*NAMES, *DECISIONS])
def test_a_full_disk(name: str, stages: Stages, tmp_path: Path) -> None:
    command, data = stages[name]
    with open("/dev/full", "wb") as full:
        result = run(command, tmp_path, data, stdout=full.fileno(), process=True)
    assert result.code == 1
    assert "No space left on device" in result.err.splitlines()[-1]
    assert not result.left


@pytest.mark.slow
def test_a_full_disk_without_buffers(tmp_path: Path) -> None:
    """With PYTHONUNBUFFERED=1 and partial writes, a file over the size limit is an error."""
    limited = ["bash", "-c", 'ulimit -f 50; exec "$@" > out', "-", *MAPPER]
    lines = b"".join(VIDEOS.read_bytes().splitlines(keepends=True)[:100])
    result = run(limited, tmp_path, lines, cwd=tmp_path, PYTHONUNBUFFERED="1")
    assert result.code == 1
    assert "File too large" in result.err


@pytest.mark.first_case
@SCRIPTS
def test_a_closed_pipe_is_a_quiet_success(name: str, stages: Stages, tmp_path: Path) -> None:
    command, data = stages[name]
    with (tmp_path / "in").open("wb+") as stdin, (tmp_path / "err").open("wb+") as stderr:
        stdin.write(data)
        stdin.seek(0)
        with subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, env=environment(tmp_path)
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
    """A mapper that cannot report a bad line, since stderr is a closed pipe, fails."""
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


@pytest.mark.slow
@in_turn(2, name=NAMES, closed=["<&-", ">&-", "2>&-"])
def test_closed_from_the_start(name: str, closed: str, stages: Stages, tmp_path: Path) -> None:
    """Without stdout, a script fails with a message; without stderr, it works; no file is left.

    With stdin closed, a script that needs it may do either.
    """
    command, data = stages[name]
    result = run(["bash", "-c", f'exec "$@" {closed}', "-", *command], tmp_path, data)
    if closed == ">&-":  # nothing is lost in silence
        assert result.code == 1
        assert result.err
    elif closed == "2>&-" or not data:
        assert result.code == 0
        assert result.out
    assert not result.left


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [REDUCER, DEDUP, [*DECIDE, "--output=kept"], [*SHARE_KEYS, "reduce"]]
    + [[*COUNT_TOKENS, "sum"], [*MAPPER, "--scheme=prefix", "--counts=/dev/zero", VIDEOS]]
    + [[*MAPPER, "--shared-keys=/dev/zero", VIDEOS], [*KEEP, "--decided=/dev/zero", VIDEOS]]
    + [[*KEEP, "--decided=/dev/null", *zero] for zero in ([], ["/dev/zero"])]
    + [["env", f"{TASK_FILE}=file:///a", *KEEP, "--decided=/dev/null", "--input-files=/dev/zero"]],
    ids=lambda command: " ".join(str(word).rpartition("/")[2] for word in command[1:]),
)
def test_what_never_ends_is_refused(command: list[str], tmp_path: Path) -> None:
    words = ["sh", "-c", 'ulimit -v 4000000; exec "$@" < /dev/zero', "sh", *map(str, command)]
    with open("/dev/null", "wb") as nowhere:
        result = run(words, tmp_path, stdout=nowhere.fileno(), process=True)
    assert result.code == 1
    assert len(result.err.strip().splitlines()) == 1
    assert "out of memory" not in result.err
    assert not result.left


@pytest.mark.slow
def test_a_packed_file_without_a_line_end_is_refused(tmp_path: Path) -> None:
    """A file that unpacks to 1,024 MiB without a line end is refused: it could be many GB."""
    mebibyte = gzip.compress(bytes(1 << 20))
    path = a_file(tmp_path / "zeros.gz", mebibyte * 1100)
    for command in [*MAPPER], [*KEEP, "--decided=/dev/null"]:
        words = ["sh", "-c", 'ulimit -v 4000000; exec "$@" > /dev/null', "sh", *command, path]
        refuse(words, tmp_path, "zeros.gz: line 1: no line end in 1,024 MiB", code=1, process=True)


@pytest.mark.first_case
@pytest.mark.parametrize("to", [">> {0}", "1<> {0}", "< {0} >> {0}", ">> link"])
@pytest.mark.parametrize("command", [[*RUN_LOCAL, "--output=kept"], MAPPER, COUNT_MAP, KEEP_NONE])
def test_standard_output_that_is_an_input(command: list[str], to: str, tmp_path: Path) -> None:
    """The answer was written into the input before that was refused."""
    file = a_file(tmp_path / "file", GOOD)
    (tmp_path / "link").symlink_to(file)
    name = "-" if to.startswith("<") else str(file)
    line = f"{shlex.join(map(str, [*command, name]))} {to.format(file)}"
    result = run(["bash", "-c", line], tmp_path, cwd=tmp_path)
    assert result.code == 2
    assert f"{name}: is standard output, too; write to another file: > NEW" in result.err
    assert file.read_bytes() == GOOD
