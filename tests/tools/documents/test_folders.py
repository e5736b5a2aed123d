"""Tests of `folders` as a program: lines, words, the cache, links, unreadable and many files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neardup.reading import folder_walk
from neardup.reading.decoders import Failure
from neardup.reading.folder_walk import Walk
from neardup.runtime.program import StageError, UsageError
from neardup.tools.documents import folders as command
from neardup.tools.documents.folders import roots
from tests.support.engines import NEARDUP, Result, refuse, run

Here = Callable[..., tuple[str, str]]


def folders(tmp: Path, *words: str | Path) -> Result:
    return run([*NEARDUP, "folders", *words], tmp, XDG_CACHE_HOME=str(tmp / "cache"))


def lines(result: Result) -> list[list[str]]:
    assert result.code == 0, result.err
    return [line.decode().split("\t") for line in result.out.splitlines()]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Return a folder of 20 files, a copy with two more, and entries that must not stop a run."""
    top = tmp_path / "top"
    for i in range(20):
        file = top / "photos" / f"{i % 3}" / f"{i}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"content {i:02}" * (i + 1))
    shutil.copytree(top / "photos", top / "old" / "a copy")
    for name in ("new", "newer"):
        (top / "old" / "a copy" / name).write_text(name)
    (top / "old" / "list.txt").write_text("a list")
    (top / "photos" / "empty").touch()
    (top / "photos" / ".hidden").write_text("x")
    (top / "photos" / "loop").symlink_to(top)
    return top


AROUND = {"a": "12", "b/a": "0", "b/a/b": "12", "b/b/a": "1", "b/b/b": "02"}


def test_who_removes_each_contained_folder_is_told_of_last_copies(tmp_path: Path) -> None:
    """A is in B, which is a folder A of a line above: without both, content 1 would be lost."""
    for folder, names in AROUND.items():
        (tmp_path / "r" / folder).mkdir(parents=True)
        for name in names:
            (tmp_path / "r" / folder / name).write_text(name)
    words = ["--measure=containment", "--threshold=1"]
    found = lines(run([*NEARDUP, "folders", *words, "--no-cache", "r"], tmp_path, cwd=tmp_path))
    assert [line[:2] for line in found] == [
        ["r/b/a", "r/b/b"],
        ["r/a", "r/b/a/b"],
        ["r/b/b/a", "r/a"],
    ]
    doubt = "; A has the last copies of 1 file if the folders A of the lines above are removed"
    assert [line[-1].endswith(doubt) for line in found] == [False, False, True]
    safe = [line[0] for line in found if not line[-1].endswith(doubt)]
    for folder in safe:
        shutil.rmtree(tmp_path / folder)
    left = {path.read_text() for path in (tmp_path / "r").rglob("?") if path.is_file()}
    assert left == {*"012"}


def test_a_copy_is_one_line(top: Path, tmp_path: Path) -> None:
    result = folders(tmp_path, top)
    size = sum(file.stat().st_size for file in (top / "photos").rglob("*.txt"))
    words = "all 20 compared files of B are in A, 2 of A are not in B; B also has, not compared: "
    words += "1 hidden (.hidden), 1 empty (empty), 1 symbolic link (loop)"
    counts = ["20", "2", "0", str(size), "0", "3", "0", words]
    assert lines(result) == [[f"{top}/old/a%20copy", f"{top}/photos", "0.909090", *counts]]
    assert "1 pair among 10 folders\nnot compared: 1 hidden (" in result.err
    assert f"1 empty ({top}/photos/empty)\n" in result.err
    assert folders(tmp_path, "-q", top).err == ""


def test_containment(top: Path, tmp_path: Path) -> None:
    (top / "photos" / "0" / "extra").write_text("not in the copy")
    (found,) = lines(folders(tmp_path, "--measure=containment", top / "old", top / "photos"))
    assert found[:3] == [f"{top}/photos", f"{top}/old/a%20copy", "0.952380"]
    assert found[-1].startswith(
        "20 of 21 compared files of A are in B, 2 of B are not in A; A also"
    )
    whole = lines(folders(tmp_path, "--measure=containment", "--threshold=1", top))
    assert {tuple(line[:2]) for line in whole} == {
        (f"{top}/old/a%20copy/{i}", f"{top}/photos/{i}") for i in range(3)
    }


