"""Write the kept records of a file in its own format: lines, rows with a header, or typed tables.

Blank lines, bad ones and records without keys are kept.  Every line ends with LF, since a task of
Hadoop cannot know how it ended in the input.  A line may be of any length: it is not held in
memory.  A byte order mark, and the encoding, are those of the input, but a task reads and writes
UTF-8.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, dropwhile, takewhile
from typing import IO, Any, Callable, Union

import numpy as np

from neardup.decisions.merged_rows import END, Additions, Merges
from neardup.lines.answer_lines import parse_decided, place_of
from neardup.reading.blocks import LINE_BITS, WHOLE_FILE, InputFile, with_line_ends
from neardup.reading.compressed import LINES, READ_BYTES, kind_by_name, position
from neardup.reading.input_check import NOT_CLOSED
from neardup.reading.input_format import InputFormat
from neardup.reading.separated_rows import Table, TableRows, kept_rows, opened_table
from neardup.reading.table_files import TABLES
from neardup.reading.table_rows import kept_batches, write_kept
from neardup.reading.text_rows import Line, Row
from neardup.runtime.program import STDOUT, StageError, UsageError, shown

LF = ord("\n")
Decided = Union[IO[bytes], None]  # sorted lines; None: no record is removed
FILE_PLACES = 1 << LINE_BITS  # from one file to the next
AGAIN = "name the same files in the same order, or run the whole job again"
TO_FOLDER = "write a file for each of them: -o FOLDER/"
CONVERT = "convert them first: neardup convert FILE… > ALL.jsonl"
TABS = 3  # of a decided line; with --merge it has another one
MAX_BYTES = 130 << 20  # maximum length of a decided line, which has two ids


def kept_lines(
    chunks: Iterable[bytes],
    first: int,
    gone: Iterable[int],
    of_file: bool = True,
    check: Callable[[bytes], None] | None = None,
) -> Iterator[bytes]:
    r"""Yield the bytes of a file, or a part of it, without the lines at places `gone` (ascending).

    Line ends become LF, and with `of_file` a byte order mark is left out.  `first` is the place of
    the first line; places that are not in this part are ignored.
    `check` is called with each removed line that is inside one chunk.

    >>> b"".join(kept_lines([b"a\r", b"\nb\nc", b"d\n\ne"], 7, [3, 8, 11]))
    b'a\ncd\n\n'
    """
    places = dropwhile(lambda place: place < first, gone)
    next_gone = next(places, None)
    last, whole = LF, True  # whether a line begins with the chunk
    for chunk in _with_line_feeds(chunks, of_file):
        start = 0
        if next_gone is not None:
            ends = np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == LF)
            while next_gone is not None and next_gone <= first + len(ends):
                line = next_gone - first
                begin = int(ends[line - 1]) + 1 if line else 0
                if begin > start:
                    yield chunk[start:begin]
                    last = chunk[begin - 1]
                if line == len(ends):  # the line goes on in the next chunk
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
    """Yield chunks with LF as line ends and, if `of_file`, without a byte order mark."""
    held = b""  # a CR that an LF may follow, or the start of a byte order mark
    for chunk in chunks:
        chunk = held + chunk
        held = b""
        if of_file and len(chunk) < len(codecs.BOM_UTF8):
            held = chunk
            continue
        chunk, of_file = chunk.removeprefix(codecs.BOM_UTF8) if of_file else chunk, False
        if chunk.endswith(b"\r"):
            chunk, held = chunk[:-1], b"\r"
        yield chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk
    yield held.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def lines_from(
    file: Decided, place: int, place_of: Callable[[bytes], int] = place_of
) -> Iterator[tuple[int, bytes]]:
    """Read a sorted file of decided lines; yield (place, line) of those at or after `place`.

    It begins with a binary search, so that each of many tasks reads only its own lines.
    """
    if file is None:
        return
    low, high = 0, os.fstat(file.fileno()).st_size  # the first such line begins in between
    while low < high:  # a line begins at `low`
        middle = (low + high) // 2
        file.seek(max(0, middle - 1))
        if middle:
            file.readline(MAX_BYTES)
        start, line = file.tell(), file.readline(MAX_BYTES)
        if line and place_of(line) < place:
            low = start + len(line)
        else:
            high = middle
    file.seek(low)
    before = 0
    for line in iter(lambda: file.readline(MAX_BYTES), b""):
        found = place_of(line)
        if found < before:
            raise StageError("removed records are not in order; sort them first: LC_ALL=C sort")
        before = found
        yield found, line


def keep_in_one(
    form: InputFormat,
    files: Sequence[InputFile],
    max_line: int,
    decided: Decided,
    sink: IO[bytes],
    passed: Callable[[int], None] = lambda _: None,
    of_file: PlacesOf | None = None,
    whole: bool = True,
) -> None:
    """Write the kept records of files, those whose places `decided` does not list, with one header.

    `max_line` and `passed` are as in `read_files`; of_file: makes `Marks` instead of `Places`.
    StageError if the decision was made on more files, and these are the `whole` input.
    """
    read, header = [0] * len(files), True

    def in_all(i: int, of_file: int) -> None:
        read[i] = of_file
        passed(sum(read))

    # Lazy: a file is read once all before it are written, and `header` is False after any output.
    kept = (
        kept_of(form, file, max_line, places, header, partial(in_all, i), "".join(after))
        for i, file in enumerate(files)
        for after in [[each.name for each in files[i + 1 : i + 2]]]
        for places in [(of_file or Places)(decided, file)]
    )
    kind = form.kind_of(files[0].name)
    if kind in TABLES:
        front = (of_file or Places)(decided, files[0]).fields()
        write_kept(kind, chain.from_iterable(kept), *files[0][:2], sink, front)
    else:
        for piece in chain.from_iterable(kept):
            sink.write(piece)
            header = False
    for _ in lines_from(decided, files[-1].first + FILE_PLACES) if whole else ():
        raise StageError(f"the decision was made on more files than these; {AGAIN}")


def kept_of(
    form: InputFormat,
    file: InputFile,
    max_line: int,
    places: Places,
    with_header: bool = True,
    passed: Callable[[int], None] = lambda _: None,
    after: str = "",
) -> Iterator[Any]:
    """Yield what is kept of a file: pieces of bytes, or the record batches of a typed table.

    after: the name of the file whose rows will follow in one output, or ""
    """
    kind, (path, name, first), added = form.kind_of(file.name), file, places.added
    if kind in TABLES:
        change = added.in_batch if added else None
        batches = kept_batches(kind, *file, iter(places), passed, change)
        yield from places.of_batches(batches, first)
    else:
        with form.dialect.opened(path, name, exactly=True) as text:
            stream = text.stream
            if kind == "csv":
                how = max_line, WHOLE_FILE, form.dialect
                table = opened_table(kind, form.has_header, stream, name, *how)
                table = table._replace(rows=_closed(table.rows, name, after))
                table = added.in_table(table, first) if added else table
                kept = places.of_table(table, first, with_header)
            else:
                assert kind in (*LINES, "jsonl", "tsv"), f"{kind}: cannot be cut as lines"
                chunks = iter(lambda: stream.read(READ_BYTES), b"")
                lines = with_line_ends(chunks, "" if name == "-" else f"{name}: ")
                header = kind == "tsv" and form.has_header
                if added:
                    lines = added.in_lines(_with_line_feeds(lines, of_file=False), first - header)
                kept = places.of_lines(lines, kind, first, header, with_header)
            for piece in text.encoded(kept, with_mark=with_header):
                yield piece
                passed(position(stream))
    places.check(name)


def _closed(rows: Iterator[TableRows], name: str, after: str) -> Iterator[TableRows]:
    """Yield the rows of a CSV file; StageError if one would go on in the file `after`, if any."""
    for each in rows:
        if after and each.flaw == NOT_CLOSED:
            raise StageError(
                f"{name}: row {each.number}: {NOT_CLOSED}, so that rows of {after} behind it would "
                f"be a part of it; mend it, or name {name} last"
            )
        yield each


class Places:
    """The places of one file's removed records, in order; can be iterated over only once."""

    names: Sequence[str] = ()  # of columns that are put in front of those of a table

    def __init__(self, decided: Decided, file: InputFile, merges: Merges | None = None):
        self.added = Additions(merges, file) if merges else None
        lines, end = lines_from(decided, file.first), file.first + FILE_PLACES
        self._left = takewhile(lambda line: line[0] < end, lines)
        self._open = False  # until the next place is requested
        self._id = b""

    def __iter__(self) -> Iterator[int]:
        for place, line in self._left:
            self._open, (_, self._id) = True, parse_decided(line)
            if not self.added and line.count(b"\t") > TABS:
                raise StageError("decided with --merge; give step.py keep the same --merge, too")
            yield place
            self._open = False

    def of_lines(
        self, chunks: Iterable[bytes], kind: str, first: int, header: bool, with_header: bool
    ) -> Iterator[bytes]:
        """Yield the lines to write; a header is before the first record, and written if asked."""
        left_out = [first - 1] if header and not with_header else []
        check = self.check_line if kind in LINES else None
        return kept_lines(chunks, first - header, chain(left_out, self), check=check)

    def of_table(self, table: Table, first: int, with_header: bool) -> Iterator[bytes]:
        """Yield the bytes of a CSV table without the rows of removed records."""
        return kept_rows(table, first, iter(self), with_header)

    def of_batches(self, batches: Iterable[Any], first: int) -> Iterable[Any]:
        """Return the record batches to write, of the rows that are not removed."""
        return batches

    def of_row(self, place: int, line: Line, row: Row) -> tuple[Line, Row]:
        """Return a line and its fields as they are written in another format."""
        return line, row

    def fields(self) -> list[Any]:
        """Return the Arrow fields that are put in front of those of a table."""
        return []

    def check_line(self, line: bytes) -> None:
        """Raise StageError unless the line to remove begins with the id of the removed record."""
        id_, line = self._id, line.lstrip()
        behind = line[len(id_) :][:1]
        if id_ and not (line.startswith(id_) and (not behind or behind.isspace())):
            raise StageError(
                f"expected a line of {shown(self._id)}, got {shown(line.rstrip())}: this is not "
                f"the file that the decision was made on; {AGAIN}"
            )

    def _has_more(self) -> bool:
        return self._open or next(self._left, None) is not None

    def check(self, name: str) -> None:
        """Raise StageError if the file ended before the last record to remove."""
        if self._has_more() or (self.added and self.added.place < END):
            raise StageError(f"{name}: is shorter than when the decision was made; {AGAIN}")


