"""Refuse input that lacks the fields that options such as --id name, and suggest other fields.

The suggested text is the field with the longest strings.  The suggested id is a field whose values
are distinct words, preferably one whose name ends with id.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import Any, Callable

from neardup.reading.blocks import Piece
from neardup.reading.input_check import NOT_A_TEXT, NOT_AN_INTEGER
from neardup.reading.text_rows import (
    Fields,
    FlawError,
    Line,
    Lines,
    Row,
    content,
    lines_in,
    row_of,
    row_records,
    texts_in,
)
from neardup.runtime.program import TO_NUMBER, StageError, to_add

SEEN_ROWS, LISTED = 100, 20


def checked(
    pieces: Iterator[Piece], fields: Fields, name: str, in_task: bool, checks: bool
) -> Iterator[Piece]:
    """Yield pieces of JSON lines; with `has_ids` False if none of the first lines has an id.

    checks: StageError if the first lines lack the text or the id, or all lines another field that
    is named: it may be rare.  In a task each row needs an id.
    """
    has_ids, unseen, columns = None, dict[str, str](), list[str]()
    for piece in pieces:
        if piece.flaw:  # a line that is too long is not read
            yield piece._replace(has_ids=bool(has_ids))
            continue
        if has_ids is None:
            lines = next(iter(piece.parts()))
            if checks:
                check_rows(lines, fields, name, in_task)
                unseen = named_fields(fields)
            has_ids = any(fields.value(row, fields.id) not in (None, "") for row in _rows(lines))
        for lines in piece.parts() if unseen else ():
            rows = [*_rows(lines)]
            columns = columns or [*_columns(rows[:SEEN_ROWS])]
            unseen = unseen_in(rows, fields, unseen)
        yield piece._replace(has_ids=bool(has_ids))
    for field, flag in unseen.items() if columns else ():
        raise StageError(
            f"{name}: no row has a field {field!r}; name one with {flag}: {listed(columns)}; "
            f"if other files have it, {to_add('--max-bad', '1')}"
        )


def _rows(lines: Lines) -> Iterator[Row]:
    """Yield the rows that can be read."""
    for _, line in lines_in(lines):
        with suppress(FlawError):
            yield row_of(line)


def check_rows(lines: Lines, fields: Fields, name: str, in_task: bool = False) -> None:
    """Raise StageError if there are rows, but none has content and, if one is needed, an id."""
    rows, lacks, blank = list[Row](), fields.flag, False
    for row in _rows(lines):
        values = [fields.value(row, text) for text in fields.texts]
        empty = all(value in (None, []) for value in values)
        if empty and ([] in values or any(text in row for text in fields.texts)):
            blank = True  # no evidence
            continue
        if not fields.texts or any(_is_text(row, fields, text) for text in fields.texts):
            if fields.value(row, fields.id) is not None or not (fields.needs_id or in_task):
                return
            lacks = "--id"
        rows.append(row)
    field = fields.id if lacks == "--id" or not fields.texts else fields.texts[0]
    value = next((v for row in rows if (v := fields.value(row, field)) is not None), None)
    if rows and (value is not None or lacks == "--id" or not blank):
        kind = "fingerprint" if fields.binary else "text"
        found = "has no field" if value is None else f"{kind_of(value)} is not a {kind}, in field"
        there = listed(_columns(rows[:SEEN_ROWS]))
        remedy = _advice(rows[:SEEN_ROWS], fields, lacks)
        which = f"name one with {lacks}" if remedy else f"no field has a {kind}"
        raise StageError(f"{name}: {found} {field!r}; {which}: {there}{remedy}")


def named_fields(fields: Fields) -> dict[str, str]:
    """Return {field: option} for those that some row must have: of records, or several texts."""
    texts = fields.texts if len(fields.texts) > 1 else ()
    others = {field: flag for flag, field in fields.of_records}
    return {**others, **dict.fromkeys(texts, fields.flag)}


def unseen_in(rows: Sequence[Row], fields: Fields, named: Mapping[str, str]) -> dict[str, str]:
    """Return which of the named fields no row has.

    A text is seen if it, or the field that it is nested in, is null or an empty list.
    """
    unseen = {
        field: flag
        for field, flag in named.items()
        if not any(fields.value(row, field) is not None for row in rows)
    }
    there = {*_columns(rows)} if fields.flag in unseen.values() else set()
    return {
        field: flag
        for field, flag in unseen.items()
        if flag != fields.flag or there.isdisjoint(accumulate(field.split("."), "{}.{}".format))
    }


def check_columns(
    columns: Sequence[str], fields: Fields, name: str, rows: Callable[[], list[Line]]
) -> None:
    """Raise StageError if a table lacks a needed column, or has such a column twice.

    If one is missing, `rows` may be called for the first rows, to suggest another column.
    """
    texts = [(fields.flag, field) for field in fields.texts]
    for flag, field in [("--id", fields.id)] * fields.needs_id + texts + fields.of_records:
        if field not in columns:
            whole = ",".join(fields.texts)
            if flag == fields.flag and len(fields.texts) > 1 and whole in columns:
                raise StageError(f"{name}: {flag} has names between commas; rename {whole!r}")
            there = f"name one with {flag}: {listed(columns)}"
            advises = flag in ("--id", fields.flag)
            remedy = _advice([*_rows(rows())][:SEEN_ROWS], fields, flag) if advises else ""
            raise StageError(f"{name}: has no column {field!r}; {there}{remedy}")
    for field, count in Counter(columns).items():
        if count > 1 and (field in fields.names or not fields.texts):
            raise StageError(f"{name}: has {count} columns {field!r}; rename all but one")


def listed(columns: Iterable[str]) -> str:
    """Return words for the columns that there are."""
    names = list(columns)
    more = " …" if len(names) > LISTED else ""
    return f"it has {', '.join(names[:LISTED])}{more}" if names else "it has none"


def _is_text(row: Row, fields: Fields, name: str) -> bool:
    """Return whether a field has a text, or a fingerprint."""
    value = fields.value(row, name)
    if value is None:
        return False
    if fields.binary:
        some = value if isinstance(value, list) else [value]
        return all(each is None or isinstance(each, str) for each in some)
    try:
        content(row, replace(fields, texts=(name,)))
    except FlawError as flaw:
        return str(flaw) not in (NOT_A_TEXT, NOT_AN_INTEGER)
    return True


def kind_of(value: Any) -> str:
    """Return what a value is, for messages: numbers as they are, others by their kind."""
    if isinstance(value, list):
        kinds = {dict: "objects", str: "texts", list: "lists", int: "numbers", float: "numbers"}
        names = dict.fromkeys(kinds.get(type(each), "values") for each in value if each is not None)
        return f"a list of {' and '.join(names) or 'values'}"
    return "an object" if isinstance(value, dict) else json.dumps(value, default=str)[:20]


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Return {field: values} for all rows; nested fields have dotted names, such as meta.body.

    A list of objects has fields, too, except for the parts of a message: see `texts_in`.
    """
    columns: dict[str, list[Any]] = {}

    def add(row: Row, before: str) -> None:
        for name, value in row.items():
            some = value if isinstance(value, list) else [value]
            objects = [each for each in some if isinstance(each, dict) and each]
            if objects and not (some is value and "type" in objects[0]):
                for each in objects:
                    add(each, f"{before}{name}.")
            else:  # an empty list shows that there is a field, and nothing about its values
                columns.setdefault(before + name, []).extend([value] * (value != []))

    for row in rows:
        add(row, "")
    return columns


