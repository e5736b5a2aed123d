"""Parse lines of text, JSON lines and rows of tables into batches of records.

    text        ID TAB TEXT, or ID BLANK TEXT where a line has no tab
    JSON lines  {"id": "a", "text": "to be or not to be"}
    tables      their rows as dictionaries, a list of them instead of a block of lines

A JSON line and a row of a table are both a dictionary, in which `Fields` names the id and the text
(--id, --text).  Rows, not columns: each row has its own flaws, and fields may be nested.

A text may be a list of integers, which are the shingles then, or a list of texts, which are joined;
`messages.content` names a field of each object in a list.  The id is a string or a whole
number.  A row without one is a bad line where --id names a field; else it gets its file's name and
its number, chat.jsonl:17, or only its number where the rows of a single file have no ids at all.
"""

from __future__ import annotations

import json
import math
import operator
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from typing import Any, Callable, NamedTuple, Union

import numpy as np

from neardup.reading import input_check as flaws
from neardup.reading.blocks import Block
from neardup.reading.cleaning import HALF, Cleaning, whole
from neardup.reading.shingle_lines import MOST
from neardup.reading.shingling import Shingler
from neardup.runtime.program import TO_NUMBER, StageError, UsageError, shown, to_add
from neardup.sets.ragged import Batch, Ragged

DEFAULT_ID, DEFAULT_TEXT = "id", "text"
MAX_DIGITS = 20  # of a column number; int() itself refuses more than some thousands
BLANKS = frozenset("\t\n\r")
LIKE_A_ROW_ID = re.compile(rb"(|.*:)[1-9][0-9]*", re.DOTALL)
AS_IT_IS = Cleaning()
quote = json.encoder.encode_basestring


class Record(NamedTuple):
    """A line or row: its id and content, or its bytes and the reason why it is not a record."""

    number: int  # in its block, from 0
    id: bytes = b""  # b"" if it has none
    content: Any = ""  # a text, shingles (uint64) with repeats, or fingerprints
    flaw: str = ""
    shown: bytes = b""


Row = dict[str, Any]


Line = Union[bytes, Row, flaws.BadLine]  # a JSON line, or a row; b"" is a blank one of either
Lines = Union[bytes, "list[Line]"]  # a block of JSON lines, or some rows

REPEATS = 4  # of each run of words, on average; prose has 1.1, a log 2, a grid of 0 and 1 hundreds
LONG = 32  # shingles


class FlawError(ValueError):
    """Raised for a line that is not a record; its message is the reason."""


def text_parser(
    records: Callable[[Any], Iterator[Record]],
    shingler: Shingler,
    clean: Cleaning = AS_IT_IS,
    gather: flaws.Gather = Ragged.from_unsorted,
    gather_integers: flaws.Gather = Ragged.from_unsorted,
) -> flaws.Parser:
    r"""Return a parser of blocks of texts; `records` is `text_lines` or `row_records`.

    >>> parse = text_parser(text_lines, Shingler.parse("word:3"))
    >>> batch, bad = parse(b"a\tto be or not to be\nb to be  OR not\n")
    >>> batch.ids, batch.sets.sizes.tolist()
    ([b'a', b'b'], [4, 2])
    """

    def parse(block: Any) -> tuple[Batch, list[flaws.BadLine]]:
        texts: list[Record] = []
        integers: list[Record] = []
        bad: list[flaws.BadLine] = []
        for record in records(block):
            if record.flaw:
                bad.append(flaws.BadLine(record.number, record.shown, record.flaw, record.id))
            elif isinstance(record.content, str):
                texts.append(record)
            else:
                integers.append(record)
        batch = batch_of_texts(texts, shingler, clean, gather)
        return _together(batch, integers, gather_integers) if integers else batch, bad

    return parse


def batch_of_texts(
    texts: Sequence[Record], shingler: Shingler, clean: Cleaning, gather: flaws.Gather
) -> Batch:
    """Return texts as a batch of records; texts without shingles are only listed by number."""
    found, halved = [record.content for record in texts], 0
    try:
        values, sizes = shingler.many(list(map(clean, found)) if clean.names else found)
    except UnicodeEncodeError:
        mended = list(map(whole, found))
        halved = sum(map(operator.ne, found, mended))
        values, sizes = shingler.many(list(map(clean, mended)))
    full = np.flatnonzero(sizes)
    numbers = np.array([record.number for record in texts], dtype=np.uint64)
    sets = gather(values, sizes[full])
    few = (sizes[full] >= LONG) & (sizes[full] >= REPEATS * sets.sizes)
    return Batch(
        [texts[i].id for i in full.tolist()],
        sets,
        tuple(numbers[sizes == 0].tolist()),
        numbers[full],
        halved=halved,
        repeating=int(few.sum()) if shingler.unit == "word" and shingler.width > 1 else 0,
        left_ids=tuple(texts[i].id for i in np.flatnonzero(sizes == 0).tolist()),
    )


