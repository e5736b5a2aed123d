"""Files that may be packed: .gz, .bz2, .xz and .zst, read and written as if they were plain."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, Any, Callable

from neardup.process.errors import StageError

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