PlacesOf = Callable[[Decided, InputFile], Places]


def check_one_answer(
    form: InputFormat,
    files: Sequence[InputFile],
    descriptor: int = STDOUT,
    instead: str = CONVERT,
    answer: str | None = None,
) -> None:
    """Raise UsageError, with `instead`, if kept records cannot be written to one output.

    answer: the name of the output, if the records are written in the format they were read in
    """
    kinds = {form.kind_of(name) for _, name, _ in files}
    for kind in kinds & {*TABLES} if os.isatty(descriptor) else ():
        raise UsageError(
            f"cannot print {TABLES[kind].title} on a terminal; write a file: > FILE.{kind}"
        )
    several = files if len(files) > 1 else ()
    in_encodings = (form.dialect.encoding_of(path, name) or "utf-8" for path, name, _ in several)
    for some in (kinds, {*in_encodings} if len(kinds) == 1 else ()):
        if len(some) > 1:
            names = " and ".join(sorted(some))
            raise UsageError(f"cannot write {names} to one file; {instead}")
    first: tuple[str, Sequence[Any]] | None = None
    for path, name, _ in several if form.has_header else ():
        columns = form.columns(path, name)
        first = first or ((name, columns) if columns else None)
        if first and columns and columns != first[1]:
            raise UsageError(f"{first[0]} and {name} have different columns; {instead}")
        if "arrow" in kinds and any("dictionary<" in str(each.type) for each in columns):
            raise UsageError(f"{name} has a dictionary, and an Arrow file has but one; {instead}")
    if kind_by_name(answer or "") not in (None, kind := form.kind_of(files[0].name)):
        raise UsageError(
            f"-o {answer}: records are written as {kind}, as they were read; leave out this "
            "extension"
        )
