"""The members of archives, in bounded time and memory, each with a path that no file has.

    old.zip, old.tar.gz  ─▶  old.zip!notes/a.txt for each member, in the order of the archive

People delete files by the paths of an answer.  So a member with `..` or an absolute name is left
out, and old.zip/!2!a.txt is the path of the second member a.txt.  This form is also used where a
file has the plain path, or where the name has an exclamation mark.  It cannot be the path of a
file, since old.zip is not a folder, nor that of another member.

A tar is read through `_Bounded`, since tarfile reads a header of any size into memory, and parses
it in quadratic time.  A zip in which entries overlap, as in a bomb, is damaged.
"""

from __future__ import annotations

import io
import lzma
import os
import re
import stat
import tarfile
import time
import zipfile
import zlib
from calendar import timegm
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import IO, Any, Callable, NamedTuple

MEMBER = b"!"  # between an archive and its member
HIDDEN_MEMBERS, OTHER_MEMBERS = "hidden members of archives", "links and special files in archives"
LEFT_OUT_MEMBERS = "members of archives left out by --include or --exclude"
OUTSIDE = "members of archives with an absolute path or .."
HIDDEN_PART = re.compile(rb"(?:\A|[/\\])\.(?!\.?(?:[/\\]|\Z))")
NUMBERED = re.compile(rb"/(?:!\d+!|#\d+\Z)")  # behind an archive, before a member
OUTSIDE_NAME = re.compile(rb"\A[/\\]|\A[A-Za-z]:|(?:\A|[/\\])\.\.(?:[/\\]|\Z)")
DAMAGED, UNREADABLE, BINARY = "damaged", "cannot be read", "binary"
OVER_LIMIT = "beyond what an archive may take"
BLOCK = 512  # bytes, of a tar
PIECE = 1 << 20  # bytes read at once
MAX_HEADER, MAX_HEADERS = 1 << 14, 1 << 16  # bytes, of one header, and of all those of an entry
MAX_DIRECTORY = 64 << 20  # bytes, of the directory of a zip, which is read into memory
MAX_ENTRIES = 1_000_000
MAX_BYTES, BYTES_PER_BYTE = 4 << 30, 100  # unpacked: so many, and more for each byte of the archive
MAX_SECONDS, SECONDS_PER_BYTE = 120, 1e-6
MAX_FILE = 128 << 20  # bytes of a file that is more than its text, such as a PDF
OFFICE = {"[Content_Types].xml", "mimetype"}  # in Office, OpenDocument and EPUB files


class OverLimitError(Exception):
    """Error for an archive that takes too much time or memory."""


class MemberError(Exception):
    """Error for one document; `args` are the reason, a detail, and whether it is just skipped."""


class ArchiveMember(NamedTuple):
    """A member to read, or the reason `why` it is not read."""

    path: bytes
    changed: float  # seconds since 1970
    read: Callable[[int], bytes]  # returns at most so many bytes
    why: str = ""


class Archive:
    """The paths of an archive's members, and what may still be read of it."""

    def __init__(self, path: bytes, size: int, allow: Callable[[bytes], bool]):
        """Set the limits for an archive of `size` bytes; `allow`: the names of members to read."""
        self.path, self._allow = path, allow
        self._seen: Counter[bytes] = Counter()
        self._bytes = self._max_bytes = MAX_BYTES + BYTES_PER_BYTE * size
        self._entries, self._seconds = MAX_ENTRIES, MAX_SECONDS + SECONDS_PER_BYTE * size
        self._ends = time.monotonic() + self._seconds

    def take(self, size: int, entries: int = 0) -> None:
        """Count bytes and entries; OverLimitError if there are too many, or it is too late."""
        self._bytes -= size
        self._entries -= entries
        if self._bytes < 0:
            raise OverLimitError(f"more than {self._max_bytes:,} bytes when unpacked")
        if self._entries < 0:
            raise OverLimitError(f"more than {MAX_ENTRIES:,} members")
        if time.monotonic() > self._ends:
            raise OverLimitError(f"not read after {self._seconds:,.0f} seconds")

    @property
    def left(self) -> float:
        """The number of seconds that are left."""
        return max(0.0, self._ends - time.monotonic())

    def member(self, name: bytes, regular: bool, changed: float, read: Any) -> ArchiveMember:
        """Return a member with a path, or the reason why it is left out."""
        path, why = self.path_of(name), ""
        if not regular:
            why = OTHER_MEMBERS
        elif HIDDEN_PART.search(name):
            why = HIDDEN_MEMBERS
        elif OUTSIDE_NAME.search(name):
            why = OUTSIDE
        elif not self._allow(name):
            why = LEFT_OUT_MEMBERS
        return ArchiveMember(self.path + MEMBER + name if why else path, changed, read, why)

    def path_of(self, name: bytes, numbered: bool = False) -> bytes:
        """Return a path for the next member with a name, which no file can have."""
        self._seen[name] += 1
        plain = self.path + MEMBER + name
        if numbered or self._seen[name] > 1 or MEMBER in name or os.path.lexists(plain):
            return b"%b/!%d!%b" % (self.path, self._seen[name], name)
        return plain


