"""Texts with ids → a batch of records: lines of text, JSON lines, and rows of tables.

    text        ID TAB TEXT, or ID BLANK TEXT where a line has no tab
    JSON lines  {"id": "a", "text": "to be or not to be"}; rows of tables come in this form, too

`Fields` names the fields of a row that are its id and its text (--id, --text).  A text may be a
list of integers, which are the shingles then.  The id is a string or a whole number; a row without
one has the number of its line, or is a bad line where --id names a field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from neardup.reading.blocks import Block
from neardup.reading.cleaning import Cleaning
from neardup.reading.input_check import (
    BLANK_IN_ID,
    NEGATIVE,
    NO_ID,
    NO_SHINGLES,
    NO_TEXT,
    NOT_A_TEXT,
    NOT_AN_ID,
    NOT_AN_INTEGER,
    NOT_JSON,
    NOT_UTF8,
    NUL_BYTE,
    TOO_FEW_FIELDS,
    TOO_LARGE,
    WRONG_FIELDS,
    BadLine,
    Gather,
    Parser,
    flaw_in,
)
from neardup.reading.shingle_lines import MOST
from neardup.reading.shingling import Shingler
from neardup.runtime.errors import UsageError
from neardup.sets.ragged import Batch, Ragged


class Text(NamedTuple):
    number: int  # of its line in its block, from 0
    id: bytes
    text: str


def batch_of_texts(
    texts: Iterable[Text], shingler: Shingler, clean: Cleaning, gather: Gather
) -> Batch:
    """The records of some texts; `gather` makes sets of their shingles.

    There may be no shingles in a text of which cleaning leaves nothing, or that has no spots: such
    records are only counted.
    """
    some = list(texts)
    whole = [text for _, _, text in some]
    values, sizes = shingler.many(list(map(clean, whole)) if clean.names else whole)
    full = np.flatnonzero(sizes)
    numbers = np.array([number for number, _, _ in some], dtype=np.uint64)
    return Batch(
        [some[i].id for i in full.tolist()],
        gather(values, sizes[full]),
        tuple(numbers[sizes == 0].tolist()),
        numbers[full],
    )


AS_IT_IS = Cleaning()


class TextLine(NamedTuple):
    """A line of a block: its number in it, from 0; why it is no record, or ""."""

    number: int
    line: bytes
    flaw: str
    id: bytes
    text: str


def text_line_parser(
    shingler: Shingler, clean: Cleaning = AS_IT_IS, gather: Gather = Ragged.from_unsorted
) -> Parser:
    r"""A parser of whole lines of `ID TAB TEXT`, or `ID BLANK TEXT` where a line has no tab.

    >>> parse = text_line_parser(Shingler.parse("word:3"))
    >>> batch, bad = parse(b"a\tto be or not to be\nb to be  OR not\n")
    >>> batch.ids, batch.sets.sizes.tolist()
    ([b'a', b'b'], [4, 2])

    """

    def parse(block: bytes) -> tuple[Batch, list[BadLine]]:
        texts: list[Text] = []
        bad: list[BadLine] = []
        for number, line, flaw, id_, text in text_lines(block):
            if flaw:
                bad.append(BadLine(number, line, flaw))
            else:
                texts.append(Text(number, id_, text))
        return batch_of_texts(texts, shingler, clean, gather), bad

    return parse


def text_lines(block: bytes) -> Iterator[TextLine]:
    r"""The lines that are not blank.

    >>> [(line.id, line.text, line.flaw) for line in text_lines(b"a\tto be\n\nb or not\nc\n")]
    [(b'a', 'to be', ''), (b'b', 'or not', ''), (b'c', '', 'no shingles')]
    """
    sound = flaw_in(block) is None  # and so is each line
    for number, line in enumerate(block.splitlines()):
        id_, tab, text = line.partition(b"\t")
        if not tab:
            id_, _, text = line.strip().partition(b" ")
        id_ = id_.strip()
        if not id_ and not line.strip():
            continue
        flaw = "" if id_ else NO_ID
        if not flaw and not sound:
            flaw = NUL_BYTE if b"\0" in text else flaw_in(id_) or flaw_in(text) or ""
        words = "" if flaw else str(text, "utf-8").strip()
        yield TextLine(number, line, flaw or ("" if words else NO_SHINGLES), id_, words)


DEFAULT_ID, DEFAULT_TEXT = "id", "text"
MOST_DIGITS = 20  # of the number of a column; int() itself refuses more than some thousands


@dataclass(frozen=True)
class Fields:
    """The names of fields, or of columns their numbers, from "1" on.

    Several texts are one, with a line end between them.

    >>> fields = Fields.of(None, "title,meta.body")
    >>> fields.id, fields.texts, fields.value({"meta": {"body": "to be"}}, "meta.body")
    ('id', ('title', 'meta.body'), 'to be')
    """

    id: str  # "" is none: all rows have their numbers
    texts: tuple[str, ...]  # () is all there are
    needs_id: bool  # else rows have their numbers where there is none

    @classmethod
    def of(cls, id_: str | None, text: str | None) -> Fields:
        """UsageError for names that are none."""
        texts = tuple((DEFAULT_TEXT if text is None else text).split(","))
        if not all(texts):
            raise UsageError(f"--text: {text!r} is not NAME, or NAME,NAME… without blanks")
        fields = cls(DEFAULT_ID if id_ is None else id_, texts, needs_id=bool(id_))
        numbers = [name.isdecimal() for name in (*texts, *[fields.id] * fields.needs_id)]
        if any(numbers) and not all(numbers):
            raise UsageError("--id and --text are numbers of columns, or names: not one of each")
        columns = filter(str.isdecimal, fields.names)
        if not all(len(name) <= MOST_DIGITS and int(name) for name in columns):
            raise UsageError(
                f"--id and --text: columns are numbered from 1 on, in {MOST_DIGITS} digits at most"
            )
        return fields

    @property
    def names(self) -> tuple[str, ...]:
        return (self.id, *self.texts) if self.id else self.texts

    @property
    def numbered(self) -> bool:
        """Whether columns are told by number, and a table has no header."""
        return bool(self.texts) and self.texts[0].isdecimal()

    def places(self, columns: Sequence[str]) -> dict[str, int]:
        """Field → column, from 0, of a table with these, which `missing_fields` has checked."""
        if self.numbered:
            return {field: int(field) - 1 for field in self.names if field.isdecimal()}
        return {field: columns.index(field) for field in self.of_columns(columns)}

    def of_columns(self, columns: Sequence[str]) -> list[str]:
        """Those that are asked for; a field of fields is in the column before its dot."""
        if not self.texts:
            return list(dict.fromkeys(columns))
        known = (name for name in self.names if name in columns or name.split(".")[0] in columns)
        return list(dict.fromkeys(known))

    def value(self, row: dict[str, Any], name: str) -> Any:
        """What a row has there; None if nothing.  A dot goes into a field of fields."""
        if name and name in row:
            return row[name]
        value: Any = row
        for part in name.split(".") if "." in name else ():
            value = value.get(part) if isinstance(value, dict) else None
        return None if value is row else value


def listed(columns: Sequence[str], limit: int = 20) -> str:
    """
    >>> listed(["id", "body"])
    'it has id, body'
    """
    more = " …" if len(columns) > limit else ""
    return f"it has {', '.join(columns[:limit])}{more}" if columns else "it has none"


FLAW, ROW = "\0flaw", "\0row"  # of rows of tables that are none: why, and what there is
OF_TABLES = (WRONG_FIELDS, TOO_FEW_FIELDS)
BLANKS = frozenset("\t\n\r")


class JsonRow(NamedTuple):
    """A line of a block: its number in it, from 0; or why it is no record, and its bytes."""

    number: int
    id: bytes  # b"" if it has none
    content: str | np.ndarray  # a text, or shingles (uint64), with repeats
    flaw: str = ""
    shown: bytes = b""


class FlawError(ValueError):
    """Why a line is no record."""


def json_line_parser(
    fields: Fields,
    shingler: Shingler,
    clean: Cleaning,
    gather: Gather = Ragged.from_unsorted,
    gather_integers: Gather = Ragged.from_unsorted,
    needs_id: bool = False,
) -> Parser:
    r"""A parser of whole lines of JSON objects; ids are b"" of rows that have none.

    >>> parse = json_line_parser(Fields.of(None, None), Shingler.parse("word:3"), Cleaning())
    >>> batch, bad = parse(b'{"id": 7, "text": "to be or not"}\n{"text": [3, 1]}\n{"text": null}\n')
    >>> batch.ids, batch.sets.sizes.tolist(), [line.reason for line in bad]
    ([b'7', b''], [2, 2], ['no text'])
    """
    needs_id = needs_id or fields.needs_id

    def parse(block: bytes) -> tuple[Batch, list[BadLine]]:
        texts: list[Text] = []
        integers: list[JsonRow] = []
        bad: list[BadLine] = []
        for row in json_rows(block, fields, needs_id):
            if row.flaw:
                bad.append(BadLine(row.number, row.shown, row.flaw))
            elif isinstance(row.content, str):
                texts.append(Text(row.number, row.id, row.content))
            else:
                integers.append(row)
        batch = batch_of_texts(texts, shingler, clean, gather)
        return _together(batch, integers, gather_integers) if integers else batch, bad

    return parse


def json_rows(block: bytes, fields: Fields, needs_id: bool = False) -> Iterator[JsonRow]:
    """The lines that are not blank."""
    for number, line in enumerate(block.splitlines()):
        if not line or line.isspace():
            continue
        row: dict[str, Any] = {}
        try:
            row = json_object(line)
            content = _content(row, fields)
            yield JsonRow(number, _id(fields.value(row, fields.id), needs_id), content)
        except FlawError as flaw:
            shown = str(row[ROW]).encode("utf-8", "backslashreplace") if ROW in row else line
            yield JsonRow(number, b"", "", str(flaw), shown)


def json_object(line: bytes) -> dict[str, Any]:
    """What stands on a line; FlawError where that is none."""
    try:
        row = json.loads(str(line, "utf-8"))
    except UnicodeDecodeError:
        raise FlawError(NOT_UTF8) from None
    except (ValueError, RecursionError):
        raise FlawError(NOT_JSON) from None
    if not isinstance(row, dict):
        raise FlawError(NOT_JSON)
    return row


def _content(row: dict[str, Any], fields: Fields) -> str | np.ndarray:
    """The text, or the shingles that stand for one."""
    found = [fields.value(row, name) for name in fields.texts]
    values = [value for value in found if value is not None]
    if not values:
        told = row.get(FLAW)
        raise FlawError(told if told in OF_TABLES else NO_TEXT)
    if len(found) == 1 and isinstance(values[0], list):
        return _shingles(values[0])
    if not all(isinstance(value, str) for value in values):
        raise FlawError(NOT_A_TEXT)
    text = "\n".join(values).strip()
    if not text:
        raise FlawError(NO_SHINGLES)
    if "\0" in text:
        raise FlawError(NUL_BYTE)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # half a character, as \ud83d
            raise FlawError(NOT_UTF8) from None
    return text


def _id(value: Any, needed: bool) -> bytes:
    if value is None or value == "":
        if needed:
            raise FlawError(NO_ID)
        return b""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise FlawError(NOT_AN_ID)
    id_ = str(value).encode("utf-8", "surrogatepass")
    if isinstance(value, str) and not BLANKS.isdisjoint(value):
        raise FlawError(BLANK_IN_ID)
    if flaw := flaw_in(id_):
        raise FlawError(flaw)
    return id_


def _shingles(values: list[Any]) -> np.ndarray:
    """A list of integers as uint64; it may have any of them several times."""
    if not values:
        raise FlawError(NO_SHINGLES)
    if not all(type(value) is int for value in values):
        raise FlawError(NOT_AN_INTEGER)
    if min(values) < 0:
        raise FlawError(NEGATIVE)
    if max(values) > MOST:
        raise FlawError(TOO_LARGE)
    return np.array(values, dtype=np.uint64)


def _together(texts: Batch, integers: list[JsonRow], gather: Gather) -> Batch:
    """Both, in the order of their lines."""
    rows = [np.asarray(row.content) for row in integers]
    numbers, ids = zip(*((row.number, row.id) for row in integers))
    sets = gather(np.concatenate(rows), np.array([len(row) for row in rows], dtype=np.int64))
    places = np.concatenate((texts.places, np.array(numbers, np.uint64)))
    both = Ragged.end_to_end([texts.sets, sets])
    batch = Batch([*texts.ids, *ids], both, places=places).take(np.argsort(places))
    return Batch(batch.ids, batch.sets, texts.without_shingles, batch.places)


def with_row_ids(batch: Batch, block: Block) -> list[bytes]:
    """The ids of a block's records, of rows that have none their numbers."""
    if b"" not in batch.ids:
        return batch.ids
    numbers = batch.places.astype(np.int64).tolist()
    return [id_ or row_id(block, number) for id_, number in zip(batch.ids, numbers)]


def row_id(block: Block, number: int) -> bytes:
    """That of a row without one, number `number` of its block from 0."""
    return b"%b%d" % (block.row_ids, block.line + number)
