"""run_local.sh --removed FILE: if a decision ends early, FILE is complete or unchanged."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cases import crossed
from tests.support.engines import (
    COUNT_TOKENS,
    DECIDING,
    NEARDUP,
    ROOT,
    RUN_LOCAL,
    VIDEOS,
    Input,
    in_order,
    run,
    succeed,
)
from tests.support.failing import needs_full
from tests.support.sessions import EITHER_WAY, interrupt, path_with_sort, session

DATA = b"a 1 2 3\nb 1 2 3\nc 7 8\n\nbad x\nd 3 2 1\n"
KEPT = b"a 1 2 3\nc 7 8\n\nbad x\n"
REMOVED = b"b\ta\t1.000000\nd\ta\t1.000000\n"
BOTH = [*RUN_LOCAL, "--output=kept", "--removed"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.txt"
    path.write_bytes(DATA)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty folder for the file of --removed."""
    path = tmp_path / "results"
    path.mkdir()
    return path


def test_both_in_one_run(data: Path, folder: Path, tmp_path: Path) -> None:
    result = succeed([*BOTH, folder / "removed.tsv", data], tmp_path)
    assert result.out == KEPT
    assert (folder / "removed.tsv").read_bytes() == REMOVED
    assert os.listdir(folder) == ["removed.tsv"]
    assert result.count("records removed") == 2
    assert result.count("records kept") == 2
    assert result.count("bad lines") == 1


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "3"])
def test_they_are_what_each_run_by_itself_prints(jobs: str, folder: Path, tmp_path: Path) -> None:
    command = [*BOTH, folder / "removed.tsv", "--jobs", jobs, "--keep=longest", VIDEOS]
    found = {"kept": succeed(command, tmp_path).out}
    found["removed"] = (folder / "removed.tsv").read_bytes()
    for output, expected in found.items():
        flags = [f"--output={output}", "--keep=longest"]
        assert DECIDING["run_local 2"](Input(b"", [str(VIDEOS)]), flags, tmp_path) == expected


@pytest.mark.slow
def test_names_that_look_like_something_else(tmp_path: Path) -> None:
    for name in ("-x", "a[1].txt", os.fsdecode(b"\xff"), "two words"):
        (tmp_path / name).write_bytes(DATA)
        words = ["--output=kept", f"--removed={name}.tsv", "--", name]
        result = run([*RUN_LOCAL, *words], tmp_path, cwd=tmp_path)
        assert (result.code, result.out) == (0, KEPT), result.err
        assert (tmp_path / f"{name}.tsv").read_bytes() == REMOVED


