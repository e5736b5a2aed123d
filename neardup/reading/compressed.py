"""Recognise kinds of files by extension and first bytes, and open compressed files.

Compressed files (.gz, .bz2, .xz, .zst) are read and written as if plain, and read so under another
name, too.  The extension names, unless --input does, the kind of input.  Files whose first bytes
are those of a file without lines are refused before a line is read.
"""

import importlib
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, Any, Callable

from neardup.reading.table_files import TABLES
from neardup.runtime.program import TASK, StageError, UsageError

READ_BYTES = 1 << 18
ZSTD = ("compression.zstd", "backports.zstd")  # from Python 3.14 on, and for older ones

LINES, ROWS = ("shingles", "text", "fingerprints"), ("jsonl", "csv", "tsv", *TABLES)
INPUTS = (*LINES, *ROWS)
BY_SUFFIX = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    **{suffix: kind for kind, table in TABLES.items() for suffix in table.suffixes},
}
CONVERT = "python3 -m neardup convert FILE… > records.jsonl"
MAGIC_BYTES = 16  # enough for each of SIGNATURES


class _Streams(io.RawIOBase):
    """The decompressed bytes of all streams of a file of bzip2 or xz.

    The modules of Python take a damaged stream behind another one for padding, and end in silence.
    """

    def __init__(self, file: IO[bytes], decompressor: Callable[[], Any]):
        self._file, self._decompressor = file, decompressor
        self._stream = decompressor()

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data:
            packed = b""
            if self._stream.eof:
                packed = self._stream.unused_data.lstrip(b"\0")
                while not packed and (more := self._file.read(READ_BYTES)):
                    packed = more.lstrip(b"\0")  # zero bytes may be between two streams
                if not packed:
                    return 0
                self._stream = self._decompressor()
            elif self._stream.needs_input:
                packed = self._file.read(READ_BYTES)
                if not packed:
                    raise EOFError("it is cut short")
            data = self._stream.decompress(packed, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _opener(module: str, decompressor: str = "") -> Callable[..., Any]:
    """Return a function that opens a compressed file, and imports the module on first use.

    decompressor: the class for `_Streams`; "" if the module's `open` reads every stream.
    """

    def opener(file: Any, mode: str = "rb") -> Any:
        codec = importlib.import_module(module)
        if decompressor and mode == "rb":
            return io.BufferedReader(_Streams(file, getattr(codec, decompressor)), READ_BYTES)
        return codec.open(file, mode)

    return opener


def _zstd(file: Any, mode: str = "rb") -> Any:
    for module in ZSTD:
        try:
            return importlib.import_module(module).open(file, mode)
        except ImportError:
            pass
    raise StageError(
        "to read or write .zst, Python before 3.14 needs a package: "
        "pip install backports.zstd; or unpack the file first: zstd -d FILE"
    )


OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": _opener("gzip"),
    ".bz2": _opener("bz2", "BZ2Decompressor"),
    ".xz": _opener("lzma", "LZMADecompressor"),
    ".zst": _zstd,
}


def suffix_of(name: str) -> str:
    """Return the last extension, such as .gz for corpus.jsonl.gz."""
    return os.path.splitext(name.rstrip("/"))[1].rstrip(".")


def plain_name(name: str) -> str:
    """Return a name without the extension of a compressed file: c4.jsonl for c4.jsonl.gz."""
    suffix = suffix_of(name)
    return name[: -len(suffix)] if suffix in OPENERS else name


@contextmanager
def opened(path: str, name: str, suffix: "str | None" = None) -> Iterator[Any]:
    """Context manager: open a file and decompress it, or open stdin; StageError for a damaged file.

    path: `-` is stdin; name: what the message calls the file; suffix: the extension that implies
    the compression (default: that of the path, or by the first bytes).  A task's stdin is plain.
    """
    stdin = path == "-"
    try:
        with open(sys.stdin.fileno() if stdin else path, "rb", closefd=not stdin) as file:
            if suffix is None and not (stdin and TASK in os.environ):
                suffix = _compression(path, file.peek(MAGIC_BYTES))
            unpack = OPENERS.get(suffix or "")
            if unpack and not file.peek(1):  # gzip would accept an empty file
                raise EOFError("it is empty")
            with unpack(file) if unpack else nullcontext(file) as stream:
                yield stream
    except _damages() as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise StageError(f"{name}: damaged: {error}") from error


