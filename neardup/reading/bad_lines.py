"""Why a line is no record, and what a parser makes of a block of lines."""

from __future__ import annotations

from typing import Callable, NamedTuple

import numpy as np

from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged

NO_ID = "no id"
NO_SHINGLES = "no shingles"
NOT_AN_INTEGER = "not an integer"
NEGATIVE = "negative shingle"
TOO_LARGE = "shingle over 2^64-1"
NOT_A_WEIGHT = "weight outside 0 < W <= 1000000"
TWO_WEIGHTS = "shingle twice"
UNASKED_WEIGHT = "weight, without --weights own"
NOT_UTF8 = "not UTF-8"
NOT_JSON = "not a JSON object"
NO_TEXT = "no text"
NOT_A_TEXT = "text is no string"
NOT_AN_ID = "id is no string and no whole number"
BLANK_IN_ID = "tab or line end in the id"
WRONG_FIELDS = "another number of fields than the header"
TOO_FEW_FIELDS = "too few fields"
NOT_CLOSED = "quote is not closed"
NUL_BYTE = "NUL byte"
LINE_TOO_LONG = "line too long"
REASONS = (
    NO_ID,
    NO_SHINGLES,
    NOT_AN_INTEGER,
    NEGATIVE,
    TOO_LARGE,
    NOT_A_WEIGHT,
    TWO_WEIGHTS,
    UNASKED_WEIGHT,
    NOT_UTF8,
    NOT_JSON,
    NO_TEXT,
    NOT_A_TEXT,
    NOT_AN_ID,
    BLANK_IN_ID,
    WRONG_FIELDS,
    TOO_FEW_FIELDS,
    NOT_CLOSED,
    NUL_BYTE,
    LINE_TOO_LONG,
)
NO_ROW = (NOT_JSON, WRONG_FIELDS, TOO_FEW_FIELDS, NOT_CLOSED, LINE_TOO_LONG)


class BadLine(NamedTuple):
    """A line that is no record: its number in its block, from 0, its first bytes, and why."""

    number: int
    text: bytes
    reason: str


Parser = Callable[[bytes], "tuple[Batch, list[BadLine]]"]
# From the tokens of rows laid end to end (uint64), with repeats, and how many each has (int64).
Gather = Callable[[np.ndarray, np.ndarray], Ragged]


def flaw_in(text: bytes) -> str | None:
    """Why this is no id and no text."""
    if b"\0" in text:
        return NUL_BYTE
    try:
        str(text, "utf-8")
    except UnicodeDecodeError:
        return NOT_UTF8
    return None
