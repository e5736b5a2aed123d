"""A run that fails or is stopped leaves the files of -o and --removed as they were before."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from neardup.runtime.counters import RunFile
from tests.support.cases import crossed
from tests.support.corpus_in_forms import made
from tests.support.engines import IN_FILES, RUN_LOCAL, VIDEOS, refuse, run, succeed
from tests.support.failing import needs_full, small_disk
from tests.support.sessions import interrupt_at, path_with_other_sort, session

KEPT = ["--output=kept"]
OUTPUTS = {"pairs": [*IN_FILES, "-o"], "folder": [*KEPT, "-o"], "removed": [*KEPT, "--removed"]}
STOPS = [("pairs", "pairs"), ("folder", "decided")]
STOPS += [("removed", step) for step in ("pairs", "decided", "reasons")]
AT_EVERY_STEP = [((output, there), step) for output, step in STOPS for there in ("there", "new")]


@pytest.fixture(params=[(output, there) for output in OUTPUTS for there in ("new", "there")])
def before(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[str]]:
    """Yield a run_local.sh for an output; fail if it changes what is there before or adds to it."""
    output, there = request.param
    results = tmp_path / "results"
    file = results / VIDEOS.name
    if there == "there" or output != "folder":
        results.mkdir()
    if there == "there":
        file.write_bytes(b"of yesterday\n")
        (results / f".{file.name}.neardup.json").write_bytes(b'{"neardup": "0.1.0"}\n')
    known = content(results)
    yield [*RUN_LOCAL, *OUTPUTS[output], f"{results}/" if output == "folder" else str(file)]
    assert content(results) == known


def content(folder: Path) -> dict[str, bytes] | None:
    if not folder.exists():
        return None
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_input_that_is_damaged(before: list[str], tmp_path: Path) -> None:
    (tmp_path / "damaged.gz").write_bytes(b"\x1f\x8b\x08 and so on")
    refuse([*before, VIDEOS, tmp_path / "damaged.gz"], tmp_path, code=1)


@pytest.mark.first_case
@pytest.mark.parametrize(("before", "step"), AT_EVERY_STEP, indirect=["before"])
def test_a_sort_that_fails(before: list[str], step: str, tmp_path: Path) -> None:
    path = path_with_other_sort(tmp_path, f"/{step}", "echo no luck >&2; exit 2")
    result = run([*before, VIDEOS], tmp_path, PATH=path)  # kept records may be printed before
    assert (result.code, result.left) == (1, [])
    assert "no luck" in result.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "step", "how"),
    [(*each, ("Ctrl-C", "kill")[i // 2 % 2 ^ i % 2]) for i, each in enumerate(AT_EVERY_STEP)],
    indirect=["before"],
)
def test_interrupted(before: list[str], step: str, how: str, tmp_path: Path) -> None:
    path = path_with_other_sort(tmp_path, f"/{step}", "exec sleep 1000")
    with session([*before, str(VIDEOS)], tmp_path, PATH=path) as it:
        interrupt_at(it, "sleep", how)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["pairs", "reasons"])
def test_kill_9(step: str, folder: Path, tmp_path: Path) -> None:
    """After kill -9, a partial file has another name, and the next run removes it."""
    path = path_with_other_sort(tmp_path, f"/{step}", "exec sleep 1000")
    command = [*RUN_LOCAL, *OUTPUTS["removed"], str(folder / "removed.tsv"), str(VIDEOS)]
    with session(command, tmp_path, PATH=path) as it:
        it.wait_for("sleep")
        os.kill(it.process.pid, signal.SIGKILL)
        assert it.ended() == -signal.SIGKILL
    left = os.listdir(folder)
    assert left == [name for name in left if name.startswith(".neardup.run.")] != []
    succeed(command, tmp_path)
    assert os.listdir(folder) == ["removed.tsv"]
    assert len((folder / "removed.tsv").read_bytes().splitlines()) > 100


@pytest.mark.first_case
@needs_full
@pytest.mark.parametrize("before", [("removed", "there"), ("removed", "new")], indirect=True)
def test_stdout_that_is_full(before: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        result = run([*before, VIDEOS], tmp_path, stdout=full.fileno(), process=True)
    assert (result.code, result.left) == (1, [])
    assert "No space left on device" in result.err


FULL = [(f"--output={output} -o", VIDEOS.name) for output in ("pairs", "removed", "clusters")]
FULL += [("--output=kept -o", name) for name in (VIDEOS.name, "a.csv", "a.parquet", "a.jsonl")]


@pytest.mark.first_case
@needs_full
@pytest.mark.parametrize(("words", "name"), [("--output=kept --removed", VIDEOS.name), *FULL])
def test_a_full_device_is_named(words: str, name: str, tmp_path: Path) -> None:
    path = VIDEOS if name == VIDEOS.name else made(name, tmp_path)
    result = run([*RUN_LOCAL, *words.split(), "/dev/full", path], tmp_path)
    assert (result.code, result.left) == (1, [])
    assert result.err.splitlines()[-1].endswith(": /dev/full: No space left on device")


@pytest.mark.slow
def test_a_full_disk(folder: Path, tmp_path: Path) -> None:
    with small_disk(folder, "8k"):
        (folder / "removed.tsv").write_bytes(b"of yesterday\n")
        command = [*RUN_LOCAL, *OUTPUTS["removed"], folder / "removed.tsv", VIDEOS]
        result = run(command, tmp_path)
        assert (result.code, result.left) == (1, [])
        assert f"{folder}/removed.tsv: No space left on device" in result.err
        assert content(folder) == {"removed.tsv": b"of yesterday\n"}


def test_a_disk_that_is_full_at_the_runs_own_file(data: Path, folder: Path, tmp_path: Path) -> None:
    """If the disk is full when the run's .neardup.json is written, no answer is left either."""
    with small_disk(folder, "12k"):
        result = refuse([*RUN_LOCAL, "-o", folder / "x", data], tmp_path, code=1)
        assert result.err.endswith(f"{folder}/.x.neardup.json: No space left on device\n")
        assert os.listdir(folder) == []


