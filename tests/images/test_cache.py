"""The cache of results: what is found again, several runs, damage, and its bound."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

import pytest

from neardup.images import cache
from neardup.images.cache import PictureCache, default_file
from neardup.images.folder_walk import FoundFile
from neardup.runtime.program import UsageError

FILE = FoundFile(b"/p/a\xff.png", 10, 99)


def opened(path: Path, kind: str = "k") -> PictureCache:
    it = PictureCache(path, kind)
    assert it.note == ""
    return it


def filled(path: Path, *files: FoundFile) -> Path:
    it = opened(path)
    for file in files or [FILE]:
        it.put(file, file.path)
    it.close()
    return path


def test_a_value_is_found_again(tmp_path: Path) -> None:
    path = filled(tmp_path / "new" / "c.sqlite")
    it = opened(path)
    assert it.get(FILE) == FILE.path
    for other in (FILE._replace(path=b"/p/b"), FILE._replace(size=11), FILE._replace(mtime_ns=98)):
        assert it.get(other) is None
    it.close()
    assert opened(path, "another kind").get(FILE) is None
    it = opened(path)
    it.put(FILE._replace(size=11), b"changed")
    it.close()
    it = opened(path)
    assert (it.get(FILE), it.get(FILE._replace(size=11))) == (None, b"changed")


def test_relative_paths_are_those_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    filled(tmp_path / "c", FoundFile(b"x", 1, 1))
    assert opened(tmp_path / "c").get(FoundFile(b"./x", 1, 1)) == b"x"
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert opened(tmp_path / "c").get(FoundFile(b"x", 1, 1)) is None


def test_no_cache() -> None:
    it = PictureCache(None, "k")
    it.put(FILE, b"x")
    assert (it.get(FILE), it.note) == (None, "")
    it.close()


def test_the_default_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert default_file() == Path("/x/neardup/images.sqlite")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the standard tells to ignore
    monkeypatch.setenv("HOME", "/h")
    assert default_file() == Path("/h/.cache/neardup/images.sqlite")


@pytest.mark.parametrize("at", [0, 30, 100, 2000, 4200, 5000, 8500])
def test_a_damaged_file_is_made_anew(at: int, tmp_path: Path) -> None:
    files = [FoundFile(b"/p/%d" % k, k, k) for k in range(2000)]
    path = filled(tmp_path / "c", *files)
    data = bytearray(path.read_bytes())
    data[at : at + 3000] = bytes(range(255, 155, -1)) * 30
    path.write_bytes(data)
    it = opened(path)
    found = [it.get(file) for file in files]
    assert set(found) <= {None, *(file.path for file in files)}
    for file in files:
        it.put(file, b"new")
    it.close()
    it = opened(path)
    assert [it.get(file) for file in files].count(b"new") > 1000
    it.close()


@pytest.mark.parametrize("size", [1, 50, 99, 4096, 5000])
def test_so_is_one_cut_short(size: int, tmp_path: Path) -> None:
    path = filled(tmp_path / "c", *(FoundFile(b"/p/%d" % k, k, k) for k in range(500)))
    path.write_bytes(path.read_bytes()[:size])
    it = opened(path)
    it.get(FILE)
    it.put(FILE, b"new")
    it.close()
    assert opened(path).get(FILE) == b"new"


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").write_bytes(b"not to be lost")
    other = sqlite3.connect(tmp_path / "db")
    other.execute("create table t (x)")
    other.close()
    for name in ("notes", "db", "."):
        with pytest.raises(UsageError, match="is not a cache of pictures; name another file"):
            PictureCache(tmp_path / name, "k", named=True)
    assert (tmp_path / "notes").read_bytes() == b"not to be lost"
    PictureCache(tmp_path / "new", "k", named=True).close()
    PictureCache(tmp_path / "new", "k", named=True).close()


@pytest.mark.parametrize("name", ["/proc/no/c", "/dev/null/c", "notes/c"])
def test_a_folder_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    it = PictureCache(tmp_path / name, "k", named=True)
    it.put(FILE, b"x")
    assert it.get(FILE) is None
    it.close()
    assert it.note.startswith(f"no cache: {tmp_path / name}: ")


def test_two_runs_at_once(tmp_path: Path) -> None:
    one, two = opened(tmp_path / "c"), opened(tmp_path / "c")
    for k in range(cache.WRITES + 1):
        one.put(FoundFile(b"/one/%d" % k, k, k), b"1")
        two.put(FoundFile(b"/two/%d" % k, k, k), b"2")
    one.close()
    two.close()
    it = opened(tmp_path / "c")
    last = cache.WRITES
    assert it.get(FoundFile(b"/one/%d" % last, last, last)) == b"1"
    assert it.get(FoundFile(b"/two/%d" % last, last, last)) == b"2"


def test_another_run_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "PATIENCE", 0.05)
    path = filled(tmp_path / "c")
    other = sqlite3.connect(path)
    other.execute("begin exclusive")
    it = PictureCache(path, "k")
    it.put(FILE, b"x")
    it.close()
    assert "database is locked" in it.note
    other.rollback()
    assert opened(path).get(FILE) == FILE.path


def test_a_killed_run_loses_its_last_transaction_only(tmp_path: Path) -> None:
    path = tmp_path / "c"
    files = [FoundFile(b"/p/%d" % k, k, k) for k in range(3 * cache.WRITES + 10)]
    pid = os.fork()
    if not pid:
        it = PictureCache(path, "k")
        for file in files:
            it.put(file, file.path)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    it = opened(path)
    found = [it.get(file) == file.path for file in files]
    assert found.count(True) >= 3 * cache.WRITES
    assert not found[-1]


def test_the_oldest_use_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST", 100)
    days = iter([1, 2, 3, 4])
    monkeypatch.setattr(cache.time, "time", lambda: day * cache.DAY)
    old, used, new = (
        [FoundFile(b"/%s/%d" % (x, k), k, k) for k in range(40)] for x in (b"o", b"u", b"n")
    )
    day = next(days)
    filled(tmp_path / "c", *old, *used)
    day = next(days)
    it = opened(tmp_path / "c")
    assert all(it.get(file) for file in used)
    it.close()
    day = next(days)
    filled(tmp_path / "c", *new)
    it = opened(tmp_path / "c")
    kept = [sum(it.get(file) is not None for file in files) for files in (old, used, new)]
    assert kept == [10, 40, 40]
