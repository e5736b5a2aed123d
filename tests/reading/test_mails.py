"""Mails in mbox, Maildir and .eml are read alike, however they were sent; none is read twice."""

from __future__ import annotations

import gzip
import mailbox
import os
import random
import zipfile
from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import SMTP, compat32
from pathlib import Path

import pytest

from neardup.reading import archives, mails
from neardup.reading.cleaning import all_text, body_text
from neardup.tools.documents import document_files
from neardup.tools.documents.document_files import Document, NoDocument, documents, windows_1252
from tests.support.engines import NEARDUP, run

FROM = b"From a@b Thu Jan  1 00:00:00 2020\n"
TEXT = (
    "Es war spät, “sehr spät”:\n\n  From here on\n>From there on\n— kein Wort mehr. " + "x y " * 40
)
PLAIN = b"Message-ID: <a7@host>\nDate: Thu, 1 Jan 1970 00:00:09 +0000\nSubject: s\n\nto be\n"


def read(path: Path, limit: int = 10**6, **how: object) -> list[document_files.Outcome]:
    status = path.stat()
    state = status.st_size, status.st_mtime_ns
    return list(documents(os.fsencode(path), state, limit, **how))  # type: ignore[arg-type]


def eml(tmp_path: Path, data: bytes, **how: object) -> document_files.Outcome:
    (tmp_path / "a.eml").write_bytes(data)
    (found,) = read(tmp_path / "a.eml", **{"guess": windows_1252, **how})
    return found


def text(tmp_path: Path, data: bytes, **how: object) -> str:
    found = eml(tmp_path, data, **how)
    assert isinstance(found, Document), found
    return " ".join(found.text.split())


def mail(text: str, *files: bytes, html: bool = False, **how: str) -> bytes:
    message = EmailMessage()
    message["Subject"], message["From"] = "Grüße " * 20, "Jörg <j@host>"
    message.set_content(text, subtype="html" if html else "plain", **how)
    for file in files:
        message.add_attachment(file, maintype="image", subtype="png", filename="a.png")
    return message.as_bytes(policy=SMTP)


def test_how_a_mail_was_sent_does_not_matter(tmp_path: Path) -> None:
    expected = " ".join(TEXT.replace(">From", "From").split())
    both = EmailMessage()
    both.set_content(TEXT)
    both.add_alternative("<p>another text", subtype="html")
    sent = [
        *(mail(TEXT, cte=cte) for cte in ("8bit", "quoted-printable", "base64")),
        *(mail(TEXT, charset=name) for name in ("cp1252", "utf-7")),
        mail("<p>" + TEXT.replace("\n", "<br>").replace(">From", "From"), html=True),
        both.as_bytes(policy=compat32),
        b"Subject: s\n\n" + TEXT.encode(),
        b"Subject: s\nContent-Type: text/plain; format=flowed\n\n"
        + TEXT.replace("sehr ", "sehr \n").encode(),
        b"Subject: s\nContent-Type: text/plain; format=flowed; delsp=yes\n\n"
        + TEXT.replace("ort", "o \nrt").encode(),
    ]
    assert {text(tmp_path, data) for data in sent} == {expected}


@pytest.mark.parametrize(
    ("charset", "data", "expected", "encoding"),
    [
        ("us-ascii", "é".encode(), "é", ""),
        ("x-unknown", "é".encode(), "é", ""),
        ("x-unknown", b"\xe9", "é", "Windows-1252"),
        ("utf-8", b"\xe9", "é", "Windows-1252"),
        ("punycode", b"a" * 99, "a" * 99, ""),
        ("rot13", b"to be", "to be", ""),
    ],
)
def test_a_wrong_charset_is_guessed(
    charset: str, data: bytes, expected: str, encoding: str, tmp_path: Path
) -> None:
    sent = b"Subject: s\nContent-Type: text/plain; charset=%b\n\n" % charset.encode() + data
    found = eml(tmp_path, sent)
    assert isinstance(found, Document)
    assert (found.text, found.encoding) == (expected, encoding)
    assert isinstance(eml(tmp_path, sent, guess=None), NoDocument) == bool(encoding)


def test_how_quotes_are_folded_does_not_matter(tmp_path: Path) -> None:
    one, other = (
        b"> to be or\n> not\n>\n>> to be\n3 > 2\n",
        b"> to be\n> or not\n>> to\n>> be\n3 > 2",
    )
    found = {text(tmp_path, b"Subject: s\n\n" + each) for each in (one, other)}
    assert found == {"to be or not to be 3 > 2"}


