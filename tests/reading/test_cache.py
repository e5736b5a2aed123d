"""The result cache finds results again, serves several runs, survives damage, and is bounded."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from neardup.reading import cache
from neardup.reading.cache import PICTURES, ResultCache, default_file
from neardup.reading.folder_walk import FoundFile, Walk
from neardup.runtime.program import UsageError
from tests.support.engines import a_file
from tests.support.failing import as_nobody

FILE = FoundFile(b"/p/a\xff.png", 10, 99)


@pytest.fixture(autouse=True)
def all_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close what a test leaves open, as the end of a program does; Python 3.13 warns of it."""
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noted(*args: Any, **how: Any) -> sqlite3.Connection:
        made.append(connect(*args, **how))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    yield
    for connection in made:
        connection.close()


def opened(path: Path, kind: str = "k") -> ResultCache:
    it = ResultCache(PICTURES, path, kind)
    assert it.note == ""
    return it


def put(path: Path, value: bytes, *files: FoundFile) -> Path:
    """Write this value for each file, or its path if the value is empty."""
    it = opened(path)
    for file in files or [FILE]:
        it.put(file, value or file.path)
    it.close()
    return path


def filled(path: Path, *files: FoundFile) -> Path:
    return put(path, b"", *files)


def numbered(count: int, folder: bytes = b"p") -> list[FoundFile]:
    return [FoundFile(b"/%s/%d" % (folder, k), k, k) for k in range(count)]


def in_a_child(use: Callable[[], None]) -> int:
    """Call this in a child process; return how that ended."""
    pid = os.fork()
    if not pid:
        try:
            use()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1]


def test_a_value_is_found_again(tmp_path: Path) -> None:
    path = filled(tmp_path / "new" / "c.sqlite")
    it = opened(path)
    assert it.get(FILE) == FILE.path
    for other in (FILE._replace(path=b"/p/b"), FILE._replace(size=11), FILE._replace(mtime_ns=98)):
        assert it.get(other) is None
    it.close()
    assert opened(path, "another kind").get(FILE) is None
    it = opened(put(path, b"changed", FILE._replace(size=11)))
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
    it = ResultCache(PICTURES, None, "k")
    it.put(FILE, b"x")
    assert (it.get(FILE), it.note) == (None, "")
    it.close()


def test_the_default_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert default_file(PICTURES) == Path("/x/neardup/images.sqlite")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the standard tells to ignore
    monkeypatch.setenv("HOME", "/h")
    assert default_file(PICTURES) == Path("/h/.cache/neardup/images.sqlite")


