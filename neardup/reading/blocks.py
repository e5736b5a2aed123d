"""Read input files as blocks of whole lines or rows, each with its place in the input.

A line ends with LF, CRLF or CR, as in Hadoop, and its length is counted without its end.

The place of a record combines the numbers of its file and of its line:

    1 bit   19 bits         44 bits
    ┌─────┬───────────────┬──────────────────────────────────┐
    │ new │ file          │ line                             │   uint64
    └─────┴───────────────┴──────────────────────────────────┘

Places are in the order of the input: old files before new ones (--against), files as they are
named, and lines from 0, also blank and bad ones.  A task that reads a split of a file numbers its
lines from the byte offset of the split: every line has at least one byte, so that no line of
another split has the same place.
"""

from __future__ import annotations

import codecs
import errno
import io
import itertools
import os
import re
import shlex
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import IO, Any, Callable, NamedTuple

import numpy as np

from neardup.reading.compressed import MAGIC_BYTES, position, refuse_no_lines
from neardup.reading.dialects import AS_USUAL, Dialect
from neardup.reading.input_check import LINE_TOO_LONG
from neardup.runtime.program import STDOUT, StageError, UsageError, printable
from neardup.runtime.summary import DOCUMENTS

LINE_BITS, FILE_BITS = 44, 19
NEW = 1 << (LINE_BITS + FILE_BITS)
BLOCK_BYTES = 1 << 19  # small: the data made from a block stay in the processor's cache
LINE_END = re.compile(rb"[\r\n](?:(?<=\r)\n)?")
CUT_BYTES = 100
ENDLESS_BYTES = 1 << 30  # without a line end are not a line; a keyed line may be nearly as long
STDIN_COPY = "NEARDUP_STDIN"  # environment variable: the copy of standard input that tasks read
TASK_FILE = "mapreduce_map_input_file"  # set by Hadoop and mrjob for a task


def first_place(file: int, line: int = 0, new: bool = True) -> int:
    """Return the place of a line in file number `file`; StageError for too many files.

    >>> hex(first_place(2, 7))
    '0x8000200000000007'
    """
    if file >> FILE_BITS:
        raise StageError(f"more than {1 << FILE_BITS:,} files; split them among several runs")
    return NEW * new | file << LINE_BITS | line


class InputFile(NamedTuple):
    """An input file: its path, the user's name for it, and the place of its first line or row."""

    path: str
    name: str
    first: int


def numbered(new: Iterable[str], old: Iterable[str] = ()) -> list[InputFile]:
    """Return the files with these names, old ones first, with the places of their first lines."""
    both = (False, old), (True, new)
    places = [(name, first_place(i, new=new)) for new, some in both for i, name in enumerate(some)]
    return [InputFile(name, name, place) for name, place in places]


class Piece(NamedTuple):
    """Consecutive lines of a file, or consecutive rows of a table."""

    line: int  # the number of the first one, from 1
    parts: Callable[[], Iterable[Any]]  # reads them, as `Block.data`, in one or several parts
    flaw: str = ""  # why this is a bad line; `parts` are then its first bytes
    unit: str = "line"  # or "row"
    behind: int = 0  # bytes of the file, as it is on disk, that have been read
    encoding: str = ""  # of the file; "" is UTF-8
    has_ids: bool = True  # False if no row has an id, as far as can be seen from the start


class Block(NamedTuple):
    """Whole lines, or rows of a table, with their place in the input."""

    place: str  # "videos.txt: line ", or "line " for standard input
    line: int  # the number of the first one, from 1
    data: Any  # lines as bytes, or rows as a list, see `text_rows`
    flaw: str = ""  # as in Piece
    first: int = NEW  # the place of the first one, see above
    row_ids: bytes = b""  # before the numbers of rows without an id
    encoding: str = ""  # as in Piece
    reserved: Collection[bytes] = ()  # `row_ids` of all files; () if rows get no ids

    def row_id(self, number: int) -> bytes:
        """Return the id of a row without one: chat.jsonl:17, or 17 where no row has an id."""
        return b"%b%d" % (self.row_ids, self.line + number)


def check_inputs(files: list[str]) -> None:
    """Raise StageError for folders and missing files, UsageError if standard output is a file."""
    for name in files:
        if name == "-":
            _check_output(name, 0)
            continue
        try:
            found = os.stat(name)
        except (OSError, ValueError) as error:  # ValueError: a NUL
            if getattr(error, "errno", errno.ENOENT) in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise StageError(f"{name or 'an empty name'}: no such file") from None
            raise
        _check_output(name, name)
        if stat.S_ISDIR(found.st_mode):
            documents = DOCUMENTS.format(shlex.quote(name))
            raise StageError(f"{name}: is a directory; name the files in it; {documents}")


