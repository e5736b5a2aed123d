r"""Dialects of text files: the encoding of a file, and the delimiter and quotes of its CSV.

Everything behind this file reads UTF-8.  A file in another encoding is decoded while it is read,
and what is kept of it is encoded again:

    file ─ mark │ b"caf\xe9\n" in cp1252 ─▶ b"caf\xc3\xa9\n" ─ kept lines ─▶ b"caf\xe9\n"

A byte order mark at the start determines the encoding, and else --encoding does.  A byte that is
invalid in the encoding becomes a lone surrogate (U+DC80 and above), which makes its line a bad
line; in kept lines it is the same byte again.

An escape character makes a quote, a delimiter, a line end or itself a part of a field, inside of
quotes and outside: Spark, MySQL and pandas can write `\"` for a quote.  It is kept before any other
character, since \n is not n; and the field \N is empty, as MySQL writes a null.  Before CR LF it
makes both a part of the field, as MySQL means it where rows end in CR LF; where they end in LF, the
row ends there, with a CR in its last field.
"""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from neardup.reading.compressed import MAGIC_BYTES, READ_BYTES, opened
from neardup.reading.table_files import TABLES
from neardup.runtime.program import TASK, StageError, UsageError, to_add

COMMA, QUOTE = ",", '"'
MARKS = (  # the longer ones first
    (codecs.BOM_UTF8, ""),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
UTF8 = {"utf-8", "utf-8-sig", "ascii"}  # as `codecs.lookup` calls them
MARKED = ("utf-16", "utf-32")  # these need a byte order mark
STATEFUL = ("utf-7", "hz", "iso2022", "idna", "punycode", "unicode", "raw_unicode", "undefined")
CONVERTED = "convert the file to UTF-8 first"
NAMES = "latin-1, cp1252, utf-16-le, shift_jis, gb18030"


class Dialect(NamedTuple):
    r"""The encoding of text files, and the characters of CSV with a meaning.

    >>> Dialect.of(r"\t", "Latin1", escape="\\")[:4]
    ('\t', 'iso8859-1', '"', '\\')
    """

    delimiter: str = COMMA  # of CSV
    encoding: str = ""  # of files without a byte order mark; "" is UTF-8
    quote: str = QUOTE  # of CSV
    escape: str | None = ""  # of CSV; "" for none, None if unknown
    long_rows: bool = True  # whether a row may have more than a thousand lines
    lf_rows: bool = False  # whether rows end in LF alone

    @classmethod
    def of(
        cls,
        delimiter: str | None,
        encoding: str | None,
        kinds: Collection[str] = ("csv",),
        quote: str | None = None,
        escape: str | None = None,
    ) -> Dialect:
        """Return the dialect that options such as --delimiter name, for input of these kinds.

        UsageError if one is invalid, or does not apply.
        """
        characters = {"--delimiter": delimiter, "--quote": quote, "--escape": escape}
        for flag, value in characters.items():
            if value is not None and "csv" not in kinds:
                given = " and ".join(sorted(kinds))
                raise UsageError(f"{flag} needs --input csv, but --input is {given}")
        if encoding is not None and {*kinds} <= {*TABLES}:
            raise UsageError(
                "--encoding is for files of text, and Parquet and Arrow are always UTF-8; leave it "
                "out"
            )
        comma = COMMA if delimiter is None else _character("--delimiter", delimiter)
        mark = QUOTE if quote is None else _character("--quote", quote)
        before = escape and _character("--escape", escape)
        if comma in (mark, before):
            raise UsageError(f"--delimiter {comma!r} is also --quote or --escape; name another one")
        before = "" if before == mark else before  # doubled quotes, as usual
        name = "" if encoding is None else _encoding(encoding)
        return cls(comma, name, mark, before, long_rows=quote is not None)

    def masked(self, data: bytes) -> bytes:
        """Replace the escape characters in UTF-8, and what they escape, by as many NULs."""
        escaped = self.escaped.encode("latin-1")
        return re.sub(escaped, lambda found: bytes(len(found[0])), data) if self.escape else data

    @property
    def escaped(self) -> str:
        """A regular expression of the escape character and what it escapes."""
        return re.escape(self.escape or "") + "(" + "\r\n|" * (not self.lf_rows) + r"[\s\S])"

    @contextmanager
    def opened(self, path: str, name: str, exactly: bool = False) -> Iterator[TextFile]:
        """Context manager: open a file of text, to be read as UTF-8; `-` is stdin.

        exactly: StageError if encoding it again would give other bytes
        """
        with opened(path, name) as stream:
            mark, encoding = self.of_start(stream.peek(MAGIC_BYTES))
            if TASK in os.environ or not (mark or encoding):
                yield TextFile(stream)
                return
            if encoding in MARKED:
                line = to_add("--encoding", f"{encoding}-le")
                raise StageError(f"{name}: has no byte order mark; {line}, or …-be")
            if encoding:
                raw = _Decoded(stream, name, encoding, exactly)
                stream = io.BufferedReader(raw, READ_BYTES)
            yield TextFile(stream, mark, encoding)

    def of_start(self, start: bytes) -> tuple[bytes, str]:
        """Return the byte order mark and the encoding ("": UTF-8) of a file, from its `start`."""
        return next((m for m in MARKS if start.startswith(m[0])), (b"", self.encoding))

    def encoding_of(self, path: str, name: str) -> str:
        """Return the encoding of a file, "" for UTF-8."""
        with self.opened(path, name) as text:
            return text.encoding


AS_USUAL = Dialect()


def as_in_file(text: bytes) -> bytes:
    r"""Replace lone surrogates in a text by the undecodable bytes that they represent.

    >>> as_in_file("caf\u00e9 \udc81".encode("utf-8", "surrogatepass"))
    b'caf\xc3\xa9 \x81'
    """
    try:
        return text.decode("utf-8", "surrogatepass").encode("utf-8", "surrogateescape")
    except UnicodeError:  # half a character of UTF-16, or a part of one
        return text


class TextFile(NamedTuple):
    """An open file as a stream of UTF-8, with the file's byte order mark and encoding."""

    stream: Any  # a binary file with `peek`, which includes the mark
    mark: bytes = b""
    encoding: str = ""

    def encoded(self, pieces: Iterable[bytes], with_mark: bool = True) -> Iterator[bytes]:
        """Convert UTF-8 pieces to the file's encoding; the first piece gets the byte order mark.

        StageError for a character that the encoding does not have: it is from another file.
        """
        mark = self.mark if with_mark else b""
        to_text = codecs.getincrementaldecoder("utf-8")("surrogatepass")
        for piece in filter(None, pieces):
            if self.encoding:
                text = to_text.decode(piece)
                try:
                    piece = text.encode(self.encoding, _errors(self.encoding))
                except UnicodeEncodeError as error:
                    raise StageError(
                        f"{self.encoding} cannot hold {text[error.start]!r} of another file; write "
                        "JSON lines: -o FILE.jsonl"
                    ) from None
            yield mark + piece
            mark = b""


class _Decoded(io.RawIOBase):
    """A raw stream of UTF-8, converted from a stream in another encoding."""

    def __init__(self, stream: IO[bytes], name: str, encoding: str, exactly: bool):
        self._stream, self._name, self._encoding, self._exactly = stream, name, encoding, exactly
        self._decoder = codecs.getincrementaldecoder(encoding)(_errors(encoding))
        self._held = b""

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def readinto(self, buffer: Any) -> int:
        while not self._held:
            data = self._stream.read(READ_BYTES)
            self._held = self._decode(data)
            if not data:
                break
        size = min(len(buffer), len(self._held))
        buffer[:size], self._held = self._held[:size], self._held[size:]
        return size

    def _decode(self, data: bytes) -> bytes:
        before = self._decoder.getstate()[0]
        try:
            text = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise StageError(
                f"{self._name}: is not {self._encoding}, or cut short: {error.reason}; to read "
                f"the rest, {CONVERTED}"
            ) from None
        after = self._decoder.getstate()[0]
        if self._exactly:
            self._check(before + data[: len(data) - len(after)], text)
        return text.encode("utf-8", "surrogatepass")

    def _check(self, data: bytes, text: str) -> None:
        if text.encode(self._encoding, _errors(self._encoding)) != data:
            raise StageError(
                f"{self._name}: {self._encoding} encodes some characters in several ways, so kept "
                "lines might be written with other bytes; " + CONVERTED
            )


def _errors(encoding: str) -> str:
    """Return the codec error handler: surrogatepass for UTF-16 and UTF-32, else surrogateescape."""
    return "surrogatepass" if encoding.startswith(MARKED) else "surrogateescape"


def _character(flag: str, text: str) -> str:
    r"""Return the character that an option such as --delimiter names; UsageError for anything else.

    >>> _character("--delimiter", r"\t"), _character("--escape", r"\\")
    ('\t', '\\')
    """
    character = {"\\t": "\t", "\\\\": "\\"}.get(text, text)
    delimits = flag == "--delimiter"
    if len(character) != 1 or not character.isascii() or character in "\r\n\0" + delimits * QUOTE:
        but, such = ("a quote or line end", "';' or '\\t'") if delimits else ("a line end", "'\\'")
        raise UsageError(
            f"{flag}: expected one ASCII character other than {but}, such as {such}, got {text!r}"
        )
    return character


def _encoding(name: str) -> str:
    """Return Python's name of an encoding ("": UTF-8, ASCII); UsageError if unknown or stateful."""
    try:
        found = codecs.lookup(name).name
        "a\n".encode(found)
    except (LookupError, ValueError):
        raise UsageError(f"--encoding: {name!r} is not known; name one such as {NAMES}") from None
    if found.startswith(STATEFUL):
        raise UsageError(
            f"--encoding {name}: lines in this encoding cannot be read one by one; " + CONVERTED
        )
    return "" if found in UTF8 else found