# Names that cannot be written.


@crossed(option=["-o", "--removed"], name=["no/dir/x", "data.txt/x", "/proc/x"])
def test_where_no_file_can_be(option: str, name: str, data: Path, tmp_path: Path) -> None:
    """A name that cannot be written is refused with one message, which names a missing folder."""
    result = run([*RUN_LOCAL, "--output=kept", option, name, data], tmp_path, cwd=tmp_path)
    assert (result.code, result.out, result.left) == (1, b"", [])
    assert name in result.err
    assert len(result.err.splitlines()) == 1
    assert name != "no/dir/x" or result.err.endswith(f"there is no folder {tmp_path}/no/dir\n")


@pytest.mark.parametrize(
    ("option", "letters", "fits"),
    [("-o", 240, True), ("-o", 241, True), ("--removed", 255, True), ("--removed", 256, False)]
    + [("-o", letters, False) for letters in (242, 250, 255, 256)],
)
def test_a_long_name_is_refused_before_the_work_or_not_at_all(
    option: str, letters: int, fits: bool, data: Path, folder: Path, tmp_path: Path
) -> None:
    """-o refuses a name for which .NAME.neardup.json, 14 characters longer, is too long."""
    name = folder / ("x" * letters)
    result = run([*RUN_LOCAL, "--output=kept", option, name, data], tmp_path)
    if fits:
        assert (result.code, name.read_bytes().count(b"\n")) == (0, 4 if option == "-o" else 2)
        assert option != "-o" or RunFile.of(name).counts["records"] == 4
    else:
        assert (result.code, result.out, os.listdir(folder)) == (2, b"", [])
        (message,) = result.err.splitlines()
        assert message.endswith(": the name is too long; use a shorter one")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_folder_that_is_read_only(data: Path, folder: Path, tmp_path: Path) -> None:
    folder.chmod(0o500)
    file = folder / "removed.tsv"
    result = refuse([*RUN_LOCAL, *OUTPUTS["removed"], file, data], tmp_path, code=1)
    assert result.err.endswith(f"--removed {file}: Permission denied\n")