def options_for(rows: Sequence[Row], flags: Sequence[str]) -> "list[str] | None":
    """Return `flags` with the fields that rows need; None if no field has a text."""
    usual = Fields.of(None, None)
    if _reads(rows, usual):
        return [*flags]
    more = _other_fields(rows, usual, "--text")
    return [*flags, *more] if more else None


def _reads(rows: Sequence[Row], fields: Fields) -> bool:
    """Return whether at least half of the rows are records with these fields."""
    if fields.binary or not fields.texts:  # fingerprints are not checked here
        return True
    records = row_records(list(rows), fields)
    return 2 * sum(not record.flaw for record in records) >= len(rows)


def _advice(rows: Sequence[Row], fields: Fields, flag: str) -> str:
    """Return advice on other fields or row numbers; "" if no field has text."""
    if options := _other_fields(rows, fields, flag):
        return f"; {to_add(*options)}"
    return f"; to number the rows, {TO_NUMBER}" if flag == "--id" else ""


def _other_fields(rows: Sequence[Row], fields: Fields, flag: str) -> list[str]:
    """Return options that name other fields, tried on the rows; [] if there are none."""
    columns = {
        name: values
        for name, values in _columns(rows).items()
        if name and "," not in name and not name.isdecimal() and name != fields.id
    }
    tried, options = fields, list[str]()
    if flag == fields.flag:
        ways = {name: replace(fields, texts=(name,), needs_id=False) for name in columns}
        lists = (name for name in columns if not fields.binary and _reads(rows, ways[name]))
        text = longest_text(columns) or next(lists, "")  # lists of shingles
        if not text:
            return []
        tried, options = replace(fields, texts=(text,)), [flag, text]
    if flag == "--id" or (fields.id and any(fields.value(row, fields.id) is None for row in rows)):
        others = {name: values for name, values in columns.items() if name not in tried.texts}
        if id_ := id_field(others, len(rows)):
            tried, options = replace(tried, id=id_), [*options, "--id", id_]
    return options if options and _reads(rows, tried) else []


def longest_text(columns: Mapping[str, Sequence[Any]]) -> str:
    """Return the column with the longest strings; "" if there is none."""
    text = max(columns, key=lambda name: _letters(columns[name]), default="")
    return text if text and _letters(columns[text]) else ""


def id_field(columns: Mapping[str, Sequence[Any]], rows: int) -> str:
    """Return a column of distinct words, preferably one whose name ends with id; "" for none."""
    ids = [name for name, values in columns.items() if _may_be_ids(values, rows)]
    return min(ids, key=lambda name: not name.lower().endswith("id"), default="")


def _letters(values: Sequence[Any]) -> int:
    letters = 0
    for value in values:
        with suppress(FlawError):  # not a text, nor a list of texts
            letters += len("".join(texts_in([value])))
    return letters


def _may_be_ids(values: Sequence[Any], rows: int) -> bool:
    """Return whether the values are distinct words or integers, one for each row."""
    return rows == len(values) == len(set(map(str, values))) and all(
        isinstance(value, (str, int)) and re.fullmatch(r"\S{1,200}", str(value)) for value in values
    )
