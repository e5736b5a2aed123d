"""A cache of results computed from files, in one SQLite file that several runs may share.

The key of a result is the path of its file, the size and time of change, and a text for everything
else that it depends on (`kind`: options, versions).  A value holds:

    checksum (16 bytes) of all that follows, the key, size and time
    status change time, ns (8), and a hash (16) of the first and last 64 KiB of the file
    the result

So a file that was replaced without a change of its size and time is computed again, and so is a
damaged value; `ResultCache.damaged` counts these.

Results are written in transactions of up to 500 results, 8 MiB or about two seconds; a run that is
killed loses the last one.  A damaged file is replaced; if the cache cannot be used,
`ResultCache.note` gives the reason, and the run goes on without it.  Only the user may read it.

Size: at most `Store.most` bytes and one transaction; beyond that, the results that were not used
for the longest time are removed.  A picture takes about 250 bytes with one hash and 1,700 with all.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.reading.folder_walk import FoundFile
from neardup.runtime.program import NOT_FILES, UsageError, check_file_name
from neardup.runtime.summary import many

if TYPE_CHECKING:
    import sqlite3

SPARE = 0.9  # the share of `Store.most` that is left when some results are removed
HEADER, APPLICATION_AT = b"SQLite format 3\0", 68
WRITES, WRITE_BYTES, SECONDS = 500, 8 << 20, 2.0  # maxima for a transaction
PATIENCE = 20.0  # seconds to wait for another run's transaction
DAY = 86400
END_BYTES = 1 << 16  # hashed at each end of a file
SUM_BYTES, CTIME_BYTES = 16, 8  # of a hash; of a time
STAMP_BYTES = CTIME_BYTES + SUM_BYTES
LAYOUT_2 = ", layout 2"  # must change with the layout of values
MIN_RESULTS = 16  # a result takes at most a sixteenth of the cache
LAYOUT = """
create table if not exists results (
    path blob not null, kind text not null, size integer not null, mtime_ns integer not null,
    used integer not null, value blob not null, primary key (path, kind)
) without rowid
"""
FIND = "select value, used from results where path = ? and kind = ? and size = ? and mtime_ns = ?"
WRITE = "insert or replace into results values (?, ?, ?, ?, ?, ?)"
USE = "update results set used = ? where path = ? and kind = ?"
PAGES = """select (page_count - freelist_count) * page_size
    from pragma_page_count(), pragma_freelist_count(), pragma_page_size()"""
BYTES = "length(value) + 100"
FORGET = f"""delete from results where (path, kind) in (
    select path, kind from (
        select path, kind, sum({BYTES}) over (order by used desc, path, kind) as together
        from results)
    where together > ? * (select sum({BYTES}) from results))"""


class Store(NamedTuple):
    """The constants of one command's cache, such as the name of its file and its maximum size."""

    noun: str  # what the files are, in messages
    name: str  # of the default file
    application: int  # in the header of the file
    most: int  # bytes


PICTURES = Store("pictures", "images.sqlite", 0x6E647069, 1 << 30)  # "ndpi"


