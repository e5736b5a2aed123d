"""Input that changes before it is read a second time gives a message and no answer."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from neardup.reading.input_files import Unchanged, is_index
from neardup.runtime.program import StageError
from tests.support.engines import LOCAL, RUN_LOCAL, Command, run, succeed
from tests.support.sessions import path_with_sort

LINES = "".join(f"a{i} {i} {i + 1} {i + 2}\nb{i} {i} {i + 1} {i + 2}\n" for i in range(0, 999, 5))
CHANGES = {
    "replaced by as many lines": "printf '%s' \"$(sed 's/^./x/' {0})\" > {0}.new; mv {0}.new {0}",
    "cut short": "head -c 500 {0} > {0}.new; cat {0}.new > {0}",
    "grown": "echo z 1 2 3 >> {0}",
    "written again": "sed 's/^./x/' {0} > {0}.new; cat {0}.new > {0}",
    "removed": "rm {0}",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize(
    "command",
    [[*RUN_LOCAL, "--output=kept"], [*LOCAL, "--exact"]],  # which both call sort in between
    ids=["run_local", "mrjob local"],
)
def test_no_answer_of_an_input_that_changed_before_its_second_reading(
    command: Command, how: str, tmp_path: Path
) -> None:
    data = tmp_path / "data.txt"
    data.write_text(LINES)
    expected = succeed([*command, data], tmp_path).out
    assert 0 < len(expected) < len(LINES)  # some of the lines, or pairs of them
    change, sort = CHANGES[how].format(data), shutil.which("sort")
    once = f"[ -e {tmp_path}/done ] || {{ touch {tmp_path}/done; {change}; }}"
    path = path_with_sort(tmp_path, f'#!/bin/sh\n{once}\nexec {sort} "$@"\n')
    result = run([*command, data], tmp_path, PATH=path)
    assert (result.code, result.out) == (1, b"")
    assert f"{data}: changed while it was read; run again" in result.err
    assert not result.left


def test_the_answer_file_stays_as_it_was(tmp_path: Path) -> None:
    data, answer = tmp_path / "data.txt", tmp_path / "answer"
    data.write_text(LINES)
    answer.write_text("before")
    sort = shutil.which("sort")
    path = path_with_sort(tmp_path, f'#!/bin/sh\necho z 1 2 3 >> {data}\nexec {sort} "$@"\n')
    command = [*RUN_LOCAL, "--output=kept", "-o", answer, data]
    assert run(command, tmp_path, PATH=path).code == 1
    assert answer.read_text() == "before"
    assert [name for name in os.listdir(tmp_path) if "answer" in name] == ["answer"]


def test_a_file_of_the_same_size_and_time_is_another_one(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    data.write_text("a 1 2\n")
    unchanged = Unchanged([str(data), "-", os.devnull])
    unchanged.check()
    other.write_text("b 1 2\n")
    shutil.copystat(data, other)
    other.replace(data)
    with pytest.raises(StageError, match="data: changed while it was read"):
        unchanged.check()


@pytest.mark.slow
def test_a_touched_input_that_is_read_once_gives_its_answer(tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("a 1 2 3\nb 1 2 3\n")
    sort = shutil.which("sort")
    path = path_with_sort(tmp_path, f'#!/bin/sh\ntouch {data}\nexec {sort} "$@"\n')
    for output in "pairs", "removed", "clusters":
        assert succeed([*RUN_LOCAL, f"--output={output}", data], tmp_path, PATH=path).out


def test_a_folder_that_this_user_may_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a folder that cannot be read, `is_index` raises an error, since it may be an index."""
    (tmp_path / "file").touch()
    assert not is_index(tmp_path)
    assert not is_index(tmp_path / "file")
    assert not is_index(tmp_path / "none")
    assert not is_index("a\0")

    def closed(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "stat", closed)
    with pytest.raises(PermissionError) as error:
        is_index(tmp_path)
    assert error.value.filename == tmp_path
