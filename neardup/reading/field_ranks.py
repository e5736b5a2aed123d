"""Convert values of fields to integers of the same order, for --keep max:FIELD and min:FIELD.

A value is a number, a date or a time, or their texts: 7, "7.5", "2024-05-31", "2024-05-31T18:00Z".
Numbers are compared as floats of 64 bits, and times as seconds since 1970, in UTC unless they have
an offset.  The integers have the order of the values; 0 means no value.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from neardup.reading.input_check import BadLine, Parser
from neardup.reading.text_rows import Fields, lines_in, row_of
from neardup.sets.ragged import Batch

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")  # unlike float()
# What Python 3.9 reads, and the digits of nanoseconds; later versions read more.
TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:([T ][0-9]{2}(?::[0-9]{2})?)(?:(?<=:..)(:[0-9]{2})"
    r"(\.[0-9]{1,9})?)?(?:[Zz]|([+-][0-9]{2}):?([0-9]{2}))?)?"
)
_SIGN = np.uint64(1 << 63)


def with_ranks(parse: Parser, fields: Fields) -> Parser:
    """Return a parser that also sets `Batch.ranks`, from the values of the fields in --keep."""

    def parse_ranked(block: Any) -> tuple[Batch, list[BadLine]]:
        batch, bad = parse(block)
        of_place = {place: row for row, place in enumerate(batch.places.tolist())}
        values = np.full((len(batch.ids), len(fields.ranked)), np.nan)
        for number, line in lines_in(block):
            if number in of_place:
                row = row_of(line)
                values[of_place[number]] = [number_of(fields.value(row, f)) for f in fields.ranked]
        return replace(batch, ranks=ranks(values)), bad

    return parse_ranked


def number_of(value: Any) -> float:
    """Return a value as a number, NaN if it is neither a number of 64 bits nor a date.

    >>> [number_of(value) for value in (7, "7.5", "1970-01-02", "1970-01-01T01:00+00:30", "?")]
    [7.0, 7.5, 86400.0, 1800.0, nan]
    """
    found = math.nan
    if isinstance(value, str):
        found = _number_or_seconds(value.strip())
    elif type(value) in (int, float):
        with suppress(OverflowError):  # an integer of more than 308 digits
            found = float(value)
    return found if math.isfinite(found) else math.nan


def _number_or_seconds(text: str) -> float:
    if NUMBER.fullmatch(text):
        return float(text)
    if not (found := TIME.fullmatch(text)):
        return math.nan
    day, time, seconds, fraction, hours, minutes = found.groups("")
    with suppress(ValueError):
        zone = f"{hours or '+00'}:{minutes or '00'}"
        when = datetime.fromisoformat(f"{day}{time or 'T00'}{seconds}{zone}")
        return when.timestamp() + float(fraction or 0)
    return math.nan


def ranks(values: np.ndarray) -> np.ndarray:
    """Return integers (uint64) that compare as the values (float64) do; 0 for NaN.

    >>> order = ranks(np.array([np.nan, -np.inf, -2.0, -1e-300, 0.0, 3.0, np.inf])).tolist()
    >>> order == sorted(set(order)), order[0], order[4] == int(ranks(np.array([-0.0]))[0])
    (True, 0, True)
    """
    bits = (values + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    return np.where(np.isnan(values), np.uint64(0), np.where(bits & _SIGN, ~bits, bits | _SIGN))
