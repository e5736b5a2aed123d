"""Documents in files and archives are recognised as texts, skipped, or reported as failed."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from neardup.reading import archives
from neardup.reading.compressed import ZSTD
from neardup.reading.dialects import Dialect
from neardup.reading.input_check import NOT_UTF8
from neardup.tools.documents import document_files
from neardup.tools.documents.document_files import Document, NoDocument, Outcome, documents, text_of
from tests.support.engines import a_file

LIMIT = 1000


MEMBERS = {
    "./a.txt": b"to be",
    "sub/b.py": b"or not",
    "sub/.hidden": b"x",
    ".git/config": b"x",
    "sub/c.bin": b"\0",
    "sub/long.txt": b"a" * (LIMIT + 1),
}


def read(path: Path, **how: object) -> list[Outcome]:
    status = path.stat()
    state = status.st_size, status.st_mtime_ns
    return list(documents(os.fsencode(path), state, LIMIT, **how))  # type: ignore[arg-type]


def reason(path: Path, **how: object) -> str:
    """Return why the last document of a file was not read."""
    found = read(path, **how)[-1]
    assert isinstance(found, NoDocument)
    return found.reason


def tar_of(path: Path, mode: str = "w", members: dict[str, bytes] = MEMBERS, **pax: str) -> Path:
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.pax_headers = len(data), pax
            archive.addfile(entry, io.BytesIO(data))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE) * (members is MEMBERS):
            entry = tarfile.TarInfo(f"other{kind!r}")
            entry.type, entry.linkname = kind, "sub/b.py"
            archive.addfile(entry)
    return path


def zip_of(path: Path, method: int = zipfile.ZIP_DEFLATED, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("sub/", b"")
        for name, data in (members or MEMBERS).items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"to be\r\nor not", "to be\r\nor not"),
        ("\ufeffé 日本".encode(), "é 日本"),
        (b"a\x01b\x7f", "a\x01b\x7f"),
        (b"", document_files.EMPTY),
        (b" \n\t", document_files.EMPTY),
        ("\u00a0\ufeff".encode(), "\u00a0\ufeff"),
        (b"caf\xe9", NOT_UTF8),
        (b"\xff\xfea\0b\0", "ab"),
        ("\ufeffé 日本\r\n".encode("utf-16-be"), "é 日本\r\n"),
        ("\ufeffé 日本".encode("utf-32-le"), "é 日本"),
        ("\ufeff \n".encode("utf-16-le"), document_files.EMPTY),
        ("\ufeffa\0".encode("utf-16-le"), archives.BINARY),
        (b"\xff\xfea\0b", "not utf-16-le"),
        (b"text\0", archives.BINARY),
        (b"\x7fELF\x02\0", archives.BINARY),
        (b"%PDF-1.7 and more", archives.BINARY),
        (b"a" * (LIMIT + 1), document_files.TOO_LONG),
    ],
)
def test_what_a_document_is(data: bytes, expected: str, tmp_path: Path) -> None:
    path = a_file(tmp_path / "file.txt", data)
    (found,) = read(path)
    when = path.stat().st_mtime_ns / 1e9
    assert found == document_files.dated(text_of(found.path, data, LIMIT), when)
    if isinstance(found, Document):
        assert found.text == expected
    else:
        assert found.reason == expected
        assert found.skipped == (expected in (document_files.EMPTY, archives.BINARY))


def test_the_place_of_a_wrong_byte_is_named() -> None:
    assert text_of(b"a", b"caf\xe9", 9) == NoDocument(b"a", NOT_UTF8, "byte 4")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "gb18030", "cp037"])
def test_an_encoding(encoding: str, tmp_path: Path) -> None:
    """In an archive, --encoding applies to the members without a byte order mark."""
    dialect, text = Dialect.of(None, encoding), "caf\u00e9 au lait\n"
    texts = {name: text.encode(name) for name in (encoding, "utf_8_sig", "utf_16")}
    path = zip_of(tmp_path / "a.zip", **texts, png=b"\x89PNG\r\n\x1a\n\0\0\0\0")
    *texts, binary = read(path, dialect=dialect)
    assert [found.text for found in texts] == [text] * 3
    assert binary.reason == archives.BINARY


def test_bytes_that_are_not_in_the_encoding() -> None:
    cp1252, utf_16 = Dialect.of(None, "cp1252"), Dialect.of(None, "utf-16")
    assert text_of(b"a", b"caf\xe9 \x81", 9, cp1252) == NoDocument(b"a", "not cp1252", "byte 6")
    assert text_of(b"a", b"a\0", 9, utf_16).reason == "not utf-16"
    assert "type --encoding utf-16-le" in text_of(b"a", b"a\0", 9, utf_16).detail


def test_compressed_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"to be"))
    (tmp_path / "b.txt.bz2").write_bytes(bz2.compress(b"or not"))
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"a" * 10**7))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a" * 500)[:-9])
    (tmp_path / "empty.gz").write_bytes(b"")
    texts = [found.text for name in ("a.txt.gz", "b.txt.bz2") for found in read(tmp_path / name)]
    assert texts == ["to be", "or not"]
    reasons = [reason(tmp_path / name) for name in ("bomb.gz", "cut.gz", "empty.gz")]
    assert reasons == [document_files.TOO_LONG, archives.DAMAGED, archives.DAMAGED]


def test_files_that_are_gone_closed_or_changed(tmp_path: Path) -> None:
    path = a_file(tmp_path / "a", "one")
    file = os.fsencode(path), (3, path.stat().st_mtime_ns)
    assert [type(found) for found in documents(*file, LIMIT)] == [Document]
    path.write_text("two and more")
    assert list(documents(*file, LIMIT)) == [NoDocument(file[0], document_files.CHANGED)]
    path.unlink()
    (found,) = documents(*file, LIMIT)
    assert found == NoDocument(file[0], archives.UNREADABLE, "No such file or directory")
    path.mkdir()
    (found,) = documents(*file, LIMIT)
    assert found == NoDocument(file[0], archives.UNREADABLE, "Is a directory")


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.TXZ", "a.zip"])
def test_archives(name: str, tmp_path: Path) -> None:
    modes = {"a.tar": "w", "a.tar.gz": "w:gz", "a.tgz": "w:gz", "a.TXZ": "w:xz"}
    path = tmp_path / name
    zip_of(path) if name == "a.zip" else tar_of(path, modes[name])
    found = read(path)
    texts = {each.path: each.text for each in found if isinstance(each, Document)}
    top = os.fsencode(path)
    assert list(texts.items()) == [(top + b"!./a.txt", "to be"), (top + b"!sub/b.py", "or not")]
    others = [each.reason for each in found if isinstance(each, NoDocument)]
    hidden, links = archives.HIDDEN_MEMBERS, archives.OTHER_MEMBERS
    expected = [hidden, hidden, archives.BINARY, document_files.TOO_LONG]
    assert others == expected + [links] * 2 * (name != "a.zip")
    chosen = read(path, allow=lambda name: name.endswith(b".py"))
    assert [each.path for each in chosen if isinstance(each, Document)] == [top + b"!sub/b.py"]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.tar", "a.zip"])
def test_a_document_of_exactly_the_limit_is_read(name: str, tmp_path: Path) -> None:
    """--max-line is the longest document that is read; one byte more is too long."""
    path = tmp_path / name

    def write(length: int) -> None:
        data = b"a" * length
        if name == "a.zip":
            zip_of(path, b=data)
        elif name == "a.tar":
            tar_of(path, members={"b": data})
        else:
            path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    write(LIMIT)
    assert [found.text for found in read(path)] == ["a" * LIMIT]
    write(LIMIT + 1)
    assert [found.reason for found in read(path)] == [document_files.TOO_LONG]


def test_archives_that_are_damaged(tmp_path: Path) -> None:
    for path in (
        tar_of(tmp_path / "a.tar.gz", "w:gz"),
        tar_of(tmp_path / "a.tar"),
        zip_of(tmp_path / "a.zip"),
    ):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) * 2 // 3])
        assert reason(path) == archives.DAMAGED
        path.write_bytes(b"")
        assert [found.reason for found in read(path)] == [archives.DAMAGED]


def test_a_member_with_a_password(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip")
    data = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        for found in re.finditer(re.escape(signature), bytes(data)):
            data[found.start() + flags] |= 1
    path.write_bytes(data)
    first = read(path)[0]
    assert isinstance(first, NoDocument)
    assert first.reason == archives.UNREADABLE
    assert "password" in first.detail


def patched(path: Path, at: int, value: bytes, member: int = 0) -> None:
    """Replace bytes of a member's entry in the directory of a zip file."""
    data = bytearray(path.read_bytes())
    entries = [found.start() for found in re.finditer(re.escape(b"PK\1\2"), bytes(data))]
    start = entries[member] + at
    data[start : start + len(value)] = value
    path.write_bytes(data)


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_behind_a_damaged_member_the_others_are_read(method: int, tmp_path: Path) -> None:
    texts = {name: b"text of %b " % name.encode() * 50 for name in "abc"}
    path = zip_of(tmp_path / "a.zip", method, **texts)
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("b")
    middle = info.header_offset + 30 + len(info.filename) + info.compress_size // 2
    data = bytearray(path.read_bytes())
    data[middle : middle + 4] = b"\0\xff\0\xff"
    path.write_bytes(data)
    first, damaged, last = found = read(path)
    assert isinstance(first, Document)
    assert isinstance(last, Document)
    assert isinstance(damaged, NoDocument)
    assert [each.path for each in found] == [os.fsencode(f"{path}!{name}") for name in "abc"]
    assert damaged.reason == archives.DAMAGED