def test_headers(tmp_path: Path) -> None:
    sent = mail("to be")
    assert text(tmp_path, sent) == "to be"
    names = ["subject", "From", "x-none"]
    both = text(tmp_path, sent, mail_text=mails.MailText(names))
    assert both.split() == ["Grüße"] * 20 + ["Jörg", "<j@host>", "to", "be"]


PIECES = ["<nav>", "</nav>", "<p>", "to be", "&lt;b&gt;", "<header>", "</header>", "<b>or", "</b>"]
PIECES += [
    "<article>",
    "</article>",
    "a < b",
    "&amp;amp;",
    "<script>x</script>",
    "<title>t</title>",
    "caf&eacute;",
]


def test_pages_are_cleaned_as_files_are(tmp_path: Path) -> None:
    """With --clean html, a page that was sent has the words of the file; plain text has no tags."""
    rng, dropped = random.Random(3), 0
    for _ in range(60):
        page = "<html>" + " ".join(rng.choices(PIECES, k=12))
        if not body_text(page).strip():
            continue
        found = text(tmp_path, mail(page, html=True), mail_text=mails.MailText((), True))
        assert body_text(found).split() == body_text(page).split()
        dropped += body_text(page).split() != all_text(page).split()
    assert 9 < dropped < 55
    plain = text(tmp_path, mail("to <b> &amp; <nav>be</nav>"), mail_text=mails.MailText((), True))
    assert body_text(plain) == "to <b> &amp; <nav>be</nav>"


@pytest.mark.parametrize("clean", [False, True])
def test_a_page_and_the_mail_that_it_was_sent_in(clean: bool, tmp_path: Path) -> None:
    page = f"<nav>{'menu ' * 30}</nav><p>{TEXT}</p>"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.html").write_text(page)
    (tmp_path / "docs" / "a.eml").write_bytes(mail(page, html=True))
    more = ["--clean=html"] * clean
    found = run([*NEARDUP, "documents", "--threshold=1", *more, tmp_path / "docs"], tmp_path)
    assert (found.code, found.out.count(b"\n")) == (0, clean), found.err


def test_attachments_are_told_apart(tmp_path: Path) -> None:
    one, same, other = (eml(tmp_path, mail("to be", *files)) for files in ([b"1"], [b"1"], [b"2"]))
    assert isinstance(one, Document)
    assert isinstance(same, Document)
    assert isinstance(other, Document)
    assert len(one.unread) == 1
    assert one.unread == same.unread != other.unread
    alone = eml(tmp_path, mail("", b"1"))
    assert alone[1:] == (mails.ONLY_ATTACHED, "", True)


def parted(
    plain: str = TEXT, page: str = "", picture: bytes = b"", event: str = "", footer: str = ""
) -> bytes:
    """Return a mail with alternatives, as the standard library makes it."""
    message = EmailMessage()
    message.set_content(plain)
    if page:
        message.add_alternative(page, subtype="html")
        if picture:
            *_, last = message.iter_parts()
            assert isinstance(last, EmailMessage)
            last.add_related(picture, "image", "png", cid="<a>")
    if event:
        message.add_alternative(event, subtype="calendar")
    if footer:
        message.make_mixed()
        message.add_attachment(footer, disposition="inline")
    return message.as_bytes()


def of_kind(kind: str, body: str) -> bytes:
    parts = f"--b\n\nto be or not\n--b\nContent-Type: {kind}\n\n{body}\n--b--\n"
    return b"Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n" + parts.encode()


PAGE = f"<header>Order 1</header><p>{TEXT}<a href='http://host/1'>here</a></p>"
REPORT = "Reporting-MTA: dns; x\n\nFinal-Recipient: rfc822; a%s@host"


