"""`neardup passages --work DIR` goes on after SIGKILL, and does no step again that was done."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from neardup.engines.local import work_folder
from neardup.runtime import program
from neardup.tools.documents import passages
from tests.engines.test_work_folder import OURS, goes_on_after_a_full_disk, steps
from tests.support.engines import NEARDUP, refuse, succeed

pytestmark = pytest.mark.slow
PASSAGES = [*NEARDUP, "passages", "--length=5"]
FILES = 130  # each is a block; a part has 64


def killed_at_the_second_step(words: list[str], out: Path) -> int:
    """Run `passages` in a child process; return how it ended.

    Its process group is killed when one step is done, and the files of another are written.
    """
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            left, commit = 1, work_folder.RunWork.commit

            def last(*given: Any) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    os.killpg(0, signal.SIGKILL)
                commit(*given)

            work_folder.RunWork.commit = last  # type: ignore[method-assign]
            sys.argv = ["passages", *words, "-o", str(out)]
            os._exit(program.run("neardup passages", passages.main))
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return files of texts with passages, one with a bad line and a row without an id."""
    folder, dice = tmp_path_factory.mktemp("files"), random.Random(4)
    words = [str(number) for number in range(40)]
    shared = [" ".join(dice.choices(words, k=9)) for _ in range(30)]
    for file in range(FILES):
        texts = [" ".join(dice.choices([*words, *shared], k=7)) for _ in range(3)]
        rows = [{"id": f"{file}-{i}", "text": text} for i, text in enumerate(texts)]
        more = '{"id": 1}\n{"text": "1 2 3 4 5 6"}\n' * (file == 99)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{file:03}.jsonl").write_text(lines + more)
    return sorted(map(str, folder.iterdir()))


def counts(err: str) -> list[str]:
    return [line for line in err.splitlines() if "--work" not in line and "seconds" not in line]


FIRST = [("texts", 0), ("texts", 1), ("texts", 2), ("words", 0), ("buckets", 0), ("by_place", 0)]
AGAIN = [("cut", 0), ("buckets", 1), ("by_place", 1), ("cut", 1)]


@pytest.mark.parametrize(
    ("output", "last"),
    [
        (["--places"], [("found", 0)]),
        (["--output=kept", "--jobs=2"], AGAIN),
        (["--output=marked"], [("found", 0)]),
    ],
    ids=["places", "kept", "marked"],
)
def test_killed_at_the_end_of_each_step(
    output: list[str],
    last: list[tuple[str, int]],
    files: list[str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The same line goes on, with the same bytes and counts; each step ends once."""
    whole = succeed([*PASSAGES, *output, *files], tmp_path)
    assert whole.out
    work, out = tmp_path / "w", tmp_path / "out"
    words = ["--length=5", *output, f"--work={work}", "--keep-work", *files]
    kills = 0
    while (code := killed_at_the_second_step(words, out)) == -signal.SIGKILL:
        kills += 1
        assert not out.exists()
        assert len(steps(work, "done")) == kills
    assert code == 0
    assert out.read_bytes() == whole.out
    said = capfd.readouterr().err
    assert counts(said)[-2:] == counts(whole.err)[-2:]
    assert said.count("99.jsonl: line 4: no text") == 2  # the first kill was before its part's end
    assert steps(work, "done") == [*FIRST, *last]
    again = succeed([*PASSAGES, *words[1:]], tmp_path)
    assert again.out == whole.out
    assert steps(work, "done") == [*FIRST, *last]


def test_the_folder_is_removed_at_the_end(files: list[str], tmp_path: Path) -> None:
    result = succeed([*PASSAGES, "--work", tmp_path / "w", *files], tmp_path)
    assert result.out == succeed([*PASSAGES, *files], tmp_path).out
    assert result.out
    assert not (tmp_path / "w").exists()


def begun(files: list[str], tmp_path: Path) -> tuple[list[Any], Path, Path]:
    """Make a run that is kept; return its command, its folder and its first input."""
    (tmp_path / "in").mkdir()
    paths = [shutil.copy2(file, tmp_path / "in") for file in files]
    work = tmp_path / "w"
    command = [*PASSAGES, "--work", work, "--keep-work", *paths]
    succeed(command, tmp_path)
    return command, work, Path(paths[0])


def test_another_run_is_refused(files: list[str], tmp_path: Path) -> None:
    command, work, path = begun(files, tmp_path)
    said = f"--work {work}: belongs to another run, with "
    for flag, differs in {
        "--length=6": "--length=5 where this has --length=6; ",
        "--min-records=2": "--min-records=1 where this has --min-records=2; ",
        "--places": "no where this has --places; ",
        "--clean=digits": "no where this has --clean=digits; ",
        "--output=marked": "--output=passages where this has --output=marked; ",
    }.items():
        anew = f"rm -r {work}/{OURS}"
        refused = refuse([*command, flag], tmp_path, said + differs)
        assert refused.err.rstrip().endswith(anew)
    refuse([*command[:-1]], tmp_path, f"--work {work}: belongs to another run, of ")
    done = steps(work, "done")
    succeed([*command, "--by=count", "--jobs=2"], tmp_path)  # only the last pass depends on it
    assert steps(work, "done") == done
    with path.open("ab") as file:
        file.write(b'{"id": 0, "text": "1"}\n')
    refuse(command, tmp_path, f"{path}: has changed since the run in --work {work} began: its size")


def test_folders_and_flags_that_cannot_be_used(files: list[str], tmp_path: Path) -> None:
    folder = Path(files[0]).parent
    lines = f"python3 -m neardup documents --output lines {folder} > documents.jsonl, and name"
    said = f"--work goes on with files of records; make a file of the documents: {lines}"
    refuse([*PASSAGES, "--work", tmp_path / "w", folder], tmp_path, said)
    refuse([*PASSAGES, "--keep-work", *files], tmp_path, "--keep-work keeps the folder of --work")
    refuse([*PASSAGES, "--work=", *files], tmp_path, "--work: expected the name of a file, got ''")
    assert not (tmp_path / "w").exists()


def test_a_full_disk(tmp_path: Path) -> None:
    path, dice = tmp_path / "a.jsonl", random.Random(2)
    texts = [" ".join(str(dice.randrange(50)) for _ in range(999)) for _ in range(300)] * 2
    path.write_text("".join(f'{{"id": {i}, "text": "{text}"}}\n' for i, text in enumerate(texts)))
    goes_on_after_a_full_disk([*PASSAGES, path], 60, tmp_path)
