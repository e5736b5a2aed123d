"""Read documents: the text of each file or archive member, or the reason why there is none.

    notes/a.txt          ─▶  notes/a.txt
    old.zip, old.tar.gz  ─▶  old.zip!notes/a.txt for each member (`archives`)
    mail.mbox            ─▶  mail.mbox!a7@host for each mail (`mails`)

A document is text in UTF-8, in what its byte order mark or --encoding names, or in a guess.  A
compressed file (gzip, bzip2, xz, zstd) is read as the file in it.  First bytes, not names, tell
what is compressed or an archive.  A file that is not text is *binary*: it has a NUL byte, or first
bytes that no text has.  Binary and empty files are skipped; files that should be text but cannot be
read are failures, each with a reason.

One file, or one member of an archive, is in memory at a time, up to `limit` bytes of it.
"""

from __future__ import annotations

import json
import math
import os
import re
import tarfile
import zipfile
from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from typing import Callable, NamedTuple, Union

from neardup.reading import archives, mails
from neardup.reading.cache import ResultCache
from neardup.reading.cleaning import whole
from neardup.reading.compressed import OPENERS, SIGNATURES, opened, packed_as, suffix_of
from neardup.reading.dialects import AS_USUAL, MARKED, Dialect
from neardup.reading.folder_walk import FoundFile
from neardup.reading.input_check import NOT_UTF8
from neardup.runtime.program import StageError
from neardup.tools.documents.office_files import NO_TEXT as SCANNED
from neardup.tools.documents.office_files import office_text, old_word, pdf_text, read_apart

TAR = re.compile(rb"\.(?:tar(?:\.(?:gz|bz2|xz))?|tgz|tbz2?|txz)\Z", re.IGNORECASE)
ZIP = re.compile(rb"\.zip\Z", re.IGNORECASE)
CONTROLS, MAX_CONTROLS = re.compile(rb"[\x01-\x07\x0e-\x1a\x1c-\x1f\x7f]"), 0.02  # of a text
WINDOWS_1252 = {byte: bytes([byte]).decode("cp1252", "ignore") or byte for byte in range(128, 160)}
ZIP_START = re.compile(rb"PK(?:\x03\x04|\x05\x06)")
DAMAGES = (
    tarfile.TarError,
    zipfile.BadZipFile,
    EOFError,
    ValueError,
    OverflowError,
    NotImplementedError,
)
EMPTY, TOO_LONG = "empty", "longer than --max-line"
CHANGED = "changed while it was read"
MBOX_INSIDE = "mbox in an archive; unpack it"
PACKED_NAME = re.compile(rb"(?i)\.(?:gz|bz2|xz|zst)\Z")
NO_TEXT = re.compile(b"|".join([b"%PDF-", *(b"(?:%b)" % start for start, *_ in SIGNATURES)]))


class Document(NamedTuple):
    path: bytes
    text: str
    bytes: int = 0
    changed: float = 0.0  # seconds since 1970, in UTC
    encoding: str = ""  # if it was guessed
    unread: mails.Hashes = frozenset()  # hashes of attachments
    sent: mails.Hashes = frozenset()  # of a mail: a hash of by whom, when and as what
    cached: bool = False


class NoDocument(NamedTuple):
    """The reason why a file has no document, and a detail; not a failure if `skipped` is true."""

    path: bytes
    reason: str
    detail: str = ""
    skipped: bool = False


Outcome = Union[Document, NoDocument]
Guess = Callable[[bytes], "tuple[str, str] | None"]  # a text, and the encoding that it is read in
Reader = Callable[..., Outcome]  # of a path and the bytes of a file


class DocumentKind(NamedTuple):
    """A kind of document that is not plain text."""

    name: re.Pattern[bytes]  # of its files
    start: re.Pattern[bytes]
    read: Callable[..., mails.ReadText]  # as `mails.read_mail`; MemberError if it cannot be read