def test_a_member_with_a_date_that_does_not_exist(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip")
    for member in range(len(zipfile.ZipFile(path).infolist())):
        patched(path, 14, b"\0\0", member)
    found = [each for each in read(path) if isinstance(each, Document)]
    assert [(each.text, each.changed) for each in found] == [("to be", 0.0), ("or not", 0.0)]


def test_members_of_a_tar_with_odd_headers(tmp_path: Path) -> None:
    """A date that is no number is 0; a size beyond all files is damage."""
    text = {"a": b"text"}
    (found,) = read(tar_of(tmp_path / "a.tar", members=text, mtime="nan"))
    assert isinstance(found, Document)
    assert (found.text, found.changed) == ("text", 0.0)
    others = read(tar_of(tmp_path / "a.tar", members=text, size=str(10**30)))
    assert all(isinstance(each, NoDocument) for each in others)


@pytest.mark.parametrize(("at", "value"), [(6, b"\x63"), (8, b"\0\x08")])
def test_zip_files_that_python_cannot_open(at: int, value: bytes, tmp_path: Path) -> None:
    """A zip of a later format, or with a name that is not UTF-8, is reported as damaged."""
    path = zip_of(tmp_path / "a.zip", name=b"text")
    patched(path, at, value, 1)
    if at == 8:
        path.write_bytes(path.read_bytes().replace(b"name", b"\xff\xfe\xfd\xfc"))
    assert [found.reason for found in read(path)] == [archives.DAMAGED]


def test_a_file_of_a_kind_whose_package_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    for name in ZSTD:
        monkeypatch.setitem(sys.modules, name, None)
    (found,) = read(tmp_path / "a.txt.zst")
    assert isinstance(found, NoDocument)
    assert found.reason == archives.UNREADABLE
    assert "pip install" in found.detail


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"caf\xe9 \x80 \x93a\x94", "caf\u00e9 \u20ac \u201ca\u201d", "Windows-1252"),
        (b"\x81\x8d\x8f\x90\x9d", "\x81\x8d\x8f\x90\x9d", "Windows-1252"),
        ("é è à ".encode() + b"\xff!", "é è à \ufffd!", "damaged UTF-8"),
        ("日本語".encode()[:-1], "日本\ufffd", "damaged UTF-8"),
        ("\ufeffé è ".encode() + b"\xe9", "é è \ufffd", "damaged UTF-8"),
        ("привет".encode("koi8-r"), "привет".encode("koi8-r").decode("latin-1"), "Windows-1252"),
        (b"cut \xed\xa0\xbd", "cut \ufffd", "damaged UTF-8"),  # in an emoji
        (b"\xff\xfec\0=\xd8", "c\ufffd", "damaged UTF-16-LE"),
        (b"\xff\xfe\x94\xdcc\0", "\ufffdc", "damaged UTF-16-LE"),
        ("é".encode(), "é", ""),
        (b"plain", "plain", ""),
    ],
)
def test_text_that_is_not_utf8_is_read_as_windows_1252(
    data: bytes, text: str, encoding: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(data)
    for path in (tmp_path / "a", zip_of(tmp_path / "b.zip", a=data)):
        (found,) = read(path, guess=document_files.windows_1252)
        assert isinstance(found, Document)
        assert (found.text, found.encoding) == (text, encoding)
        assert not encoding or reason(path) in (NOT_UTF8, "not utf-16-le")


def test_binary_data_without_a_nul_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(range(1, 256)) * 3)
    (found,) = read(tmp_path / "a", guess=document_files.windows_1252)
    assert found == NoDocument(os.fsencode(tmp_path / "a"), archives.BINARY, skipped=True)