@pytest.mark.parametrize("footer", ["", "a list"])
@pytest.mark.parametrize("blank", [" \n", "\n"])
def test_a_picture_beside_the_page_does_not_hide_the_text(
    footer: str, blank: str, tmp_path: Path
) -> None:
    expected = " ".join(f"{TEXT} {footer}".split())
    for plain, page in ((TEXT, "<p>x"), (blank, f"<p>{TEXT.replace('>', '&gt;')}")):
        found = text(tmp_path, parted(plain, page, b"1", footer=footer))
        assert found.replace(">", "") == expected.replace(">", "")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (parted(page="<p>x", picture=b"1"), parted(page="<p>x", picture=b"2")),
        (parted(page="<p>x y"), parted(page="<p>x z")),
        (parted(event="DTSTART:1"), parted(event="DTSTART:2")),
        (parted(" ", PAGE), parted(" ", PAGE.replace("host/1", "host/2"))),
        (parted(" ", PAGE), parted(" ", PAGE.replace("Order 1", "Order 2"))),
        (
            of_kind("message/rfc822", "Subject: 1\n\na"),
            of_kind("message/rfc822", "Subject: 2\n\na"),
        ),
        (
            of_kind("message/delivery-status", REPORT % 1),
            of_kind("message/delivery-status", REPORT % 2),
        ),
    ],
    ids=["picture", "page", "event", "link", "header", "forwarded", "report"],
)
def test_mails_that_differ_beside_their_text(one: bytes, other: bytes, tmp_path: Path) -> None:
    first, same, second = (eml(tmp_path, data) for data in (one, one, other))
    assert isinstance(first, Document)
    assert first == same._replace(changed=first.changed)  # type: ignore[call-arg]
    assert isinstance(second, Document)
    assert (first.text, first.unread) != (second.text, second.unread)


def test_a_page_with_the_words_of_the_text_is_not_unread(tmp_path: Path) -> None:
    found = eml(tmp_path, parted("to be\n", "<p>to <b>be</b></p>"))
    assert isinstance(found, Document)
    assert not found.unread


@pytest.mark.parametrize("name", ["new/1.txt", "cur/1.x", "new/1234567890.a.txt"])
def test_a_file_outside_of_a_maildir_is_not_a_mail(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir()
    path.write_bytes(b"date: 2026\ntotal: 100\n\nto be\n")
    (found,) = read(path)
    assert isinstance(found, Document)
    assert "total: 100" in found.text


def test_mails_of_a_maildir_in_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for name in ("M/cur/1234567890.a.host:2,S", "M/new/1.txt"):
            packed.writestr(name, PLAIN)
    texts = [each.text for each in read(tmp_path / "a.zip") if isinstance(each, Document)]
    assert texts == ["to be\n", PLAIN.decode()]


PARTS = b"Content-Type: multipart/mixed; boundary=b\n\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (PARTS + b"--b\n\nto be\n", archives.DAMAGED),
        (PARTS + b"to be\n", archives.DAMAGED),
        (PARTS.replace(b"; boundary=b", b"") + b"to be\n", archives.DAMAGED),
        (b"Content-Transfer-Encoding: base64\n\nabcde\n", archives.DAMAGED),
        (b"\n", document_files.EMPTY),
        (b"\na\0b", archives.BINARY),
        (b"\n" + b"a" * 10**6 + b"b", document_files.TOO_LONG),
    ],
)
def test_mails_that_are_not_read(data: bytes, reason: str, tmp_path: Path) -> None:
    found = eml(tmp_path, b"Subject: s\n" + data)
    assert isinstance(found, NoDocument)
    assert found.reason == reason


def test_deeply_nested_parts_do_not_end_the_run(tmp_path: Path) -> None:
    nested = b"".join(
        b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (i, i) for i in range(3000)
    )
    found = eml(tmp_path, b"Subject: s\n" + nested)
    assert isinstance(found, NoDocument)
    assert found.reason in (archives.UNREADABLE, archives.DAMAGED)


@pytest.mark.parametrize("name", ["mail.mbox", "Inbox", "list.txt.gz"])
def test_an_mbox_has_the_same_mails_as_in_python(name: str, tmp_path: Path) -> None:
    rng = random.Random(5)
    box = mailbox.mbox(tmp_path / "own")
    words = ["From", "to", "be", "\n", "\nFrom us", ">From", "or\n\n"]
    for number in range(60):
        message = mailbox.mboxMessage(mail(" ".join(rng.choices(words, k=30))))
        message.set_from("a@b", True)
        if number % 3:
            message["Message-ID"] = f"<{number % 40}@host>"
        box.add(message)
    box.flush()
    data = (tmp_path / "own").read_bytes()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    expected = [str(each.get_payload(decode=True), "utf-8") for each in box]  # type: ignore[arg-type]
    box.close()
    found = read(path)
    assert len(found) == 60
    assert [each.text.replace(">", "").split() for each in found if isinstance(each, Document)] == [
        each.replace(">", "").split() for each in expected
    ]
    names = [os.fsdecode(each.path.removeprefix(os.fsencode(path))) for each in found]
    assert names[:4] == ["/#1", "!1@host", "!2@host", "/#4"]
    assert names[41] == "/!2!1@host"
    assert len(set(names)) == 60
    assert {archives.archive_of(each.path) for each in found} == {os.fsencode(path)}