def test_it_has_the_rights_of_a_new_file_or_of_the_one_before(
    data: Path, folder: Path, tmp_path: Path
) -> None:
    file = folder / "removed.tsv"
    command = ["bash", "-c", 'umask 027; exec "$@"', "-", *BOTH, str(file), str(data)]
    succeed(command, tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    file.chmod(0o604)
    succeed(command, tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o604
    assert file.read_bytes() == REMOVED


@pytest.mark.slow
def test_a_link_stays_a_link(data: Path, folder: Path, tmp_path: Path) -> None:
    (folder / "link").symlink_to("file")
    for _ in range(2):
        succeed([*BOTH, folder / "link", data], tmp_path)
        assert (folder / "link").is_symlink()
        assert (folder / "file").read_bytes() == REMOVED
    assert sorted(os.listdir(folder)) == ["file", "link"]


@pytest.mark.slow
def test_to_a_pipe(data: Path, tmp_path: Path) -> None:
    line = f"{shlex.join(BOTH)} >(cat > removed) {shlex.quote(str(data))}; code=$?; wait $!"
    result = run(["bash", "-c", f"{line}; exit $code"], tmp_path, cwd=tmp_path)
    assert (result.code, result.out) == (0, KEPT)
    assert (tmp_path / "removed").read_bytes() == REMOVED
    result = run([*BOTH, os.devnull, data], tmp_path)
    assert (result.code, result.out) == (0, KEPT)


# What is refused.


@pytest.mark.first_case
@pytest.mark.parametrize("which", ["the input", "a link to it", "the same", "old", "stdin"])
def test_an_input_is_refused(which: str, data: Path, tmp_path: Path) -> None:
    """An input file is refused as --removed FILE, since its records would be lost."""
    other = tmp_path / "other.txt"
    other.write_bytes(DATA)
    (tmp_path / "hard").hardlink_to(data)
    (tmp_path / "soft").symlink_to(data)
    words = {
        "the input": [data, data],
        "a link to it": [tmp_path / "soft", data],
        "the same": [tmp_path / "hard", other, data],
        "old": [data, "--against", data, other],
        "stdin": [data, "-"],
    }[which]
    line = f"{shlex.join(map(str, [*BOTH, *words]))} < {shlex.quote(str(data))}"
    result = run(["bash", "-c", line], tmp_path)
    assert result.code == 2
    assert result.err == f"run_local.sh: --removed {words[0]}: is an input; name another file\n"
    assert result.out == b""
    assert data.read_bytes() == DATA
    assert not result.left


@pytest.mark.parametrize("name", ["no/such/folder/x", "/proc/x", "data.txt/x"])
def test_where_no_file_can_be(name: str, data: Path, tmp_path: Path) -> None:
    """A FILE of --removed that cannot be written is refused with one message."""
    result = run([*BOTH, name, data], tmp_path, cwd=tmp_path)
    assert result.code == 1
    assert result.out == b""
    assert name in result.err
    assert len(result.err.splitlines()) == 1
    assert not result.left


@pytest.mark.parametrize("letters", [255, 256])
def test_a_name_that_is_too_long_is_refused_before_the_work(
    letters: int, data: Path, folder: Path, tmp_path: Path
) -> None:
    name = folder / ("x" * letters)
    result = run([*BOTH, name, data], tmp_path)
    if letters == 255:
        assert (result.code, name.read_bytes()) == (0, REMOVED)
    else:
        assert (result.code, result.out, os.listdir(folder)) == (2, b"", [])
        assert result.err.endswith(": the name is too long; use a shorter one\n")
        assert len(result.err.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_folder_that_is_read_only(data: Path, folder: Path, tmp_path: Path) -> None:
    folder.chmod(0o500)
    result = run([*BOTH, folder / "removed.tsv", data], tmp_path)
    assert (result.code, result.out) == (1, b"")
    assert result.err.endswith(f"--removed {folder / 'removed.tsv'}: Permission denied\n")


REFUSED = {
    "--rule=direct": "--rule needs --output kept or removed, but --output is pairs",
    "--keep=first": "--keep needs --output kept or removed, but --output is pairs",
    "--output=links --keep=longest": "--keep needs --output kept or removed, but --output is",
    "--output=clusters --rule=cluster": "--rule needs --output kept or removed, ",
    "--output=kept --rule=chain": "--rule: 'chain' is not one of direct, cluster",
    "--output=kept --keep=last": "--keep: 'last' is not one of first, longest, smallest",
    "--output=kept --keep=": "--keep: '' is not one of first, longest, smallest",
    "--removed=x": "--removed needs --output kept, but --output is pairs",
    "--output=removed --removed=x": "--removed needs --output kept, but --output is removed",
    "--output=clusters --removed=x": "--removed needs --output kept, but --output is clusters",
    "--between": "--between leaves out pairs of new records, and needs --against",
    "--output=kept --between": "--between leaves out pairs of new records, and needs --against",
    "--against=OLD --output=links": "--against needs --output pairs or kept or removed, but --o",
    "--against=OLD --output=clusters": "--against needs --output pairs or kept or removed, but -",
    "--against=OLD --output=kept --rule=cluster": "--rule cluster cannot be used with "
    "--against; use --rule direct",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_does_not_go_together_is_refused(words: str, data: Path, tmp_path: Path) -> None:
    flags = [word.replace("OLD", str(data)) for word in words.split()]
    result = run([*RUN_LOCAL, *flags, data], tmp_path, cwd=tmp_path)
    assert result.code == 2
    assert result.err.startswith(f"run_local.sh: {REFUSED[words]}")
    assert len(result.err.splitlines()) == 1
    assert result.out == b""
    assert not (tmp_path / "x").exists()
    assert not result.left


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("no.txt", 1, "no.txt: no such file"),
        (".", 1, ".: is a directory"),
        ("", 2, "--against: expected the name of a file"),
    ],
)
def test_old_records_that_are_not_there(
    name: str, code: int, message: str, data: Path, tmp_path: Path
) -> None:
    result = run([*RUN_LOCAL, "--against", name, data], tmp_path, cwd=tmp_path)
    assert (result.code, result.out) == (code, b"")
    assert message in result.err


def test_only_old_records(data: Path, tmp_path: Path) -> None:
    """If the only file is the value of --against, the message asks for a file of new records."""
    result = run([*RUN_LOCAL, "--against", data], tmp_path)
    assert (result.code, result.out) == (2, b"")
    assert "name a file of new ones, too" in result.err


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".", "is a directory; name a file in it"),
        ("-", "standard output is for the answer"),
        ("counts.tsv", "is an input; name another file"),
        ("old.index/manifest.json", "is an input; name another file"),
    ],
)
def test_a_name_that_is_in_danger(name: str, message: str, data: Path, tmp_path: Path) -> None:
    """--removed refuses a folder, standard output and input files; no input file is changed."""
    counts = tmp_path / "counts.tsv"
    lines = in_order(succeed([*COUNT_TOKENS, "map", data], tmp_path).out)
    sums = in_order(succeed([*COUNT_TOKENS, "sum"], tmp_path, lines).out)
    counts.write_bytes(succeed([*COUNT_TOKENS, "order"], tmp_path, sums).out)
    flags = ["--scheme=prefix", f"--counts={counts}"]
    index = tmp_path / "old.index"
    succeed([*NEARDUP, "index", data, "--to", index, *flags], tmp_path, cwd=ROOT)
    before = {path: path.read_bytes() for path in (counts, index / "manifest.json")}
    command = [*RUN_LOCAL, *flags, "--output=kept", "--removed", name, "--against", index, data]
    result = run(command, tmp_path, cwd=tmp_path)
    assert (result.code, result.out) == (2, b"")
    assert message in result.err
    assert {path: path.read_bytes() for path in before} == before


