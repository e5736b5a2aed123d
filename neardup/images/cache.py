"""A cache of what was computed from pictures, in one SQLite file that several runs may share.

The key of a picture is its path, size and time of change, and a text for everything else that the
result depends on (`kind`: options, versions).  A file that was changed without a change of its size
and time is not noticed.

Writes are transactions of up to 500 pictures, at most two seconds from one picture to a later one:
a run that is killed loses the last of them.  A file that is damaged is made anew; where the cache
cannot be used, `PictureCache.note` says why, and the run goes on without it.

Size: a million files at most; beyond that, those not used for the longest time are removed.  A
picture takes about 250 bytes with one hash and 1,100 with all 24, so that the file is smaller than
250 MB, or 1.1 GB.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neardup.images.folder_walk import FoundFile
from neardup.runtime.program import UsageError

if TYPE_CHECKING:
    import sqlite3

MOST = 1_000_000  # files, also those that are not pictures
SPARE = 0.9  # what is left of them when some are removed
APPLICATION = 0x6E647069  # "ndpi", in the header of the file
HEADER, APPLICATION_AT = b"SQLite format 3\0", 68
WRITES, SECONDS = 500, 2.0  # of a transaction
PATIENCE = 20.0  # seconds to wait for another run's transaction
DAY = 86400
LAYOUT = """
create table if not exists pictures (
    path blob not null, kind text not null, size integer not null, mtime_ns integer not null,
    used integer not null, value blob not null, primary key (path, kind)
) without rowid
"""
FIND = "select value, used from pictures where path = ? and kind = ? and size = ? and mtime_ns = ?"
WRITE = "insert or replace into pictures values (?, ?, ?, ?, ?, ?)"
USE = "update pictures set used = ? where path = ? and kind = ?"
COUNT = "select count(*) from pictures"
FORGET = f"""delete from pictures where (path, kind) in
    (select path, kind from pictures order by used limit max(0, ({COUNT}) - ?))"""


def default_file() -> Path:
    """Return the file of the cache: $XDG_CACHE_HOME/neardup/images.sqlite, or in ~/.cache."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(home) if os.path.isabs(home) else Path(os.path.expanduser("~")) / ".cache"
    return folder / "neardup" / "images.sqlite"


class PictureCache:
    """Values, as bytes, of pictures.

    It is used by one process only; forks must leave it alone.
    """

    def __init__(self, file: Path | None, kind: str, named: bool = False):
        """Open or make a cache; None is a cache that keeps nothing.

        If the user `named` the file, it must be a cache or new: UsageError.
        """
        self.note = ""  # why there is no cache
        self._file, self._kind = file, kind
        self._connection: sqlite3.Connection | None = None
        self._waiting: list[tuple[str, tuple[Any, ...]]] = []
        self._since = time.monotonic()
        self._today = int(time.time()) // DAY
        if file is None:
            return
        if named and not _ours(file):
            raise UsageError(
                f"--cache {file}: is not a cache of pictures; name another file, or remove it"
            )
        self._open(again=True)

    def get(self, file: FoundFile) -> bytes | None:
        """Return the cached value of a picture; None if there is none, or the file has changed."""
        key = os.path.abspath(file.path), self._kind
        rows = self._run(FIND, [(*key, file.size, file.mtime_ns)])
        if not rows:
            return None
        value, used = rows[0]
        if used != self._today:
            self._later(USE, (self._today, *key))
        return bytes(value)

    def put(self, file: FoundFile, value: bytes) -> None:
        """Keep the value of a picture."""
        path = os.path.abspath(file.path)
        self._later(WRITE, (path, self._kind, file.size, file.mtime_ns, self._today, value))

    def close(self) -> None:
        """Write what is waiting, remove what is too much, and close the file."""
        self._write()
        if self._connection:
            count = self._run(COUNT, [()])
            if count and count[0][0] > MOST:
                self._run(FORGET, [(int(MOST * SPARE),)], commit=True)
        if self._connection:
            self._connection.close()
            self._connection = None

    def _later(self, command: str, values: tuple[Any, ...]) -> None:
        if not self._connection:
            return
        self._waiting.append((command, values))
        if len(self._waiting) >= WRITES or time.monotonic() - self._since > SECONDS:
            self._write()

    def _write(self) -> None:
        """Write what is waiting: new values in one transaction, dates of use in another."""
        waiting, self._waiting = self._waiting, []
        for command in (WRITE, USE):
            values = [row for which, row in waiting if which == command]
            if values:
                self._run(command, values, commit=True)
        self._since = time.monotonic()

    def _run(self, command: str, rows: list[tuple[Any, ...]], commit: bool = False) -> list[Any]:
        """Run a command and return what it finds; make a damaged file anew; else give up."""
        import sqlite3

        if not self._connection:
            return []
        try:
            if not commit:
                return self._connection.execute(command, rows[0]).fetchall()
            with self._connection:
                self._connection.executemany(command, rows)
        except sqlite3.DatabaseError as error:
            if _damaged(error):
                self._open(again=True, anew=True)
            else:  # a full disk, or another run for too long
                self._give_up(str(error))
        return []

    def _open(self, again: bool, anew: bool = False) -> None:
        """Open the file; if it is damaged, remove it first, once."""
        import sqlite3

        assert self._file
        try:
            if anew:
                self._give_up("")
                _remove(self._file)
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self._file, timeout=PATIENCE)
            if self._connection.execute("pragma application_id").fetchone() != (APPLICATION,):
                self._connection.execute(f"pragma application_id = {APPLICATION}")
            self._connection.execute(LAYOUT)
            self._connection.execute(FIND, (b"", "", 0, 0)).fetchall()
        except sqlite3.DatabaseError as error:
            self._give_up(str(error))
            if again and _damaged(error):
                self._open(again=False, anew=True)
        except OSError as error:
            self._give_up(error.strerror or str(error))

    def _give_up(self, why: str) -> None:
        self.note = why and f"no cache: {self._file}: {why}"
        self._waiting.clear()
        if self._connection:
            self._connection.close()
        self._connection = None


def _damaged(error: sqlite3.DatabaseError) -> bool:
    import sqlite3

    outside = isinstance(error, sqlite3.OperationalError)  # of SQLite: locks, disks, permissions
    return not outside or "file format" in str(error)


def _remove(file: Path) -> None:
    for suffix in ("", "-journal"):
        with suppress(FileNotFoundError):
            os.remove(f"{file}{suffix}")


def _ours(file: Path) -> bool:
    """Return whether a file is new, empty, or a cache, even a damaged one."""
    try:
        if not file.is_file():
            return not file.exists()
        with file.open("rb") as opened:
            head = opened.read(100)
    except OSError:
        return True  # which is why there will be no cache
    number = head[APPLICATION_AT : APPLICATION_AT + 4]
    return not head or (head.startswith(HEADER) and number == APPLICATION.to_bytes(4, "big"))
