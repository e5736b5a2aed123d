r"""Add the values of removed rows to the kept rows that they duplicate, for --merge.

    {"id": 1, "tags": ["red"]}            kept     ─▶  {"id": 1, "tags": ["red","round"]}
    {"id": 2, "tags": ["round", "red"]}   removed

A column has lists, or texts with a delimiter, such as red;round.  The kept row's own values stay as
they are; those that it lacks follow, in the order of the removed rows in the input.  No other byte
of the row changes.  All rows of pairs are read first, so that a value that cannot be merged ends
the run before anything is written.  Memory: 48 bytes for each removed row.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from importlib import import_module
from itertools import chain, groupby, repeat
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from neardup.lines.answer_lines import is_mark, kept_place
from neardup.reading.blocks import LINE_BITS, NEW, Block, InputFile, read_files
from neardup.reading.dialects import Dialect
from neardup.reading.input_format import InputFormat
from neardup.reading.missing_fields import LISTED, kind_of, listed
from neardup.reading.separated_rows import TABS, Table, field_spans, row_ends, separated, split_rows
from neardup.reading.table_files import is_mergeable
from neardup.reading.table_rows import json_row
from neardup.reading.text_rows import Fields, FlawError, Line, lines_in, row_of
from neardup.runtime.program import StageError, UsageError, shown

FLAG = "--merge"
END = 1 << 64  # after all places
_FIELD = re.compile(r"((?:[^,:]|:(?=\w))+)(?::(, ?|[^\w,\x00-\x1f\x7f]+))?(?:,|$)")
_NO_BLANK = re.compile(r"[^ \t\n\r]")
Merge = Mapping[str, str]  # the fields to merge, each with its delimiter; "" for lists
Added = Sequence["list[Any]"]  # the values to add, by field


def parse_merge(text: str) -> dict[str, str]:
    """Parse FIELD[:DELIMITER],…; ValueError if it is something else.

    >>> parse_merge("tags:;,dc:subject,sources:,")
    {'tags': ';', 'dc:subject': '', 'sources': ','}
    """
    found = list(_FIELD.finditer(text))
    if not text or "".join(each[0] for each in found) != text:
        raise ValueError(f"expected FIELD, or FIELD:DELIMITER such as 'tags:;', got {text!r}")
    merge = {each[1]: each[2] or "" for each in found}
    if len(merge) < len(found):
        raise ValueError(f"{text!r} names a field twice; leave one out")
    return merge


def check_files(
    form: InputFormat,
    merge: Merge,
    files: Sequence[InputFile],
    max_line: int,
    as_rows: bool = False,
) -> None:
    """Raise an error if fields are unknown or cannot be merged; as_rows: in another format."""
    formats = set[str]()
    for path, name, _ in files:
        kind, columns = form.kind_of(name), form.columns(path, name)
        names, types = [getattr(each, "name", each) for each in columns], [kind]
        names = names if form.has_header else [str(i + 1) for i in range(len(names))]
        for field, delimiter in merge.items() if names else ():
            if names.count(field) != 1:
                what = "several columns" if field in names else "no column"
                there = f"name one with {FLAG}: {listed(names)}"
                raise StageError(f"{name}: has {what} {field!r}; {there}")
            type_ = getattr(columns[names.index(field)], "type", "")
            types += [f"with {field}: {type_}"] if type_ else []
            if type_ and not (as_rows or is_mergeable(type_, bool(delimiter))):
                of = "texts" if delimiter else "lists of texts, integers or booleans"
                raise StageError(
                    f"{name}: {FLAG} merges {of} in {kind}, and {field!r} is {type_}; other lists "
                    "can be written as JSON lines: -o FILE.jsonl"
                )
        formats.add(" ".join(types))
    if all(form.kind_of(file.name) == "jsonl" for file in files):
        _check_rows(form, merge, files, max_line)
    if len(formats) > 1 and not as_rows:
        both = " and ".join(sorted(formats))
        raise UsageError(f"{FLAG}: {both}; write the rows in one format: -o FILE.jsonl")


def _check_rows(form: InputFormat, merge: Merge, files: Sequence[InputFile], most: int) -> None:
    """Raise StageError if no row has a field; files are read up to a row with the last field."""
    unseen, there = {*merge}, set[str]()
    for *_, line in _lines(form, merge, files, most):
        with suppress(FlawError):
            row = row_of(line)
            unseen -= row.keys()
            there.update(row if len(there) <= LISTED else ())
        if not unseen:
            return
    for field in sorted(unseen) if there else ():
        raise StageError(f"no row has {field!r}; name one with {FLAG}: {listed(sorted(there))}")


def _lines(
    form: InputFormat, merge: Merge, files: Sequence[InputFile], max_line: int
) -> Iterator[tuple[Block, int, Line]]:
    """Yield each block, the number of each of its rows, and the row with the fields to merge."""
    read = form._replace(fields=Fields("", (*merge,), needs_id=False)).pieces_of_any
    for block in read_files(files, max_line, pieces=read):
        for number, line in lines_in([] if block.flaw else block.data):
            yield block, number, line


class Merges:
    """The values that the removed rows of a run add to kept ones.

    decided: (place, line) of all decided lines, in order
    lost: how many removed rows have values, but duplicate a record of --against
    """

    def __init__(
        self,
        form: InputFormat,
        merge: Merge,
        files: Sequence[InputFile],
        max_line: int,
        decided: Iterable[tuple[int, bytes]],
    ):
        self.form, self.merge, places = form, merge, array("Q")
        for place, line in decided:
            places.extend(() if is_mark(line) else (place, kept_place(line)))
        removed, kept = np.array(places, np.uint64).reshape(-1, 2).T
        order, old = np.argsort(kept, kind="stable"), kept < np.uint64(NEW)
        self._removed, self._kept = removed[order], kept[order]
        self._places = np.union1d(removed, kept[~old])
        self._offsets, self._values = array("q"), TemporaryFile()  # noqa: SIM115
        self._read(files, max_line)
        self.lost = sum(any(self._at(place)) for place in removed[old])

    def _read(self, files: Sequence[InputFile], max_line: int) -> None:
        """Check the rows that take part, and write their values to a file."""
        wanted = chain(map(int, self._places), [END])
        place = next(wanted)
        for file in files:
            for block, number, line in _lines(self.form, self.merge, [file], max_line):
                if block.first + number == place:
                    self._write(line, f"{block.place}{block.line + number}")
                    place = next(wanted)
            if place < file.first + (1 << LINE_BITS):
                again = "is not the file that was decided on; run the job again"
                raise StageError(f"{file.name}: {again}")

    def _write(self, line: Line, where: str) -> None:
        """Write the values of a row."""
        self._offsets.append(self._values.tell())
        try:
            row = row_of(line)
            if isinstance(line, bytes):
                _check_numbers(line, self.merge)
            values = [parts(row.get(f), f, how, where) for f, how in self.merge.items()]
            self._values.write(json.dumps(values, allow_nan=False).encode() + b"\n")
        except ValueError as flaw:  # a bad row, NaN, or a number that is not exact
            remedy = f"mend this row, or leave out {FLAG}"
            raise StageError(f"{where}: {flaw}, in a row to merge; {remedy}") from None

    def added(self, first: int) -> Iterator[tuple[int, Added]]:
        """Yield the place of each kept row of a file, in order, and the values of removed ones."""
        ends = np.array([first, first + (1 << LINE_BITS)], np.uint64)
        rows = range(*np.searchsorted(self._kept, ends).tolist())
        for place, some in groupby(rows, key=lambda row: int(self._kept[row])):
            found = [self._at(self._removed[row]) for row in some]
            yield place, [list(chain.from_iterable(lists)) for lists in zip(*found)]

    def _at(self, place: np.uint64) -> Any:
        self._values.seek(self._offsets[int(np.searchsorted(self._places, place))])
        return json.loads(self._values.readline())


class Additions:
    """The values that are added to the rows of one file, whose places are asked for in order."""

    def __init__(self, merges: Merges, file: InputFile):
        form, self._name = merges.form, file.name
        self._merge, self._kind = [*merges.merge.items()], form.kind_of(file.name)
        names = form.columns(file.path, file.name) if form.has_header else ()
        if self._kind in ("csv", "tsv"):
            self._columns = [names.index(f) if names else int(f) - 1 for f in merges.merge]
        self._left = chain(merges.added(file.first), repeat((END, ())))
        self.place, self._next = next(self._left)  # of the next row that may change

    def with_change(self, own: Any, more: Any, how: str) -> Any:
        """Return a value of a typed table as it is written."""
        return with_more(own, more, how)

    def _take(self) -> list[tuple[str, str, list[Any]]]:
        """Return (field, delimiter, values) for the row at `place`."""
        added = [(*both, values) for both, values in zip(self._merge, self._next)]
        self.place, self._next = next(self._left)
        return added

    def _replaced(self, rows: list[bytes], place: int, dialect: Dialect = TABS) -> list[bytes]:
        while self.place < place + len(rows):
            at = self.place - place
            rows[at] = self.of_bytes(rows[at], dialect)
        return rows

    def in_lines(self, chunks: Iterable[bytes], place: int) -> Iterator[bytes]:
        """Yield the lines of a file, which end with LF; `place` is that of the first one."""
        held = b""  # the start of a line that may change
        for chunk in chunks:
            if place + (count := chunk.count(b"\n")) < self.place:
                yield held + chunk
                held = b""
            else:
                *lines, held = (held + chunk).split(b"\n")
                yield b"".join(line + b"\n" for line in self._replaced(lines, place))
            place += count
        yield from self._replaced([held] * bool(held), place)

    def in_table(self, table: Table, first: int) -> Table:
        """Return the rows of CSV."""

        def replaced(rows: Any) -> Any:
            place = first + rows.number - 1
            ends = [] if rows.flaw else row_ends(rows.data, dialect=table.dialect).tolist()
            if self.place >= place + len(ends):
                return rows
            each = [rows.data[a:b] for a, b in zip([0, *ends], ends)]
            return rows._replace(data=b"".join(self._replaced(each, place, table.dialect)))

        return table._replace(rows=map(replaced, table.rows))

    def in_batch(self, batch: Any, first: int) -> Any:
        """Return a record batch, whose first row is at place `first`."""
        arrow, rows, added = import_module("pyarrow"), list[int](), list[Any]()
        while self.place < first + batch.num_rows:
            rows.append(self.place - first)
            added.append(self._take())
        columns, at = list(batch.columns), np.arange(batch.num_rows)
        at[rows] = batch.num_rows + np.arange(len(rows))
        for each in zip(*added):
            k = batch.schema.get_field_index(each[0][0])
            own = columns[k].take(arrow.array(rows)).to_pylist()
            new = [self.with_change(value, more, how) for value, (_, how, more) in zip(own, each)]
            both = arrow.concat_arrays([columns[k], arrow.array(new, columns[k].type)])
            columns[k] = both.take(arrow.array(at))
        return arrow.RecordBatch.from_arrays(columns, schema=batch.schema)

    def of_line(self, line: Line) -> Line:
        """Return the line or row at `place`."""
        if isinstance(line, bytes):
            return self.of_bytes(line)
        added, row = self._take(), row_of(line)
        return {**row, **{f: with_more(row.get(f), more, how) for f, how, more in added}}

    def of_bytes(self, line: bytes, dialect: Dialect = TABS) -> bytes:
        """Return the JSON line, or the row of CSV or TSV, at `place`."""
        if self._kind == "jsonl":
            text = line.decode("utf-8", "surrogateescape")
            for name, delimiter, more in self._take():
                text = _json_with_more(text, name, more, delimiter)
            return text.encode("utf-8", "surrogateescape")
        spans = field_spans(self._kind, line, dialect)
        own = next(split_rows(self._kind, line + b"\n", dialect))
        for column, (_, delimiter, more) in sorted(zip(self._columns, self._take()), reverse=True):
            text = with_more(own[column], more, delimiter)
            if text != own[column]:  # from behind, so that the spans of others stay
                begin, end = spans[column] if column < len(spans) else (0, 0)
                line = line[:begin] + separated(text, self._kind, dialect) + line[end:]
                own[column] = text
        if next(split_rows(self._kind, line + b"\n", dialect)) != own:
            raise StageError(
                f"{self._name}: has an escape character behind a quote, in a row to merge: "
                f"{shown(line)}; mend this row, or leave out {FLAG}"
            )
        return line


def with_more(own: Any, added: Iterable[Any], delimiter: str) -> Any:
    """Return a list, or a text, with the values that it lacks; unchanged if it lacks none.

    >>> with_more("a; b", ["b", "c"], ";"), with_more(None, ["b"], ""), with_more([1], [True], "")
    ('a; b;c', ['b'], [1, True])
    """
    known = {_key(value) for value in (_split(own or "", delimiter) if delimiter else own or ())}
    more = [value for key, value in {_key(v): v for v in added}.items() if key not in known]
    if not more or not delimiter:
        return [*(own or []), *more] if more else own
    own = own or ""
    between = delimiter if own.strip() and not own.endswith(delimiter) else ""
    return own + between + delimiter.join(more)


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)  # 1, 1.0 and true differ


def _split(text: str, delimiter: str) -> list[str]:
    return [part for each in text.split(delimiter) if (part := each.strip())]


def _json_with_more(text: str, field: str, added: Iterable[Any], delimiter: str) -> str:
    """Return a JSON line with more values in a field; what is there is not written anew."""
    begin, end = json_span(text, field)
    own = json.loads(text[begin:end] or "null")
    new = with_more(own, added, delimiter)
    if new == own:
        return text
    if own is None:
        name = "" if begin < end else f",{_as_json(field)}:"
        return text[:begin] + name + _as_json(new) + text[end:]
    comma = "," if own and not delimiter else ""
    return text[: end - 1] + comma + _as_json(new[len(own) :])[1:] + text[end:]


def _as_json(value: Any) -> str:
    return json_row(value)[:-1].decode()  # half a surrogate pair stays escaped


def json_span(text: str, field: str) -> tuple[int, int]:
    """Return where the value of a field is; an empty span at the end if the object has none."""

    def skip(at: int) -> int:
        return next(each.start() for each in _NO_BLANK.finditer(text, at))

    decode, at, found = json.JSONDecoder().raw_decode, text.index("{"), None
    while text[at] != "}":
        name, at = decode(text, skip(at + 1))
        begin = skip(text.index(":", at) + 1)
        at = decode(text, begin)[1]
        if name == field:
            found = begin, at
        at = skip(at)
    return found or (at, at)


def _check_numbers(line: bytes, fields: Iterable[str]) -> None:
    """Raise ValueError if a number in one of the fields has more digits than a float holds."""
    text = line.decode("utf-8", "surrogateescape")
    for begin, end in (json_span(text, field) for field in fields):
        json.loads(text[begin:end] or "null", parse_float=_exact)


def _exact(text: str) -> float:
    with suppress(ArithmeticError):  # an exponent of 20 digits
        if Decimal(text) == Decimal(repr(number := float(text))):
            return number
    raise ValueError(f"a number of 64 bits cannot hold {text}")


def parts(value: Any, field: str, delimiter: str, where: str) -> list[Any]:
    """Return the values in a list or a text; [] for null; StageError if it is something else."""
    if value is None:
        return []
    if delimiter and isinstance(value, str):
        return _split(value, delimiter)
    if not delimiter and isinstance(value, list):
        return value
    needed, other = "list", f"'{field}:;' is for texts such as red;round"
    if delimiter:
        needed, other = "text", f"{field} is for lists"
    raise StageError(
        f"{where}: field {field!r} is {kind_of(value)}, not a {needed}; {FLAG} {other}; leave "
        "numbers and objects out"
    )
