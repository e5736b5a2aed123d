r"""Read mails: an mbox is an archive of mails; an .eml file, or a file of a Maildir, is one mail.

    mail.mbox  ─▶  mail.mbox!a7@host     the mail with the Message-ID <a7@host>
                   mail.mbox/!2!a7@host  the second mail with it
                   mail.mbox/#17         the 17th mail, which has no Message-ID
    new/7.host ─▶  cur/7.host:2,S        a mail that was moved while files are read

The text of a mail is its plain text, or else that of its HTML.  How it was sent does not matter:
transfer encodings, character sets, `>From `, and where lines of quotes are folded.  Attachments are
not read; their hashes tell whether another mail has them, too.

An mbox is split where a line `From … 12:34 … 2026` follows a blank line or the start.  `mailbox` of
Python splits at any `From `, cannot read compressed files, and holds the places of all mails.
Memory: one mail.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any, Callable, NamedTuple

from neardup.reading.archives import DAMAGED, PIECE, UNREADABLE, Archive, ArchiveMember, MemberError
from neardup.reading.cleaning import body_text

if TYPE_CHECKING:
    from email.message import Message

MBOX = re.compile(rb"\.mbox\Z", re.IGNORECASE)
MAIL = re.compile(rb"\.eml\Z|(?:\A|[/!])(?:cur|new)/[^/]+\Z", re.IGNORECASE)
FROM = re.compile(rb"From .{1,300}\d:\d\d.{0,80}(?:19|20)\d\d\b")
HEADER = rb"[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*"
MBOX_START = re.compile(rb"%b[^\n]*\n(?:>From |[!-9;-~]+:)" % FROM.pattern)
KNOWN = rb"content-type|date|delivered-to|from|message-id|received|return-path|subject|to"
MAIL_START = re.compile(rb"(?:%b)*?(?i:%b):" % (HEADER, KNOWN))
MESSAGE_ID = re.compile(rb"^message-id:[ \t\r\n]*<([^<>\0-\x20\x7f]{1,990})>", re.I | re.M)
DATE = re.compile(rb"^date:[ \t]*([^\r\n]{1,99})", re.I | re.M)
BLANK = re.compile(rb"\n\r?\n")
FOLDERS = MAIL_FOLDERS, DELIVERY = (b"cur", b"new"), b"tmp"
QUOTES = re.compile(r"(?:>[ \t]?)+")
QUOTED_FROM = re.compile(r"^>(>*From )", re.MULTILINE)
MAX_HEADER = 1 << 14  # characters of a header's value
UNFIT = ("idna", "punycode", "undefined", "unicode", "raw_unicode")  # no mail is written in these
SIGNATURE = re.compile("application/(pgp|pkcs7|x-pkcs7)-signature")
BROKEN = re.compile("(No|Start|Close)Boundary|Multipart|InvalidBase64")  # defects of Python
DELIVERED = "mails in tmp of a Maildir, not delivered yet"
ONLY_ATTACHED = "mails with attachments and no text"

Hashes = frozenset[bytes]
Decode = Callable[[bytes], "tuple[str, str]"]  # to a text, and the encoding if it was guessed


class ReadText(NamedTuple):
    """A document's text, its encoding if that was guessed, and hashes of what was not read."""

    text: str
    encoding: str = ""
    unread: Hashes = frozenset()


def mbox_members(
    head: bytes, stream: IO[bytes], archive: Archive, limit: int
) -> Iterator[ArchiveMember]:
    """Yield the mails of an mbox, which begins with `head`; of a long one, over `limit` bytes."""
    for number, mail in enumerate(split_mails(_lines(head, stream, archive), limit), 1):
        archive.take(0, 1)
        header = mail[: found.end() if (found := BLANK.search(mail)) else None]
        id_, date = MESSAGE_ID.search(header), DATE.search(header)
        path = b"%b/#%d" % (archive.path, number)
        if id_:
            path = archive.path_of(id_[1], numbered=b"/" in id_[1])
        yield ArchiveMember(path, _seconds(date[1]) if date else 0.0, BytesIO(mail).read)


def split_mails(lines: Iterable[bytes], limit: int) -> Iterator[bytes]:
    r"""Yield the mails of an mbox, without their From lines, each cut at the first line over limit.

    >>> list(split_mails([b"From a 1:02 2020\n", b"A: b\n", b"\n", b"From me 9:30 in 1999\n"], 9))
    [b'A: b\n\n', b'']
    """
    mail: list[bytes] | None = None
    size, blank = 0, True
    for line in lines:
        if blank and FROM.match(line):
            if mail is not None:
                yield b"".join(mail)
            mail, size = [], 0
        elif mail is not None and size <= limit:
            mail.append(line)
            size += len(line)
        blank = line in (b"\n", b"\r\n")
    yield b"".join(mail or ())


def _lines(head: bytes, stream: IO[bytes], archive: Archive) -> Iterator[bytes]:
    *first, last = head.split(b"\n")
    yield from (line + b"\n" for line in first)
    yield last + stream.readline(PIECE)
    while line := stream.readline(PIECE):
        archive.take(len(line))
        yield line


def _seconds(date: bytes) -> float:
    from email.utils import mktime_tz, parsedate_tz

    try:
        parsed = parsedate_tz(date.decode("latin-1"))
        return float(mktime_tz(parsed)) if parsed else 0.0
    except (ValueError, OverflowError):
        return 0.0


