"""Input that changes while it is read gives no answer; a task finds its place in the input."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

import pytest

from neardup.decisions.kept_lines import Places, kept_of
from neardup.reading.blocks import WHOLE_FILE, InputFile, first_place
from neardup.reading.compressed import BY_SUFFIX, INPUTS, OPENERS, check_names, kind_by_name
from neardup.reading.input_files import Unchanged, format_input_files, is_index, task_place
from neardup.reading.input_format import InputFormat
from neardup.runtime.program import StageError, UsageError
from tests.support.engines import LOCAL, RUN_LOCAL, Command, a_file, run, succeed
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
@pytest.mark.parametrize(
    ("how", "command"),  # both commands call sort in between
    [(how, [*RUN_LOCAL, "--output=kept"]) for how in CHANGES]
    + [(how, [*LOCAL, "--exact"]) for how in ("replaced by as many lines", "removed")],
)
def test_no_answer_of_an_input_that_changed_before_its_second_reading(
    command: Command, how: str, tmp_path: Path
) -> None:
    data = a_file(tmp_path / "data.txt", LINES)
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
    data = a_file(tmp_path / "data.txt", "a 1 2 3\nb 1 2 3\n")
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


# The place of a task.


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
        (["/in/a.txt", "/user/a.txt"], "hdfs://n/user/me/a.txt", "is not in the list"),
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


# The format of a file is given by --input or by its name.


@pytest.mark.parametrize("packed", ["", *OPENERS])
def test_names(packed: str) -> None:
    for suffix, kind in BY_SUFFIX.items():
        for name in (f"a{suffix}", f"/x.y/A b{suffix.upper()}", f"./a.b{suffix}"):
            assert kind_by_name(name + packed) == kind
    for suffix in ("", ".txt", ".log", ".docx", ".1"):
        assert kind_by_name(f"a{suffix}{packed}") is None
    for name in ("-", "jsonl", ".jsonl", "a.csv/part-0", f"part{packed}"):
        assert kind_by_name(name) is None


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ([], "shingles"),
        (["-"], "shingles"),
        (["a.txt", "b"], "shingles"),
        (["a.jsonl", "b.ndjson.gz", "c.json"], "jsonl"),
        (["a.pq", "b.parquet"], "parquet"),
        (["a.arrow", "b.feather"], "arrow"),
        (["a.csv", "b.parquet"], None),
        (["old.parquet", "new.jsonl"], None),
    ],
)
def test_what_is_read_where_nothing_is_said(names: list[str], kind: str | None) -> None:
    if {"b.parquet", "old.parquet", "a.arrow"} & {*names}:
        pytest.importorskip("pyarrow")
    form = InputFormat.of(None, None, None, names=names)
    assert form.input == kind
    for name in names:
        assert form.kind_of(name) == (kind or kind_by_name(name))


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a.jsonl", "b.txt"], "a.jsonl has an extension of jsonl, but b.txt has none of"),
        (["-", "b.csv"], "b.csv has an extension of csv, but - has none of"),
    ],
)
def test_names_that_do_not_agree(names: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        InputFormat.of(None, None, None, names=names)


def test_what_is_said_goes() -> None:
    for kind in INPUTS:
        check_names(kind, ["a.txt", "b", "-", "c.tsv"])
    for kind in ("jsonl", "csv", "tsv"):
        assert InputFormat.of(kind, None, None, names=["a.txt"]).kind_of("a.txt") == kind


def test_a_kind_without_a_reader_is_not_read_as_lines(tmp_path: Path) -> None:
    path = str(tmp_path / "a.orc")
    Path(path).write_bytes(b"1 2\n")
    form = InputFormat.of("text", None, None)._replace(input="orc")
    with pytest.raises(AssertionError, match="orc: cannot be read as lines"):
        form.pieces(path, path, 99, WHOLE_FILE)
    file = InputFile(path, path, 0)
    with pytest.raises(AssertionError, match="orc: cannot be cut as lines"):
        list(kept_of(form, file, 99, Places(io.BytesIO(), file)))


@pytest.mark.parametrize("flags", [("id", None), (None, "text"), ("id", "text")])
@pytest.mark.parametrize("kind", ["shingles", "text"])
def test_lines_have_no_fields(kind: str, flags: tuple) -> None:
    with pytest.raises(UsageError, match=" needs --input jsonl or csv or tsv or parquet"):
        InputFormat.of(kind, None, None, *flags)
