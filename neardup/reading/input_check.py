"""Bad lines, their reasons, and what input of the wrong format looks like.

Each look below is another input's good line, told by its first bytes.  `runtime.summary` takes what
most bad lines look like, and prints what to type for input that looks so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import Callable, NamedTuple

import numpy as np

from neardup.runtime import summary
from neardup.sets.ragged import Batch, Ragged

REASONS = (
    NO_ID := "no id",
    NO_SHINGLES := "no shingles",
    NOT_AN_INTEGER := "not an integer",
    NEGATIVE := "negative shingle",
    TOO_LARGE := "shingle over 2^64-1",
    NOT_A_WEIGHT := "weight outside 0 < W <= 1000000",
    TWO_WEIGHTS := "shingle twice",
    UNASKED_WEIGHT := "weight, without --weights own",
    NOT_UTF8 := "not UTF-8",
    NOT_JSON := "not a JSON object",
    NO_TEXT := "no text",
    NOT_A_TEXT := "text is no string",
    NOT_AN_ID := "id is no string and no whole number",
    BLANK_IN_ID := "tab or line end in the id",
    WRONG_FIELDS := "another number of fields than the header",
    TOO_FEW_FIELDS := "too few fields",
    NOT_CLOSED := "quote is not closed",
    NUL_BYTE := "NUL byte",
    LINE_TOO_LONG := "line too long",
)
NO_ROW = (NOT_JSON, WRONG_FIELDS, TOO_FEW_FIELDS, NOT_CLOSED, LINE_TOO_LONG)


LOOKED_AT = 100  # bad lines of each process
SEEN_BYTES = 1000
LOOKS = {  # the first that fits is taken
    summary.JSONL: rb'\s*\{\s*"',
    summary.JSON_PART: rb'\s*(?:[][{}]|"[^"]*"\s*:)',
    summary.SHINGLES: rb"\S+(?:\s+[0-9]+)+\s*",
    summary.WEIGHTED: rb"\S+(?:\s+[0-9]+(?::[0-9.eE+-]+)?)+\s*",
    summary.NUMBERS: rb"[^\s,;]+(?:[,;]\s*[0-9]+)+\s*",
    summary.TSV: rb"[^\t]*\t[^\t]*\t",
    summary.CSV: rb'(?:"[^"]*"|[^\s,;"]+)[,;]\S',
    summary.PROSE: rb"[^\s\d_]+ (?=.*(?:[A-Za-z]|[\xc3-\xf4][\x80-\xbf]))[^\t]*",
    summary.TEXT: rb"\S+\s.*(?:[A-Za-z]|[\xc3-\xf4][\x80-\xbf])",
}
FIRST_LOOKS = {  # for the first line of a file
    summary.JSON_ARRAY: rb"\s*\[",
    summary.CSV_HEADER: rb'"?[^\W\d]\w*"?(?:[,;]"?[^\W\d]\w*"?)+\s*',
    summary.TSV_HEADER: rb"[^\W\d]\w*(?:\t[^\W\d]\w*){2,}\s*|id\ttext\s*|text\tid\s*",
}
WHOLE = (
    summary.SHINGLES,
    summary.WEIGHTED,
    summary.NUMBERS,
    summary.PROSE,
    summary.CSV_HEADER,
    summary.TSV_HEADER,
)
TAKES = {
    "csv": (summary.CSV, summary.CSV_HEADER),
    "tsv": (summary.TSV, summary.TSV_HEADER),
    "text": (summary.TEXT, summary.PROSE),
}  # an input, where not by its name


class BadLine(NamedTuple):
    """A line that is no record: its number in its block, from 0, its first bytes, and why."""

    number: int
    text: bytes
    reason: str


Parser = Callable[[bytes], "tuple[Batch, list[BadLine]]"]
# From the tokens of rows laid end to end (uint64), with repeats, and how many each has (int64).
Gather = Callable[[np.ndarray, np.ndarray], Ragged]


def flaw_in(text: bytes) -> str | None:
    """Return why this is neither an id nor a text, or None."""
    if b"\0" in text:
        return NUL_BYTE
    try:
        str(text, "utf-8")
    except UnicodeDecodeError:
        return NOT_UTF8
    return None


@cache
def _compiled(first: bool) -> dict[str, re.Pattern[bytes]]:
    return {
        look: re.compile(pattern + (rb"\Z" if look in WHOLE else b""), re.DOTALL)
        for look, pattern in (FIRST_LOOKS if first else LOOKS).items()
    }


def looks_of(lines: Iterable[bytes], input_: str) -> dict[str, int]:
    """Return how many of the first lines have each look, under the names of counters."""
    looks = Counter(look_of(line, 0, input_) for line in islice(lines, LOOKED_AT))
    return {summary.LIKE + look: n for look, n in looks.items()}


def look_of(line: bytes, number: int, input_: str) -> str:
    """Return the look of a line with this number in its file; OTHER: none, or what --input is.

    >>> look_of(b"0ad\tA game of ancient warfare", 5, "shingles")
    'text'
    >>> look_of(b"id,text", 1, "shingles"), look_of(b"id,text", 1, "csv")
    ('a csv header', 'nothing known')
    """
    seen = line[:SEEN_BYTES].strip(b"\r\n")
    if len(line) > SEEN_BYTES:
        seen = seen[: max(seen.rfind(b" "), seen.rfind(b"\t"), 1)]  # whole words
    tables = [_compiled(True), _compiled(False)] if number == 1 else [_compiled(False)]
    fitting = (look for table in tables for look, form in table.items() if form.match(seen))
    look = next(fitting, summary.OTHER)
    if look in (summary.PROSE, summary.TEXT) and flaw_in(seen):  # noise, or a program
        return summary.OTHER
    return summary.OTHER if look in TAKES.get(input_, (input_,)) else look
