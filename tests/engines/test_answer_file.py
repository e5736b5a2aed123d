"""run_local.sh -o FILE writes a complete answer or none, and the run's .neardup.json beside it."""

from __future__ import annotations

import os
import pty
import select
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

import neardup
from neardup.runtime.counters import RunFile
from neardup.verification import OUTPUTS
from tests.support.cases import in_turn
from tests.support.engines import IN_FILES, KEEP, RUN_LOCAL, VIDEOS, environment, run, succeed
from tests.support.failing import DATA
from tests.support.sessions import path_with_sort, session

PAIRS = b"a\tb\t1.000000\na\td\t1.000000\nb\td\t1.000000\n"


@pytest.mark.slow
@in_turn(1, output=list(OUTPUTS), jobs=["1", "2"])
def test_it_has_what_would_be_printed(output: str, jobs: str, folder: Path, tmp_path: Path) -> None:
    flags = [f"--output={output}", f"--jobs={jobs}", VIDEOS]
    printed = succeed([*RUN_LOCAL, *flags], tmp_path)
    result = succeed([*RUN_LOCAL, *flags, "-o", folder / "answer"], tmp_path)
    assert printed.out.count(b"\n") > 100
    assert (folder / "answer").read_bytes() == printed.out
    assert result.out == b""
    found, *others, _ = result.err.splitlines()
    assert found.endswith(f"; wrote {folder}/answer")
    assert [found.partition("; wrote ")[0], *others] == printed.err.splitlines()[:-1]
    assert sorted(os.listdir(folder)) == [".answer.neardup.json", "answer"]


def test_the_runs_own_file(data: Path, folder: Path, tmp_path: Path) -> None:
    words = ["--threshold=0.8", "-o", "results/x.tsv", "data.txt", "-"]
    result = run([*RUN_LOCAL, *words], tmp_path, b"e 7 8\n", cwd=tmp_path)
    assert result.code == 0
    assert (folder / "x.tsv").read_bytes() == PAIRS + b"c\te\t1.000000\n"
    told = RunFile.of(folder / "x.tsv")
    assert "--threshold=0.8" in told.options
    assert told.files == [str(data), "-"]
    asked = (told.output, told.threshold, told.measure, told.scheme, told.program, told.version)
    assert asked == ("pairs", "4/5", "jaccard", "minhash", "run_local.sh", neardup.__version__)
    assert told.promise in result.err
    assert told.counts["records"] == result.count("records") == 5
    assert told.counts["bad lines: not an integer"] == result.count("bad lines") == 1
    assert told.counts["unique pairs"] == result.count("unique pairs") == 4
    assert list(told.seconds) == ["parse", "join", "dedup"]
    assert min(told.seconds.values()) >= 0


def test_a_dash_is_standard_output(data: Path, tmp_path: Path) -> None:
    before = os.listdir(tmp_path)
    assert succeed([*RUN_LOCAL, "-o", "-", data], tmp_path, cwd=tmp_path).out == PAIRS
    assert set(os.listdir(tmp_path)) - set(before) <= {"tmpdir"}


@pytest.mark.slow
def test_what_is_no_file_gets_none_beside_it(data: Path, tmp_path: Path) -> None:
    line = f"{shlex.join(RUN_LOCAL)} -o >(cat >&3) {shlex.quote(str(data))} 2>/dev/null"
    result = run(["bash", "-c", f"{{ {line}; }} 3>&1"], tmp_path)
    assert (result.code, result.out) == (0, PAIRS)
    assert succeed([*RUN_LOCAL, "-o", os.devnull, data], tmp_path).out == b""
    assert not os.path.exists(os.path.join(os.path.dirname(os.devnull), ".null.neardup.json"))


REFUSED = {
    "-o=": "-o: expected the name of a file, got ''",
    "-o results": "-o results: is the name of a folder; name a file in it",
    "-o link": "-o link: is an input; name another file",
    "-o taken": "-o taken: the file of the run's options .taken.neardup.json: is a directory; "
    "name a file in it",
    "-o old": "-o old: the file of the run's options .old.neardup.json: is an input; name "
    "another file",
    "-o stdout": "-o stdout: standard output is written there; name another file",
}


def test_the_runs_own_file_takes_the_place_of_no_other(folder: Path, tmp_path: Path) -> None:
    own, new = folder / ".neardup.json", tmp_path / "new.jsonl"
    for path in own, new:
        path.write_bytes(b'{"id": "a", "text": "to be"}\n')
    command = [*RUN_LOCAL, "--output=kept", "-o"]
    result = run([*command, f"{tmp_path}/other/", own], tmp_path)
    assert (result.code, (tmp_path / "other").exists()) == (2, False)
    assert "the run's options are written to" in result.err
    result = run([*command, f"{folder}/", "--against", own, new], tmp_path)
    assert result.code == 2
    assert f"the file of the run's options {own}: is an input; name another file" in result.err
    assert own.read_bytes() == new.read_bytes()
    assert os.listdir(folder) == [".neardup.json"]


