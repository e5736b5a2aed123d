"""What a line that cannot be read looks like, by its bytes: for the message that says what to type.

Every one of these is some other input's good line; `process.verdict` decides by the most.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice

from neardup.process.verdict import (
    CSV,
    CSV_HEADER,
    JSON_ARRAY,
    JSON_PART,
    JSONL,
    LIKE,
    NUMBERS,
    OTHER,
    SHINGLES,
    TEXT,
    TSV,
    TSV_HEADER,
    WEIGHTED,
)
from neardup.reading.bad_lines import flaw_in

LOOKED_AT = 100  # bad lines of each process
SEEN_BYTES = 1000
LOOKS = {  # the first that fits
    JSONL: rb'\s*\{\s*"',
    JSON_PART: rb'\s*(?:[][{}]|"[^"]*"\s*:)',
    SHINGLES: rb"\S+(?:\s+[0-9]+)+\s*",
    WEIGHTED: rb"\S+(?:\s+[0-9]+(?::[0-9.eE+-]+)?)+\s*",
    NUMBERS: rb"[^\s,;]+(?:[,;]\s*[0-9]+)+\s*",
    TSV: rb"[^\t]*\t[^\t]*\t",
    CSV: rb'(?:"[^"]*"|[^\s,;"]+)[,;]\S',
    TEXT: rb"\S+\s.*(?:[A-Za-z]|[\xc3-\xf4][\x80-\xbf])",
}
FIRST_LOOKS = {  # of the first line of a file
    JSON_ARRAY: rb"\s*\[",
    CSV_HEADER: rb'"?[^\W\d]\w*"?(?:[,;]"?[^\W\d]\w*"?)+\s*',
    TSV_HEADER: rb"[^\W\d]\w*(?:\t[^\W\d]\w*){2,}\s*|id\ttext\s*|text\tid\s*",
}
WHOLE = (SHINGLES, WEIGHTED, NUMBERS, CSV_HEADER, TSV_HEADER)
TAKES = {"csv": (CSV, CSV_HEADER), "tsv": (TSV, TSV_HEADER)}  # an input, where not by its name


def _compiled(looks: dict[str, bytes]) -> dict[str, re.Pattern[bytes]]:
    return {
        look: re.compile(pattern + (rb"\Z" if look in WHOLE else b""), re.DOTALL)
        for look, pattern in looks.items()
    }


_LOOKS, _FIRST_LOOKS = _compiled(LOOKS), _compiled(FIRST_LOOKS)


def looks_of(lines: Iterable[bytes], input_: str) -> dict[str, int]:
    """How many of the first of some lines have each look, as counters call it."""
    looks = Counter(look_of(line, 0, input_) for line in islice(lines, LOOKED_AT))
    return {LIKE + look: n for look, n in looks.items()}


def look_of(line: bytes, number: int, input_: str) -> str:
    """Which of the looks a line has, of that number in its file; OTHER: none, or what --input is.

    >>> look_of(b"0ad\tA game of ancient warfare", 5, "shingles")
    'text'
    >>> look_of(b"id,text", 1, "shingles"), look_of(b"id,text", 1, "csv")
    ('a csv header', 'nothing known')
    """
    seen = line[:SEEN_BYTES].strip(b"\r\n")
    if len(line) > SEEN_BYTES:
        seen = seen[: max(seen.rfind(b" "), seen.rfind(b"\t"), 1)]  # whole words
    tables = [_FIRST_LOOKS, _LOOKS] if number == 1 else [_LOOKS]
    fitting = (look for table in tables for look, form in table.items() if form.match(seen))
    look = next(fitting, OTHER)
    if look == TEXT and flaw_in(seen):  # noise, or a program
        return OTHER
    return OTHER if look in TAKES.get(input_, (input_,)) else look