def default_file(store: Store) -> Path:
    """Return the default file of a cache, such as images.sqlite in $XDG_CACHE_HOME/neardup."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(home) if os.path.isabs(home) else Path(os.path.expanduser("~")) / ".cache"
    return folder / "neardup" / store.name


class ResultCache:
    """A cache with a value (bytes) for each file.

    It is used by one process only; forks must leave it alone.
    """

    def __init__(self, store: Store, file: Path | None, kind: str, named: bool = False):
        """Open or create the cache in `file`; if `file` is None, cache nothing.

        UsageError if the user `named` the file and it is neither a cache nor new.
        """
        self.damaged = 0  # values
        self._why = ""  # there is no cache
        self._store, self._file, self._kind, self._named = store, file, kind + LAYOUT_2, named
        self._connection: sqlite3.Connection | None = None
        self._waiting: list[tuple[str, tuple[Any, ...]]] = []
        self._bytes = 0  # size of the values that wait
        self._since = time.monotonic()
        self._today = int(time.time()) // DAY
        if file is None:
            return
        if named and not _ours(file, store):
            raise UsageError(
                f"--cache {file}: is not a cache of {store.noun}; name another file, or one that "
                "does not exist yet"
            )
        self._open(again=True)

    @property
    def note(self) -> str:
        """A line for the summary: why there is no cache, or how many values were damaged; or ""."""
        if self.damaged:
            return f"{many(self.damaged, 'damaged values')} in the cache, computed again"
        return self._why

    def get(self, file: FoundFile) -> bytes | None:
        """Return the cached value of a file; None if there is none, or the file has changed."""
        key = os.path.abspath(file.path), self._kind, file.size, file.mtime_ns
        rows = self._run(FIND, [key])
        if not rows:
            return None
        value, used = rows[0]
        if not isinstance(value, bytes) or value[:SUM_BYTES] != _sum(key, value[SUM_BYTES:]):
            self.damaged += 1
            return None
        stamp, result = value[SUM_BYTES:][:STAMP_BYTES], value[SUM_BYTES + STAMP_BYTES :]
        if stamp != _stamp(file):
            return None
        if used != self._today:
            self._later(USE, (self._today, *key[:2]))
        return result

    def put(self, file: FoundFile, value: bytes) -> None:
        """Store the value of a file, unless the value is too large."""
        if not self._connection or len(value) > self._store.most // MIN_RESULTS:
            return
        key = os.path.abspath(file.path), self._kind, file.size, file.mtime_ns
        value = _stamp(file) + value
        self._later(WRITE, (*key, self._today, _sum(key, value) + value), len(value))

    def close(self) -> None:
        """Write the values that are waiting, and close the file."""
        self._write()
        if self._connection:
            self._connection.close()
            self._connection = None

    def _later(self, command: str, values: tuple[Any, ...], size: int = 0) -> None:
        if not self._connection:
            return
        self._waiting.append((command, values))
        self._bytes += size
        many = len(self._waiting) >= WRITES or self._bytes > WRITE_BYTES
        if many or time.monotonic() - self._since > SECONDS:
            self._write()

    def _write(self) -> None:
        """Write waiting changes: new values in one transaction, dates of use in another."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        for command in (WRITE, USE):
            values = [row for which, row in waiting if which == command]
            if values:
                self._run(command, values, commit=True)
        if waiting:
            self._forget()
        self._since = time.monotonic()

    def _forget(self) -> None:
        """Remove the least recently used values if the cache is too large."""
        found = self._run(PAGES, [()])
        if found and found[0][0] > self._store.most:
            share = SPARE * self._store.most / found[0][0]
            self._run(FORGET, [(share,)], commit=True)

    def _run(self, command: str, rows: list[tuple[Any, ...]], commit: bool = False) -> list[Any]:
        """Run SQL and return the rows; replace a damaged file; close the cache on other errors."""
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
        """Open the database; replace it if `anew`, or if `again` is set and it is damaged."""
        import sqlite3

        assert self._file
        ours = self._store.application
        try:
            if anew:
                self._give_up("")
                _remove(self._file)
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))
            if not self._named:  # a file that the user named keeps its mode
                os.chmod(self._file, 0o600)
            self._connection = sqlite3.connect(self._file, timeout=PATIENCE)
            self._connection.text_factory = bytes  # a damaged value may not be UTF-8
            if self._connection.execute("pragma application_id").fetchone() != (ours,):
                self._connection.execute(f"pragma application_id = {ours}")
            self._connection.execute(LAYOUT)
            self._connection.execute(FIND, (b"", "", 0, 0)).fetchall()
        except sqlite3.DatabaseError as error:
            self._give_up(str(error))
            if again and _damaged(error):
                self._open(again=False, anew=True)
        except OSError as error:
            self._give_up(error.strerror or str(error))

    def _give_up(self, why: str) -> None:
        self._why = why and f"no cache: {self._file}: {why}"
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


def _sum(key: tuple[Any, ...], value: bytes) -> bytes:
    return blake2b(repr(key).encode() + value, digest_size=SUM_BYTES).digest()


def _stamp(file: FoundFile) -> bytes:
    """Return the status change time of a file and a hash of its ends, if they are readable."""
    digest = blake2b(digest_size=SUM_BYTES)
    with suppress(OSError), open(file.path, "rb") as opened:
        digest.update(opened.read(END_BYTES))
        opened.seek(max(0, file.size - END_BYTES))
        digest.update(opened.read(END_BYTES))
    return file.ctime_ns.to_bytes(CTIME_BYTES, "big", signed=True) + digest.digest()


def _ours(file: Path, store: Store) -> bool:
    """Return whether a file is missing, empty, unreadable, or a cache (even damaged) of `store`."""
    try:
        if not file.is_file():
            return not file.exists()
        with file.open("rb") as opened:
            head = opened.read(100)
    except OSError:
        return True  # opening it will fail, too, and there will be no cache
    number = head[APPLICATION_AT : APPLICATION_AT + 4]
    return not head or (head.startswith(HEADER) and number == store.application.to_bytes(4, "big"))


def opened_cache(args: argparse.Namespace, store: Store, kind: str) -> ResultCache:
    """Open the cache that the options ask for, which with --no-cache caches nothing."""
    named = args.cache is not None
    if args.no_cache and named:
        raise UsageError("--no-cache and --cache exclude each other; give one of them")
    check_file_name("--cache", args.cache, NOT_FILES)
    file = Path(args.cache) if named else default_file(store)
    return ResultCache(store, None if args.no_cache else file, kind, named)
