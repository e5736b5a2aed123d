r"""JSON lines, `{"id": "a", "text": "to be or not to be"}`, → batches.

Rows of tables come in this form, too, see `tables`.  A text may be a list of integers, which are
the shingles then.  The id is a string or a whole number; a row without one has the number of its
line, or is a bad line where that would not tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from neardup.reading.bad_lines import (
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
from neardup.reading.cleaning import Cleaning
from neardup.reading.decimals import MOST
from neardup.reading.fields import Fields
from neardup.reading.shingling import Shingler
from neardup.reading.texts import Text, batch_of_texts
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged

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