@pytest.mark.slow
@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused(words: str, data: Path, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("data.txt")
    (tmp_path / ".taken.neardup.json").mkdir()
    (tmp_path / "old.txt").write_bytes(DATA)
    (tmp_path / ".old.neardup.json").symlink_to("old.txt")
    there = set(os.listdir(tmp_path))
    flags = ["-o", ""] if words == "-o=" else words.split()
    command = [*RUN_LOCAL, *flags, "data.txt", "old.txt"]
    with open(tmp_path / "stdout", "wb") as stdout:
        result = run(command, tmp_path, cwd=tmp_path, stdout=stdout.fileno(), process=True)
    assert result.code == 2
    assert result.err == f"run_local.sh: {REFUSED[words]}\n"
    assert data.read_bytes() == (tmp_path / ".old.neardup.json").read_bytes() == DATA
    assert set(os.listdir(tmp_path)) - there <= {"stdout", "tmpdir"}
    assert os.listdir(folder) == []
    assert not result.left


@pytest.mark.first_case
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_an_empty_file_has_not_had_the_header(suffix: str, tmp_path: Path) -> None:
    mark = "," if suffix == "csv" else "\t"
    table = f"id{mark}text\na{mark}to be\nb{mark}to be\n".encode()
    names = []
    for i, data in enumerate((b"", table, b"", table.replace(b"to", b"or"))):
        names.append(tmp_path / f"{i}.{suffix}")
        names[-1].write_bytes(data)
    clean = tmp_path / f"clean.{suffix}"
    kept = f"id{mark}text\na{mark}to be\na{mark}or be\n".encode()
    flags = ["--output=kept", *names]
    assert succeed([*RUN_LOCAL, "-o", clean, *flags], tmp_path).out == b""
    assert clean.read_bytes() == kept
    succeed([*RUN_LOCAL, "-o", f"{tmp_path}/each/", *flags], tmp_path)
    headers = [(tmp_path / "each" / name.name).read_bytes().count(b"id") for name in names]
    assert headers == [0, 1, 0, 1]


def test_nobody_elses_file_is_replaced_by_the_runs_own(folder: Path, tmp_path: Path) -> None:
    own = folder / ".x.tsv.neardup.json"
    own.write_bytes(b'{"name": "mine"}\n')
    result = run([*RUN_LOCAL, "-o", folder / "x.tsv", VIDEOS], tmp_path)
    assert (result.code, result.out) == (2, b"")
    assert f"its options to {own}, a file of another program" in result.err
    assert own.read_bytes() == b'{"name": "mine"}\n'
    assert os.listdir(folder) == [own.name]


@pytest.mark.slow
def test_what_a_killed_run_has_left_beside_the_answer_is_removed(
    data: Path, folder: Path, tmp_path: Path
) -> None:
    path = path_with_sort(tmp_path, "#!/bin/sh\nexec sleep 1000\n")
    for words in ([*IN_FILES, "-o", f"{folder}/x"], ["--output=kept", "-o", f"{folder}/"]):
        with session([*RUN_LOCAL, *words, str(data)], tmp_path, PATH=path) as it:
            it.wait_for("sleep")
            os.killpg(it.process.pid, signal.SIGKILL)
            it.process.wait(60)
    (folder / "neardup.run.x").mkdir()
    (folder / ".neardup.run.mine").mkdir()  # by a user
    assert len(os.listdir(folder)) in (3, 4)
    succeed([*RUN_LOCAL, "-o", folder / "y", data], tmp_path)
    assert sorted(os.listdir(folder)) == [
        ".neardup.run.mine",
        ".y.neardup.json",
        "neardup.run.x",
        "y",
    ]


@pytest.mark.first_case
@in_turn(1, to=["stdout", "-", "its name", "step.py keep"], kind=["parquet", "arrow"])
def test_tables_are_refused_by_a_terminal_before_the_work(
    to: str, kind: str, tmp_path: Path
) -> None:
    files = pytest.importorskip("tests.support.typed_tables")
    corpus, decided = tmp_path / f"corpus.{kind}", tmp_path / "decided.tsv"
    files.by_pyarrow(corpus)
    decided.write_bytes(b"")
    master, terminal = pty.openpty()
    try:
        name = {"stdout": [], "-": ["-o", "-"], "its name": ["-o", os.ttyname(terminal)]}
        command = [*RUN_LOCAL, "--output=kept", *name.get(to, []), corpus]
        if to == "step.py keep":
            command = [*KEEP, "--decided", decided, f"--input={kind}", corpus]
        result = subprocess.run(
            list(map(str, command)),
            stdout=subprocess.DEVNULL if to == "its name" else terminal,
            stderr=subprocess.PIPE,
            env=environment(tmp_path),
        )
        shown, _, _ = select.select([master], [], [], 0)
    finally:
        os.close(terminal)
        os.close(master)
    assert result.returncode == 2
    told = f"cannot print {kind.title()} on a terminal; write a file: > FILE.{kind}"
    assert told.encode() in result.stderr
    assert b"records" not in result.stderr
    assert not shown
