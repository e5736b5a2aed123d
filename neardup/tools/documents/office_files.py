"""Read the text of PDF, Word, OpenDocument and EPUB files; pypdf reads PDF.

A PDF, or a file with much XML, is read in a process of its own, which ends if it takes too much
time or memory.  What is not read as text, such as pictures, drawings, links and deleted text, gives
hashes; fonts, styles and metadata give none.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from hashlib import blake2b
from io import BytesIO
from posixpath import basename, dirname, join, normpath
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

from neardup.reading import archives
from neardup.reading.archives import DAMAGED, UNREADABLE, MemberError
from neardup.reading.cleaning import all_text
from neardup.reading.decoders import OUT_OF_MEMORY, Failure, bound_memory, outcomes
from neardup.reading.mails import Decode, ReadText

NO_PYPDF = "PDF, not read without a package: pip install pypdf"
NO_TEXT = "documents without text, maybe scanned"
MAX_SECONDS, SECONDS_PER_BYTE = 30, 1e-5  # for one document, so that the rest of an archive is read
SMALL = 4 << 20  # bytes of XML that are read in this process
BEYOND = MemberError(archives.OVER_LIMIT, "")
ENCRYPTED = "it needs a password"
DAMAGES = (
    zipfile.BadZipFile,
    ValueError,
    LookupError,
    EOFError,
    SyntaxError,
    OSError,
    OverflowError,
    struct.error,
    zlib.error,
)
WORD = re.compile(r"word/(?:footnotes|endnotes|comments|header|footer)\d*\.xml")
NO_CONTENT = re.compile(
    r"(?i)(?:.*/)?(?:styles(?:witheffects)?|(?:web)?settings|fonttable|theme/[^/]+)\.xml"
    r"|(?:docprops|configurations2|thumbnails|meta-inf)/(?!.*(?:encryption|signature)).*"
    r"|mimetype|\[content_types\]\.xml|meta\.xml|manifest\.rdf|layout-cache"
    r"|.*\.(?:rels|opf|ncx|css|ttf|otf|woff2?|odttf)"
)
GAPS = {"p", "h", "tab", "br", "cr", "s", "line-break"}  # elements that separate words
LEFT_OUT = {"Fallback", "tracked-changes", "annotation"}  # copies, deleted text, notes
# Elements in other namespaces are drawings, formulas and controls.
OF_TEXT = re.compile(r"wordprocessingml/(?:2006/)?main|:(?:text|table|office|style):1\.0")
MARKS = {"delText", "sym", "checked", "default", "result"}  # of Word, that are not text
VALUES = {"value", "date-value", "time-value"}  # of cells, which may show them rounded
NUMBERS = {"id", "embed", "anchorId", "editId", "paraId", "textId"}  # that a program may change
HTML_UNREAD = re.compile(r"(?i)<(?:audio|canvas|iframe|input|math|object|select|svg|video)\b")
HTML_LINK = re.compile(r"""(?i)\b(?:href|src)\s*=\s*["']\s*(\w+:[^"']*)""")
# Of a PDF: its pages, which are read apart, fonts, metadata, and what only finds the way in it.
PDF_SKIPPED = """
/Pages /P /Type /Version /Extensions /PageMode /PageLayout /PageLabels /Lang /MarkInfo
/ViewerPreferences /OutputIntents /OpenAction /Dests /Dest /D /Count /Metadata /PieceInfo
/StructTreeRoot /StructParent /StructParents /Font /DR /DA /ProcSet /Properties /Length /NM /M
/LastModified /ModDate /CreationDate
"""
PDF_STRING = re.compile(rb"\((?:\\.|[^\\()])*\)|<[\da-fA-F\s]*>", re.DOTALL)
PDF_TEXT = re.compile(rb"\bBT\b.*?\bET\b", re.DOTALL)
PDF_INLINE = re.compile(rb"(?<!\S)BI(?!\w)")
PDF_PATH = re.compile(rb"(?<!\S)(?:[lcvy]|sh)(?!\S)")
Part = Callable[[str], bytes]  # the bytes of an entry of a zip, by its name; none if it is missing
Found = tuple[str, bytes]  # a text, and what the document has besides it


def read_apart(
    reader: Callable[..., ReadText],
    data: bytes,
    decode: Decode,
    _: object,
    limits: archives.Archive,
) -> ReadText:
    """Return what a reader of this file finds in a document, if it takes neither long nor much.

    MemberError with the reason why it cannot be read.
    """
    limits.take(0)
    seconds = min(limits.left, MAX_SECONDS + SECONDS_PER_BYTE * len(data))
    if reader is pdf_text:
        try:
            import pypdf  # noqa: F401  # here, not in each process
        except ImportError:
            raise MemberError(NO_PYPDF, "", True) from None
        except Exception as error:
            detail = f"pypdf does not load: {type(error).__name__}: {error}"
            raise MemberError(UNREADABLE, f"{detail}; pip install --upgrade pypdf") from None

    def task(most: int) -> ReadText | MemberError:
        try:
            return reader(data, decode, limits, most)
        except MemberError as error:
            return error
        except MemoryError:
            return MemberError(OUT_OF_MEMORY, "")

    found: Any = BEYOND if reader is pdf_text else task(SMALL)
    if isinstance(found, MemberError) and found.args[0] == archives.OVER_LIMIT:
        pool = outcomes([archives.MAX_FILE], task, 1, lambda _: seconds, bound_memory, fresh=True)
        ((_, found),) = pool
    if isinstance(found, (Failure, MemberError)):
        raise MemberError(*found) if isinstance(found, Failure) else found
    return found


def pdf_text(data: bytes, *_: object) -> ReadText:
    try:
        texts, unread = _pdf_parts(data)
    except (MemberError, MemoryError):
        raise
    except Exception as error:  # pypdf has its own, and others for damaged files
        detail = f"by pypdf: {type(error).__name__}: {error}"
        raise MemberError(UNREADABLE, detail) from None
    hashes = (blake2b(each, digest_size=8).digest() for each in unread if each)
    return ReadText("\n".join(texts), "", frozenset(hashes))


def _pdf_parts(data: bytes) -> tuple[list[str], set[bytes]]:
    """Return the texts of a PDF, and the bytes of what else is in it."""
    from pypdf import PdfReader

    pdf, texts, unread = PdfReader(BytesIO(data)), [], set[bytes]()
    if pdf.is_encrypted and not pdf.decrypt(""):
        raise MemberError(UNREADABLE, ENCRYPTED)
    pages: Any = list(pdf.pages)
    seen = {page.indirect_reference.idnum for page in pages if page.indirect_reference}
    for page in pages:
        texts.append(page.extract_text())
        content = page.get_contents()
        unread.add(_drawn(b"" if content is None else content.get_data()))
        for note in page.get("/Annots") or ():
            if not isinstance(note := note.get_object(), dict):
                continue
            filled = [_value(note), str(note.get("/Contents", ""))]
            texts += filled
            unread.add("".join(filled).encode("utf-8", "surrogatepass"))
            link = note.get("/Subtype") == "/Link"  # its place follows from the text
            unread.update(_objects(note.get("/A") if link else note, seen, True))
        unread.update(_objects([page.get("/AA"), page.get("/AF")], seen, True))
    unread.update(_objects(pdf.root_object, seen, True))
    for page in pages:
        unread.update(_objects(page.get("/Resources"), seen, False))
    return texts, unread


def _value(field: Any) -> str:
    """Return the value of a field of a form, which may be that of a parent."""
    for _ in range(99):
        if not isinstance(field, dict) or "/V" in field:
            break
        field = field.get("/Parent")
    return str(field.get("/V", "")) if isinstance(field, dict) else ""


def _drawn(content: bytes) -> bytes:
    """Return what is drawn besides text; nothing if only rectangles are, as in tables."""
    bare = PDF_STRING.sub(b"", content)
    if PDF_INLINE.search(bare):  # a picture, in which any bytes may be
        return content
    rest = PDF_TEXT.sub(b"", bare)
    return b" ".join(rest.split()) if PDF_PATH.search(rest) else b""


def _objects(top: Any, seen: set[int], plain: bool) -> Iterator[bytes]:
    """Yield the bytes of each stream that `top` leads to; of each other object too, if `plain`.

    seen: the numbers of objects that are left out; gets those that are visited.
    """
    from pypdf.errors import PyPdfError
    from pypdf.generic import IndirectObject, StreamObject

    todo = [top]
    while todo:
        thing = todo.pop()
        if isinstance(thing, IndirectObject):
            if thing.idnum in seen:
                continue
            seen.add(thing.idnum)
            try:
                thing = thing.get_object()
            except PyPdfError:  # the text may be whole
                yield b"damaged"
                continue
        keys = sorted(thing.keys() - PDF_SKIPPED.split()) if isinstance(thing, dict) else []
        values = [(key, thing.raw_get(key)) for key in keys] or [("", thing)]
        own = ""
        while values:
            key, value = values.pop()
            if isinstance(value, list):
                values += [(key, each) for each in value]
            elif isinstance(value, (IndirectObject, dict)):
                todo += [value] * (value is not thing)
            elif value is not None:
                own += f"{key} {value}\n"
        if isinstance(thing, StreamObject):
            yield own.encode("utf-8", "surrogatepass") + thing._data
        elif plain:
            yield own.encode("utf-8", "surrogatepass")


def old_word(*_: object) -> ReadText:
    raise MemberError(UNREADABLE, f"{ENCRYPTED}, or is of Word before 2007; save it as .docx")


def office_text(data: bytes, decode: Decode, limits: archives.Archive, most: int) -> ReadText:
    read = set[zipfile.ZipInfo]()
    try:
        with zipfile.ZipFile(BytesIO(data)) as opened:
            entries = opened.infolist()
            archives.check_apart(entries)
            limits.take(0, len(entries))

            def part(name: str) -> bytes:
                if not (entry := opened.NameToInfo.get(name)):
                    return b""
                read.add(entry)
                found = archives.read_entry(opened, entry, limits, most + 1)
                if len(found) > most:
                    raise archives.OverLimitError(f"{name} has more than {most:,} bytes")
                return found

            found = list(_texts(sorted(opened.NameToInfo), part, decode))
    except RuntimeError as error:  # NotImplementedError: a version or method of zip
        raise MemberError(UNREADABLE, str(error)) from None
    except DAMAGES as error:
        raise MemberError(DAMAGED, str(error)) from None
    except archives.OverLimitError as error:
        raise MemberError(archives.OVER_LIMIT, str(error)) from None
    unread = [
        b"%x %x" % (each.CRC, each.file_size)
        for each in entries
        if each.file_size and each not in read and not NO_CONTENT.fullmatch(each.filename)
    ]
    unread += (blake2b(more, digest_size=8).digest() for _, more in found if more)
    return ReadText("\n".join(text for text, _ in found), "", frozenset(unread))


def _texts(names: list[str], part: Part, decode: Decode) -> Iterator[Found]:
    kind = part("mimetype").strip()
    if b"encryption-data" in part("META-INF/manifest.xml") or "META-INF/rights.xml" in names:
        raise MemberError(UNREADABLE, ENCRYPTED)
    if "[Content_Types].xml" in names:
        for name in sorted({_main_part(part), *filter(WORD.fullmatch, names)}):
            yield xml_text(_existing(name, names, part), "t")
            yield from (("", link.encode()) for link in _links(name, part))
    elif b"opendocument" in kind:
        yield xml_text(part("content.xml"))
        if "styles.xml" in names:  # with the header and footer of pages
            text, more = xml_text(part("styles.xml"), top="master-styles")
            yield (text, more) if b".text" in kind else ("", text.encode() + more)
    else:
        for name in _chapters(part):
            if page := _existing(name, names, part).strip():
                text = decode(page)[0]
                links = "\n".join(HTML_LINK.findall(text)).encode("utf-8", "surrogatepass")
                yield all_text(text), page if HTML_UNREAD.search(text) else links


def _existing(name: str, names: list[str], part: Part) -> bytes:
    if name not in names:
        raise MemberError(DAMAGED, f"it has no {name}")
    return part(name)


def _relations(name: str, part: Part) -> Iterator[ElementTree.Element]:
    found = part(join(dirname(name), "_rels", f"{basename(name)}.rels"))
    return ElementTree.fromstring(found).iter() if found else iter(())


def _main_part(part: Part) -> str:
    """Return the name of the part of a Word file that has its body."""
    for each in _relations("", part):
        if each.get("Type", "").endswith("/officeDocument"):
            return normpath(each.get("Target", "").lstrip("/"))
    return "word/document.xml"


def _links(name: str, part: Part) -> Iterator[str]:
    """Yield the targets of the external links in a part of a Word file."""
    for each in _relations(name, part):
        if each.get("TargetMode") == "External":
            yield each.get("Target", "")


def _chapters(part: Part) -> Iterator[str]:
    """Yield the names of the pages of an EPUB, in order."""
    root = ElementTree.fromstring(part("META-INF/container.xml")).find(".//{*}rootfile")
    name = root.get("full-path", "") if root is not None else ""
    package = ElementTree.fromstring(part(name))
    files = {each.get("id"): each.get("href", "") for each in package.iterfind(".//{*}item")}
    for each in package.iterfind(".//{*}itemref"):
        yield normpath(join(dirname(name), unquote(files.get(each.get("idref"), ""))))


def xml_text(data: bytes, leaf: str = "", top: str = "body") -> Found:
    """Return the text in XML, with blanks between paragraphs, and what else is in it.

    leaf: the elements that have text; all, if it is not given.  top: the element to read.
    """
    root, unread = ElementTree.fromstring(data), list[str]()
    body = next(root.iterfind(f"{{*}}{top}"), root)
    for each in list(body.iter()):
        (space, _, name), tail = each.tag.rpartition("}"), each.tail
        unread += _unread(each, name, OF_TEXT.search(space) is None, leaf)
        if name in LEFT_OUT:
            unread += each.itertext()
            each.clear()
            each.tail = tail
        if leaf and name != leaf:
            each.text = ""
        if name in GAPS:
            each.text = f"\n{each.text or ''}"
    return "".join(body.itertext()), "\n".join(unread).encode("utf-8", "surrogatepass")


def _unread(each: ElementTree.Element, name: str, foreign: bool, leaf: str) -> Iterator[str]:
    """Yield what one element has besides text: marks, deleted text, drawings, rounded numbers."""
    text = (each.text or "").strip() * bool(leaf)
    whole = foreign or name in MARKS
    if text and (whole or (name == "instrText" and ":" in text)):  # a field with a link
        yield f"{name} {text}"
    for key, value in sorted(each.attrib.items()):
        key = key.rpartition("}")[2]
        linked = key in ("formula", "href") or (key == "instr" and ":" in value)
        rounded = key in VALUES and value != "".join(each.itertext()).strip()
        if linked or rounded or (whole and key not in NUMBERS):
            yield f"{name} {key} {value}"
