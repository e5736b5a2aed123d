"""Read the text of PDF, Word, OpenDocument and EPUB files; pypdf reads PDF.

A PDF, or a file with much XML, is read in a process of its own, which ends if it takes too much
time or memory.  Pictures give only hashes; so do fields and notes of a PDF, beside their text.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from hashlib import blake2b
from io import BytesIO
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

from neardup.files.decoders import OUT_OF_MEMORY, Failure, bound_memory, outcomes
from neardup.reading import archives
from neardup.reading.archives import DAMAGED, UNREADABLE, MemberError
from neardup.reading.cleaning import all_text as body_text
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
WORD = re.compile(r"word/(?:document|footnotes|endnotes|comments|header|footer)\d*\.xml")
PICTURE = re.compile(
    r"(?i)(?!thumbnails/|docprops/|configurations2/).*"
    r"(?:\b(?:media|embeddings|pictures|object [^/]*)/.|\.(?:png|jpe?g|gif|svg|webp|mp[34])\Z)"
)
GAPS = {"p", "h", "tab", "br", "cr", "s", "line-break"}  # elements that separate words
LEFT_OUT = {"Fallback", "tracked-changes", "annotation"}  # copies, deleted text, notes


def read_apart(
    reader: Callable[..., ReadText],
    data: bytes,
    decode: Decode,
    _: object,
    limits: archives.Archive,
) -> ReadText:
    """Return what a reader of this file finds in a document, if it takes neither long nor much.

    MemberError if there is no text, or why it cannot be read.
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
    if not found.text.strip():
        raise MemberError(NO_TEXT, "", True)
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
    """Return the texts of a PDF, and the bytes of its pictures, notes and attached files."""
    from pypdf import PdfReader

    pdf, texts, unread = PdfReader(BytesIO(data)), [], set[bytes]()
    if pdf.is_encrypted and not pdf.decrypt(""):
        raise MemberError(UNREADABLE, ENCRYPTED)
    for page in pdf.pages:
        texts.append(page.extract_text())
        things: Any = (page.get("/Resources") or {}).get("/XObject") or {}
        for thing in map(things.__getitem__, things):
            unread.add(thing._data if thing.get("/Subtype") == "/Image" else b"")
        for note in page.get("/Annots") or ():
            filled = [str(note.get_object().get(key, "")) for key in ("/V", "/Contents")]
            texts += filled
            unread.add("".join(filled).encode())
    unread.update(each for files in pdf.attachments.values() for each in files)
    return texts, unread


def old_word(*_: object) -> ReadText:
    raise MemberError(UNREADABLE, f"{ENCRYPTED}, or is of Word before 2007; save it as .docx")


def office_text(data: bytes, decode: Decode, limits: archives.Archive, most: int) -> ReadText:
    try:
        with zipfile.ZipFile(BytesIO(data)) as opened:
            entries = opened.infolist()
            archives.check_apart(entries)
            limits.take(0, len(entries))

            def part(name: str) -> bytes:
                entry = opened.NameToInfo.get(name)
                found = archives.read_entry(opened, entry, limits, most + 1) if entry else b""
                if len(found) > most:
                    raise archives.OverLimitError(f"{name} has more than {most:,} bytes")
                return found

            text = "\n".join(_texts(sorted(opened.NameToInfo), part, decode))
    except RuntimeError as error:  # NotImplementedError: a version or method of zip
        raise MemberError(UNREADABLE, str(error)) from None
    except DAMAGES as error:
        raise MemberError(DAMAGED, str(error)) from None
    except archives.OverLimitError as error:
        raise MemberError(archives.OVER_LIMIT, str(error)) from None
    pictures = (each for each in entries if PICTURE.match(each.filename) and each.file_size)
    return ReadText(text, "", frozenset(b"%x %x" % (each.CRC, each.file_size) for each in pictures))


def _texts(names: list[str], part: Callable[[str], bytes], decode: Decode) -> Iterator[str]:
    kind = part("mimetype").strip()
    if b"encryption-data" in part("META-INF/manifest.xml") or "META-INF/rights.xml" in names:
        raise MemberError(UNREADABLE, ENCRYPTED)
    if "[Content_Types].xml" in names:
        for name in filter(WORD.fullmatch, names):
            yield xml_text(part(name), "t")
    elif b"opendocument" in kind:
        yield xml_text(part("content.xml"))
    else:
        for name in _chapters(part):
            if name not in names:
                raise MemberError(DAMAGED, f"it has no {name}")
            if page := part(name).strip():
                yield body_text(decode(page)[0])


def _chapters(part: Callable[[str], bytes]) -> Iterator[str]:
    """Yield the names of the pages of an EPUB, in order."""
    root = ElementTree.fromstring(part("META-INF/container.xml")).find(".//{*}rootfile")
    name = root.get("full-path", "") if root is not None else ""
    package = ElementTree.fromstring(part(name))
    files = {each.get("id"): each.get("href", "") for each in package.iterfind(".//{*}item")}
    for each in package.iterfind(".//{*}itemref"):
        yield normpath(join(dirname(name), unquote(files.get(each.get("idref"), ""))))


def xml_text(data: bytes, leaf: str = "") -> str:
    """Return the text in XML, with blanks between paragraphs; in elements `leaf` only, if given."""
    root = ElementTree.fromstring(data)
    for each in list(root.iter()):
        name, tail = each.tag.rpartition("}")[2], each.tail
        if name in LEFT_OUT:
            each.clear()
            each.tail = tail
        if leaf and name != leaf:
            each.text = ""
        if name in GAPS:
            each.text = f"\n{each.text or ''}"
    body = root.find("{*}body")
    return "".join((root if body is None else body).itertext())