def test_by_bytes(top: Path, tmp_path: Path) -> None:
    (top / "photos" / "film").write_bytes(bytes(10**6))
    assert len(lines(folders(tmp_path, "--threshold=0.8", top))) == 1
    found = lines(folders(tmp_path, "--by=bytes", top))
    assert [line[0].rpartition("/")[2] for line in found] == ["1", "0", "2"]
    assert {line[2] for line in found} == {"1.000000"}


def test_hard_links_are_copies_of_a_folder(top: Path, tmp_path: Path) -> None:
    shutil.rmtree(top / "old")
    shutil.copytree(top / "photos", top / "linked", copy_function=os.link, symlinks=True)
    (found,) = lines(folders(tmp_path, top))
    assert found[7:10] == ["3", "3", "20"]
    assert found[-1].endswith("; 20 hard links in both, whose removal frees nothing")
    clean = top / "photos" / "0"
    (found,) = lines(folders(tmp_path, clean, top / "linked" / "0"))
    said = "both have the same 7 files; 7 hard links in both, whose removal frees nothing"
    assert found[7:] == ["0", "0", "7", said]


def test_a_folder_that_holds_more_is_not_called_the_same(top: Path, tmp_path: Path) -> None:
    """What was left out below a folder is named in its line and in -o, for either folder."""
    for name in ("x", "y"):
        for number in range(5):
            (tmp_path / name / "sub" / "deep").mkdir(parents=True, exist_ok=True)
            (tmp_path / name / f"{number}").write_text(f"content {number}")
    x, y = tmp_path / "x", tmp_path / "y"
    (found,) = lines(folders(tmp_path, x, y))
    assert found[-1] == "both have the same 5 files"
    (y / ".git").mkdir()
    (y / "sub" / ".env").write_text("secret")
    (y / "sub" / "deep" / "__init__.py").touch()
    (y / "sub" / "a link").symlink_to("nowhere")
    os.mkfifo(y / "pipe")
    (y / "no.pyc").write_text("left out")
    for a, b in ((x, y), (y, x)):
        result = folders(tmp_path, a, b, "--exclude=*.pyc", "-o", tmp_path / "answer.jsonl")
        assert result.code == 0
        row = json.loads((tmp_path / "answer.jsonl").read_text())
        ends = ("left_out_a", "left_out_b") if a == x else ("left_out_b", "left_out_a")
        assert [row[name] for name in ends] == [0, 6]
        more = "B" if a == x else "A"
        assert row["in_words"].startswith(f"5 compared files are in both; {more} also has, not ")
        for name in (".git", "sub/.env", "sub/deep/__init__.py", "sub/a%20link", "pipe", "no.pyc"):
            assert name in row["in_words"]


