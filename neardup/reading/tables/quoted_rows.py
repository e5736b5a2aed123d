r"""The rows of a CSV file, some at a time, where a quoted field may hold line ends.

    1,"to be,⏎or not"⏎2,plain⏎     two rows: a quote counts where a field begins, and up to the
                                    next one that is not doubled

A quote that is never closed would make one row of all that follows.  So a row longer than the limit
ends at its first line end, and is none; what follows is read as rows again.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterator
from typing import IO

from neardup.process.errors import StageError
from neardup.reading.bad_lines import LINE_TOO_LONG, NOT_CLOSED
from neardup.reading.blocks import BLOCK_BYTES, LINE_END, count_lines

QUOTE = b'"'
FIELD = rb'(?:"[^"]*(?:""[^"]*)*"(?!")[^,\r\n]*|[^",\r\n][^,\r\n]*|)'
ROW_OF_FIELDS = re.compile(FIELD + rb"(?:," + FIELD + rb")*(?:\r\n|\n|\r)")


def whole_rows(stream: IO[bytes], name: str, max_row: int) -> Iterator[tuple[int, bytes, str]]:
    """(number of the first row, whole rows, ""), some at a time; or one row alone that is none, and
    why.  Blank rows count.  A last row without a line end is given one.

    StageError for one line longer than the limit, which is no CSV.
    """
    number, held = 1, stream.read(BLOCK_BYTES).removeprefix(codecs.BOM_UTF8)
    ended = False
    while held or not ended:
        if not ended:
            more = stream.read(max(BLOCK_BYTES, len(held)))  # a long row is scanned few times
            ended = not more
            held += more
            if ended and held and not held.endswith((b"\n", b"\r")):
                held += b"\n"
        end, count = rows_in(held, ended, max_row)
        if count:
            yield number, held[:end], ""
            number, held = number + count, held[end:]
        elif held and (ended or len(held) > max_row):
            line = LINE_END.search(held)
            if not line:
                raise StageError(f"{name}: row {number}: {LINE_TOO_LONG}; is this CSV?")
            flaw = LINE_TOO_LONG if len(held) > max_row else NOT_CLOSED
            yield number, held[: line.end()], flaw
            number, held = number + 1, held[line.end() :]


def rows_in(data: bytes, ended: bool, max_row: int) -> tuple[int, int]:
    r"""(where the last whole row ends before a longer one, how many there are).

    >>> rows_in(b'1,"a\nb"\r\n2,"c\n', False, 99)
    (9, 1)
    """
    safe = len(data) - (not ended and data.endswith(b"\r"))  # an LF may follow
    if QUOTE not in data and len(data) <= max_row:
        end = max(data.rfind(b"\n", 0, safe), data.rfind(b"\r", 0, safe)) + 1
        return end, count_lines(data[:end])
    ends = [0, *row_ends(data, safe)]
    if len(data) > max_row:
        rows = enumerate(zip(ends, ends[1:]))
        whole = next((i for i, (begin, end) in rows if end - begin > max_row), len(ends) - 1)
        del ends[whole + 1 :]
    return ends[-1], len(ends) - 1


def row_ends(data: bytes, stop: int = sys.maxsize) -> Iterator[int]:
    """Where each whole row ends."""
    if QUOTE not in data:
        yield from (line.end() for line in LINE_END.finditer(data, 0, stop))
        return
    end = 0
    while row := ROW_OF_FIELDS.match(data, end, stop):
        end = row.end()
        yield end
