"""run_local.sh --output kept --removed FILE writes both answers, and never over an input."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

import pytest

from tests.support.engines import (
    DECIDING,
    NEARDUP,
    ROOT,
    RUN_LOCAL,
    VIDEOS,
    Input,
    counts_of,
    refuse,
    run,
    succeed,
)
from tests.support.failing import DATA

KEPT = b"a 1 2 3\nc 7 8\n\nbad x\n"
REMOVED = b"b\ta\t1.000000\nd\ta\t1.000000\n"
BOTH = [*RUN_LOCAL, "--output=kept", "--removed"]


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
    result = refuse(["bash", "-c", line], tmp_path)
    assert result.err == f"run_local.sh: --removed {words[0]}: is an input; name another file\n"
    assert data.read_bytes() == DATA


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
    flags = ["--scheme=prefix", counts_of([str(data)], [], tmp_path)]
    counts, index = tmp_path / "counts.tsv", tmp_path / "old.index"
    (tmp_path / "old.txt").write_bytes(data.read_bytes() + b"new 1 2\n")
    succeed([*NEARDUP, "index", tmp_path / "old.txt", "--to", index, *flags], tmp_path, cwd=ROOT)
    before = {path: path.read_bytes() for path in (counts, index / "manifest.json")}
    command = [*RUN_LOCAL, *flags, "--output=kept", "--removed", name, "--against", index, data]
    refuse(command, tmp_path, message, cwd=tmp_path)
    assert {path: path.read_bytes() for path in before} == before


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