def archive_of(path: bytes) -> bytes:
    """Return the path of the archive that has a member with this path."""
    for found in NUMBERED.finditer(path):
        if os.path.isfile(path[: found.start()]):
            return path[: found.start()]
    return path.rpartition(MEMBER)[0]


def is_tar(head: bytes) -> bool:
    """Return whether a file's first 512 bytes are a header of a tar, by its checksum."""
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError):
        return False
    return True


def tar_members(head: bytes, stream: IO[bytes], archive: Archive) -> Iterator[ArchiveMember]:
    """Yield the members of a tar, which begins with `head` and goes on in `stream`.

    DAMAGES for a damaged one.
    """
    file: Any = _Bounded(head, stream, archive)
    with tarfile.open(fileobj=file, mode="r:", errors="surrogateescape", encoding="utf-8") as tar:
        for entry in tar:
            tar.members, tar.pax_headers = [], {}  # type: ignore[attr-defined]  # grow
            archive.take(0, 1)
            if entry.size < 0:
                raise ValueError("a size is negative")
            file.headers = None
            if not entry.isdir():
                name = entry.name.encode("utf-8", "surrogateescape")
                regular = entry.isreg() and not entry.issparse()
                read = partial(_read_tar, tar, entry)
                yield archive.member(name, regular, float(entry.mtime), read)
            file.headers = 0
    if file.last.strip(b"\0") or file.read(BLOCK) != bytes(BLOCK):
        raise EOFError("it is cut short")


def _read_tar(archive: tarfile.TarFile, entry: tarfile.TarInfo, size: int) -> bytes:
    with archive.extractfile(entry) as file:  # type: ignore[union-attr]  # it is regular
        return file.read(size)


class _Bounded:
    """A tar as a file for tarfile: a stream that is read forwards, within a budget."""

    def __init__(self, head: bytes, stream: IO[bytes], limits: Archive):
        self._head, self._stream, self._limits = head, stream, limits
        self._at = 0
        self.headers: int | None = 0  # bytes of headers since the last entry; None in a member
        self.last = b""  # what was read

    def tell(self) -> int:
        return self._at

    def seek(self, to: int) -> None:
        if to < self._at:
            raise ValueError("a header leads backwards")
        if isinstance(getattr(self._stream, "raw", None), io.FileIO):  # nothing is unpacked
            self._at = self._stream.seek(to)
        while self._at < to and self._next(min(PIECE, to - self._at)):
            pass

    def read(self, size: int) -> bytes:
        if self.headers is not None:
            self.headers += size
            if not 0 <= size <= MAX_HEADER or self.headers > MAX_HEADERS:
                raise OverLimitError(f"a header of {size:,} bytes, or too many headers")
        self.last = self._next(size)
        return self.last

    def _next(self, size: int) -> bytes:
        data, self._head = self._head[:size], self._head[size:]
        data += self._stream.read(size - len(data))
        self._at += len(data)
        self._limits.take(len(data))
        return data


def zip_members(archive: Archive, named: bool) -> Iterator[ArchiveMember]:
    """Yield the members of a zip; an Office file, not `named` as a zip, is one itself.

    ValueError, NotImplementedError, EOFError or zipfile.BadZipFile for a damaged one; a member's
    `read` may raise MemberError.
    """
    with open(archive.path, "rb") as file:
        end = zipfile._EndRecData(file)  # type: ignore[attr-defined]
        if end and end[5] > MAX_DIRECTORY:
            raise OverLimitError(f"a directory of {end[5]:,} bytes")
        with zipfile.ZipFile(file) as opened:
            entries = opened.infolist()
            if not named and (OFFICE & opened.NameToInfo.keys() or not entries):
                file.seek(0)
                yield ArchiveMember(archive.path, 0.0, file.read)
                return
            check_apart(entries)
            for entry in entries:
                archive.take(0, 1)
                if entry.is_dir() and not entry.file_size:
                    continue
                kind = stat.S_IFMT(entry.external_attr >> 16)
                regular = kind in (0, stat.S_IFREG) and not entry.is_dir()
                name = entry.filename.encode("utf-8", "replace")
                read = partial(read_entry, opened, entry, archive)
                yield archive.member(name, regular, _seconds_of(entry.date_time), read)


def read_entry(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limits: Archive, size: int
) -> bytes:
    try:
        with archive.open(entry) as opened:
            data = opened.read(size)
    except (RuntimeError, NotImplementedError) as error:  # a password, a method
        raise MemberError(UNREADABLE, str(error)) from None
    except (zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno:
            raise  # an error of the archive itself; "Invalid data stream" of bzip2 has no errno
        raise MemberError(DAMAGED, str(error)) from None
    limits.take(len(data))
    return data


def check_apart(entries: list[Any]) -> None:
    """Raise ValueError if entries of a zip overlap."""
    ends = 0
    for entry in sorted(entries, key=lambda entry: int(entry.header_offset)):
        if entry.header_offset < ends:
            raise ValueError("its members overlap")
        ends = entry.header_offset + 30 + entry.compress_size


def _seconds_of(date: tuple[int, ...]) -> float:
    """Return the Unix time of a member's date, year to second; 0 for a date that does not exist."""
    try:
        return float(timegm((*date, 0, 0, 0)))
    except ValueError:  # month 0, which some programs write
        return 0.0