def test_folders_that_overlap(top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = folders(tmp_path, top)
    assert folders(tmp_path, top / "old", top, f"{top}/", top / "photos").out == once.out
    monkeypatch.chdir(top)
    assert list(roots([".", "old", "photos/"])) == ["."]
    assert list(roots(["photos/", "old", "old"])) == ["photos", "old"]
    with pytest.raises(UsageError, match=r"list\.txt: is a file, not a folder; name folders"):
        list(roots(["old/list.txt"]))


def test_no_file_is_replaced(top: Path, tmp_path: Path) -> None:
    """A compared file is refused as the output file; a new file in the same folder is accepted."""
    file = top / "photos" / "0" / "0.txt"
    before = file.read_bytes()
    (tmp_path / "link").symlink_to(file)
    for name in (file, tmp_path / "link"):
        said = f"-o {name}: is one of the files to compare; name a file outside of the folders\n"
        refuse([*NEARDUP, "folders", "--no-cache", top, "-o", name], tmp_path, said)
    assert file.read_bytes() == before
    assert folders(tmp_path, top, "-o", top / "new.tsv").code == 0
    assert (top / "new.tsv").read_bytes() == folders(tmp_path, top).out


def test_the_cache(top: Path, tmp_path: Path) -> None:
    first = folders(tmp_path, top, "--no-cache")
    assert not (tmp_path / "cache").exists()
    assert "40 files read, 0 from the cache\n" in first.err
    assert "40 files read, 0 from the cache\n" in folders(tmp_path, top).err
    again = folders(tmp_path, top)
    assert "0 files read, 40 from the cache\n" in again.err
    assert again.out == first.out
    (top / "photos" / "0" / "0.txt").write_text("CONTENT 00")
    os.utime(top / "photos" / "0" / "0.txt", (1, 1))
    changed = folders(tmp_path, top)
    assert "1 file read, 39 from the cache\n" in changed.err
    assert lines(changed)[0][3] == "19"
    (tmp_path / "other").write_text("not a cache")
    words = ["--cache", tmp_path / "other", top]
    refuse([*NEARDUP, "folders", *words], tmp_path, "is not a cache of files; name another file")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Here:
    """Return a function that calls `folders` in this process, where some path cannot be read."""

    def call(module: Any, name: str, end: bytes, *words: str | Path) -> tuple[str, str]:
        known = getattr(module, name)

        def closed(path: bytes) -> object:
            if path.endswith(end):
                raise PermissionError(13, "Permission denied", path)
            return known(path)

        monkeypatch.setattr(module, name, closed)
        monkeypatch.setattr("sys.argv", ["neardup folders", "--no-cache", *map(str, words)])
        command.main()
        return capfd.readouterr()

    return call


def test_what_cannot_be_read(top: Path, here: Here) -> None:
    """An unreadable file counts as a file that no other folder has, since it may differ."""
    out, err = here(command, "digest_of", b"photos/0/0.txt", top)
    assert out.split("\t")[3:6] == ["19", "3", "1"]
    assert f"{top}/photos/0/0.txt: cannot be read: Permission denied\n" in err
    assert "each counts as a file that no other folder has" in err


def test_a_folder_that_cannot_be_read(top: Path, here: Here) -> None:
    words = ["--measure=containment", "--threshold=0.5", top]
    out, err = here(folder_walk.os, "scandir", b"photos/1", *words)
    assert out.split("\t")[3:6] == ["13", "1", "9"]
    assert "photos/1: folder cannot be read: Permission denied" in err
    with pytest.raises(StageError, match="found no file to compare; name a folder of"):
        here(folder_walk.os, "scandir", b"photos/1", top / "photos" / "1")


def test_a_folder_with_one_that_cannot_be_read_is_not_contained_by_its_bytes(
    top: Path, here: Here
) -> None:
    """The bytes that nobody could read count as one at least."""
    shutil.copytree(top / "photos" / "0", top / "b")
    (top / "photos" / "0" / "closed").mkdir()
    words = ["--by=bytes", "--measure=containment", top / "b", top / "photos" / "0"]
    out, _ = here(folder_walk.os, "scandir", b"/closed", *words, "--threshold=1")
    assert out.split("\t")[3:6] == ["7", "0", "1"]
    assert out.startswith(f"{top}/b\t{top}/photos/0\t1.000000\t")
    out, _ = here(folder_walk.os, "scandir", b"/closed", *words[:1], *words[2:], "--threshold=1")
    assert out == ""


def test_a_file_that_changed_since_the_walk_has_no_hash(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("content")
    (file,) = Walk().files([str(tmp_path / "a")])
    assert isinstance(command.hash_in(file), str)
    for other in (file._replace(size=8), file._replace(mtime_ns=file.mtime_ns - 1)):
        assert command.hash_in(other) == Failure(command.CHANGED, "")


def test_patterns(top: Path, tmp_path: Path) -> None:
    result = folders(tmp_path, "--exclude", "new*", top)
    (found,) = lines(result)
    assert found[3:9] == ["20", "0", "0", found[6], "2", "3"]
    assert "; A also has, not compared: 2 left out by --include or --exclude (new, " in found[-1]
    assert "2 left out by --include or --exclude" in result.err