def _together(texts: Batch, integers: list[Record], gather: flaws.Gather) -> Batch:
    """Merge records of texts with those of lists of integers, in the order of lines."""
    rows = [np.asarray(record.content) for record in integers]
    sets = gather(np.concatenate(rows), np.array([len(row) for row in rows], dtype=np.int64))
    numbers = np.array([record.number for record in integers], np.uint64)
    places = np.concatenate((texts.places, numbers))
    both = Ragged.end_to_end([texts.sets, sets])
    ids = [*texts.ids, *(record.id for record in integers)]
    batch = Batch(ids, both, places=places).take(np.argsort(places))
    left, halved = texts.without_shingles, texts.halved
    batch = replace(batch, without_shingles=left, left_ids=texts.left_ids, halved=halved)
    return replace(batch, repeating=texts.repeating)


def text_lines(block: bytes) -> Iterator[Record]:
    """Yield the non-blank lines of text as records."""
    sound = flaws.flaw_in(block) is None  # and so is each line
    for number, line in enumerate(block.splitlines()):
        id_, tab, text = line.partition(b"\t")
        if not tab:
            id_, _, text = line.strip().partition(b" ")
        id_ = id_.strip()
        if not id_ and not line.strip():
            continue
        flaw = "" if id_ else flaws.NO_ID
        if not flaw and not sound:
            nul = flaws.NUL_BYTE if b"\0" in text else ""
            flaw = nul or flaws.flaw_in(id_) or flaws.NOT_UTF8 * (flaws.decoded(text) is None)
        words = "" if flaw else str(text, "utf-8", "strict" if sound else "surrogatepass").strip()
        id_ = b"" if flaw and flaws.flaw_in(id_) else id_
        yield Record(number, id_, words, flaw or ("" if words else flaws.NO_SHINGLES), line)


def row_records(
    block: Lines,
    fields: Fields,
    needs_id: bool = False,
    content_of: Callable[[Row, Fields], Any] | None = None,
) -> Iterator[Record]:
    """Yield the non-blank JSON lines or rows as records; `needs_id`: an id is required."""
    content_of = content_of or content
    needs_id = needs_id or fields.needs_id
    for number, line in lines_in(block):
        id_ = b""
        try:
            row = row_of(line)
            id_ = _id(fields.value(row, fields.id), needs_id)
            yield Record(number, id_, content_of(row, fields))
        except FlawError as flaw:
            yield Record(number, id_, flaw=str(flaw), shown=json_line(line))


def lines_in(block: Lines) -> Iterator[tuple[int, Line]]:
    """Yield the number and the content of each non-blank line or row."""
    marked = isinstance(block, bytes) and BOM_UTF8 in block  # a file may follow another one
    for number, line in enumerate(block.splitlines() if isinstance(block, bytes) else block):
        if marked and isinstance(line, bytes) and line[len(BOM_UTF8) :].lstrip()[:1] in b"{":
            line = line.removeprefix(BOM_UTF8)
        if type(line) is not bytes or (line and not line.isspace()):
            yield number, line


def exact_number(text: str) -> float | Decimal:
    """Return a number of JSON with a point or an exponent; a Decimal if a float would round it.

    >>> exact_number("0.50"), exact_number("0.12345678901234567891")
    (0.5, Decimal('0.12345678901234567891'))
    """
    number = float(text)
    if repr(number) == text:  # as most are; a Decimal takes five times as long
        return number
    with suppress(ArithmeticError):  # an exponent of 20 digits
        if Decimal(text) != Decimal(repr(number)) and math.isfinite(number):
            return Decimal(text)
    return number


EXACT = json.JSONDecoder(parse_float=exact_number).decode


