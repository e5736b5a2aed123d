"""A task finds its part's place in the input, from a list of files and its own file's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from neardup.reading.blocks import first_place
from neardup.reading.input_files import format_input_files, task_place
from neardup.runtime.program import StageError

OLD, NEW = ["/old/a.txt"], ["/in/a.txt", "/in/\u00e9 b.txt", "in/c.txt", "/in/?.txt"]


@pytest.fixture
def listed(tmp_path: Path) -> str:
    (tmp_path / "list").write_bytes(format_input_files(OLD, NEW))
    return str(tmp_path / "list")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("hdfs://node:9000/old/a.txt", first_place(0, 100, new=False)),
        ("hdfs://node:9000/in/a.txt", first_place(0, 100)),
        ("hdfs://node:9000/in/\u00e9 b.txt", first_place(1, 100)),
        ("hdfs://node:9000/in/? b.txt", first_place(1, 100)),  # in a locale without its letters
        ("hdfs://node:9000/user/me/in/c.txt", first_place(2, 100)),
        ("hdfs://node:9000/in/?.txt", first_place(3, 100)),
    ],
)
def test_a_task_finds_its_file(
    name: str, place: int, listed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("mapreduce_map_input_file", name)
    monkeypatch.setenv("mapreduce_map_input_start", "100")
    monkeypatch.setenv("mapreduce_job_working_dir", "hdfs://node:9000/user/me")
    assert task_place(listed) == place


@pytest.mark.parametrize(
    ("new", "name", "said"),
    [
        (["/in/\u00e9.txt", "/in/\u00e8.txt"], "/in/?.txt", "is twice in the list"),
        (["/user/me/a.txt", "a.txt"], "hdfs://n/user/me/a.txt", "is twice in the list"),
        (
            ["/in/a.txt", "/user/a.txt"],
            "hdfs://n/user/me/a.txt",
            "is not in the list",
        ),
    ],
)
def test_a_task_takes_no_file_for_another(
    new: list[str], name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "list").write_bytes(format_input_files([], new))
    monkeypatch.setenv("mapreduce_map_input_file", name)
    monkeypatch.setenv("mapreduce_job_working_dir", "hdfs://n/user/me")
    with pytest.raises(StageError, match=said):
        task_place(str(tmp_path / "list"))


def test_a_file_is_listed_once() -> None:
    with pytest.raises(StageError, match="is named twice"):
        format_input_files(["/in/a.txt"], ["hdfs://n/in/a.txt"])
