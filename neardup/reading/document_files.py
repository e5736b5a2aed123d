"""Read documents: the text of each file or archive member, or the reason why there is none.

    notes/a.txt          ─▶  notes/a.txt
    old.zip, old.tar.gz  ─▶  old.zip!notes/a.txt for each member, in the order of the archive

A document is text in UTF-8, or in what its byte order mark or --encoding names.  A single
compressed file (.gz .bz2 .xz .zst) is read as the file in it.  A file that is not text is *binary*:
it has a NUL byte, or first bytes that no text has.  Binary and empty files are skipped; files that
should be text but cannot be read are failures, each with a reason.

One file, or one member of an archive, is in memory at a time, up to `limit` bytes of it.
"""

from __future__ import annotations

import math
import os
import re
from calendar import timegm
from collections.abc import Iterator
from functools import partial
from typing import IO, Any, Callable, NamedTuple, Protocol, Union

from neardup.reading.compressed import SIGNATURES, opened
from neardup.reading.dialects import AS_USUAL, MARKED, Dialect
from neardup.reading.input_check import NOT_UTF8
from neardup.runtime.program import StageError

TAR = re.compile(rb"\.(?:tar(?:\.(?:gz|bz2|xz))?|tgz|tbz2?|txz)\Z", re.IGNORECASE)
ZIP = re.compile(rb"\.zip\Z", re.IGNORECASE)
MEMBER = b"!"  # between an archive and its member
BINARY, EMPTY = "binary", "empty"
HIDDEN_MEMBERS, OTHER_MEMBERS = "hidden members of archives", "links and special files in archives"
LEFT_OUT_MEMBERS = "members of archives left out by --include or --exclude"
TOO_LONG, DAMAGED = "longer than --max-line", "damaged"
UNREADABLE, CHANGED = "cannot be read", "changed while it was read"
PDF = rb"%PDF-"
NO_TEXT = re.compile(b"|".join([PDF, *(b"(?:%b)" % signature for signature, *_ in SIGNATURES)]))
HIDDEN_PART = re.compile(rb"(?:\A|/)\.(?!\.?(?:/|\Z))")


class Document(NamedTuple):
    path: bytes
    text: str
    bytes: int = 0
    changed: float = 0.0  # seconds since 1970, in UTC


class NoDocument(NamedTuple):
    """The reason why a file has no document, and a detail; not a failure if `skipped` is true."""

    path: bytes
    reason: str
    detail: str = ""
    skipped: bool = False


Outcome = Union[Document, NoDocument]
Reader = Callable[[bytes, bytes], Outcome]  # of a path and the bytes of a file


def is_archive(path: bytes) -> bool:
    return bool(TAR.search(path) or ZIP.search(path))


class RegularFile(Protocol):
    """The interface of `FoundFile`: a regular file, its size and modification time when found."""

    @property
    def path(self) -> bytes: ...
    @property
    def size(self) -> int: ...
    @property
    def mtime_ns(self) -> int: ...


def documents(
    file: RegularFile,
    limit: int,
    allow: Callable[[bytes], bool] = lambda _: True,
    dialect: Dialect = AS_USUAL,
) -> Iterator[Outcome]:
    """Yield a Document, or a NoDocument with the reason, for a file or each member of an archive.

    Members whose names `allow` does not accept are skipped.  A file that is longer than `limit`
    bytes is not read to its end.
    """
    text = partial(text_of, limit=limit, dialect=dialect)
    path, before = file.path, (file.size, file.mtime_ns)
    try:
        if TAR.search(path):
            yield from _tar_members(path, limit, allow, text)
        elif ZIP.search(path):
            yield from _zip_members(path, limit, allow, text)
        else:
            outcome = dated(_whole_file(path, limit, text), file.mtime_ns / 1e9)
            yield outcome if _state(path) == before else NoDocument(path, CHANGED)
            return
        if _state(path) != before:
            yield NoDocument(path, CHANGED)
    except OSError as error:
        yield NoDocument(path, UNREADABLE, error.strerror or str(error))


def _state(path: bytes) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _whole_file(path: bytes, limit: int, text: Reader) -> Outcome:
    name = os.fsdecode(path)
    try:
        with opened(name, name) as stream:
            return text(path, stream.read(limit + 1))
    except StageError as error:
        _, damaged, detail = str(error).rpartition("damaged: ")
        return NoDocument(path, DAMAGED if damaged else UNREADABLE, detail)