def row_of(line: Line, decode: Callable[[str], Any] = json.loads) -> Row:
    """Return the fields of a JSON line or of a row; FlawError if it cannot be read."""
    if isinstance(line, dict):
        return line
    if isinstance(line, flaws.BadLine):
        raise FlawError(line.reason)
    try:
        text: str | None = str(line, "utf-8")
    except UnicodeDecodeError:
        if (text := flaws.decoded(line)) is None:
            raise FlawError(flaws.NOT_UTF8) from None
    try:
        row = decode(text or "")
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise FlawError(flaws.NOT_JSON)
    return row


def json_line(line: Line) -> bytes:
    """Return a row of a table as a JSON line without a line end; return bytes unchanged."""
    if not isinstance(line, dict):
        return line if isinstance(line, bytes) else line.text
    values = (quote(v) if isinstance(v, str) else json.dumps(v) for v in line.values())
    pairs = ",".join(f"{quote(name)}:{value}" for name, value in zip(line, values))
    return f"{{{pairs}}}".encode("utf-8", "surrogateescape")


def content(row: Row, fields: Fields) -> str | np.ndarray:
    """Return the text of a row, or its list of shingles; FlawError if missing or invalid."""
    found = [fields.value(row, name) for name in fields.texts]
    values = [value for value in found if value is not None]
    if not values:
        raise FlawError(flaws.NO_TEXT)
    if len(found) == 1 and isinstance(values[0], list) and not _has_texts(values[0]):
        return _shingles(values[0])
    text = "\n".join(texts_in(values)).strip()
    if not text:
        raise FlawError(flaws.NO_SHINGLES)
    if "\0" in text:
        raise FlawError(flaws.NUL_BYTE)
    return text


def unstripped(row: Row, fields: Fields) -> str | np.ndarray:
    """Return the text of a row as `content` does, but with the blanks around it."""
    found = content(row, fields)
    values = [value for name in fields.texts if (value := fields.value(row, name)) is not None]
    return "\n".join(texts_in(values)) if isinstance(found, str) else found


def _has_texts(values: list[Any]) -> bool:
    return bool(values) and (values[0] is None or isinstance(values[0], (str, list, dict)))


def texts_in(values: list[Any]) -> list[str]:
    """Return the texts of nested lists, in order; FlawError for values that are not texts.

    The content of a message in a chat may be a list of parts, of which some have a text:

    >>> texts_in(["to be", [{"type": "image", "url": "…"}, {"type": "text", "text": "or not"}]])
    ['to be', 'or not']
    """
    if all(isinstance(value, str) for value in values):
        return values
    texts, left = [], values[::-1]
    while left:
        value = left.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, list):
            left += value[::-1]
        elif isinstance(value, dict) and "type" in value:
            left.append(value.get("text"))
        elif value is not None:
            raise FlawError(flaws.NOT_A_TEXT)
    if not texts:
        raise FlawError(flaws.NO_TEXT)
    return texts


def _id(value: Any, needed: bool) -> bytes:
    if value is None or value == "":
        if needed:
            raise FlawError(flaws.NO_ID)
        return b""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise FlawError(flaws.NOT_AN_ID)
    id_ = str(value)
    if isinstance(value, str) and not BLANKS.isdisjoint(value):
        raise FlawError(flaws.BLANK_IN_ID)
    if not id_.isascii() and HALF.search(id_):
        raise FlawError(flaws.HALF_IN_ID)
    if "\0" in id_:
        raise FlawError(flaws.NUL_BYTE)
    return id_.encode()


def _shingles(values: list[Any]) -> np.ndarray:
    """Return a list of integers as shingles (uint64); FlawError if empty or invalid."""
    if not values:
        raise FlawError(flaws.NO_SHINGLES)
    if not all(type(value) is int for value in values):
        raise FlawError(flaws.NOT_AN_INTEGER)
    if min(values) < 0:
        raise FlawError(flaws.NEGATIVE)
    if max(values) > MOST:
        raise FlawError(flaws.TOO_LARGE)
    return np.array(values, dtype=np.uint64)


def with_row_ids(ids: list[bytes], numbers: list[int], block: Block, fields: Fields) -> list[bytes]:
    """Return the ids of rows of a block, with made-up ones for rows without an id.

    StageError for an id that another row gets if it has none, such as a.csv:17.
    """
    may_clash = block.reserved and not fields.needs_id
    if may_clash and (not block.row_ids or b":" in b"".join(ids)):
        for id_, number in zip(ids, numbers):
            found = LIKE_A_ROW_ID.fullmatch(id_)
            if found and found[1] in block.reserved and id_ != block.row_id(number):
                remedy = to_add("--id", fields.id) if found[1] else TO_NUMBER
                raise StageError(
                    f"{block.place}{block.line + number}: the id {shown(id_)} is also that of a "
                    f"row without an id; {remedy}"
                )
    if b"" not in ids:
        return ids
    return [id_ or block.row_id(number) for id_, number in zip(ids, numbers)]


