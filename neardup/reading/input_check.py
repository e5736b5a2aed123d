"""Bad lines, and the reasons why they are bad."""

import re
from typing import Callable, NamedTuple

import numpy as np

from neardup.sets.ragged import Batch, Ragged

REASONS = (
    NO_ID := "no id",
    NO_SHINGLES := "no shingles",
    NOT_AN_INTEGER := "not an integer",
    NEGATIVE := "negative shingle",
    TOO_LARGE := "shingle over 2^64-1",
    NOT_A_WEIGHT := "weight outside 0.000001 <= W <= 1000000",
    TWO_WEIGHTS := "shingle twice",
    UNASKED_WEIGHT := "weight, without --weights own",
    NOT_UTF8 := "not UTF-8",
    NOT_JSON := "not a JSON object",
    NO_TEXT := "no text",
    NOT_A_TEXT := "text is not a string",
    NOT_AN_ID := "id is neither a string nor a whole number",
    BLANK_IN_ID := "tab or line end in the id",
    HALF_IN_ID := "half a surrogate pair in the id",
    WRONG_FIELDS := "another number of fields than the header",
    TOO_FEW_FIELDS := "too few fields",
    NOT_CLOSED := "quote is not closed",
    NO_FINGERPRINT := "no fingerprint",
    NOT_A_FINGERPRINT := "not a fingerprint",
    OTHER_LENGTH := "fingerprint of another length than --bits",
    TOO_MANY := "more than 256 fingerprints",
    NUL_BYTE := "NUL byte",
    LINE_TOO_LONG := "line too long",
)


class BadLine(NamedTuple):
    """A line that is not a record: its number in the block, its bytes, the reason, and its id."""

    number: int
    text: bytes
    reason: str
    id: bytes = b""  # b"" if it has none, or an unreadable one


Parser = Callable[[bytes], "tuple[Batch, list[BadLine]]"]
# Makes sets of the tokens of all rows end to end (uint64), given each row's number (int64).
Gather = Callable[[np.ndarray, np.ndarray], Ragged]


def flaw_in(text: bytes) -> "str | None":
    """Return why an id or a text is invalid, or None."""
    if b"\0" in text:
        return NUL_BYTE
    try:
        str(text, "utf-8")
    except UnicodeDecodeError:
        return NOT_UTF8
    return None


def decoded(text: bytes) -> "str | None":
    r"""Decode UTF-8 with halves of surrogate pairs, as files of UTF-16 may have; None if invalid.

    Halves that represent an undecodable byte (see `dialects`) are invalid.
    """
    if not flaw_in(text):
        return str(text, "utf-8")
    try:
        found = str(text, "utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return None if re.search("[\udc80-\udcff]", found) else found
