"""Look at the first lines of a file: what they are, and the options that read them.

Options are named only if they were tried on these lines, and at least half of them are records.

    {"key": 7, "body": "to be"}     ─▶  JSON lines, --input jsonl --text body --id key
    id;text⏎1;to be                 ─▶  a table, --input csv --delimiter ';'
    {"n": 7}                        ─▶  JSON lines, None: no field has a text
"""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from neardup.reading.compressed import CONVERT
from neardup.reading.fingerprint_lines import fingerprint_lines, fingerprint_parser
from neardup.reading.input_check import decoded
from neardup.reading.missing_fields import SEEN_ROWS, id_field, longest_text, options_for
from neardup.reading.shingle_lines import parse_shingle_lines, parse_weighted_lines
from neardup.reading.text_rows import FlawError, Row, row_of, text_lines
from neardup.runtime.program import StageError, to_add
from neardup.runtime.summary import DOCUMENTS

NAME = re.compile(r"[^\W\d]\w*")  # column names that reveal a table among texts
ANY_NAME = re.compile(r"[^\W\d][\w .()-]{0,29}")
LISTED = 5
JSON_LINES, TABLE, PROSE = "JSON lines", "a table with the columns ", "text without ids"
JSON_PARTS = "JSON, but not one object a line"
LETTERS = rb"(?:[A-Za-z]|[\xc3-\xf4][\x80-\xbf])"
TEXT = re.compile(rb"\S+\s[^\0-\x08\x0e-\x1f]*%b" % LETTERS)
WITHOUT_ID = re.compile(rb"[^\s\d_]+ (?=.*%b)[^\t]*\Z" % LETTERS)
COMMAS = re.compile(rb"[^\s,;]+(?:[,;]\s*[0-9]+)+\s*\Z")
NOT_SPLIT = {"csv", "tsv", "--encoding"}  # options that tasks refuse
OF_LINES = (
    ("shingle lines", "--input shingles", parse_shingle_lines),
    ("shingles with weights", "--weights own", parse_weighted_lines),
    *(
        (
            f"fingerprints of {bits} bits",
            f"--input fingerprints --bits {bits}",
            fingerprint_parser(fingerprint_lines, bits),
        )
        for bits in (64, 128, 256, 512, 1024)
    ),
)


class Look(NamedTuple):
    like: str = ""  # "": unknown
    options: Sequence[str] | None = None  # options that read the lines; None if none were found

    def message(self, in_tasks: bool = False, without: str = "") -> str:
        """Return what the lines look like, and the options to add if there are some.

        in_tasks: tasks read them, which refuse a file that cannot be split at line ends; without:
        options of the user that the others exclude.
        """
        like = f"looks like {self.like}"
        if not self.options:
            rows = self.like == JSON_LINES or self.like.startswith(TABLE)
            return f"{like}, in which no field has a text" if rows else like
        if in_tasks and NOT_SPLIT & {*self.options}:
            return f"{like}; type: {CONVERT.replace('FILE', f'{shlex.join(self.options)} FILE')}"
        documents = f"; {DOCUMENTS.format('FILE…')}" if self.like.startswith(PROSE) else ""
        return f"{like}; {to_add(*self.options)}{without}{documents}"


def misread(
    data: bytes,
    kind: str,
    place: str,
    good: int,
    bad: int,
    in_tasks: bool = False,
    without: str = "",
) -> str:
    """Return what the first lines of a file look like if they were read as something else, or "".

    kind: the --input; good, bad: how many lines are records, and are not.  StageError if none is a
    record, or if rows of JSON or CSV were read as texts, with braces or commas in the ids.
    """
    if kind != "text" and bad <= good:
        return ""
    look = seen(data, kind)
    rows = look.like in (JSON_LINES, JSON_PARTS)
    rows |= look.like.startswith(TABLE) and _ids_have_commas(data)
    message = f"{place or 'standard input: '}{look.message(in_tasks, without)}"
    if look.like and (not good or (rows and kind == "text")):
        raise StageError(message)
    plausible = bad <= good and (not look.options or "--encoding" in look.options)
    return "" if plausible or not look.like else message


def misencoded(rows: Sequence[bytes]) -> str:
    """Return what rows that are not UTF-8 look like, and the option that was tried on them."""
    try:
        b"\n".join(rows).decode("cp1252")
    except UnicodeDecodeError:
        return "is neither UTF-8 nor cp1252; name its encoding with --encoding"
    return f"looks like text in cp1252; {to_add('--encoding', 'cp1252')}"


def seen(data: bytes, kind: str) -> Look:
    """Return what the first lines are, other than the kind of input that they were read as."""
    encoding = _encoding(data)
    if not encoding:
        return _seen(data, kind)
    look = _seen(data.decode(encoding, "replace").encode(), "") if encoding != "binary" else Look()
    if not look.options:
        return Look("binary data")
    return Look(f"{look.like} in {encoding}", [*look.options, "--encoding", encoding])


