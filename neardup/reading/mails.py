r"""Read mails: an mbox is an archive of mails; an .eml file, or a file of a Maildir, is one mail.

    mail.mbox  ─▶  mail.mbox!a7@host     the mail with the Message-ID <a7@host>
                   mail.mbox/!2!a7@host  the second mail with it
                   mail.mbox/#17         the 17th mail, which has no Message-ID

How a mail was sent does not matter: transfer encodings, character sets, `>From `, and where lines
are folded, also in quotes.  Of attachments there are only hashes.

An mbox is split where a line `From … 12:34 … 2026` follows a blank line or the start.  Python's
`mailbox` splits at any `From `, reads no compressed file, and holds the places of all mails.
Memory: one mail.
"""

from __future__ import annotations

import codecs
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from io import BytesIO
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, Callable, NamedTuple

from neardup.reading.archives import DAMAGED, PIECE, UNREADABLE, Archive, ArchiveMember, MemberError
from neardup.reading.cleaning import all_text, body_text

if TYPE_CHECKING:
    from email.message import Message

MBOX = re.compile(rb"\.mbox\Z", re.IGNORECASE)
MAIL = re.compile(rb"\.eml\Z", re.IGNORECASE)
IN_MAILDIR = re.compile(rb"(?:\A|[/!])(?:cur|new)/(\d{9,}\.[^/]*\.)?[^/]+\Z")  # seconds.unique.host
FROM = re.compile(rb"From .{1,300}\d:\d\d.{0,80}(?:19|20)\d\d\b")
MBOX_START = re.compile(rb"%b[^\n]*\n(?:>From |[!-9;-~]+:)" % FROM.pattern)
HEADER = rb"[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*"
KNOWN = (
    rb"content-type|date|delivered-to|from|message-id|mime-version|received|return-path|subject|to"
)
MAIL_START = re.compile(rb"(?:%b)*?(?i:%b):" % (HEADER, KNOWN))
MESSAGE_ID = re.compile(rb"^message-id:[ \t\r\n]*<([^<>\0-\x20\x7f]{1,990})>", re.I | re.M)
DATE = re.compile(rb"^date:[ \t]*([^\r\n]{1,99})", re.I | re.M)
BLANK = re.compile(rb"\n\r?\n")
QUOTES = re.compile(r"^(?:> ?)+", re.MULTILINE)  # also those of `>From `
MAX_HEADER = 1 << 14  # characters of a header's value
UNFIT = ("idna", "punycode", "undefined", "unicode", "raw_unicode")  # no mail is written in these
SIGNATURE = re.compile("application/(pgp|pkcs7|x-pkcs7)-signature")
BROKEN = re.compile("(No|Start|Close)Boundary|Multipart|InvalidBase64")  # defects of Python
SENT = ("from", "date", "subject")
FORWARDED = ("message/rfc822", "message/global")
LINK = re.compile(
    r"""\b(?:href|src)\s*=\s*(?!["']?cid:)(?:"([^"]+)"|'([^']+)'|([^\s"'>]+))""", re.I
)
UNDELIVERED = "mails in tmp of a Maildir, not delivered yet"
ONLY_ATTACHED = "mails with attachments and no text"

Hashes = frozenset[bytes]
Decode = Callable[[bytes], "tuple[str, str]"]  # to a text, and the encoding if it was guessed


class ReadText(NamedTuple):
    """A document's text, its encoding if that was guessed, and hashes of what was not read."""

    text: str
    encoding: str = ""
    unread: Hashes = frozenset()
    sent: Hashes = frozenset()  # of a mail: by whom, when and as what


def mbox_members(
    head: bytes, stream: IO[bytes], archive: Archive, limit: int
) -> Iterator[ArchiveMember]:
    """Yield the mails of an mbox, which begins with `head`; of a long one, over `limit` bytes."""
    from email.utils import mktime_tz, parsedate_tz

    first = (head + stream.readline(PIECE)).splitlines(keepends=True)
    lines = chain(first, iter(lambda: stream.readline(PIECE), b""))
    for number, mail in enumerate(split_mails(lines, archive, limit), 1):
        header = mail[: found.end() if (found := BLANK.search(mail)) else None]
        id_, date = MESSAGE_ID.search(header), DATE.search(header)
        path, changed = b"%b/#%d" % (archive.path, number), 0.0
        if id_:
            path = archive.path_of(id_[1], numbered=b"/" in id_[1])
        with suppress(ValueError, OverflowError):
            if date and (parsed := parsedate_tz(date[1].decode("latin-1"))):
                changed = float(mktime_tz(parsed))
        yield ArchiveMember(path, changed, BytesIO(mail).read)