@dataclass(frozen=True)
class Fields:
    """The names or column numbers (from "1") of the fields for the id, the text and --keep.

    Several texts are joined by line ends.

    >>> fields = Fields.of(None, "title,meta.body")
    >>> fields.id, fields.texts, fields.value({"meta": {"body": "to be"}}, "meta.body")
    ('id', ('title', 'meta.body'), 'to be')
    """

    id: str  # "" if all rows are numbered
    texts: tuple[str, ...]  # () means all fields
    needs_id: bool  # else rows without an id are numbered
    binary: bool = False  # binary values are fingerprints, not texts
    ranked: tuple[str, ...] = ()  # of --keep
    valued: tuple[str, ...] = ()  # () or --within or --across, and its field

    @classmethod
    def of(
        cls,
        id_: str | None,
        text: str | None,
        binary: bool = False,
        ranked: tuple[str, ...] = (),
        valued: tuple[str, ...] = (),
    ) -> Fields:
        """Return the fields that --id and --text name; UsageError for invalid names."""
        texts = tuple((DEFAULT_TEXT if text is None else text).split(","))
        fields = cls(DEFAULT_ID if id_ is None else id_, texts, bool(id_), binary, ranked, valued)
        flag = fields.flag
        if not all(texts):
            raise UsageError(f"{flag}: {text!r} has an empty name; write NAME, or NAME,NAME…")
        more = fields.of_records
        named = (*texts, *[fields.id] * fields.needs_id, *[name for _, name in more])
        numbers = [name.isdecimal() for name in named]
        if any(numbers) and not all(numbers):
            both = "all" if more else "both"
            flags = f"--id, {flag} and {more[0][0]}" if more else f"--id and {flag}"
            raise UsageError(f"{flags} must {both} be column numbers, or {both} be names")
        columns = filter(str.isdecimal, fields.names)
        if not all(len(name) <= MAX_DIGITS and int(name) for name in columns):
            raise UsageError(
                f"--id, {flag} and --keep: column numbers start at 1 and have at most "
                f"{MAX_DIGITS} digits"
            )
        return fields

    @property
    def flag(self) -> str:
        """The option that names the fields of content: --text or --fingerprint."""
        return "--fingerprint" if self.binary else "--text"

    @property
    def names(self) -> tuple[str, ...]:
        return (*filter(None, [self.id]), *self.texts, *self.ranked, *self.valued[1:])

    @property
    def of_records(self) -> list[tuple[str, str]]:
        """The fields that are not compared, each with its option, as (--keep, field)."""
        kept = [("--keep", field) for field in self.ranked]
        return [*kept, (self.valued[0], self.valued[1])] if self.valued else kept

    @property
    def numbered(self) -> bool:
        """True if columns are named by number, as in a table without a header."""
        return bool(self.texts) and self.texts[0].isdecimal()

    def places(self, columns: Sequence[str]) -> dict[str, int]:
        """Return {field: column number, from 0} for a table that has the needed columns."""
        if self.numbered:
            return {field: int(field) - 1 for field in self.names if field.isdecimal()}
        return {field: columns.index(field) for field in self.of_columns(columns)}

    def of_columns(self, columns: Sequence[str]) -> list[str]:
        """Return the fields to read: columns, or nested fields such as meta.body of a column meta.

        Without names of texts, these are all columns.
        """
        if not self.texts:
            return list(dict.fromkeys(columns))
        known = (name for name in self.names if name in columns or name.split(".")[0] in columns)
        return list(dict.fromkeys(known))

    def value(self, row: dict[str, Any], name: str) -> Any:
        """Return the value of a field, such as meta.body, or None; in lists of objects, a list."""
        if name and name in row:
            return row[name]
        value: Any = row
        for part in name.split(".") if "." in name else ():
            if isinstance(value, list):
                flat = chain.from_iterable(v if isinstance(v, list) else [v] for v in value)
                found = (each.get(part) for each in flat if isinstance(each, dict))
                value = [each for each in found if each is not None] or None
            else:
                value = value.get(part) if isinstance(value, dict) else None
        return None if value is row else value