def _compression(path: str, start: bytes) -> str:
    suffix = suffix_of(path)
    return suffix if suffix in OPENERS else packed_as(start)


def is_packed(path: str) -> bool:
    """Return whether a file is compressed, by its extension or its first bytes."""
    with open(path, "rb") as file:
        return bool(_compression(path, file.read(MAGIC_BYTES)))


def _damages() -> tuple[type[Exception], ...]:
    """Return the exceptions that a damaged compressed file may raise."""
    import lzma
    import zlib

    loaded = (sys.modules.get(name) for name in ZSTD)
    of_zstd = tuple(module.ZstdError for module in loaded if module)
    return (EOFError, zlib.error, lzma.LZMAError, OSError, *of_zstd)


def unpacked(name: str, passed: "Callable[[int], None] | None" = None) -> Iterator[bytes]:
    """Yield a file's decompressed bytes; call `passed` with the number of bytes read from disk."""
    with opened(name, name) as stream:
        for data in iter(lambda: stream.read(READ_BYTES), b""):
            if passed:
                passed(position(stream))
            yield data


def position(stream: IO[bytes]) -> int:
    """Return how many bytes of the file have been read from the disk; 0 for a pipe."""
    try:
        return os.lseek(stream.fileno(), 0, os.SEEK_CUR)
    except OSError:
        return 0


@contextmanager
def packing(file: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    """Context manager: a stream that writes to `file`, compressed if the name implies it."""
    suffix = suffix_of(name)
    if suffix == ".gz":  # without its name and the time, so that equal answers are equal files
        import gzip

        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]
        return
    with OPENERS[suffix](file, "wb") if suffix in OPENERS else nullcontext(file) as packed:
        yield packed


def kind_by_name(name: str) -> "str | None":
    """Return the kind of input that the extension names, such as jsonl for c4.json.gz, or None."""
    return BY_SUFFIX.get(suffix_of(plain_name(name)).lower())


def check_names(given: "str | None", names: Iterable[str]) -> None:
    """Raise UsageError for a.csv and a.txt without --input."""
    kinds = {name: kind_by_name(name) for name in names}
    rows = [name for name, kind in kinds.items() if kind]
    if given is None and 0 < len(rows) < len(kinds):
        of_lines = next(name for name, kind in kinds.items() if not kind)
        raise UsageError(
            f"{rows[0]} has an extension of {kinds[rows[0]]}, but {of_lines} has none of "
            f"{', '.join(ROWS)}; name the kind of all files with --input, or convert: {CONVERT}"
        )


UNNAMED = "; for a cluster, its name must end in "
# First bytes that no text has, and what such a file is; the first ones are those of OPENERS.
SIGNATURES = (
    (rb"\x1f\x8b\x08", f"compressed with gzip{UNNAMED}.gz"),
    (rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)", f"compressed with bzip2{UNNAMED}.bz2"),
    (rb"\xfd7zXZ\0", "compressed with xz; unpack it"),
    (rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", "compressed with zstd; unpack it"),
    (
        rb"PK(?:\x03\x04|\x05\x06)",
        "a document, to save as CSV or plain text, or a zip archive, to unpack",
    ),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive, to unpack"),
    (rb"\xff\xfe|\xfe\xff", "text in UTF-16, to write in UTF-8"),
    *((each.start, f"{each.file}, for --input {kind}") for kind, each in TABLES.items()),
    (rb"FEA1[\x00-\x08\x0e-\x1f]", "a Feather file of version 1, to write as Parquet"),
)


def packed_as(start: bytes) -> str:
    """Return the extension for the compression of a file, such as .gz, by its first bytes, or "".

    >>> packed_as(b"BZh91AY&SY"), packed_as(b"text")
    ('.bz2', '')
    """
    pairs = zip(OPENERS, SIGNATURES)
    return next((suffix for suffix, (known, _) in pairs if re.match(known, start)), "")


def table_kind(start: bytes) -> str:
    """Return the kind of a typed table by its first bytes, or "" for other files."""
    return next((kind for kind, table in TABLES.items() if re.match(table.start, start)), "")


def refuse_no_lines(start: bytes, name: str, packed: bool = True) -> None:
    """Raise StageError if the first bytes (`start`) are those of binary data or UTF-16 text.

    packed: also of compressed files.
    """
    for signature, what in SIGNATURES if packed else SIGNATURES[len(OPENERS) :]:
        if re.match(signature, start):
            raise StageError(f"{'standard input' if name == '-' else name}: is {what}")
