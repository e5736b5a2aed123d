"""What a file is, by its name and its first bytes; and compressed files.

Names tell whether a file is compressed (.gz, .bz2, .xz, .zst: read and written as if it were plain)
and what it holds, unless --input says that.  First bytes tell of files without lines, which are
refused before a line is read.

gzip: RFC 1952; xz, zstd, zip, 7z: their formats' descriptions; Parquet and Arrow: Apache's.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, Any, Callable, NamedTuple

from neardup.runtime.errors import StageError, UsageError, piped, typed_with

READ_BYTES = 1 << 18
ZSTD = ("compression.zstd", "backports.zstd")  # of Python 3.14 on, and the same for older ones


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
MAGIC_BYTES = 16  # enough for each signature


def _opener(module: str) -> Callable[..., Any]:
    """The `open` of a module that is imported for a compressed file, and not before."""
    return lambda file, mode="rb": importlib.import_module(module).open(file, mode)


def _zstd(file: Any, mode: str = "rb") -> Any:
    for module in ZSTD:
        try:
            return importlib.import_module(module).open(file, mode)
        except ImportError:
            pass
    raise StageError(
        "to read or write .zst, Python before 3.14 needs a package: "
        "pip install backports.zstd; or unpack it first: zstd -d FILE"
    )


OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": _opener("gzip"),
    ".bz2": _opener("bz2"),
    ".xz": _opener("lzma"),
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
    """Open a file to read, which messages call `name`; `-` is stdin.  Damage is a StageError."""
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
    """Yield the bytes of a file in blocks, unpacked where it is compressed.

    `passed` is called with how many bytes of the file on disk have been read.
    """
    with opened(name, name) as stream:
        for data in iter(lambda: stream.read(READ_BYTES), b""):
            if passed:
                passed(position(stream))
            yield data


def position(stream: IO[bytes]) -> int:
    """Return how many bytes of the file on disk have been read; 0 for a pipe."""
    try:
        return os.lseek(stream.fileno(), 0, os.SEEK_CUR)
    except OSError:
        return 0


@contextmanager
def packing(file: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    """What to write to, so that `file` is compressed as its name says."""
    suffix = suffix_of(name)
    if suffix == ".gz":  # without its name and the time, so that equal answers are equal files
        import gzip

        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]
        return
    with OPENERS[suffix](file, "wb") if suffix in OPENERS else nullcontext(file) as packed:
        yield packed


def _damages() -> tuple[type[Exception], ...]:
    """What reading a compressed file may raise; asked when something was raised."""
    import lzma
    import zlib

    loaded = (sys.modules.get(name) for name in ZSTD)
    of_zstd = tuple(module.ZstdError for module in loaded if module)
    return (EOFError, zlib.error, lzma.LZMAError, OSError, *of_zstd)


def kind_by_name(name: str) -> str | None:
    """
    >>> kind_by_name("c4.json.gz"), kind_by_name("a.csv"), kind_by_name("videos.txt")
    ('jsonl', 'csv', None)
    """
    return BY_SUFFIX.get(_suffix(name))


def _suffix(name: str) -> str:
    return suffix_of(plain_name(name)).lower()


def check_names(given: str | None, names: Iterable[str]) -> None:
    """UsageError where --input contradicts a name, or names contradict each other."""
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
    """Return the suffixes from which nothing can be inferred about a file.

    >>> unknown_suffixes(["part-00000", "a.txt.gz", "corpus.docx", "b.3"])
    ('.docx',)
    """
    found = {_suffix(name) for name in names if not kind_by_name(name)}
    return tuple(sorted(s for s in found if s not in OF_LINES and not s[1:].isdigit()))


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


def refuse_no_lines(start: bytes, name: str, unpacked: Collection[str]) -> None:
    """StageError where a file begins (`start`) as one without lines does; `name` may be "-".

    `unpacked` are the suffixes of files that are unpacked.

    >>> refuse_no_lines(b"PAR1 7 8 9", "videos.txt", [])
    """
    what = ""
    if re.match(PARQUET, start):
        line = f"type: {typed_with('--input', 'parquet')}"
        if name == "-":
            line = "write it to a file, and name that with --input parquet"
        what = f"a Parquet file; {line}"
    elif re.match(ARROW, start):
        what = "an Arrow file; write it as Parquet, for --input parquet"
    elif start.startswith(b"PK") and (kind := OFFICE.get(suffix_of(name))):
        what = f"a document; save it as {kind} by what has made it"
    elif packed := next((some for some in PACKED if re.match(some.start, start)), None):
        what = f"{packed.what}; {_line(packed, name, unpacked)}"
    if what:
        raise StageError(f"{'standard input' if name == '-' else name}: is {what}")


def _line(packed: Packed, name: str, unpacked: Collection[str]) -> str:
    """The line to type."""
    if name == "-" and not packed.from_pipe:
        return f"write it to a file, and type: {piped(packed.unpack, 'FILE')}"
    kind = kind_by_name(name) or ""  # which standard input does not tell
    line = f"type: {piped(packed.unpack, name, '--input' if kind else '', kind)}"
    if name != "-" and packed.suffix in unpacked and not name.endswith(packed.suffix):
        return f"rename it to end with {packed.suffix}, or {line}"
    return line