# What fails on the way.


@pytest.fixture(params=["new", "there"])
def before(request: pytest.FixtureRequest, folder: Path) -> Iterator[Path]:
    """Yield the path of --removed; fail if the test changes that file or adds one to its folder."""
    file = folder / "removed.tsv"
    if request.param == "there":
        file.write_bytes(b"of yesterday\n")
    there = os.listdir(folder)
    yield file
    assert os.listdir(folder) == there
    if there:
        assert file.read_bytes() == b"of yesterday\n"


@pytest.mark.first_case
@needs_full
def test_stdout_that_is_full(before: Path, tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        result = run([*BOTH, before, VIDEOS], tmp_path, stdout=full.fileno(), process=True)
    assert result.code == 1
    assert "No space left on device" in result.err
    assert not result.left


@pytest.mark.first_case
@needs_full
@pytest.mark.parametrize("output", ["kept", "removed", "clusters"])
def test_stdout_that_is_full_by_itself(output: str, tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        command = [*RUN_LOCAL, f"--output={output}", VIDEOS]
        result = run(command, tmp_path, stdout=full.fileno(), process=True)
    assert result.code == 1
    assert "No space left on device" in result.err
    assert not result.left


@needs_full
def test_removed_that_cannot_be_written(data: Path, tmp_path: Path) -> None:
    result = run([*BOTH, "/dev/full", data], tmp_path)
    assert result.code == 1
    assert result.err.splitlines()[-1].endswith(": /dev/full: No space left on device")
    assert not result.left


@pytest.mark.slow
def test_a_full_disk(tmp_path: Path) -> None:
    """On a full disk, the run fails and the file of --removed is unchanged."""
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(small)]
    if not shutil.which("mount") or subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        (small / "removed.tsv").write_bytes(b"of yesterday\n")
        result = run([*BOTH, small / "removed.tsv", VIDEOS], tmp_path)
        assert result.code == 1
        assert f"{small}/removed.tsv: No space left on device" in result.err
        assert not result.left
        assert os.listdir(small) == ["removed.tsv"]
        assert (small / "removed.tsv").read_bytes() == b"of yesterday\n"
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_an_input_that_is_damaged(before: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged.gz").write_bytes(b"\x1f\x8b\x08 and so on")
    result = run([*BOTH, before, VIDEOS, tmp_path / "damaged.gz"], tmp_path)
    assert (result.code, result.out) == (1, b"")
    assert not result.left


@pytest.mark.first_case
@crossed("before", step=["pairs", "decided", "reasons"], before=["new", "there"])
def test_a_sort_that_fails(step: str, before: Path, tmp_path: Path) -> None:
    sort = shutil.which("sort")
    script = f'case "$*" in */{step}*) echo no luck >&2; exit 2 ;; esac\nexec {sort} "$@"\n'
    path = path_with_sort(tmp_path, f"#!/bin/sh\n{script}")
    result = run([*BOTH, before, VIDEOS], tmp_path, PATH=path)
    assert result.code == 1
    assert "no luck" in result.err
    assert not result.left


@pytest.mark.slow
@crossed("before", step=["pairs", "decided", "reasons"], how=EITHER_WAY, before=["there", "new"])
def test_interrupted(step: str, how: str, before: Path, tmp_path: Path) -> None:
    sort = shutil.which("sort")
    script = f'case "$*" in */{step}*) exec sleep 1000 ;; *) exec {sort} "$@" ;; esac'
    path = path_with_sort(tmp_path, f"#!/bin/sh\n{script}\n")
    with session([*BOTH, str(before), str(VIDEOS)], tmp_path, PATH=path) as it:
        it.wait_for("sleep")
        code = interrupt(it, how)
        assert it.ended_clean() == code


@pytest.mark.slow
@pytest.mark.parametrize("step", ["pairs", "reasons"])
def test_kill_9(step: str, folder: Path, tmp_path: Path) -> None:
    """After kill -9, a partial file has another name, and the next run removes it."""
    sort = shutil.which("sort")
    script = f'case "$*" in */{step}*) exec sleep 1000 ;; *) exec {sort} "$@" ;; esac'
    path = path_with_sort(tmp_path, f"#!/bin/sh\n{script}\n")
    with session([*BOTH, str(folder / "removed.tsv"), str(VIDEOS)], tmp_path, PATH=path) as it:
        it.wait_for("sleep")
        os.kill(it.process.pid, signal.SIGKILL)
        assert it.ended() == -signal.SIGKILL
    left = os.listdir(folder)
    assert left == [name for name in left if name.startswith(".neardup.run.")] != []
    succeed([*BOTH, folder / "removed.tsv", VIDEOS], tmp_path)
    assert os.listdir(folder) == ["removed.tsv"]
    assert len((folder / "removed.tsv").read_bytes().splitlines()) > 100


@pytest.mark.slow
def test_a_reader_that_has_all_it_wants(folder: Path, tmp_path: Path) -> None:
    """If the reader of the kept lines stops early, all removed lines are still written."""
    path = tmp_path / "many.txt"
    path.write_bytes(
        b"".join(b"%s%06d %d\n" % (c, i, i) for i in range(20_000) for c in (b"v", b"w"))
    )
    script = '"$@" | head -n 1; exit ${PIPESTATUS[0]}'
    result = run(["bash", "-c", script, "-", *BOTH, folder / "removed.tsv", path], tmp_path)
    assert (result.code, result.out) == (0, b"v000000 0\n")
    assert len((folder / "removed.tsv").read_bytes().splitlines()) == 20_000
    assert not result.left


@pytest.mark.parametrize("option", [["-o", "no/dir/x"], ["--removed", "no/dir/x", "-o", "y"]])
def test_a_missing_folder_is_named(option: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a 1 2\n")
    result = run([*RUN_LOCAL, "--output=kept", *option, "a.txt"], tmp_path, cwd=tmp_path)
    assert (result.code, result.out) == (1, b"")
    assert "no/dir/" in result.err
    assert f"there is no folder {tmp_path}/no/dir\n" in result.err
