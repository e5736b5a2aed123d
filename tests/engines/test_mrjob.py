"""job.py reads its files or standard input, reports failures, and leaves no files."""

from __future__ import annotations

import bz2
import gzip
import os
import stat
import time
from pathlib import Path

import pytest

from tests.support.engines import (
    ANSWER,
    INLINE,
    LOCAL,
    VIDEOS,
    a_file,
    in_order,
    refuse,
    run,
    succeed,
)
from tests.support.failing import MEASURED
from tests.support.sessions import PATIENCE, interrupt, session

RUNNERS = {"inline": INLINE, "local": LOCAL}
both = pytest.mark.parametrize("command", RUNNERS.values(), ids=RUNNERS)
TWINS = b"a 1 2 3\nb 1 2 3\n"
PAIR = b"a\tb\t1.000000\n"
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


# What it reads.


@pytest.mark.parametrize("name", ["a[1].txt", "*", "-x", "two words", "\udcff.txt", "ä\n.txt"])
def test_a_name_that_is_there_is_no_pattern(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for other in ("a1.txt", "b"):
        (folder / other).write_bytes(b"wrong x\n")
    (folder / name).write_bytes(TWINS + b"bad x\n")
    result = run([*INLINE, "--", name], tmp_path, cwd=folder)
    assert (result.code, result.out, result.left) == (0, PAIR, [])
    assert "wrong" not in result.err
    assert "line 3: not an integer: 'bad x'" in result.err


@pytest.mark.parametrize("flags", [[], ["--scheme=prefix"]], ids=["", "counts first"])
def test_bad_lines_of_standard_input(flags: list[str], tmp_path: Path) -> None:
    """Bad lines of standard input are reported without the name of its temporary copy."""
    result = succeed([*INLINE, *flags, "-"], tmp_path, TWINS + b"bad x\n")
    assert result.out == PAIR
    assert "\nline 3: not an integer: 'bad x'\n" in result.err


def test_a_named_pipe_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = refuse([*INLINE, pipe], tmp_path, code=1)
    assert result.err.endswith(
        f"{pipe}: not a regular file; for a pipe, name - and redirect it to standard input\n"
    )


# Compressed files.


@pytest.mark.slow
@pytest.mark.parametrize(("pack", "suffix"), [(gzip.compress, ".gz"), (bz2.compress, ".bz2")])
def test_a_small_file_that_unpacks_to_a_large_one(pack, suffix: str, tmp_path: Path) -> None:
    path = a_file(tmp_path / f"bomb{suffix}", pack(TWINS + b" " * 200_000_000))
    assert path.stat().st_size < 300_000
    result = run([*MEASURED, *INLINE, path], tmp_path)
    assert (result.code, result.out, result.left) == (0, PAIR, [])
    assert result.count("records") == 2
    assert int(result.err.splitlines()[-1]) < 250_000


@pytest.mark.parametrize("name", ["empty.gz", "empty.bz2"])
def test_a_compressed_file_without_a_byte(name: str, tmp_path: Path) -> None:
    path = a_file(tmp_path / name, b"")
    result = refuse([*INLINE, path], tmp_path, code=1)
    assert result.err.endswith(f"job.py: {path}: damaged: it is empty\n")


# How it fails, and what it leaves.


@pytest.mark.first_case
@pytest.mark.parametrize("flags", [[], ["--scheme=prefix"]], ids=["", "counts first"])
@both
def test_a_failure_leaves_nothing_and_says_its_reason_where_all_else_is_quiet(
    command: list[str], flags: list[str], tmp_path: Path
) -> None:
    path = a_file(tmp_path / "bad.txt", TWINS + b"bad x\n")
    result = run([*command, *flags, "-q", "--strict", path], tmp_path)
    assert (result.code, result.out, result.left, result.locks) == (1, b"", [], [])
    assert result.err == f"job.py: {path}: line 3: not an integer: 'bad x'\n"


@pytest.mark.first_case
@both
def test_a_good_end_leaves_nothing(command: list[str], tmp_path: Path) -> None:
    path = a_file(tmp_path / "twins.txt", TWINS)
    result = succeed([*command, path], tmp_path)
    assert (result.out, result.locks) == (PAIR, [])


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("command", "place"), [(INLINE, "."), (LOCAL, "sub folder")], ids=["inline", "local"]
)
def test_a_folder_for_temporary_files_may_be_relative(
    command: list[str], place: str, tmp_path: Path
) -> None:
    (tmp_path / "sub folder").mkdir()
    (tmp_path / "twins.txt").write_bytes(TWINS)
    before = sorted(os.listdir(tmp_path))
    result = run([*command, "twins.txt"], tmp_path, cwd=tmp_path, TMPDIR=place)
    assert (result.code, result.out) == (0, PAIR), result.err
    assert sorted({*os.listdir(tmp_path)} - {"tmpdir"}) == before
    assert os.listdir(tmp_path / "sub folder") == []


def test_a_folder_for_temporary_files_that_is_a_pattern(tmp_path: Path) -> None:
    """A TMPDIR whose name is a glob pattern is refused, since mrjob would find no files there."""
    (tmp_path / "a[1]").mkdir()
    result = refuse([*INLINE, VIDEOS], tmp_path, code=1, TMPDIR=str(tmp_path / "a[1]"))
    assert result.err.endswith("mrjob takes it as a pattern; set TMPDIR to another folder\n")
    assert os.listdir(tmp_path / "a[1]") == []


@pytest.mark.slow
def test_mrjobs_own_option_for_temporary_files(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    command = [*INLINE, "--local-tmp-dir", tmp_path / "here", VIDEOS]
    result = succeed(command, tmp_path)
    assert str(tmp_path / "here") in result.err
    assert in_order(result.out) == ANSWER.read_bytes()
    assert os.listdir(tmp_path / "here") == []


@pytest.mark.slow
@needs_proc
@both
@pytest.mark.parametrize("how", ["Ctrl-C", "kill"])
def test_an_interrupted_run_leaves_nothing_and_was_private(
    command: list[str], how: str, tmp_path: Path
) -> None:
    """A run interrupted in a mapper leaves nothing, and only its user could read its folder."""
    path = a_file(tmp_path / "many.txt", b"".join(b"v%d %d 2 3\n" % (i, i) for i in range(300_000)))
    with session([*command, path], tmp_path) as it:
        end = time.monotonic() + PATIENCE
        while not list((tmp_path / "tmpdir").glob("*/*/step/000/mapper/*/stderr")):
            assert it.process.poll() is None, it.stderr()
            assert time.monotonic() < end
            time.sleep(0.01)
        (folder,) = (tmp_path / "tmpdir").iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU
        expected = interrupt(it, how)
        assert it.ended_clean() == expected