MAIL = DocumentKind(mails.MAIL, mails.MAIL_START, mails.read_mail)  # by name: mails.is_named
ZIPPED = re.compile(rb"\.(?:doc[xm]|dot[xm]|od[tpsg]|ott|epub)\Z", re.IGNORECASE)
NAMED_PDF, PDF_START = re.compile(rb"(?i)\.pdf\Z"), re.compile(rb"(?s).{,1019}%PDF-")
KINDS = (
    DocumentKind(NAMED_PDF, PDF_START, partial(read_apart, pdf_text)),
    DocumentKind(ZIPPED, ZIP_START, partial(read_apart, office_text)),
    DocumentKind(ZIPPED, re.compile(rb"\xd0\xcf\x11\xe0"), old_word),
)


def is_archive(path: bytes) -> bool:
    """Return whether a file is named like an archive."""
    return bool(TAR.search(path) or ZIP.search(path))


def has_kind(path: bytes) -> bool:
    """Return whether a file is named like a mail, an mbox, or a document that is not plain text."""
    return bool(mails.MBOX.search(PACKED_NAME.sub(b"", path)) or kinds_of(path))


def kinds_of(path: bytes) -> list[DocumentKind]:
    """Return the kinds of documents that a file may be by its name, without .gz and the like."""
    path = PACKED_NAME.sub(b"", path)
    named = [MAIL] if mails.is_named(path) else []
    return named + [kind for kind in KINDS if kind.name.search(path)]


def _most(path: bytes, limit: int) -> int:
    """Return the maximum size of a file, in bytes."""
    return max(limit, archives.MAX_FILE) if has_kind(path) else limit


def documents(
    path: bytes,
    state: tuple[int, int],
    limit: int,
    allow: Callable[[bytes], bool] = lambda _: True,
    dialect: Dialect = AS_USUAL,
    guess: Guess | None = None,
    mail_text: mails.MailText = mails.BODY,
    cache: ResultCache | None = None,
) -> Iterator[Outcome]:
    """Yield a Document, or a NoDocument with the reason, for a file or each member of an archive.

    state: the size, and the time of the last change in nanoseconds, when the file was found.
    Members whose names `allow` does not accept are skipped.  A file that is longer than `limit`
    bytes is not read to its end.  Text that is not UTF-8 is left to `guess`, if given.  cache: of
    the texts of KINDS, by all bytes of their files.
    """
    if mails.is_undelivered(path):
        yield NoDocument(path, mails.UNDELIVERED, skipped=True)
        return
    archive = archives.Archive(path, state[0], allow)
    try:
        began = False
        text = partial(read, limits=archive, limit=limit, dialect=dialect, guess=guess, cache=cache)
        for outcome in _outcomes(archive, limit, partial(text, mail_text=mail_text)):
            if outcome.path != path:  # a member
                began = True
                yield outcome
            elif _state(path) == state:
                yield dated(outcome, state[1] / 1e9)
                return
        if _state(path) != state:
            yield NoDocument(path, CHANGED)
    except OSError as error:
        gone = isinstance(error, FileNotFoundError) and not began
        if gone and (now := mails.moved(path)):
            yield from documents(now, state, limit, allow, dialect, guess, mail_text, cache)
        else:
            yield NoDocument(path, archives.UNREADABLE, error.strerror or str(error))