def split_mails(lines: Iterable[bytes], archive: Archive, limit: int) -> Iterator[bytes]:
    """Yield the mails in the lines of an mbox, without From lines; of a long one, its start."""
    mail: list[bytes] | None = None
    size, blank = 0, True
    for line in lines:
        archive.take(len(line))
        if blank and FROM.match(line):
            if mail is not None:
                yield b"".join(mail)
            archive.take(0, 1)
            mail, size = [], 0
        elif mail is not None and size <= limit:
            mail.append(line)
            size += len(line)
        blank = line in (b"\n", b"\r\n")
    yield b"".join(mail or ())


class MailText(NamedTuple):
    """What the text of a mail is made of: the values of these headers, and its body.

    cleaned: the text will be cleaned by `body_text`, which must not see tags in plain text
    """

    headers: Sequence[str] = ()
    cleaned: bool = False


BODY = MailText()


def read_mail(data: bytes, decode: Decode, how: MailText, limits: Archive) -> ReadText:
    """Return the text of a mail, with the values of some headers before it.

    decode: reads bytes whose character set is unknown or wrong.  MemberError for a mail with
    broken parts, or one with attachments alone.
    """
    from email.parser import BytesFeedParser
    from html import escape

    parser, reader = BytesFeedParser(), MailParts(decode, body_text if how.cleaned else all_text)
    try:
        for at in range(0, len(data), 1 << 16):
            limits.take(0)  # nested parts take quadratic time
            parser.feed(data[at : at + (1 << 16)])
        message = parser.close()
        body = reader.text(message)
        broken = [type(each).__name__ for part in message.walk() for each in part.defects]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        detail = f"by Python's email package: {type(error).__name__}: {error}"
        raise MemberError(UNREADABLE, detail) from None
    if any(map(BROKEN.match, broken)):
        raise MemberError(DAMAGED, f"its parts: {', '.join(sorted(set(broken)))}")
    if not body.strip() and reader.unread:
        raise MemberError(ONLY_ATTACHED, "", True)
    values = [decoded_value(value) for name in how.headers for value in message.get_all(name, ())]
    text = "\n".join([*values, body])
    text = escape(text, quote=False) if how.cleaned else text
    sent = [" ".join(decoded_value(message.get(name, "")).split()) for name in SENT]
    hash_ = blake2b("\n".join(sent).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return ReadText(text, reader.guessed, frozenset(reader.unread), frozenset([hash_]))


class MailParts:
    """What was found in the parts of a mail."""

    def __init__(self, decode: Decode, text_of_page: Callable[[str], str]):
        self._decode, self._text_of_page = decode, text_of_page
        self.guessed, self.unread = "", set[bytes]()

    def text(self, part: Message) -> str:
        """Return the text of a part; of alternatives the first that has any, plain text first."""
        kind = part.get_content_type()
        parts: Any = part.get_payload()
        if isinstance(parts, list):
            if kind == "multipart/alternative":
                return self._alternative(parts)
            if part.get_content_maintype() == "message":
                parts = [*self._headers(parts, kind), *parts]
            return "\n".join(each if isinstance(each, str) else self.text(each) for each in parts)
        data: Any = part.get_payload(decode=True)
        if not kind.startswith("text/") or part.get_content_disposition() == "attachment":
            if not SIGNATURE.match(kind):
                self._leave(data)
            return ""
        return self._decoded(data, part, kind)

    def _alternative(self, parts: Sequence[Message]) -> str:
        """Return the first text; leave the others that have different words unread."""
        plain_first = sorted(parts, key=lambda each: each.get_content_type() != "text/plain")
        texts = list(filter(str.strip, map(self.text, plain_first))) or [""]
        for words in map(str.split, texts[1:]):
            if words != texts[0].split():
                self._leave(" ".join(words).encode("utf-8", "surrogatepass"))
        return texts[0]

    def _headers(self, parts: Sequence[Message], kind: str) -> Iterator[str]:
        """Yield the headers in a report; leave them unread, too, and those of forwarded mails."""
        for part in parts:
            names = SENT if kind in FORWARDED else part.keys()
            found = "\n".join(decoded_value(part.get(name, "")) for name in names)
            self._leave(found.encode("utf-8", "surrogatepass"))
            if kind not in FORWARDED:
                yield found

    def _leave(self, data: bytes) -> None:
        self.unread.add(blake2b(data, digest_size=8).digest())

    def _decoded(self, data: bytes, part: Message, kind: str) -> str:
        charset = part.get_content_charset() or "utf-8"
        try:
            if codecs.lookup(charset).name.startswith(UNFIT):
                raise LookupError
            text = data.decode(charset)
        except (LookupError, ValueError):
            text, guessed = self._decode(data) if data.strip() else ("", "")
            self.guessed = self.guessed or guessed
        if part.get_param("delsp") == "yes":  # of format=flowed
            text = re.sub(r" \r?\n(?:>+ ?)?", "", text)
        if kind != "text/html":
            return QUOTES.sub("", text)
        if links := sorted({each for found in LINK.findall(text) for each in found if each}):
            self._leave("\n".join(links).encode("utf-8", "surrogatepass"))
        return self._text_of_page(text)


def decoded_value(value: object) -> str:
    """Return the value of a header, decoded; as it is if that cannot be done.

    >>> decoded_value("=?utf-8?q?caf=C3=A9?="), decoded_value("=?none?q?caf?=")
    ('café', '=?none?q?caf?=')
    """
    from email.errors import MessageError
    from email.header import decode_header, make_header

    raw = str(value)[:MAX_HEADER]
    try:
        return str(make_header(decode_header(raw)))
    except (MessageError, ValueError, LookupError):
        return raw


def is_maildir(folder: bytes) -> bool:
    return all(os.path.isdir(os.path.join(folder, each)) for each in (b"cur", b"new", b"tmp"))


def is_named(path: bytes) -> bool:
    """Return whether a file, or a member of an archive, is named like a mail."""
    found = IN_MAILDIR.search(path)
    if not found or MAIL.search(path):
        return bool(MAIL.search(path))
    in_archive = found[1] and not os.path.lexists(path)
    return in_archive or is_maildir(os.path.dirname(os.path.dirname(path)))


def is_undelivered(path: bytes) -> bool:
    """Return whether a file is a mail that a Maildir does not have yet."""
    folder, place = os.path.split(os.path.dirname(path))
    return place == b"tmp" and is_maildir(folder)


def mails_of(top: bytes) -> dict[bytes, bytes]:
    """Return the paths of all mails in a Maildir, by the part of their names that never changes.

    A mail is moved from `new` to `cur`, and its flags follow a colon.
    """
    found: dict[bytes, bytes] = {}
    for folder in (b"new", b"cur") if is_maildir(top) else ():
        with suppress(OSError), os.scandir(os.path.join(top, folder)) as entries:
            files = [each for each in entries if each.is_file(follow_symlinks=False)]
            found.update((each.name.partition(b":")[0], each.path) for each in files)
    return found


def moved(path: bytes) -> bytes | None:
    """Return the path that a mail of a Maildir has now, or None."""
    folder, name = os.path.split(path)
    return mails_of(os.path.dirname(folder)).get(name.partition(b":")[0])


def missed(paths: Iterable[bytes]) -> list[bytes]:
    """Return the mails in the Maildirs of these paths that are not among them.

    They were moved or renamed while the folders were listed, or have come since then.
    """
    seen = defaultdict[bytes, set[bytes]](set)
    for folder, name in map(os.path.split, paths):
        if os.path.basename(folder) in (b"cur", b"new"):
            seen[os.path.dirname(folder)].add(name.partition(b":")[0])
    mails = ((names, mails_of(top)) for top, names in seen.items())
    late = (path for names, found in mails for name, path in found.items() if name not in names)
    return sorted(path for path in late if not os.path.basename(path).startswith(b"."))
