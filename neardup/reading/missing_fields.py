"""Refuses rows without the fields that --id and --text name, and says what to type.

The text is taken to be the field with the longest strings, and the id a field without blanks that
differs from row to row, preferably one whose name ends with id.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Callable

from neardup.reading.blocks import Piece
from neardup.reading.compressed import CONVERT, OPENERS, suffix_of
from neardup.reading.text_rows import Fields, FlawError, Lines, Row, lines_in, row_of
from neardup.runtime.errors import StageError, piped, typed_with_all

SEEN_ROWS = 100
LONGEST_ID = 200
STRINGS = "a list of strings"
PLAIN_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)  # that jq takes as it is


def checked(pieces: Iterator[Piece], fields: Fields, name: str, in_task: bool) -> Iterator[Piece]:
    """Pass on pieces of JSON lines; StageError where no row of the first one has the fields.

    In a task each row needs an id.
    """
    for first in pieces:
        if not first.flaw:
            check_rows(next(iter(first.parts())), fields, name, in_task)
        yield from chain([first], pieces)


def check_rows(lines: Lines, fields: Fields, name: str, in_task: bool = False) -> None:
    """StageError where there are rows, and none of them has the fields."""
    rows: list[Row] = []
    lacks_text = True
    needs_id = fields.needs_id or in_task
    for _, line in lines_in(lines):
        try:
            row = row_of(line)
        except FlawError:
            continue
        has_text = any(_is_text(row, fields, text) for text in fields.texts) or not fields.texts
        if has_text and not (needs_id and fields.value(row, fields.id) is None):
            return
        lacks_text &= not has_text
        rows += [row][: SEEN_ROWS - len(rows)]
    if rows:
        if not any(rows):
            raise StageError(
                f"{name}: its rows have no fields: {{}}; a row is an object, such as "
                '{"id": "a", "text": "to be or not"}'
            )
        flag, field = ("--text", fields.texts[0]) if lacks_text else ("--id", fields.id)
        what = _what_it_is(fields.value(rows[0], field))
        found = f"field {field!r} is {what}" if what else f"has no field {field!r}"
        there = listed([_with_kind(leaf, value) for leaf, value in _leaves(rows)])
        problem = f"{name}: {found}; name one with {flag}: {there}"
        joined = _joining(rows, fields, name) if lacks_text else ""
        raise StageError(problem + (joined or line_to_type(rows, fields, flag)))


def check_columns(
    columns: Sequence[str], fields: Fields, name: str, rows: Callable[[], Sequence[Row]]
) -> None:
    """StageError where the table `name` lacks a column that is needed, or has two of one name.

    Its first `rows` are read then, to say what to type.
    """
    texts = [("--text", field) for field in fields.texts]
    for flag, field in [("--id", fields.id)] * fields.needs_id + texts:
        if field not in columns:
            problem = f"{name}: has no column {field!r}; {_otherwise(columns, flag, name)}"
            raise StageError(problem + line_to_type(rows(), fields, flag))
    for field, count in Counter(columns).items():
        if count > 1 and (field in fields.names or not fields.texts):
            raise StageError(f"{name}: has {count} columns {field!r}; rename all but one")


def _otherwise(columns: Sequence[str], flag: str, name: str) -> str:
    """What to type instead."""
    between = next((s for s in ";\t|" if s in columns[0]), "") if len(columns) == 1 else ""
    if not between:
        return f"name one with {flag}: {listed(columns)}"
    return (
        f"its fields are between {between!r}, and not commas; type: python3 -c 'import csv, sys; "
        f'csv.writer(sys.stdout).writerows(csv.reader(sys.stdin, delimiter="{between}"))\' '
        f"< {name} > commas.csv"
    )


def listed(columns: Sequence[str], limit: int = 20) -> str:
    """
    >>> listed(["id", "body"])
    'it has id, body'
    """
    more = " …" if len(columns) > limit else ""
    return f"it has {', '.join(columns[:limit])}{more}" if columns else "it has none"


def _is_text(row: Row, fields: Fields, name: str) -> bool:
    """Return whether a field is text or integers, or null, which may be text in other rows."""
    value = fields.value(row, name)
    if isinstance(value, list):
        return all(type(each) is int for each in value)
    return isinstance(value, str) or (value is None and name in row)


def line_to_type(rows: Sequence[Row], fields: Fields, flag: str) -> str:
    """ "; type: …", or nothing where no field of these rows will do."""
    text = ",".join(fields.texts)
    if flag == "--text":
        text = _longest(rows, f"{fields.texts[0]}.") or _longest(rows, "")
    options = {"--text": text} if flag == "--text" else {}
    if flag == "--id" or (fields.id and any(fields.value(row, fields.id) is None for row in rows)):
        id_ = _distinct(rows, text)
        options |= {"--id": id_} if id_ else {}
    if flag == "--id" and rows and not options:
        return f"; to number the rows, type: {CONVERT}"
    return f"; type: {typed_with_all(options)}" if options.get(flag) else ""


def _joining(rows: Sequence[Row], fields: Fields, name: str) -> str:
    """Return "; type: …" with the lists of strings of a plain file joined, if no text is longer."""
    columns = _columns(rows)
    lengths = {of: sum(map(_length, values)) for of, values in columns.items()}
    of = max(lengths, key=lambda name: lengths[name], default="")
    to = fields.texts[0]
    lists = [value for value in columns.get(of, []) if isinstance(value, list)]
    paths = all(map(PLAIN_PATH.fullmatch, (to, of)))
    if not lists or len(fields.texts) > 1 or suffix_of(name) in OPENERS or not paths:
        return ""
    join = f"jq -c '.{to} = (.{of} // [] | join(\" \"))'"
    return f"; type: {piped(join, name, '--input', 'jsonl')}"


def _leaves(rows: Sequence[Row]) -> list[tuple[str, Any]]:
    """Return each field with one of its values; nested fields are named with dots, as meta.body."""
    found: dict[str, Any] = {}
    for row in rows:
        for name, value in _flat(row):
            if found.get(name) is None:
                found[name] = value
    return list(found.items())


def _flat(row: Row, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


def _with_kind(name: str, value: Any) -> str:
    """
    >>> _with_kind("tags", ["a"]), _with_kind("title", "b")
    ('tags (a list of strings)', 'title')
    """
    return f"{name} ({_what_it_is(value)})" if isinstance(value, (list, dict)) else name


def _what_it_is(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        strings = value and all(isinstance(each, str) for each in value)
        return STRINGS if strings else "a list"
    return "" if value is None or isinstance(value, str) else f"{value!r:.20}, which is no string"


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The values of each field that an option can name."""
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in _flat(row):
            if name and "," not in name and not name.isdecimal():
                columns.setdefault(name, []).append(value)
    return columns


def _longest(rows: Sequence[Row], before: str) -> str:
    """The field whose strings are longest, of those whose names begin so; "" if there is none."""
    lengths = {
        name: sum(len(value) for value in values if isinstance(value, str))
        for name, values in _columns(rows).items()
        if name.startswith(before)
    }
    best = max(lengths, key=lambda name: lengths[name], default="")
    return best if lengths.get(best) else ""


def _length(value: Any) -> int:
    """Return the letters of a string, or of a list of strings; 0 of anything else."""
    if _what_it_is(value) == STRINGS:
        return sum(map(len, value))
    return len(value) if isinstance(value, str) else 0


def _distinct(rows: Sequence[Row], text: str) -> str:
    """A field that may be the id; "" if there is none."""
    able = [
        name
        for name, values in _columns(rows).items()
        if name != text
        and len(values) == len(rows) == len(set(map(str, values)))
        and all(map(_may_be_id, values))
    ]
    return min(able, key=lambda name: not name.lower().endswith("id"), default="")


def _may_be_id(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= LONGEST_ID and len(value.split()) == 1
    return type(value) is int
