"""PDF, Word, OpenDocument and EPUB files give text, or a reason why not; no file takes all time."""

from __future__ import annotations

import os
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from neardup.reading import archives, decoders
from neardup.tools.documents import document_files, office_files
from neardup.tools.documents.document_files import Document, NoDocument, Outcome, documents

EXPECTED = "One & two words in a paragraph. Another one"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
WORD = f"""<?xml version="1.0"?><w:document {W}><w:body>
<w:p><w:r><w:t>One &amp; t</w:t></w:r><w:r><w:t xml:space="preserve">wo words</w:t><w:tab/></w:r>
<w:t>in a paragraph.</w:t></w:p>
<w:p><w:instrText>PAGE</w:instrText><w:t>Another</w:t><w:br/><w:t>one</w:t></w:p></w:body></w:document>"""
ODF = "urn:oasis:names:tc:opendocument:xmlns"
OPEN = f"""<o:document-content xmlns:o="{ODF}:office:1.0" xmlns:t="{ODF}:text:1.0">
<o:automatic-styles><t>style</t></o:automatic-styles><o:body><o:text>
<t:h>One &amp; t<t:span>wo</t:span></t:h>
<t:p>words<t:tab/>in a<t:s/>paragraph.</t:p>
<t:p>Another one</t:p>
</o:text></o:body></o:document-content>"""
CONTAINER = """<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="a/b.opf"/></rootfiles></container>"""
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf"><manifest>
<item id="2" href="../c%20d.xhtml"/><item id="1" href="e.xhtml"/><item id="0" href="toc.xhtml"/>
</manifest><spine><itemref idref="1"/><itemref idref="2"/></spine></package>"""
PAGE = "<!DOCTYPE html><html><head><title>t</title></head><body>%s</body></html>"
BOOK = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "a/b.opf": PACKAGE,
    "a/e.xhtml": PAGE % "<p>One &amp; t<b>wo</b><p>words in",
    "c d.xhtml": PAGE % "<p>a&nbsp;paragraph.<p>Another one",
}
FILES = {
    "a.docx": {"[Content_Types].xml": "", "word/document.xml": WORD},
    "a.odt": {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": OPEN},
    "a.epub": BOOK,
}


def pdf_of(*objects: bytes, trailer: bytes = b"") -> bytes:
    """Return a PDF of these objects, of which the first is the catalogue."""
    pytest.importorskip("pypdf")
    data, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
    end = b"trailer<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF" % (size, trailer, len(data))
    return data + head + end


def stream(data: bytes, more: bytes = b"") -> bytes:
    return b"<</Length %d%b>>stream\n%b\nendstream" % (len(data), more, data)


def pdf(
    text: str = EXPECTED, picture: bytes = b"", filled: str = "", trailer: bytes = b""
) -> bytes:
    shown = stream(b"BT /F 9 Tf 9 99 Td (%b) Tj ET" % text.encode("latin-1"))
    image = b"/XObject<</I 6 0 R>>" * bool(picture)
    note = b"/Annots[<</Subtype/Widget/V(%b)>>]" % filled.encode() if filled else b""
    return pdf_of(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 500 99]/Contents 4 0 R%b"
        b"/Resources<</Font<</F 5 0 R>>%b>>>>" % (note, image),
        shown,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        stream(
            picture, b"/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8"
        ),
        b"<</Filter/Standard/V 1/R 2/P -4/O(%b)/U(%b)>>" % (b"o" * 32, b"u" * 32),
        trailer=trailer,
    )


def zip_of(path: Path, parts: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def outcome(path: Path, limit: int = 10**6) -> Outcome:
    status = path.stat()
    (found,) = documents(os.fsencode(path), (status.st_size, status.st_mtime_ns), limit)
    return found


def pdf_outcome(tmp_path: Path, data: bytes) -> Outcome:
    (tmp_path / "a.pdf").write_bytes(data)
    return outcome(tmp_path / "a.pdf")


@pytest.mark.parametrize("name", [*FILES, "a.pdf"])
def test_the_text_of_a_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(pdf()) if name == "a.pdf" else zip_of(path, {**FILES[name]})
    found = outcome(path)
    assert isinstance(found, Document), found
    assert " ".join(found.text.split()) == EXPECTED
    assert (found.bytes, found.unread) == (path.stat().st_size, frozenset())
    inner = zip_of(tmp_path / "in.zip", {name: path.read_bytes()})
    member = outcome(inner)
    assert isinstance(member, Document)
    assert (member.path, member.text) == (os.fsencode(f"{inner}!{name}"), found.text)
    short = outcome(path, 9)
    assert isinstance(short, NoDocument)
    assert short.reason == document_files.TOO_LONG


def test_pictures_and_what_is_filled_in_are_told_apart(tmp_path: Path) -> None:
    data = [pdf(), *(pdf(picture=each) for each in (b"1", b"1", b"2")), pdf(filled="me")]
    unread = [
        found.unread for each in data if isinstance(found := pdf_outcome(tmp_path, each), Document)
    ]
    none, one, same, other, filled = unread
    assert not none
    assert one == same != other
    assert filled
    pictures: list[frozenset[bytes]] = []
    for place in ("word/media/i.png", "Pictures/i", "docProps/thumbnail.jpeg"):
        found = outcome(zip_of(tmp_path / "a.docx", {**FILES["a.docx"], place: b"i"}))
        assert isinstance(found, Document)
        pictures.append(found.unread)
    assert pictures[0] == pictures[1] != frozenset() == pictures[2]


def annotated(note: str, *objects: bytes, resources: str = "", drawn: str = "") -> bytes:
    """Return a PDF with the usual text, an annotation, resources and drawings; objects: from 6."""
    return pdf_of(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 500 99]/Contents 4 0 R/Annots[<<%b>>]"
        b"/Resources<</Font<</F 5 0 R>>%b>>>>" % (note.encode(), resources.encode()),
        stream(f"BT /F 9 Tf 9 99 Td ({EXPECTED}) Tj ET {drawn}".encode()),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *objects,
    )


def edited(name: str, *change: str, **parts: str) -> dict[str, str | bytes]:
    """Return the parts of a file, with one replacement in its main part, and more parts."""
    files = {**FILES[name]}
    main = {"a.docx": "word/document.xml", "a.odt": "content.xml", "a.epub": "c d.xhtml"}[name]
    return {**files, main: str(files[main]).replace(*change), **parts} if change else {**files}


END, OPEN_END = "</w:body>", "</o:text></o:body>"
NAMESPACES = f'xmlns:d="{ODF}:drawing:1.0" xmlns:v="urn:schemas-microsoft-com:vml"'
LINKS = "<R><R Type='hyperlink' Target='http://a/%s' TargetMode='External'/></R>"
HEADER = "<s xmlns:t='t'><master-styles><t:p>%s</t:p></master-styles></s>"
UNREAD: dict[str, Callable[[str], bytes | dict[str, str | bytes]]] = {
    "path.pdf": lambda n: annotated("", drawn=f"1 1 m 9 {n} l S"),
    "inline.pdf": lambda n: annotated("", drawn=f"BI /W 1 /H 1 /CS /G /BPC 8 ID {n} EI"),
    "form.pdf": lambda n: annotated("", stream(n.encode()), resources="/XObject<</X 6 0 R>>"),
    "mask.pdf": lambda n: annotated(
        "",
        stream(b"1", b"/Subtype/Image/SMask 7 0 R"),
        stream(n.encode()),
        resources="/XObject<</X 6 0 R>>",
    ),
    "stamp.pdf": lambda n: annotated("/Subtype/Stamp/AP<</N 6 0 R>>", stream(n.encode())),
    "file.pdf": lambda n: annotated(
        "/Subtype/FileAttachment/FS<</EF<</F 6 0 R>>>>", stream(n.encode())
    ),
    "ink.pdf": lambda n: annotated(f"/Subtype/Ink/InkList[[1 2 {n}]]"),
    "link.pdf": lambda n: annotated(f"/Subtype/Link/A<</S/URI/URI(http://a/{n})>>"),
    "field.pdf": lambda n: annotated("/Subtype/Widget/Parent 6 0 R", f"<</V({n})>>".encode()),
    "chart.docx": lambda n: edited("a.docx", "", "", **{"word/charts/chart1.xml": n}),
    "macro.docx": lambda n: edited("a.docx", "", "", **{"word/vbaProject.bin": n}),
    "deleted.docx": lambda n: edited("a.docx", END, f"<w:delText>{n}</w:delText>{END}"),
    "symbol.docx": lambda n: edited("a.docx", END, f"<w:sym w:char='{n}'/>{END}"),
    "field.docx": lambda n: edited(
        "a.docx", END, f"<w:fldSimple w:instr='HYPERLINK http://a/{n}'/>{END}"
    ),
    "shape.docx": lambda n: edited("a.docx", END, f"<v:shape {NAMESPACES} path='{n}'/>{END}"),
    "link.docx": lambda n: edited("a.docx", "", "", **{"word/_rels/document.xml.rels": LINKS % n}),
    "note.odt": lambda n: edited("a.odt", OPEN_END, f"<o:annotation>{n}</o:annotation>{OPEN_END}"),
    "change.odt": lambda n: edited(
        "a.odt", OPEN_END, f"<t:tracked-changes>{n}</t:tracked-changes>{OPEN_END}"
    ),
    "formula.odt": lambda n: edited("a.odt", OPEN_END, f"<t:cell t:formula='{n}'/>{OPEN_END}"),
    "rounded.odt": lambda n: edited(
        "a.odt", OPEN_END, f"<t:cell o:value='5.{n}'><t:p>5</t:p></t:cell>{OPEN_END}"
    ),
    "day.odt": lambda n: edited(
        "a.odt", OPEN_END, f"<t:cell o:date-value='2024-05-{n}'><t:p>May</t:p></t:cell>{OPEN_END}"
    ),
    "drawing.odt": lambda n: edited(
        "a.odt", OPEN_END, f"<d:path {NAMESPACES} d:points='{n}'/>{OPEN_END}"
    ),
    "header.odt": lambda n: edited("a.odt", "", "", **{"styles.xml": HEADER % n}),
    "sound.epub": lambda n: edited("a.epub", "", "", **{"a/i.m4a": n}),
    "page.epub": lambda n: edited("a.epub", "", "", **{"a/toc.xhtml": n}),
    "svg.epub": lambda n: edited("a.epub", "</body>", f"<svg><path d='{n}'/></svg></body>"),
    "aside.epub": lambda n: edited("a.epub", "</body>", f"<aside>{n}</aside></body>"),
    "link.epub": lambda n: edited("a.epub", "</body>", f"<a href='http://a/{n}'></a></body>"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_not_read_as_text_is_told_apart(name: str, tmp_path: Path) -> None:
    """Different parts give different hashes or text; other metadata or compression does not."""

    def found(value: str, method: int = zipfile.ZIP_STORED) -> tuple[str, frozenset[bytes]]:
        made, path = UNREAD[name](value), tmp_path / name
        if isinstance(made, bytes):
            path.write_bytes(made)
        else:
            more = {"docProps/core.xml": str(method), "meta.xml": str(method)}
            with zipfile.ZipFile(path, "w", method) as archive:
                for each, data in {**made, **more}.items():
                    archive.writestr(each, data)
        document = outcome(path)
        assert isinstance(document, Document), document
        return document.text, document.unread

    one, same, other = found("11"), found("11", zipfile.ZIP_DEFLATED), found("22")
    assert one == same
    assert one[0] != other[0] or (one[1] and other[1] and one[1] != other[1])


def test_a_number_that_is_shown_as_it_is_gives_no_hash(tmp_path: Path) -> None:
    cell = f"<t:cell o:value='5.1'><t:p>5.1</t:p></t:cell>{OPEN_END}"
    found = outcome(zip_of(tmp_path / "a.odt", edited("a.odt", OPEN_END, cell)))
    assert isinstance(found, Document)
    assert (found.text.split()[-1], found.unread) == ("5.1", frozenset())


@pytest.mark.parametrize("note", ["/Subtype/Widget/Parent null", "/AP<</N 6 0 R>>", ">>null<<"])
def test_the_text_of_a_pdf_is_read_beside_damaged_notes(note: str, tmp_path: Path) -> None:
    found = pdf_outcome(tmp_path, annotated(note, b"<</A"))
    assert isinstance(found, Document), found
    assert found.text.strip() == EXPECTED


@pytest.mark.parametrize("target", ["word/main.xml", "/word/main.xml"])
def test_the_main_part_of_a_word_file_is_the_one_that_is_named(target: str, tmp_path: Path) -> None:
    relations = f"<R><R Type='a/officeDocument' Target='{target}'/></R>"
    parts = {"[Content_Types].xml": "", "_rels/.rels": relations, "word/main.xml": WORD}
    found = outcome(zip_of(tmp_path / "a.docx", {**parts}))
    assert isinstance(found, Document)
    assert " ".join(found.text.split()) == EXPECTED
    del parts["_rels/.rels"]
    lost = outcome(zip_of(tmp_path / "a.docx", {**parts, "word/header1.xml": WORD}))
    assert lost[1:3] == (archives.DAMAGED, "it has no word/document.xml")


BOMB = f"""<!DOCTYPE x [<!ENTITY a "{"a" * 1000}">{
    "".join(f'<!ENTITY {b} "{f"&{a};" * 99}">' for a, b in zip("abcde", "bcdef"))
}]>"""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"word/document.xml": BOMB + WORD[21:].replace("PAGE", "&f;")}, archives.DAMAGED),
        ({"word/document.xml": WORD[:-9]}, archives.DAMAGED),
        ({"word/document.xml": WORD.replace("w:t", "w:x")}, office_files.NO_TEXT),
        ({"word/document.xml": "<a>" * 10**5 + "</a>" * 10**5}, office_files.NO_TEXT),
        ({"word/document.xml": b" " * 200_000_000}, archives.OVER_LIMIT),
        ({"META-INF/manifest.xml": "encryption-data"}, archives.UNREADABLE),
    ],
    ids=["entities", "cut", "none", "deep", "bomb", "encrypted"],
)
def test_word_files_without_text(
    change: dict[str, str | bytes], reason: str, tmp_path: Path
) -> None:
    found = outcome(zip_of(tmp_path / "a.docx", {**FILES["a.docx"], **change}))
    assert isinstance(found, NoDocument), found
    assert found.reason == reason
    assert found.skipped == (reason == office_files.NO_TEXT)


def test_files_that_are_not_what_their_name_says(tmp_path: Path) -> None:
    zip_of(tmp_path / "a.docx", {**FILES["a.docx"]})
    whole = (tmp_path / "a.docx").read_bytes()
    for data, said in {
        whole[:-99]: (archives.DAMAGED, "File is not a zip file"),
        b"\xff\xd8\xff\xe0\0": (archives.DAMAGED, "is not what its name says"),
        b"\xd0\xcf\x11\xe0": (archives.UNREADABLE, ""),
        b"": (document_files.EMPTY, ""),
        b"PK\5\6" + bytes(18): (archives.DAMAGED, ""),  # a zip without entries
    }.items():
        (tmp_path / "a.docx").write_bytes(data)
        found = outcome(tmp_path / "a.docx")
        assert isinstance(found, NoDocument)
        assert found.reason == said[0]
        assert said[1] in found.detail
    odd = whole.replace(b"PK\1\2\x14\3\x14", b"PK\1\2\x14\3\x63")  # of version 9.9
    found = outcome(zip_of(tmp_path / "in.zip", {"a.docx": odd}))
    assert isinstance(found, NoDocument)
    assert (found.path[-7:], found.reason) == (b"!a.docx", archives.UNREADABLE)
    late = pdf_outcome(tmp_path, b"by mail\n" + pdf())
    assert isinstance(late, Document)
    assert late.text == EXPECTED
    text = pdf_outcome(tmp_path, b"a text")
    assert isinstance(text, Document)
    assert text.text == "a text"


def test_pdf_files_without_text(tmp_path: Path) -> None:
    for data, reason, detail in (
        (pdf(trailer=b"/Encrypt 7 0 R/ID[(i)(i)]"), archives.UNREADABLE, office_files.ENCRYPTED),
        (pdf()[:300], archives.UNREADABLE, "by pypdf: "),
        (pdf("", picture=b"1"), office_files.NO_TEXT, ""),
    ):
        found = pdf_outcome(tmp_path, data)
        assert isinstance(found, NoDocument), found
        assert found.reason == reason
        assert detail in found.detail
        assert found.skipped == (reason == office_files.NO_TEXT)


def test_a_package_that_is_missing_or_broken_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pypdf.py").write_text("0 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pypdf", raising=False)
    broken = pdf_outcome(tmp_path, b"%PDF-1.4")
    assert "pypdf does not load: ZeroDivisionError" in broken[2]
    monkeypatch.setitem(sys.modules, "pypdf", None)
    assert pdf_outcome(tmp_path, b"%PDF-1.4")[1:] == (office_files.NO_PYPDF, "", True)


def test_a_file_that_takes_forever_or_all_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(office_files, "_pdf_parts", lambda _: time.sleep(99))
    for limits in (archives, office_files):  # of all that is in a file, and of one document
        with monkeypatch.context() as patch:
            patch.setattr(limits, "MAX_SECONDS", 0.2)
            assert pdf_outcome(tmp_path, pdf())[1] == decoders.TIMED_OUT
    monkeypatch.setattr(office_files, "_pdf_parts", lambda _: bytearray(1 << 40))
    assert pdf_outcome(tmp_path, pdf())[1] == decoders.OUT_OF_MEMORY