def text_of(path: bytes, data: bytes, limit: int, dialect: Dialect = AS_USUAL) -> Outcome:
    r"""Return the document in a file's bytes, or why there is none; `limit`: maximum bytes.

    >>> text_of(b"a", b"to be\n", 9)
    Document(path=b'a', text='to be\n', bytes=6, changed=0.0)
    >>> text_of(b"a", b"\x89PNG\0", 9)
    NoDocument(path=b'a', reason='binary', detail='', skipped=True)
    """
    mark, encoding = dialect.of_start(data)
    if (not encoding and b"\0" in data) or (not mark and NO_TEXT.match(data)):
        return NoDocument(path, BINARY, skipped=True)
    if len(data) > limit:
        return NoDocument(path, TOO_LONG, f"more than {limit:,} bytes")
    reason = f"not {encoding}" if encoding else NOT_UTF8
    if encoding in MARKED:
        return NoDocument(
            path, reason, f"no byte order mark; type --encoding {encoding}-le, or …-be"
        )
    try:
        text = data[len(mark) :].decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        return NoDocument(path, reason, f"byte {len(mark) + error.start + 1:,}")
    if "\0" in text:
        return NoDocument(path, BINARY, skipped=True)
    if not text.strip():
        return NoDocument(path, EMPTY, skipped=True)
    return Document(path, text, len(data))


def dated(outcome: Outcome, changed: float) -> Outcome:
    real = changed if math.isfinite(changed) else 0.0
    return outcome._replace(changed=real) if isinstance(outcome, Document) else outcome


def _member(
    archive: bytes, name: bytes, regular: bool, allow: Callable[[bytes], bool]
) -> bytes | NoDocument:
    """Return the path of a member to read, or why it is skipped."""
    path = archive + MEMBER + name
    if not regular:
        return NoDocument(path, OTHER_MEMBERS, skipped=True)
    if HIDDEN_PART.search(name):
        return NoDocument(path, HIDDEN_MEMBERS, skipped=True)
    return path if allow(name) else NoDocument(path, LEFT_OUT_MEMBERS, skipped=True)


def _tar_members(
    path: bytes, limit: int, allow: Callable[[bytes], bool], text: Reader
) -> Iterator[Outcome]:
    import lzma
    import tarfile
    import zlib

    damages = tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError, OverflowError
    try:
        with tarfile.open(path, "r:*", errors="surrogateescape", encoding="utf-8") as archive:
            for entry in archive:
                archive.members = []  # type: ignore[attr-defined]  # else all are in memory
                if entry.isdir():
                    continue
                name = entry.name.encode("utf-8", "surrogateescape")
                member = _member(path, name, entry.isreg(), allow)
                outcome = _read(member, limit, text, partial(archive.extractfile, entry))
                yield dated(outcome, float(entry.mtime))
            assert archive.fileobj
            archive.fileobj.seek(archive.offset)  # subtle: a tar that is cut short ends in silence
            if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                yield NoDocument(path, DAMAGED, "it is cut short")
    except damages as error:
        yield NoDocument(path, DAMAGED, str(error))


def _zip_members(
    path: bytes, limit: int, allow: Callable[[bytes], bool], text: Reader
) -> Iterator[Outcome]:
    import lzma
    import zipfile
    import zlib

    try:
        archive = zipfile.ZipFile(os.fsdecode(path))
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError) as error:
        yield NoDocument(path, DAMAGED, str(error))
        return
    damages = zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, OSError, ValueError
    with archive:
        for entry in archive.infolist():
            if entry.filename.endswith("/"):
                continue
            member = _member(path, entry.filename.encode("utf-8", "replace"), True, allow)
            named = member if isinstance(member, bytes) else path
            try:
                outcome = _read(member, limit, text, partial(archive.open, entry))
                yield dated(outcome, _seconds_of(entry.date_time))
            except (RuntimeError, NotImplementedError) as error:  # a password, a method
                yield NoDocument(named, UNREADABLE, str(error))
            except damages as error:
                if isinstance(error, OSError) and error.errno:
                    raise  # of the archive itself; bzip2 says "Invalid data stream" without one
                yield NoDocument(named, DAMAGED, str(error))


def _seconds_of(date: tuple[int, ...]) -> float:
    """Return the Unix time of a member's date, year to second; 0 for a date that does not exist."""
    try:
        return float(timegm((*date, 0, 0, 0)))
    except ValueError:  # month 0, which some programs write
        return 0.0


def _read(
    member: bytes | NoDocument, limit: int, text: Reader, stream: Callable[[], IO[bytes] | Any]
) -> Outcome:
    if isinstance(member, NoDocument):
        return member
    with stream() as file:
        return text(member, file.read(limit + 1))