def _check_output(name: str, file: int | str) -> None:
    """Raise UsageError for a file that standard output would overwrite, or append to."""
    with suppress(OSError):  # one of both is closed
        found = os.stat(file)
        if stat.S_ISREG(found.st_mode) and os.path.samestat(found, os.fstat(STDOUT)):
            raise UsageError(f"{name}: is standard output, too; write to another file: > NEW")


def files_named(names: list[str]) -> list[str]:
    """Return the files with these names or patterns; StageError for a missing file or a folder."""
    import glob

    files: list[str] = []
    for name in names:
        there = name == "-" or os.path.lexists(name)
        files += [name] if there else sorted(glob.glob(name)) or [name]
    check_inputs(files)
    return files


class Start(NamedTuple):
    """The start of an input or of a split, from which its lines are numbered."""

    place: str  # "videos.txt: ", or "" for standard input
    line: int
    of_file: bool = True
    byte: int = 0  # in the file, where a line's number counts from there
    later: bool = False  # another file was read before


WHOLE_FILE = Start("", 1)


def in_task() -> bool:
    """Return whether this process is a task of Hadoop or mrjob."""
    return bool(os.environ.get(TASK_FILE))


def start_of_split() -> Start:
    """Return the start of this task's split: its file, and its first line's number or offset.

    Hadoop names a file and a position in it; only in mrjob's local files can lines be counted.
    """
    uri = os.environ.get(TASK_FILE, "")
    start = int(os.environ.get("mapreduce_map_input_start") or 0)
    name = uri[len("file://") :] if uri.startswith("file://") else uri
    place = f"{name}: " if name and name != os.environ.get(STDIN_COPY) else ""
    if start and name == uri:
        return Start(f"{name} from byte {start}: ", 1, of_file=False, byte=start)
    line, last = 1, b""
    if start:
        with open(name, "rb") as stream:
            for block in iter(lambda: stream.read(min(BLOCK_BYTES, start - stream.tell())), b""):
                line += count_lines(last + block) - count_lines(last)  # CR LF may be cut in two
                last = block[-1:]
    return Start(place, line, of_file=not start)


def line_pieces(
    path: str, name: str, max_line: int, start: Start, dialect: Dialect = AS_USUAL
) -> Iterator[Piece]:
    """Yield pieces of consecutive lines of a file, in UTF-8."""
    with dialect.opened(path, name) as (stream, _, encoding):
        if start.of_file:
            refuse_no_lines(stream.peek(MAGIC_BYTES), start.place[: -len(": ")] or "-")
        for line, data, cut in whole_lines(stream, max_line, start):
            flaw = LINE_TOO_LONG if cut else ""
            behind = position(stream)
            yield Piece(line, partial(iter, (data,)), flaw, behind=behind, encoding=encoding)


Pieces = Callable[[str, str, int, Start], Iterator[Piece]]


def read_files(
    files: Sequence[InputFile],
    max_line: int,
    turns: Iterator[int] | None = None,
    pieces: Pieces = line_pieces,
    others: bool = False,
    among: Sequence[str] = (),
    taken: Sequence[str] = (),
    passed: Callable[[int], None] | None = None,
    chosen: Callable[[int, int], bool] | None = None,
) -> Iterator[Block]:
    """Yield the blocks of the given files (`-` is stdin; compressed files are unpacked).

    turns: the numbers of the blocks to yield (ascending, from 0), so that mappers can share files
    others, among: see `row_prefixes`; taken: names before these in an index
    passed: called with how many bytes of the files on disk have been read
    chosen: instead of `turns`: returns whether to yield a block, given its number and these bytes
    """
    turns = turns or itertools.count()
    number, mine, before = 0, next(turns), 0
    among = among or [file.name for file in files]
    several = others or len(among) > 1
    among = [*taken, *dict.fromkeys(among)]
    found = row_prefixes(among, others)
    prefixes, of_files = dict(zip(among, found)), frozenset(() if in_task() else found)
    for path, name, first in files:
        start = Start("" if name == "-" else f"{name}: ", 1, later=path != files[0].path)
        if name == "-" and in_task():
            start = start_of_split()
        behind = 0
        for piece in pieces(path, name, max_line, start):
            line, parts, flaw, unit, behind, encoding, has_ids = piece
            if chosen(number, before + behind) if chosen else number == mine:
                if passed:
                    passed(before + behind)
                place = first + start.byte + line - 1
                row_ids = prefixes[name] if several or has_ids else b""
                reserved = of_files if row_ids else of_files and {row_ids}
                for part in parts():
                    where = f"{start.place}{unit} "
                    yield Block(where, line, part, flaw, place, row_ids, encoding, reserved)
                    line, place = line + len(part), place + len(part)  # only rows have more parts
                mine = next(turns)
            number += 1
        before += behind