def test_what_a_member_of_an_mbox_is_called(tmp_path: Path) -> None:
    """No Message-ID leads to a file, and none is made up."""
    box = tmp_path / "m"
    (tmp_path / "m!x@y").touch()
    ids = [b"<x@y>", b"</../../etc>", b"<a!b@c>", b"no brackets", b"<a b>", b"", b"<\xff>"]
    box.write_bytes(b"".join(FROM + b"Message-ID: %b\n\nto be\n\n" % each for each in ids))
    found = [each.path.removeprefix(os.fsencode(box)) for each in read(box)]
    assert found == [b"/!1!x@y", b"/!1!/../../etc", b"/!1!a!b@c", b"/#4", b"/#5", b"/#6", b"!\xff"]


def test_an_mbox_with_odd_mails(tmp_path: Path) -> None:
    box = tmp_path / "a.mbox"
    box.write_bytes(FROM + b"A: b\n\n" + b"a" * 10**4 + b"\n\n" + FROM + b"\n" + FROM + PLAIN)
    long, empty, _ = read(box, limit=1000)
    assert isinstance(long, NoDocument)
    assert (long.path, long.reason) == (os.fsencode(box) + b"/#1", document_files.TOO_LONG)
    assert isinstance(empty, NoDocument)
    assert empty[:2] == (os.fsencode(box) + b"/#2", document_files.EMPTY)
    box.write_bytes(FROM + PLAIN)
    (one,) = read(box)
    assert isinstance(one, Document)
    assert (one.changed, one.bytes) == (9.0, len(PLAIN))
    for data, reason in ((b"to be", archives.DAMAGED), (b"", document_files.EMPTY)):
        box.write_bytes(data)
        (none,) = read(box)
        assert isinstance(none, NoDocument)
        assert none.reason == reason
    (tmp_path / "a.eml").write_bytes(b"\x89PNG\0")
    (none,) = read(tmp_path / "a.eml")
    assert none[1:3] == (archives.DAMAGED, "is not what its name says")


def maildir(path: Path, names: Sequence[str]) -> Path:
    for folder in ("cur", "new", "tmp", ".Sent/cur", ".Sent/new", ".Sent/tmp"):
        (path / folder).mkdir(parents=True)
    for name in names:
        (path / name).write_bytes(PLAIN + os.path.basename(name).encode())
    return path


def test_a_maildir_with_its_folders(tmp_path: Path) -> None:
    names = ["cur/1.h:2,S", "new/2.h", ".Sent/cur/3.h:2,", "tmp/4.h"]
    top = maildir(tmp_path / "Mail", names)
    done = run([*NEARDUP, "documents", "--output=lines", top], tmp_path)
    assert [f'"id":"{top}/{name}"' in done.out.decode() for name in names] == [True] * 3 + [False]
    assert f"1 mail in tmp of a Maildir, not delivered yet ({top}/tmp/4.h)" in done.err
    assert done.out.count(b'"text":"to be') == 3


def test_a_mail_that_is_moved_is_read_once(tmp_path: Path) -> None:
    top = maildir(tmp_path / "Mail", ["cur/1.h:2,", "new/2.h"])
    old = [os.fsencode(top / name) for name in ("cur/1.h:2,", "new/2.h")]
    states = [(os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in old]
    (top / "cur" / "1.h:2,").rename(top / "cur" / "1.h:2,S")
    (top / "new" / "2.h").rename(top / "cur" / "2.h:2,R")
    (top / "new" / "5.h").write_bytes(PLAIN)
    (top / "new" / ".6.h").write_bytes(PLAIN)
    (top / "new" / "7.h").symlink_to(top / "new" / "5.h")
    found = [list(documents(*file, 10**6)) for file in zip(old, states)]
    assert [[each.path for each in some] for some in found] == [
        [os.fsencode(top / "cur" / "1.h:2,S")],
        [os.fsencode(top / "cur" / "2.h:2,R")],
    ]
    assert mails.missed(old) == [os.fsencode(top / "new" / "5.h")]
    assert mails.missed(old[1:]) == [os.fsencode(top / name) for name in ("cur/1.h:2,S", "new/5.h")]
    (top / "cur" / "2.h:2,R").unlink()
    (gone,) = documents(old[1], states[1], 10**6)
    assert gone[1:3] == (archives.UNREADABLE, "No such file or directory")
