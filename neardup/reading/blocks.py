"""Bytes in, bytes out: files and pipes as blocks of whole lines, and the place where errors end."""

from __future__ import annotations

import bz2
import codecs
import gzip
import itertools
import os
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Callable, NamedTuple

import numpy as np

from neardup.process.errors import StageError

BLOCK_BYTES = 1 << 18  # what is made of a block stays in the cache, and off fresh pages
LINE_END = re.compile(rb"[\r\n](?:(?<=\r)\n)?")
CUT_BYTES = 100
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}


class Block(NamedTuple):
    """Whole lines, and where they stand."""

    place: str  # "videos.txt: ", or "" for standard input
    line: int  # the number of the first one, from 1
    data: bytes
    cut: bool = False  # no whole lines, but the first bytes of one that is too long


def check_inputs(files: list[str]) -> None:
    """Every file must be there before the first one is read."""
    for name in files:
        if name != "-" and not Path(name).exists():
            raise StageError(f"{name}: no such file")
        if Path(name).is_dir():
            raise StageError(f"{name}: is a directory; name the files in it")


def check_compressed(files: list[str]) -> None:
    """For engines that read one compressed part of a file, and a damaged one as a short one."""
    for name in files:
        if Path(name).suffix not in OPENERS:
            continue
        for _ in read_files([name], sys.maxsize):  # unpacked for nothing but its errors
            pass
        part = zlib.decompressobj(31) if Path(name).suffix == ".gz" else bz2.BZ2Decompressor()
        with open(name, "rb") as stream:
            while not part.eof:
                part.decompress(stream.read(BLOCK_BYTES))
            if (part.unused_data + stream.read(BLOCK_BYTES)).strip(b"\0"):
                raise StageError(f"{name}: has several parts; unpack it, or use run_local.sh")


def start_of_split() -> tuple[str, int]:
    """Where the input of a Hadoop or mrjob task lies, for messages, and its first line's number.

    Hadoop names a file and a position in it; only mrjob's local files are there to count lines in.

    >>> start_of_split()  # not in a task
    ('', 1)
    """
    uri = os.environ.get("mapreduce_map_input_file", "")
    start = int(os.environ.get("mapreduce_map_input_start") or 0)
    if start and uri.startswith("file://"):
        name = uri[len("file://") :]
        with open(name, "rb") as stream:
            ahead = iter(lambda: stream.read(min(BLOCK_BYTES, start - stream.tell())), b"")
            return f"{name}: ", 1 + sum(map(count_lines, ahead))
    name = uri[len("file://") :] if uri.startswith("file://") else uri
    return (f"{name} from byte {start}: " if start else f"{name}: " if name else ""), 1


def read_files(
    files: list[str],
    max_line: int,
    turns: Iterator[int] | None = None,
    names: list[str] | None = None,
) -> Iterator[Block]:
    """The blocks of all files (`-` is stdin; .gz and .bz2 are unpacked), one after another.

    With `turns`, only the blocks of these numbers (ascending, from 0), so that several mappers can
    share the files; every one of them knows the line numbers.  Messages call the files `names`.
    """
    turns = turns or itertools.count()
    number, mine = 0, next(turns)
    for path, name in zip(files, names or files):
        place = start_of_split()[0] if name == "-" else f"{name}: "
        try:
            with _open(path) as stream:
                for line, data, cut in whole_lines(stream, max_line):
                    if number == mine:
                        yield Block(place, line, data, cut)
                        mine = next(turns)
                    number += 1
        except (EOFError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise StageError(f"{name}: damaged: {error}") from error


def blocks_of(stream: IO[bytes]) -> Iterator[bytes]:
    """A stream of lines that end with LF as blocks of whole ones, however long."""
    held: list[bytes] = []  # the start of a line that has not ended yet
    while chunk := stream.read(BLOCK_BYTES):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join((*held, memoryview(chunk)[:cut]))
            held = []
        held.append(chunk[cut:])
    if any(held):
        yield b"".join((*held, b"\n"))


def _open(name: str) -> IO[bytes]:
    if name == "-":
        return open(sys.stdin.fileno(), "rb", closefd=False)
    return OPENERS.get(Path(name).suffix, open)(name, "rb")


def whole_lines(stream: IO[bytes], max_line: int) -> Iterator[tuple[int, bytes, bool]]:
    """(number of the first line, whole lines, False), a block at a time.

    A line of more than `max_line` bytes (at least a block) comes alone, cut to its first bytes and
    with True.  A last line without a line end is given one, and a byte order mark is taken away,
    as Hadoop does.
    """
    line = 1
    held: list[bytes] = []  # the start of a line that has not ended yet
    length = 0
    start = stream.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    while chunk := start + stream.read(BLOCK_BYTES):
        start = b""
        if chunk.endswith(b"\r"):  # CR LF stay together
            chunk += stream.read(1)
        first = LINE_END.search(chunk)
        end = first.end() if first else 0
        if length + (end or len(chunk)) > max_line + 1:
            held = [b"".join((*held, chunk[:CUT_BYTES]))[:CUT_BYTES]]
            length = max_line + 1  # what follows is not kept
            if not end:
                continue
            yield line, held[0], True
            line += 1
            held, length, chunk = [], 0, chunk[end:]
        cut = chunk.rfind(b"\n") + 1 or chunk.rfind(b"\r") + 1
        if cut:
            data = b"".join((*held, chunk[:cut]))
            yield line, data, False
            line += count_lines(data)
            held, length = [], 0
        held.append(chunk[cut:])
        length += len(chunk) - cut
    if length > max_line:
        yield line, b"".join(held)[:CUT_BYTES], True
    elif length:
        yield line, b"".join(held) + b"\n", False


def count_lines(data: bytes) -> int:
    r"""How many lines end in `data`: with LF, CRLF or CR.

    >>> count_lines(b"a\nb\r\nc\rd\n")
    4
    """
    feeds = int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")))
    return feeds + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else feeds