def row_prefixes(names: Sequence[str], others: bool = False) -> list[bytes]:
    """Return, for each file of a run, the prefix of the ids that rows without an id get.

    It is the part of the file's path in which the paths of all files differ.  With `others`
    (records from elsewhere) it is the whole path, and a number behind a name that comes again.

    >>> row_prefixes(["/data/a/1.csv", "/data/b/1.csv"])
    [b'a/1.csv:', b'b/1.csv:']
    >>> row_prefixes(["-", "-"], others=True)
    [b'-:', b'-#2:']
    """
    folders = [os.path.dirname(os.path.abspath(name)) for name in names if name != "-"]
    common = "" if others else os.path.commonpath(folders or ["/"])
    prefixes: dict[bytes, None] = {}
    for number, name in enumerate(names, 1):
        if name != "-":
            name = os.path.relpath(name, common) if common else os.path.abspath(name)
        text = os.fsencode(name).decode("utf-8", "backslashreplace")
        prefix = printable(text).encode()  # it becomes part of an id, which must be printable
        prefixes[prefix + (b"#%d:" % number if prefix + b":" in prefixes else b":")] = None
    return list(prefixes)


def blocks_of(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield blocks of whole lines that end with LF.

    StageError for a line that does not end, or a long line that begins with NUL.
    """
    held: list[bytes] = []  # the start of a line that has not ended yet
    length = 0
    while chunk := stream.read(BLOCK_BYTES):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join((*held, memoryview(chunk)[:cut]))
            held, length = [], 0
        held.append(chunk[cut:])
        length += len(chunk) - cut
        if length > ENDLESS_BYTES or (length >= BLOCK_BYTES and held[0].startswith(b"\0")):
            raise StageError("a line has no line end; pass the output of the previous stage")
    if any(held):
        yield b"".join((*held, b"\n"))


def lines_of_stage(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream, each with its LF."""
    return itertools.chain.from_iterable(map(io.BytesIO, blocks_of(stream)))


def with_line_ends(pieces: Iterable[bytes], place: str = "") -> Iterator[bytes]:
    """Yield the pieces unchanged; StageError after 1 GiB without a line end, as in /dev/zero."""
    line, passed = 1, 0
    for piece in pieces:
        passed += len(piece)
        if b"\n" in piece or b"\r" in piece:
            line, passed = line + count_lines(piece), 0
        if passed > ENDLESS_BYTES:
            raise _endless(place, line)
        yield piece


def _endless(place: str, line: int) -> StageError:
    mebibytes = f"{ENDLESS_BYTES >> 20:,} MiB"
    return StageError(f"{place}line {line}: no line end in {mebibytes}; name a file of lines")


def whole_lines(
    stream: IO[bytes], max_line: int, start: Start = WHOLE_FILE
) -> Iterator[tuple[int, bytes, bool]]:
    """Yield (number of the first line, whole lines, whether a line was cut).

    A line of more than `max_line` bytes (at least a block) is yielded alone, cut to its first bytes
    and with True.  A last line without a line end is given one, and a byte order mark at the start
    of a file is removed, as in Hadoop.
    """
    line = start.line
    held: list[bytes] = []  # the start of a line that has not ended yet
    length = passed = 0  # bytes of `held`, and bytes dropped from a line that is too long
    ahead = stream.read(len(codecs.BOM_UTF8)) if start.of_file else b""
    ahead = ahead.removeprefix(codecs.BOM_UTF8)
    while chunk := ahead + stream.read(BLOCK_BYTES):
        ahead = b""
        if chunk.endswith(b"\r"):  # CR LF stay together
            ahead = stream.read(1)
            if ahead == b"\n":
                chunk, ahead = chunk + ahead, b""
        first = LINE_END.search(chunk) if length + len(chunk) > max_line else None
        if length + (first.start() if first else len(chunk)) > max_line:
            held = [b"".join((*held, chunk[:CUT_BYTES]))[:CUT_BYTES]]
            passed += len(chunk)
            length = max_line + 1  # what follows is not kept
            if not first and passed > ENDLESS_BYTES:
                raise _endless(start.place, line)
            if not first:
                continue
            yield line, held[0], True
            line += 1
            held, length, passed, chunk = [], 0, 0, chunk[first.end() :]
        cut = chunk.rfind(b"\n") + 1
        cut = max(cut, chunk.rfind(b"\r", cut) + 1)
        if cut:
            data = b"".join((*held, memoryview(chunk)[:cut]))
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
    """Return the number of line ends (LF, CRLF or CR) in `data`."""
    feeds = int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")))
    return feeds + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else feeds
