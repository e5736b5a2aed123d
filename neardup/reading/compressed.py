"""Compressed files, kinds of input, and file signatures.

Files that may be packed: .gz, .bz2, .xz and .zst, read and written as if they were plain.

What a file holds: --input, or what its name says.

Files that hold no lines, known by their first bytes, and refused before a line is read.

gzip: RFC 1952; xz, zstd, zip, 7z: their formats' descriptions; Parquet and Arrow: Apache's.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, Any, Callable, NamedTuple

from neardup.runtime.errors import StageError, UsageError, piped, typed_with

READ_BYTES = 1 << 18
ZSTD = ("compression.zstd", "backports.zstd")  # of Python 3.14 on, and the same for older ones


# What unpacks is imported for a packed file, and not before.


def _gzip(file: Any, mode: str = "rb") -> Any:
    import gzip

    return gzip.open(file, mode)


def _bz2(file: Any, mode: str = "rb") -> Any:
    import bz2

    return bz2.open(file, mode)


def _xz(file: Any, mode: str = "rb") -> Any:
    import lzma

    return lzma.open(file, mode)


def _zstd(file: Any, mode: str = "rb") -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            from backports import zstd  # type: ignore[no-redef, import-not-found, unused-ignore]
        except ImportError:
            raise StageError(
                "to read or write .zst, Python before 3.14 needs a package: "
                "pip install backports.zstd; or unpack it first: zstd -d FILE"
            ) from None
    return zstd.open(file, mode)


OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": _gzip,
    ".bz2": _bz2,
    ".xz": _xz,
    ".zst": _zstd,
}


def suffix_of(name: str) -> str:
    """
    >>> suffix_of("corpus.jsonl.gz"), suffix_of("part-00000"), suffix_of("a.b/.c")
    ('.gz', '', '')
    """
    return os.path.splitext(name.rstrip("/"))[1].rstrip(".")


def plain_name(name: str) -> str:
    """
    >>> plain_name("corpus.jsonl.gz"), plain_name("corpus.csv")
    ('corpus.jsonl', 'corpus.csv')
    """
    suffix = suffix_of(name)
    return name[: -len(suffix)] if suffix in OPENERS else name


@contextmanager
def opened(path: str, name: str) -> Iterator[Any]:
    """A file to read from, which messages call `name`; `-` is stdin.  Damage is a StageError."""
    if path == "-":
        with open(sys.stdin.fileno(), "rb", closefd=False) as stdin:
            yield stdin
        return
    unpack = OPENERS.get(suffix_of(path))
    try:
        with open(path, "rb") as file:
            if unpack and not file.peek(1):  # which gzip would take for an end
                raise EOFError("it is empty")
            with unpack(file) if unpack else nullcontext(file) as stream:
                yield stream
    except _damages() as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise StageError(f"{name}: damaged: {error}") from error


def unpacked(name: str, passed: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """The bytes of a file, in blocks: those inside it, where it is packed.

    `passed` is told how many bytes of the file, as it lies, are behind.
    """
    with opened(name, name) as stream:
        for data in iter(lambda: stream.read(READ_BYTES), b""):
            if passed:
                passed(position(stream))
            yield data


def position(stream: IO[bytes]) -> int:
    """How many bytes of a file have been read, of a packed one as they lie; 0 of a pipe."""
    try:
        return os.lseek(stream.fileno(), 0, os.SEEK_CUR)
    except OSError:
        return 0


@contextmanager
def packing(file: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    """What to write to, so that `file` is packed as its name says."""
    suffix = suffix_of(name)
    if suffix == ".gz":  # without its name and the time, so that equal answers are equal files
        import gzip

        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]
        return
    with OPENERS[suffix](file, "wb") if suffix in OPENERS else nullcontext(file) as packed:
        yield packed


def _damages() -> tuple[type[Exception], ...]:
    """What reading a packed file may raise; asked when something was raised."""
    import lzma
    import zlib

    loaded = (sys.modules.get(name) for name in ZSTD)
    of_zstd = tuple(module.ZstdError for module in loaded if module)
    return (EOFError, zlib.error, lzma.LZMAError, OSError, *of_zstd)


LINES, ROWS = ("shingles", "text"), ("jsonl", "csv", "tsv", "parquet")
INPUTS = (*LINES, *ROWS)
BY_SUFFIX = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
OF_LINES = ("", ".txt", ".text", ".lines", ".dat", ".data", ".tab", ".part", ".out", ".log")
CONVERT = "python3 -m neardup convert FILE… > records.jsonl"


def kind_by_name(name: str) -> str | None:
    """
    >>> kind_by_name("c4.json.gz"), kind_by_name("a.csv"), kind_by_name("videos.txt")
    ('jsonl', 'csv', None)
    """
    return BY_SUFFIX.get(_suffix(name))


def _suffix(name: str) -> str:
    return suffix_of(plain_name(name)).lower()


def check_names(given: str | None, names: Iterable[str]) -> None:
    """UsageError where --input says one thing, and a name for certain another; or names differ."""
    kinds = {name: kind_by_name(name) for name in names}
    if given is None:
        lines = [name for name, kind in kinds.items() if kind is None]
        rows = [name for name, kind in kinds.items() if kind]
        if lines and rows:
            raise UsageError(
                f"{rows[0]} is {kinds[rows[0]]} by its name, and {lines[0]} is none of "
                f"{', '.join(ROWS)}; say what all are with --input, or convert: {CONVERT}"
            )
    elif given in LINES:
        for name, kind in kinds.items():
            if kind and kind != "tsv":  # ID, tab, text is both
                raise UsageError(
                    f"{name} is {kind} by its name, and --input is {given}; leave out --input, or "
                    "read it from standard input: - < FILE"
                )


def unknown_suffixes(names: Iterable[str]) -> tuple[str, ...]:
    """Those suffixes that say nothing about what a file holds, in words.

    >>> unknown_suffixes(["part-00000", "a.txt.gz", "corpus.docx", "b.3"])
    ('.docx',)
    """
    found = {_suffix(name) for name in names if not kind_by_name(name)}
    return tuple(sorted(s for s in found if s not in OF_LINES and not s[1:].isdigit()))


MAGIC_BYTES = 16  # enough for each


class Packed(NamedTuple):
    """start: no line of text begins so; suffix: by which such a file is known, if by any; unpack:
    to stdout; from_pipe: whether it can, from stdin."""

    start: bytes
    what: str
    suffix: str
    unpack: str
    from_pipe: bool = True


PACKED = (
    Packed(rb"\x1f\x8b\x08", "packed by gzip", ".gz", "gzip -dc"),
    Packed(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)", "packed by bzip2", ".bz2", "bzip2 -dc"),
    Packed(rb"\xfd7zXZ\0", "packed by xz", ".xz", "xz -dc"),
    Packed(rb"\x28\xb5\x2f\xfd", "packed by zstd", ".zst", "zstd -dc"),
    Packed(rb"PK(?:\x03\x04|\x05\x06)", "a zip archive", "", "unzip -p", from_pipe=False),
    Packed(rb"7z\xbc\xaf\x27\x1c", "a 7z archive", "", "7z x -so", from_pipe=False),
    Packed(rb"\xff\xfe|\xfe\xff", "text in UTF-16", "", "iconv -f UTF-16 -t UTF-8"),
)
# Not by PAR1 alone, which may be an id: Thrift's first byte behind it is no white space.
PARQUET = rb"PAR1[\x00-\x08\x0e-\x1f]"
ARROW = rb"ARROW1\0\0|FEA1[\x00-\x08\x0e-\x1f]|\xff\xff\xff\xff"
OFFICE = {".xlsx": "CSV", ".ods": "CSV", ".docx": "plain text", ".odt": "plain text"}
STDIN = "standard input"


def refuse_no_lines(start: bytes, name: str, unpacked: Collection[str]) -> None:
    """StageError where a file begins (`start`) as one without lines does; `name` may be "-".

    `unpacked` are the suffixes by which files are unpacked.

    >>> refuse_no_lines(b"PAR1 7 8 9", "videos.txt", [])
    """
    called = STDIN if name == "-" else name
    if re.match(PARQUET, start):
        line = f"type: {typed_with('--input', 'parquet')}"
        if name == "-":
            line = "write it to a file, and name that with --input parquet"
        raise StageError(f"{called}: is a Parquet file; {line}")
    if re.match(ARROW, start):
        raise StageError(f"{called}: is an Arrow file; write it as Parquet, for --input parquet")
    kind = OFFICE.get(suffix_of(name))
    if kind and start.startswith(b"PK"):
        raise StageError(f"{called}: is a document; save it as {kind} by what has made it")
    for packed in PACKED:
        if re.match(packed.start, start):
            raise StageError(f"{called}: is {packed.what}; {_line(packed, name, unpacked)}")


def _line(packed: Packed, name: str, unpacked: Collection[str]) -> str:
    """The line to type."""
    if name == "-" and not packed.from_pipe:
        return f"write it to a file, and type: {piped(packed.unpack, 'FILE')}"
    kind = kind_by_name(name) or ""  # which standard input does not tell
    line = f"type: {piped(packed.unpack, name, '--input' if kind else '', kind)}"
    if name != "-" and packed.suffix in unpacked and not name.endswith(packed.suffix):
        return f"rename it to end with {packed.suffix}, or {line}"
    return line