def _encoding(data: bytes) -> str:
    """Return the encoding of lines, "" for UTF-8, "binary" for no text."""
    if b"\0" in data:
        zeros = [data[first::2].count(0) for first in (0, 1)]
        wide = 4 * max(zeros) > len(data) and not min(zeros)
        return ("utf-16-be" if zeros[0] else "utf-16-le") if wide else "binary"
    others = [line for line in data.splitlines()[:SEEN_ROWS] if not line.isascii()]
    return "cp1252" if 2 * sum(decoded(line) is None for line in others) > len(others) else ""


def _seen(data: bytes, kind: str) -> Look:
    lines = [line for line in data.splitlines() if line.strip()][:SEEN_ROWS]
    if not lines:
        return Look()
    block = b"\n".join(lines) + b"\n"
    if rows := _objects(lines):
        options = options_for(rows, ["--input", "jsonl"])
        return Look() if kind == "jsonl" else Look(JSON_LINES, options)
    if _is_json(data):
        return Look(JSON_PARTS)
    if (table := _table(lines, kind)).like:
        return table
    for like, remedy, parse in OF_LINES:
        other = remedy != f"--input {kind}" and (
            remedy != "--weights own" or (kind == "shingles" and b":" in block)
        )
        if other and 2 * len(parse(block)[0].ids) >= len(lines):
            return Look(like, remedy.split())
    texts = sum(not record.flaw for record in text_lines(block))
    if kind != "text" and 2 * min(texts, sum(map(bool, map(TEXT.match, lines)))) >= len(lines):
        return Look(PROSE if all(map(WITHOUT_ID.match, lines)) else "text", ["--input", "text"])
    return Look("shingles between commas") if all(map(COMMAS.match, lines)) else Look()


def _objects(lines: Sequence[bytes]) -> list[Row]:
    """Return the lines as JSON objects if nine in ten are, and the first one; else []."""
    rows = []
    for line in lines:
        try:
            rows.append(row_of(line))
        except FlawError:
            if not rows:
                return []
    return rows if 10 * len(rows) >= 9 * len(lines) else []


def _is_json(data: bytes) -> bool:
    """Return whether text begins with a JSON object, or an array of them, on several lines."""
    text = str(data, "utf-8", "replace").lstrip("\ufeff \t\r\n[")
    try:
        return isinstance(json.JSONDecoder().raw_decode(text)[0], dict)
    except (ValueError, RecursionError):
        return False


def _table(lines: Sequence[bytes], kind: str) -> Look:
    """Return the table that lines are, with a header or, if not read as text, without one."""
    for comma in ",;\t|":
        quoted = re.compile(f"(?:^|{re.escape(comma)})'.*'(?:{re.escape(comma)}|$)".encode())
        quote = "'" if 2 * sum(map(bool, map(quoted.search, lines))) >= len(lines) else '"'
        flags = ["--input", "tsv" if comma == "\t" and kind != "csv" else "csv"]
        if flags[1] == "csv" and comma != ",":
            flags = flags * (kind != "csv") + ["--delimiter", comma.replace("\t", "\\t")]
        flags += ["--quote", quote] * (quote == "'" and "tsv" not in flags)
        header, *rows = _cells(lines, comma, quote) or [[]]
        # ID, tab, text:
        text = comma == "\t" and len(header) == 2 and not {"id", "text"} & {*header}
        named = all(map(NAME.fullmatch, header))
        if not rows or text or (kind == "text" and not named):
            continue
        if numbers := [] if named else _by_number([header, *rows]):
            return Look("a table without names of columns", [*flags, *numbers])
        if all(map(ANY_NAME.fullmatch, header)) and flags != ["--input", kind]:
            options = options_for([dict(zip(header, row)) for row in rows], flags)
            return Look(f"{TABLE}{' '.join(header[:LISTED])}", options)
    return Look()


def _cells(lines: Sequence[bytes], comma: str, quote: str) -> list[list[str]]:
    """Return the fields of lines if all have the same number of them, and several; else []."""
    text = (str(line, "utf-8", "replace") + "\n" for line in lines)
    try:
        rows = list(filter(None, csv.reader(text, delimiter=comma, quotechar=quote)))
    except (csv.Error, ValueError):
        return []
    rows = rows[:-1] if len(lines) == SEEN_ROWS else rows  # a quote may be open
    alike = rows and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows)
    return rows if alike else []


def _by_number(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the numbers of the columns of rows as options; [] if the rows are not a table.

    A first text much shorter than the others is a name, as is a word above numbers, and blanks
    follow commas in prose.
    """
    columns: dict[str, list[Any]] = {str(i): [*cells] for i, cells in enumerate(zip(*rows), 1)}
    text = longest_text(columns)
    id_ = id_field({name: cells for name, cells in columns.items() if name != text}, len(rows))
    if not text or not id_ or any(cell.startswith(" ") for row in rows for cell in row):
        return []
    named = 2 * len(columns[text][0]) * len(rows) < sum(map(len, columns[text])) or any(
        not first.isdecimal() and rest and all(map(str.isdecimal, rest))
        for first, *rest in columns.values()
    )
    return [] if named else ["--id", id_, "--text", text]


def _ids_have_commas(block: bytes) -> bool:
    ids = [record.id for record in text_lines(block[: 1 << 16]) if not record.flaw][:SEEN_ROWS]
    return bool(ids) and all(re.search(rb"[,;|]", id_) for id_ in ids)