def _state(path: bytes) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _outcomes(archive: archives.Archive, limit: int, text: Reader) -> Iterator[Outcome]:
    """Yield the outcomes for a file; its first bytes determine how it is read."""
    path, name = archive.path, os.path.abspath(os.fsdecode(archive.path))  # `-` would be stdin
    try:
        with open(path, "rb") as raw:
            start = raw.read(archives.BLOCK)
        packed, is_zip = packed_as(start), bool(ZIP.search(path)) and not archives.is_tar(start)
        if not packed and (is_zip or ZIP_START.match(start)):
            yield from _texts(archives.zip_members(archive, is_zip), limit, text)
            return
        with opened(name, name, packed) as stream:
            head = stream.read(archives.BLOCK)
            if archives.is_tar(head) or (TAR.search(path) and head == bytes(archives.BLOCK)):
                yield from _texts(archives.tar_members(head, stream, archive), limit, text)
                return
            if mails.MBOX_START.match(head):
                most = max(limit, archives.MAX_FILE)
                members = mails.mbox_members(head, stream, archive, most)
                yield from _texts(members, most, partial(text, kind=MAIL))
                return
            if mails.MBOX.search(path) and head.strip():
                raise ValueError("its first line is not `From`, an address and a date")
            outcome = text(path, head + stream.read(max(0, _most(path, limit) + 1 - len(head))))
        named = is_archive(path) or (suffix_of(os.fsdecode(path)) in OPENERS and not packed)
        kinds = kinds_of(path)
        other = head and kinds and not any(kind.start.match(head) for kind in kinds)
        if isinstance(outcome, NoDocument) and outcome.skipped and (named or other):
            outcome = NoDocument(path, archives.DAMAGED, "is not what its name says")
    except archives.OverLimitError as error:
        outcome = NoDocument(path, archives.OVER_LIMIT, str(error))
    except DAMAGES as error:
        outcome = NoDocument(path, archives.DAMAGED, str(error))
    except StageError as error:
        _, damaged, detail = str(error).rpartition("damaged: ")
        outcome = NoDocument(path, archives.DAMAGED if damaged else archives.UNREADABLE, detail)
    yield outcome


def _texts(
    members: Iterator[archives.ArchiveMember], limit: int, text: Reader
) -> Iterator[Outcome]:
    for member in members:
        if member.why:
            yield NoDocument(member.path, member.why, skipped=True)
            continue
        try:
            data = member.read(_most(member.path, limit) + 1)
            yield dated(text(member.path, data), member.changed)
        except archives.MemberError as error:
            yield NoDocument(member.path, *error.args)


def read(
    path: bytes,
    data: bytes,
    limit: int,
    dialect: Dialect,
    guess: Guess | None,
    mail_text: mails.MailText,
    limits: archives.Archive,
    kind: DocumentKind | None = None,
    cache: ResultCache | None = None,
) -> Outcome:
    """Return the document in a file's bytes; the kind follows from its name and first bytes."""
    kind = kind or next((each for each in kinds_of(path) if each.start.match(data)), None)
    if not kind and mails.MBOX_START.match(data):
        return NoDocument(path, MBOX_INSIDE, skipped=True)
    if not kind:
        return text_of(path, data, limit, dialect, guess)
    if len(data) > (most := max(limit, archives.MAX_FILE)):
        return NoDocument(path, TOO_LONG, f"more than {most:,} bytes")

    def decode(data: bytes) -> tuple[str, str]:
        found = text_of(path, data, limit, dialect, guess)
        if isinstance(found, NoDocument):
            raise archives.MemberError(*found[1:])
        return found.text, found.encoding

    reader = partial(kind.read, data, decode, mail_text, limits)
    try:
        found, cached = remembered(None if kind is MAIL else cache, data, reader)
    except archives.MemberError as error:
        return NoDocument(path, *error.args)
    text, encoding, unread, sent = found
    if len(text) > limit:
        return NoDocument(path, TOO_LONG, f"its text has more than {limit:,} characters")
    if "\0" in text or not text.strip():
        empty = EMPTY if kind is MAIL else SCANNED
        return NoDocument(path, archives.BINARY if "\0" in text else empty, skipped=True)
    return Document(path, whole(text), len(data), 0.0, encoding, unread, sent, cached)