@pytest.mark.parametrize(
    ("at", "length"),
    [*((at, 3000) for at in (0, 30, 100, 2000, 4200, 5000, 8500))]
    + [*((size, None) for size in (1, 50, 99, 4096, 5000))],  # cut short
)
def test_a_damaged_file_is_made_anew(at: int, length: int | None, tmp_path: Path) -> None:
    files = numbered(2000)
    path = filled(tmp_path / "c", *files)
    data = bytearray(path.read_bytes())
    if length:
        data[at : at + length] = bytes(range(255, 155, -1)) * (length // 100)
    path.write_bytes(data if length else data[:at])
    it = opened(path)
    found = [it.get(file) for file in files]
    assert set(found) <= {None, *(file.path for file in files)}
    it.close()
    it = opened(put(path, b"new", *files))
    assert [it.get(file) for file in files].count(b"new") > (1000 if length else 1999)


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").write_bytes(b"not to be lost")
    other = sqlite3.connect(tmp_path / "db")
    other.execute("create table t (x)")
    other.close()
    for name in ("notes", "db", "."):
        with pytest.raises(UsageError, match="is not a cache of pictures; name another file"):
            ResultCache(PICTURES, tmp_path / name, "k", named=True)
    assert (tmp_path / "notes").read_bytes() == b"not to be lost"
    ResultCache(PICTURES, tmp_path / "new", "k", named=True).close()
    ResultCache(PICTURES, tmp_path / "new", "k", named=True).close()


@pytest.mark.parametrize("name", ["/proc/no/c", "/dev/null/c", "notes/c"])
def test_a_folder_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    it = ResultCache(PICTURES, tmp_path / name, "k", named=True)
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
    it = ResultCache(PICTURES, path, "k")
    it.put(FILE, b"x")
    it.close()
    assert "database is locked" in it.note
    other.rollback()
    assert opened(path).get(FILE) == FILE.path


def test_a_killed_run_loses_its_last_transaction_only(tmp_path: Path) -> None:
    path, files = tmp_path / "c", numbered(3 * cache.WRITES + 10)

    def use() -> None:
        it = ResultCache(PICTURES, path, "k")
        for file in files:
            it.put(file, file.path)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_child(use) == signal.SIGKILL
    it = opened(path)
    found = [it.get(file) == file.path for file in files]
    assert found.count(True) >= 3 * cache.WRITES
    assert not found[-1]


def test_the_oldest_use_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = PICTURES._replace(most=600_000)
    day = 0
    monkeypatch.setattr(cache.time, "time", lambda: day * cache.DAY)

    old, used, new = (numbered(50, folder) for folder in (b"o", b"u", b"n"))
    for written, read in ((old + used, []), ([], used), (new, [])):
        day += 1
        it = ResultCache(store, tmp_path / "c", "k")
        for file in written:
            it.put(file, bytes(4000))
        assert all(it.get(file) for file in read)
        it.close()
    it = ResultCache(store, tmp_path / "c", "k")
    kept = [sum(it.get(file) is not None for file in files) for files in (old, used, new)]
    assert kept[1:] == [50, 50]
    assert 0 < kept[0] < 25
    size = (tmp_path / "c").stat().st_size
    for file in numbered(1000, b"x"):
        it.put(file, bytes(4000))
    it.close()
    assert (tmp_path / "c").stat().st_size < size + cache.WRITES * 8192


def test_a_large_value_is_not_kept(tmp_path: Path) -> None:
    it = ResultCache(PICTURES._replace(most=16_000), tmp_path / "c", "k")
    it.put(FILE, bytes(1000))
    it.put(FILE._replace(size=11), bytes(1001))
    assert it.close() is None
    it = opened(tmp_path / "c")
    assert it.get(FILE) == bytes(1000)


@pytest.mark.parametrize("at", [0, 65_535, 134_465, 199_999])
def test_a_change_at_an_end_is_noticed(at: int, tmp_path: Path) -> None:
    """A change within 64 KiB of a file's ends is noticed, even at the same size and time."""
    path = a_file(tmp_path / "v", bytes(200_000))
    file = FoundFile(os.fsencode(path), 200_000, 1)
    put(tmp_path / "c", b"x", file)

    def found() -> bytes | None:
        return opened(tmp_path / "c").get(file)

    assert found() == b"x"
    for place, byte, value in ((at, b"1", None), (at, b"\0", b"x"), (100_000, b"1", b"x")):
        with path.open("r+b") as opened_:
            opened_.seek(place)
            opened_.write(byte)
        assert found() == value
    path.unlink()
    assert found() is None


def test_a_file_replaced_with_its_time_is_noticed(tmp_path: Path) -> None:
    """`cp -p` and `rsync --times` set the time of change, but not that of the status."""
    path = a_file(tmp_path / "v", bytes(300_000))
    (file,) = Walk().files([str(path)])
    assert opened(put(tmp_path / "c", b"x", file)).get(file) == b"x"
    with path.open("r+b") as changed:
        changed.seek(150_000)
        changed.write(b"1")
    os.utime(path, ns=(file.mtime_ns, file.mtime_ns))
    (again,) = Walk().files([str(path)])
    assert again[:3] == file[:3]
    assert opened(tmp_path / "c").get(again) is None


@pytest.mark.parametrize(
    "change",
    ["substr(value, 1, length(value) - 1)", "x'00'", "'text'", "1000000000000", "value || x'00'"],
)
def test_a_damaged_value_is_computed_again(change: str, tmp_path: Path) -> None:
    path = filled(tmp_path / "c")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"update results set value = {change}")
    it = opened(path)
    assert it.get(FILE) is None
    assert it.note == "1 damaged value in the cache, computed again"
    it.put(FILE, b"new")
    it.close()
    assert opened(path).get(FILE) == b"new"


@pytest.mark.parametrize("at", [0, 20, 41, 45])
def test_each_flipped_bit_of_a_value_is_noticed(at: int, tmp_path: Path) -> None:
    path = filled(tmp_path / "c")
    with closing(sqlite3.connect(path)) as database, database:
        value = bytearray(database.execute("select value from results").fetchone()[0])
        value[at] ^= 1
        database.execute("update results set value = ?", [bytes(value)])
    it = opened(path)
    assert (it.get(FILE), it.damaged) == (None, 1)


def test_only_the_user_may_read_it(tmp_path: Path) -> None:
    path = filled(tmp_path / "c")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)  # made by an earlier version
    filled(path)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o660)
    ResultCache(PICTURES, path, "k", named=True).close()
    assert path.stat().st_mode & 0o777 == 0o660  # a file that --cache names may be shared


def test_a_file_of_another_user(tmp_path: Path) -> None:
    """Another user's cache file, which cannot be written, causes no error."""
    path = filled(tmp_path / "c")
    path.chmod(0o444)

    def use() -> None:
        it = ResultCache(PICTURES, path, "k")
        assert it.get(FILE) in (None, FILE.path)
        it.put(FILE._replace(size=1), b"x")
        it.close()
        assert it.note.startswith("no cache: ")

    as_nobody(use, tmp_path)
    tmp_path.chmod(0o755)
    path.chmod(0o600)
    assert opened(path).get(FILE) == FILE.path


def test_a_full_disk(tmp_path: Path) -> None:
    path = filled(tmp_path / "c")

    def use() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        it = ResultCache(PICTURES, path, "k")
        for file in numbered(100):
            it.put(file, bytes(5000))
        it.close()
        assert it.note.startswith(f"no cache: {path}: ")

    assert in_a_child(use) == 0
    assert opened(path).get(FILE) == FILE.path