def read_mail(data: bytes, decode: Decode, headers: Sequence[str], limits: Archive) -> ReadText:
    """Return the text of a mail, with the values of some headers before it.

    decode: reads bytes whose character set is unknown or wrong.  MemberError for a mail with
    broken parts, or one with attachments alone.
    """
    try:
        message = _parsed(data, limits)
        reader = MailParts(decode)
        body = reader.text(message)
        broken = [type(each).__name__ for part in message.walk() for each in part.defects]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        detail = f"by Python's email package: {type(error).__name__}: {error}"
        raise MemberError(UNREADABLE, detail) from None
    if any(map(BROKEN.match, broken)):
        raise MemberError(DAMAGED, f"its parts: {', '.join(sorted(set(broken)))}")
    if not body.strip() and reader.unread:
        raise MemberError(ONLY_ATTACHED, "", True)
    lines = [_value(value) for name in headers for value in message.get_all(name, ())]
    return ReadText("\n".join([*lines, body]), reader.guessed, frozenset(reader.unread))


def _parsed(data: bytes, limits: Archive) -> Message:
    from email.parser import BytesFeedParser

    parser = BytesFeedParser()
    for at in range(0, len(data), 1 << 16):
        limits.take(0)  # nested parts take quadratic time
        parser.feed(data[at : at + (1 << 16)])
    return parser.close()


class MailParts:
    """What was found in the parts of a mail."""

    def __init__(self, decode: Decode):
        self._decode, self.guessed, self.unread = decode, "", set[bytes]()

    def text(self, part: Message, wanted: bool = True) -> str:
        """Return the text of a part; that of the first alternative, plain text preferred."""
        kind = part.get_content_type()
        if not part.is_multipart():
            return self._leaf(part, kind, wanted)
        parts: list[Any] = part.get_payload()  # type: ignore[assignment]
        if kind != "multipart/alternative":
            return "\n".join(self.text(each, wanted) for each in parts)
        found = ""
        for each in sorted(parts, key=lambda each: each.get_content_type() != "text/plain"):
            found = self.text(each, wanted and not found.strip()) or found
        return found

    def _leaf(self, part: Message, kind: str, wanted: bool) -> str:
        if part.get_content_maintype() != "text" or part.get_content_disposition() == "attachment":
            if not SIGNATURE.match(kind):
                self.unread.add(blake2b(_payload(part), digest_size=8).digest())
            return ""
        return self._text(part, kind) if wanted else ""

    def _text(self, part: Message, kind: str) -> str:
        data, charset = _payload(part), part.get_content_charset() or "utf-8"
        try:
            if codecs.lookup(charset).name.startswith(UNFIT):
                raise LookupError
            text = data.decode(charset)
        except (LookupError, ValueError):
            text, guessed = self._decode(data) if data.strip() else ("", "")
            self.guessed = self.guessed or guessed
        if kind == "text/html":
            return body_text(text)
        if part.get_param("delsp") == "yes":  # of format=flowed
            text = re.sub(r" \r?\n(?:>+ ?)?", "", text)
        return unfolded(QUOTED_FROM.sub(r"\1", text))


def _payload(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def unfolded(text: str) -> str:
    r"""Return a text in which a quote is marked in its first line only.

    >>> unfolded("> to be\n> or not\n>> to be\nyes\n> no")
    '> to be\nor not\n>> to be\nyes\n> no'
    """
    if ">" not in text:
        return text
    lines, before = [], 0
    for line in text.split("\n"):
        mark = QUOTES.match(line)
        depth = mark[0].count(">") if mark else 0
        lines.append(line[mark.end() :] if mark and depth == before else line)
        before = depth
    return "\n".join(lines)


def _value(value: object) -> str:
    """Return the value of a header, decoded; as it is if that cannot be done."""
    from email.header import decode_header, make_header

    raw = str(value)[:MAX_HEADER]
    try:
        return str(make_header(decode_header(raw)))
    except (ValueError, LookupError):  # also the errors of the email package
        return raw


def is_maildir(folder: bytes) -> bool:
    """Return whether a folder is a Maildir."""
    return all(os.path.isdir(os.path.join(folder, each)) for each in (*MAIL_FOLDERS, DELIVERY))


def is_delivered(path: bytes) -> bool:
    """Return whether a file is a mail that a Maildir does not have yet."""
    folder = os.path.dirname(path)
    return os.path.basename(folder) == DELIVERY and is_maildir(os.path.dirname(folder))


def moved(path: bytes) -> bytes | None:
    """Return the path that a mail of a Maildir has now, if it was moved or its flags have changed.

    A mail is moved from `new` to `cur`; its name up to a colon stays.
    """
    folder, name = os.path.split(path)
    if os.path.basename(folder) not in MAIL_FOLDERS:
        return None
    return _mails(os.path.dirname(folder)).get(_unique(name))


def missed(paths: Iterable[bytes]) -> list[bytes]:
    """Return the mails in the Maildirs of these paths that are not among them.

    They were moved or renamed while the folders were listed, or have come since then.
    """
    known: dict[bytes, set[bytes]] = {}
    for folder, name in map(os.path.split, paths):
        if os.path.basename(folder) in MAIL_FOLDERS:
            known.setdefault(os.path.dirname(folder), set()).add(_unique(name))
    late = ((_mails(top), names) for top, names in known.items() if is_maildir(top))
    return [path for mails, names in late for name, path in mails.items() if name not in names]


def _mails(top: bytes) -> dict[bytes, bytes]:
    """Return the paths of the mails of a Maildir, by the part of their names that never changes."""
    found = {}
    for folder in reversed(MAIL_FOLDERS):  # so that none is lost that is moved meanwhile
        place = os.path.join(top, folder)
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
            if not name.startswith(b"."):
                found[_unique(name)] = os.path.join(place, name)
    return found


def _unique(name: bytes) -> bytes:
    return name.partition(b":")[0]