def remembered(
    cache: ResultCache | None, data: bytes, reader: Callable[[], mails.ReadText]
) -> tuple[mails.ReadText, bool]:
    """Return what a reader of a file's bytes returns, and whether the cache had it."""
    if not cache:
        return reader(), False
    key = FoundFile(b"/" + blake2b(data).hexdigest().encode(), len(data), 0)
    if known := cache.get(key):
        text, encoding, unread = json.loads(known)
        return mails.ReadText(text, encoding, frozenset(map(bytes.fromhex, unread))), True
    found = reader()
    cache.put(key, json.dumps([*found[:2], [each.hex() for each in found.unread]]).encode())
    return found, False


def text_of(
    path: bytes, data: bytes, limit: int, dialect: Dialect = AS_USUAL, guess: Guess | None = None
) -> Outcome:
    r"""Return the document in a file's bytes, or why there is none; `limit`: maximum bytes.

    >>> text_of(b"a", b"to be\n", 9)  # doctest: +ELLIPSIS
    Document(path=b'a', text='to be\n', bytes=6, changed=0.0, encoding='', unread=frozenset(), ...)
    >>> text_of(b"a", b"\x89PNG\0", 9)
    NoDocument(path=b'a', reason='binary', detail='', skipped=True)
    """
    mark, encoding = dialect.of_start(data)
    if (not encoding and b"\0" in data) or (not mark and NO_TEXT.match(data)):
        return NoDocument(path, archives.BINARY, skipped=True)
    if len(data) > limit:
        return NoDocument(path, TOO_LONG, f"more than {limit:,} bytes")
    reason = f"not {encoding}" if encoding else NOT_UTF8
    if encoding in MARKED:
        why = f"no byte order mark; type --encoding {encoding}-le, or …-be"
        return NoDocument(path, reason, why)
    try:
        passed = "surrogatepass" if guess else "strict"  # half a pair, as of a text that was cut
        as_it_is = data[len(mark) :].decode(encoding or "utf-8", passed)
        text = whole(as_it_is)
        guessed = f"damaged {encoding.upper() or 'UTF-8'}" * (text != as_it_is)
    except UnicodeDecodeError as error:
        found = guess(data[len(mark) :]) if guess and not encoding else None
        if not found:
            return NoDocument(path, reason, f"byte {len(mark) + error.start + 1:,}")
        if len(CONTROLS.findall(data)) > len(data) * MAX_CONTROLS:
            return NoDocument(path, archives.BINARY, skipped=True)
        text, guessed = found
    if "\0" in text:
        return NoDocument(path, archives.BINARY, skipped=True)
    if not text.strip():
        return NoDocument(path, EMPTY, skipped=True)
    return Document(path, text, len(data), encoding=guessed)


def windows_1252(data: bytes) -> tuple[str, str]:
    r"""Return the text of bytes that are not UTF-8, and the encoding that they are read in.

    The five bytes that Windows-1252 leaves undefined are control characters, as in browsers.  Where
    most characters that are not ASCII are UTF-8, each of the other bytes becomes U+FFFD.

    >>> windows_1252(b"caf\xe9 \x80\x81"), windows_1252("€ é".encode() + b"\xff")
    (('café €\x81', 'Windows-1252'), ('€ é�', 'damaged UTF-8'))
    """
    text = data.decode("utf-8", "replace")
    if sum(character > "\x7f" for character in text) > 2 * text.count("\ufffd"):
        return text, "damaged UTF-8"
    return data.decode("latin-1").translate(WINDOWS_1252), "Windows-1252"


def detected(data: bytes) -> tuple[str, str] | None:
    """Return the same in the encoding that charset-normalizer finds; None if it finds none."""
    from charset_normalizer import from_bytes

    best = from_bytes(data).best()
    return (str(best), best.encoding.upper()) if best else None


def dated(outcome: Outcome, changed: float) -> Outcome:
    real = changed if math.isfinite(changed) else 0.0
    return outcome._replace(changed=real) if isinstance(outcome, Document) else outcome
