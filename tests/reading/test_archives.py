"""Members of archives have paths that no file has, and no archive takes all time or memory."""

import gzip
import io
import os
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from neardup.reading import archives
from neardup.reading.archives import BINARY
from neardup.tools.documents.document_files import Document, NoDocument, Outcome, documents

LIMIT = 1000


def read(path: Path, limit: int = LIMIT) -> list[Outcome]:
    status = path.stat()
    return list(documents(os.fsencode(path), (status.st_size, status.st_mtime_ns), limit))


def names_of(found: list[Outcome], archive: Path) -> list[str]:
    """Return the paths of documents, without that of the archive."""
    paths = [os.fsdecode(each.path) for each in found if isinstance(each, Document)]
    return [path.removeprefix(str(archive)) for path in paths]


def reasons(found: list[Outcome]) -> list[tuple[str, str]]:
    return [(each.reason, each.detail) for each in found if isinstance(each, NoDocument)]


def tar_of(path: Path, *names: str, mode: str = "w", **fields: object) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for number, name in enumerate(names):
            entry = tarfile.TarInfo(name)
            entry.size = 6
            for field, value in fields.items():
                setattr(entry, field, value)
            archive.addfile(entry, io.BytesIO(b"text %d" % number))
    return path


def zip_of(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive, pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # of a repeated name
        for number, name in enumerate(names):
            archive.writestr(name, f"text {number}")
    return path


@pytest.mark.parametrize("make", [tar_of, zip_of])
def test_a_member_never_has_the_path_of_a_file(make: object, tmp_path: Path) -> None:
    """The path of a member that a file has is made different; so is a repeated name."""
    archive = tmp_path / "b"
    (tmp_path / "b!note.txt").write_text("a file")
    (tmp_path / "b!sub").mkdir()
    (tmp_path / "b!sub" / "x").symlink_to("nowhere")
    make(archive, "note.txt", "sub/x", "sub/y", "y", "y", "c!d")  # type: ignore[operator]
    found = names_of(read(archive), archive)
    assert found == ["/!1!note.txt", "/!1!sub/x", "!sub/y", "!y", "/!2!y", "/!1!c!d"]
    assert not any(os.path.lexists(f"{archive}{name}") for name in found)


@pytest.mark.parametrize("make", [tar_of, zip_of])
@pytest.mark.parametrize(
    "name",
    ["../x", "/x", "/../../x", "a/../../x", "..", "..\\x", "\\x", "a\\..\\x", "C:\\x", "c:x"],
)
def test_a_member_outside_of_its_archive_is_left_out(
    make: object, name: str, tmp_path: Path
) -> None:
    archive = make(tmp_path / "a", name, "..x", "x..", "x/...y/z")  # type: ignore[operator]
    found = read(archive)
    assert reasons(found) == [(archives.OUTSIDE, ""), (archives.HIDDEN_MEMBERS, "")] + [
        (archives.HIDDEN_MEMBERS, "")
    ]
    assert names_of(found, archive) == ["!x.."]


def test_two_archives_never_share_a_path(tmp_path: Path) -> None:
    """a!b!c is c in a!b, and not b!c in a."""
    inner, outer = zip_of(tmp_path / "a!b", "c"), zip_of(tmp_path / "a", "b!c")
    paths = [each.path for archive in (inner, outer) for each in read(archive)]
    assert len(set(paths)) == 2


@pytest.mark.parametrize("folder", ["", "x!y", "x/!1!z", "a.zip!"])
@pytest.mark.parametrize("make", [tar_of, zip_of])
def test_the_archive_of_a_member(make: object, folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    archive = make(tmp_path / folder / "b!c", "n", "n", "c!d", "/!1!e", "s/!1!f")  # type: ignore[operator]
    members = [each for each in read(archive) if isinstance(each, Document)]
    assert len(members) == 4
    for each in members:
        assert archives.archive_of(each.path) == os.fsencode(archive)


def test_links_in_a_zip_are_not_texts(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, mode in (("link", 0o120777), ("file", 0o100644), ("folder", 0o40755)):
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, "some text")
        archive.writestr("data/", "in a folder")
    found = read(tmp_path / "a.zip")
    assert names_of(found, tmp_path / "a.zip") == ["!file"]
    assert reasons(found) == [(archives.OTHER_MEMBERS, "")] * 3


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_tars_of_all_formats_are_read_as_by_tarfile(form: int, mode: str, tmp_path: Path) -> None:
    """Whatever their names: archives and compressed files are known by their first bytes."""
    path = tmp_path / "backup"
    long = "/".join(["folder" * 4] * 3) + "/file"
    names = ["a", "é", long] + [long * 3 + "ü"] * (form != tarfile.USTAR_FORMAT)
    with tarfile.open(path, mode, format=form) as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = 700, 1_700_000_000.5  # type: ignore[assignment]
            if form == tarfile.USTAR_FORMAT:
                entry.mtime = 1_700_000_000
            archive.addfile(entry, io.BytesIO(name.encode().ljust(700)))
    found = read(path)
    with tarfile.open(path) as archive:
        expected = [(entry.name, float(entry.mtime)) for entry in archive]
    texts = [each for each in found if isinstance(each, Document)]
    assert [(os.fsdecode(each.path).split("!")[1], each.changed) for each in texts] == expected
    assert [each.text.strip() for each in texts] == names == [name for name, _ in expected]
    assert len(found) == len(texts)


def header(name: str, kind: bytes, size: int) -> bytes:
    """Return a header of a tar with any size, even a negative one."""
    entry = tarfile.TarInfo(name)
    entry.type = kind
    block = bytearray(entry.tobuf(tarfile.GNU_FORMAT)[:512])
    block[124:136] = b"\xff" * 4 + struct.pack(">q", size) if size < 0 else b"%011o\0" % size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize("kind", [b"0", b"x", b"g", b"L", b"K", b"1", b"S", b"?"])
def test_a_tar_with_a_negative_size_ends(kind: bytes, tmp_path: Path) -> None:
    good = tar_of(tmp_path / "good", "a").read_bytes()[:1024]
    (tmp_path / "a.tar").write_bytes(good + header("b", kind, -1024) + bytes(1024))
    found = read(tmp_path / "a.tar")
    assert names_of(found, tmp_path / "a.tar") == ["!a"]
    assert len(found) <= 3  # a sparse file is counted before its size is known
    assert reasons(found)[-1][0] in (archives.DAMAGED, archives.OVER_LIMIT)


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_a_huge_header_of_a_tar_is_not_read(kind: bytes, tmp_path: Path) -> None:
    """1 MiB that unpacks to a header of 1 GiB is refused before it is unpacked."""
    start = header("b", kind, 1 << 30) + bytes(1 << 20)
    (tmp_path / "a.tgz").write_bytes(gzip.compress(start))
    assert reasons(read(tmp_path / "a.tgz")) == [
        (archives.OVER_LIMIT, "a header of 1,073,741,824 bytes, or too many headers")
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"2 " * 200_000 + b"=",  # for tarfile, a key of 400 kB at each of 200,000 places
        b"9" * 400_000,
        b"9" * 400_000 + b" path=x\n",
        b"11 path=a\n",
        b"9 path=a\n\n",
        b"10 pathxa\n",
        b"-5 path=a\n",
    ],
)
def test_pax_records_that_are_damaged(body: bytes, tmp_path: Path) -> None:
    padded = body + bytes(-len(body) % 512)
    (tmp_path / "a").write_bytes(header("b", b"x", len(body)) + padded + bytes(1024))
    ((reason, _),) = reasons(read(tmp_path / "a"))
    assert reason in (archives.DAMAGED, archives.OVER_LIMIT)


def test_overlapping_members_of_a_zip(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip", "a", "b")
    data = bytearray(path.read_bytes())
    second = data.rindex(b"PK\1\2")
    data[second + 42 : second + 46] = bytes(4)  # it begins where the first one does
    path.write_bytes(data)
    assert reasons(read(path)) == [(archives.DAMAGED, "its members overlap")]


@pytest.mark.parametrize("make", [tar_of, zip_of])
@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"MAX_ENTRIES": 2}, "more than 2 members"),
        ({"MAX_BYTES": 1, "BYTES_PER_BYTE": 0}, "more than 1 bytes when unpacked"),
        ({"MAX_SECONDS": -1}, "not read after -1 seconds"),
    ],
)
def test_limits(
    make: object, limits: dict[str, int], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(archives, name, value)
    archive = make(tmp_path / "a", "a", "b", "c")  # type: ignore[operator]
    assert reasons(read(archive)) == [(archives.OVER_LIMIT, said)]


def test_the_directory_of_a_zip_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_DIRECTORY", 100)
    found = read(zip_of(tmp_path / "a.zip", "a", "b", "c"))
    assert reasons(found) == [(archives.OVER_LIMIT, "a directory of 141 bytes")]


def test_a_gzip_bomb_in_a_tar_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_BYTES", 1 << 20)
    entry = tarfile.TarInfo("a")
    entry.size = 20 << 20
    data = entry.tobuf() + bytes(entry.size) + bytes(1024)
    (tmp_path / "a.tgz").write_bytes(gzip.compress(data))
    found = read(tmp_path / "a.tgz")
    assert [why for why, _ in reasons(found)] == [BINARY, archives.OVER_LIMIT]


def test_office_files_are_not_archives(tmp_path: Path) -> None:
    for number, first in enumerate(("[Content_Types].xml", "mimetype")):
        path = zip_of(tmp_path / f"{number}.xlsx", first, "xl/workbook.xml")
        assert reasons(read(path)) == [(BINARY, "")]


def test_what_is_not_what_its_name_says(tmp_path: Path) -> None:
    """Text is text under any name; binary data and nothing are damaged where a name says more."""
    assert names_of(read(tar_of(tmp_path / "b.zip", "n")), tmp_path / "b.zip") == ["!n"]
    for name in ("a.gz", "a.tar", "a.tar.xz", "a.bz2"):
        (tmp_path / name).write_text("to be")
        assert names_of(read(tmp_path / name), tmp_path / name) == [""]
        for data in (b"\0\1", b""):
            (tmp_path / name).write_bytes(data)
            said = archives.DAMAGED, "is not what its name says"
            assert reasons(read(tmp_path / name)) == [said]