def test_an_encoding_that_is_detected() -> None:
    pytest.importorskip("charset_normalizer")
    text = "Это обычный русский текст, по которому можно узнать кодировку файла. " * 5
    found = document_files.detected(text.encode("koi8-r"))
    assert found
    assert found[0] == text


def test_a_file_named_like_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-").write_text("to be")
    (found,) = read(Path("-"))
    assert isinstance(found, Document)
    assert (found.path, found.text) == (b"-", "to be")


def test_compressed_files_are_of_the_kind_in_their_name(tmp_path: Path) -> None:
    mail = b"Subject: s\n\nto be"
    for name, data, expected in (
        ("a.eml.gz", mail, "to be"),
        ("a.bin.gz", b"\0\1", archives.BINARY),
        ("a.pdf.gz", b"%PDF-1.4", "cannot be read"),
    ):
        path = a_file(tmp_path / name, gzip.compress(data))
        (found,) = read(path)
        assert expected in found[1] or "pypdf" in found[1], found


def test_an_mbox_in_an_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("box", b"From a@b Thu Jan  1 00:00:00 2020\nSubject: s\n\nto be\n")
    (found,) = read(path)
    assert found == NoDocument(
        os.fsencode(path) + b"!box", document_files.MBOX_INSIDE, skipped=True
    )
