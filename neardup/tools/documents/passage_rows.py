r"""The rows that `passages` writes: with cuts in their texts, or with the share that is repeated.

With cuts, all other bytes, columns and types of a row are as they were:

    {"id": 1, "text": "a\nb \ud83d\ude00 c"}   the text has 7 characters: an escape is one
    1,"a ""b"" c"                              so is a doubled quote

A cut text of Parquet and Arrow is a new value of its column.  The shares of the words of a text
that are in a repeated run are columns:

    repeated,seen_before,id,text
    0.75,0.0,a,to be or not
    1.0,1.0,b,To be or        a repeats it, and comes first
    ,,c,                      not compared: no words

Where `seen_before` is 1.0, each word is in a text before: if all such rows are removed, no word is
lost.  Where `repeated` is 1.0, it is.

Letters: C cuts of all files.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from neardup.decisions.kept_lines import FILE_PLACES, Decided, Places, check_one_answer
from neardup.decisions.marked_rows import Mark, Marks, check_files
from neardup.decisions.merged_rows import END, Additions, json_span
from neardup.options.settings import Settings
from neardup.reading.blocks import InputFile
from neardup.reading.dialects import Dialect
from neardup.reading.input_format import InputFormat
from neardup.reading.separated_rows import QUOTED, TABS, field_spans, separated, split_rows
from neardup.reading.table_files import TABLES, is_mergeable
from neardup.runtime.program import STDOUT, StageError, UsageError, shown

PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # one character
ESCAPES = re.compile(rf"{PAIR}|\\u[0-9a-fA-F]{{4}}|\\.")  # of JSON
NONE = re.compile(r"(?!)")
CONVERT = "write JSON lines first, with neardup convert"


def without(
    text: str, cuts: Sequence[Sequence[int]], put: str, escapes: re.Pattern[str] = NONE
) -> str:
    r"""Return a text with `put` in place of each cut, from one character to before another.

    escapes: what is one character, but longer in this text

    >>> without(r"a\nb c", [(1, 3)], " ", ESCAPES)
    'a  c'
    """
    found = np.array([each.span() for each in escapes.finditer(text)], np.int64).reshape(-1, 2)
    longer = np.cumsum(found[:, 1] - found[:, 0] - 1)
    at = found[:, 0] - longer + (found[:, 1] - found[:, 0] - 1)
    edges = np.array([0, *chain.from_iterable(cuts)])
    edges += np.append(0, longer)[np.searchsorted(at, edges)]
    kept = zip(edges[::2].tolist(), [*edges[1::2].tolist(), len(text)])
    return put.join(text[a:b] for a, b in kept)


class CutRows(Additions):
    """The rows of one file, which are asked for in order.

    cuts: uint64 (C, 3): the place of a row, and from which character to which, in order
    put: in place of each cut
    """

    def __init__(self, form: InputFormat, cuts: np.ndarray, put: str, file: InputFile):
        self._kind, self._name, self._put = form.kind_of(file.name), file.name, put
        self._field = form.fields.texts[0] if form.fields else ""
        columns = form.columns(file.path, file.name) if form.has_header else ()
        if self._kind in ("csv", "tsv"):
            self._column = columns.index(self._field) if columns else int(self._field) - 1
        for column in columns if self._kind in TABLES else ():
            if column.name == self._field and not is_mergeable(column.type, delimited=True):
                why = f"{self._field!r} is {column.type}, and --output kept cuts strings"
                raise StageError(f"{self._name}: {why}; {CONVERT}")
        self._left = chain(_by_row(cuts, file.first), repeat((END, ())))
        self.place, self._next = next(self._left)

    def _take(self) -> list[tuple[str, str, list[Any]]]:
        cuts = [*self._next]
        self.place, self._next = next(self._left)
        return [(self._field, "", cuts)]

    def with_change(self, own: Any, change: Sequence[Any], _: str) -> Any:
        return without(own, change, self._put)

    def of_bytes(self, line: bytes, dialect: Dialect = TABS) -> bytes:
        ((*_, cuts),) = self._take()
        if self._kind in ("csv", "tsv"):
            return self._of_fields(line, cuts, dialect)
        text = line.decode("utf-8", "surrogateescape")
        if self._kind == "jsonl":
            begin, end = json_span(text, self._field)
            raw = without(text[begin + 1 : end - 1], cuts, json.dumps(self._put)[1:-1], ESCAPES)
            text = text[: begin + 1] + raw + text[end - 1 :]
        else:  # an id, a tab or else a blank, and the text
            begin = text.find("\t") + 1 or len(text) - len(text.lstrip().partition(" ")[2])
            begin = len(text) - len(text[begin:].lstrip())
            text = text[:begin] + without(text[begin:], cuts, self._put)
        return text.encode("utf-8", "surrogateescape")

    def _of_fields(self, line: bytes, cuts: list[Any], dialect: Dialect) -> bytes:
        """Return a row of CSV or TSV; where its bytes cannot be cut, the field is written anew."""
        begin, end = field_spans(self._kind, line, dialect)[self._column]
        raw, quote = line[begin:end].decode("utf-8", "surrogateescape"), dialect.quote
        quoted = int(raw[:1] == quote and (self._kind == "csv" or bool(QUOTED.fullmatch(raw))))
        marks = re.escape(quote * 2) if quoted else NONE.pattern
        if dialect.escape:
            escaped = re.escape(quote + dialect.delimiter + dialect.escape)
            marks += rf"|{re.escape(dialect.escape)}[{escaped}\r\n]"
        new = without(raw[quoted : len(raw) - quoted], cuts, self._put, re.compile(marks))
        own = next(split_rows(self._kind, line + b"\n", dialect))
        own[self._column] = without(own[self._column], cuts, self._put)
        as_it_was = (quote * quoted + new + quote * quoted).encode("utf-8", "surrogateescape")
        for field in (as_it_was, separated(own[self._column], self._kind, dialect)):
            row = line[:begin] + field + line[end:]
            if next(split_rows(self._kind, row + b"\n", dialect)) == own:
                return row
        raise StageError(f"{self._name}: cannot cut {shown(line)}; {CONVERT}")


def cut_places(
    form: InputFormat, cuts: array[int], put: str, decided: Decided, file: InputFile
) -> Places:
    """Return the places of one file, of which no record is removed; see `CutRows`."""
    places = Places(decided, file)
    places.added = CutRows(form, np.frombuffer(cuts, np.uint64).reshape(-1, 3), put, file)
    return places


def _by_row(cuts: np.ndarray, first: int) -> Iterator[tuple[int, list[list[int]]]]:
    places = cuts[:, 0]
    low, high = np.searchsorted(places, np.array([first, first + FILE_PLACES], np.uint64))
    heads = np.flatnonzero(np.diff(places[low:high], prepend=np.uint64(0))) + low
    for a, b in zip(heads.tolist(), [*heads[1:].tolist(), int(high)]):
        yield int(places[a]), cuts[a:b, 1:].tolist()


# ---- rows with shares

COLUMNS = {"repeated": float, "seen_before": float}


class Shares(Marks):
    """The shares of one file's rows.

    places, shares: of all rows with words; uint64 (n,), ascending, and float64 (n, 2)
    """

    columns = COLUMNS
    not_compared: Mark = (None, None)

    def __init__(
        self,
        form: InputFormat,
        prefix: str,
        places: np.ndarray,
        shares: np.ndarray,
        decided: Decided,
        file: InputFile,
    ):
        super().__init__(form, prefix, np.empty(0, np.uint64), decided, file)
        self._places, self._shares = places, shares

    def at(self, place: int) -> Mark:
        i = int(np.searchsorted(self._places, np.uint64(place)))
        known = i < len(self._places) and int(self._places[i]) == place
        return tuple(self._shares[i].tolist()) if known else self.not_compared

    def _has_more(self) -> bool:
        return False  # files that change are named by `RecordTexts.check`


def check_kept(
    settings: Settings,
    files: Sequence[InputFile],
    kind: str,
    separator: str = " ",
    descriptor: int = STDOUT,
    answer: str | None = None,
) -> None:
    """Raise an error if --output kept or marked cannot write the records of these files.

    answer: the name of the output, if it has one
    """
    form = settings.form
    check_one_answer(form, files, descriptor, answer=answer)
    if kind == "marked":
        check_files(form, settings.mark_prefix, files, settings.max_line, COLUMNS)
        return
    in_lines = form.kind_of(files[0].name) in ("text", "tsv")
    if not separator.isspace() or (in_lines and separator.strip(" ")):
        what = "blanks" if in_lines else "blanks or line ends"
        why = f"since a word may make new passages, got {separator!r}"
        raise UsageError(f"--separator: expected {what}, {why}")
