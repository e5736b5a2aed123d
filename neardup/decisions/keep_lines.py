"""The lines of an input that stay: all of it, but for those at the places of records that go.

Blank lines, bad ones and records without keys stay as they are.  Every line ends with LF here,
since a task of Hadoop cannot know how it ended.  A line may be of any length: it is not held.
"""

from __future__ import annotations

import codecs
import itertools
import os
from collections.abc import Iterable, Iterator
from typing import IO, Callable

import numpy as np

from neardup.lines.decided_lines import parse_decided
from neardup.process.errors import StageError

LF = ord("\n")
MOST_BYTES = 130 << 20  # of a decided line, which has two ids; what has no line end has none, too


def kept_lines(
    chunks: Iterable[bytes],
    first: int,
    gone: Iterable[int],
    of_file: bool = True,
    check: Callable[[bytes], None] | None = None,
) -> Iterator[bytes]:
    r"""The bytes of a file, or of a part of it, without the lines at the places `gone` (ascending).

    `first` is the place of the first line; places before it, or after the last one, are of others.
    `check` is given each line that goes and is whole in a chunk.

    >>> b"".join(kept_lines([b"a\r", b"\nb\nc", b"d\n\ne"], 7, [3, 8, 11]))
    b'a\ncd\n\n'
    """
    places = itertools.dropwhile(lambda place: place < first, gone)
    next_gone = next(places, None)
    last, whole = LF, True  # whether a line begins with the chunk
    for chunk in _with_line_feeds(chunks, of_file):
        start = 0
        if next_gone is not None:  # after the last one that goes, no line needs to be found
            ends = np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == LF)
            while next_gone is not None and next_gone <= first + len(ends):
                line = next_gone - first
                begin = int(ends[line - 1]) + 1 if line else 0
                if begin > start:
                    yield chunk[start:begin]
                    last = chunk[begin - 1]
                if line == len(ends):  # it goes on in the next chunk
                    start = len(chunk)
                    break
                start = int(ends[line]) + 1
                if check and (begin or whole):
                    check(chunk[begin:start])
                next_gone = next(places, None)
            first += len(ends)
        whole = chunk[-1:] == b"\n" or (whole and not chunk)
        if start < len(chunk):
            yield chunk[start:]
            last = chunk[-1]
    if not whole and next_gone == first:  # the last line, without a line end
        next(places, None)
    if last != LF:
        yield b"\n"


def _with_line_feeds(chunks: Iterable[bytes], of_file: bool) -> Iterator[bytes]:
    """The same, each line ending with LF, and without a byte order mark at the start of a file."""
    held = b""  # a CR, after which an LF may come, or what may become a byte order mark
    for chunk in chunks:
        chunk = held + chunk
        held = b""
        if of_file and len(chunk) < len(codecs.BOM_UTF8):
            held = chunk
            continue
        chunk, of_file = chunk.removeprefix(codecs.BOM_UTF8) if of_file else chunk, False
        if chunk.endswith(b"\r"):
            chunk, held = chunk[:-1], b"\r"
        yield _line_feeds(chunk)
    yield _line_feeds(held)


def _line_feeds(chunk: bytes) -> bytes:
    return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk


def places_from(file: IO[bytes], place: int) -> Iterator[int]:
    """The places on decided lines, from this one on; see `records_from`."""
    return (found for found, _ in records_from(file, place))


def records_from(file: IO[bytes], place: int) -> Iterator[tuple[int, bytes]]:
    """(place, id) of decided lines, from this place on, of a file in order of places.

    It is found by halves, so that each task of many reads only what is of its own lines.
    """
    low, high = 0, os.fstat(file.fileno()).st_size  # the first such line begins in between
    while low < high:
        middle = (low + high) // 2
        start, line = _line_after(file, middle)
        if line and parse_decided(line)[0] < place:
            low = start + len(line)
        else:
            high = middle
    file.seek(_line_after(file, low)[0])
    before = 0
    for line in iter(lambda: file.readline(MOST_BYTES), b""):  # and not by blocks
        found, id_ = parse_decided(line)
        if found < before:
            raise StageError("the records that go are not in order; put LC_ALL=C sort in front")
        before = found
        yield found, id_


def _line_after(file: IO[bytes], position: int) -> tuple[int, bytes]:
    """The first line that begins at this position or after it, and where it does."""
    file.seek(max(0, position - 1))
    if position:
        file.readline(MOST_BYTES)
    return file.tell(), file.readline(MOST_BYTES)
