"""Values of fields: those that limit pairs, and those by which records are kept.

--within and --across limit pairs by fields, or by parts of fields or ids:

    site              the value of a field; compared as text, so that 1 and "1" are equal
    id:^([^/]*)/      what the first group of a regular expression matches in a field, or in the id

Two sets of tokens are *apart* if their tokens were shifted by hashes of different values: they have
no token in common, so that no scheme, join or engine has to know about --within.  Similarities of
sets with one value do not change.  --across, fingerprints, whose bits cannot be shifted, and
--not-pairs, which has digests of sets, need the hash in addition to the id: it is the last column
of `Batch.ranks`, and then in the tagged id.

A record without a value (null, an empty text, or no match) is compared with none.  Two values have
the same hash once in 2^64.

For --keep max:FIELD and min:FIELD, values are converted to integers of the same order.  One is a
number, a date or a time, or their texts: 7, "7.5", "2024-05-31", "2024-05-31T18:00Z".  Times are
seconds since 1970, in UTC unless they have an offset.  A number becomes two integers: those of the
nearest float of 64 bits, and of what is left, so that numbers of up to 31 digits are told apart,
such as ids above 2^53.  They have the order of the values; the first is 0 if there is no value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from decimal import Context, Decimal
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from neardup.reading.input_check import BadLine, Parser
from neardup.reading.text_rows import EXACT, Fields, lines_in, row_of
from neardup.runtime.program import UsageError, not_one_of
from neardup.sets.ragged import Batch, Ragged, spans

WITHIN, ACROSS = "--within", "--across"
_OF_JSON = (bool, int, float, list, tuple, dict)  # others, such as dates, are text as they are


class Values(NamedTuple):
    """The value of --within or --across.

    >>> Values.of("--across", "id:^([^/]*)/").text("gold/7"), Values.of("--within", "site").text(7)
    ('gold', '7')
    """

    flag: str
    field: str
    pattern: re.Pattern[str] | None = None
    in_ids: bool = False  # with --within: in tagged ids, as with --across, and sets as they are

    @classmethod
    def of(cls, flag: str, text: str) -> Values:
        """Parse FIELD or FIELD:REGEX, where REGEX has a group; UsageError if it is invalid."""
        field, colon, pattern = text.partition(":")
        if not (colon and "(" in pattern):
            field, pattern = text, ""
        if not field:
            raise UsageError(f"{flag}: {text!r} names no field; write FIELD, or FIELD:REGEX")
        try:
            found = re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{flag}: {pattern!r} is not a regular expression: {error}") from None
        if pattern and not found.groups:
            raise UsageError(f"{flag}: {pattern!r} has no group; put what to compare in ( )")
        return cls(flag, field, found if pattern else None)

    @property
    def equal(self) -> bool:
        """True for pairs of records with equal values, False for pairs with different ones."""
        return self.flag == WITHIN

    def text(self, value: Any) -> str | None:
        """Return a field's value as the text that is compared; None if there is none."""
        value = value.tolist() if hasattr(value, "tolist") else value  # of numpy
        if value is None or value == "" or value != value:  # NaN
            return None
        text = _as_json(value) if isinstance(value, _OF_JSON) else str(value)
        if self.pattern is None:
            return text
        found = self.pattern.search(text)
        return found[1] if found else None

    def of_ids(self, ids: list[bytes]) -> list[str | None]:
        return [self.text(id_.decode("utf-8", "surrogateescape")) for id_ in ids]

    def of_rows(self, block: Any, batch: Batch, fields: Fields) -> list[str | None]:
        """Return the values of the records of a batch, from the rows that it was made of."""
        of_place = {place: i for i, place in enumerate(batch.places.tolist())}
        texts: list[str | None] = [None] * len(batch.ids)
        for number, line in lines_in(block):
            if number in of_place:
                texts[of_place[number]] = self.text(fields.value(row_of(line, EXACT), self.field))
        return texts


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    except TypeError:  # keys that are not texts, of the library
        return str(value)


@lru_cache(1 << 16)
def hash_of(text: str) -> int:
    """Return a hash of 64 bits."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def with_values(parse: Parser, values: Values, fields: Fields | None, shifts: bool) -> Parser:
    """Return a parser that leaves out records without a value, and marks the others by theirs.

    shifts: sets with different values are put apart; else `Batch.ranks` has one more column.
    """

    def parse_valued(block: Any) -> tuple[Batch, list[BadLine]]:
        batch, bad = parse(block)
        texts = values.of_rows(block, batch, fields) if fields else values.of_ids(batch.ids)
        return valued(batch, texts, shifts), bad

    return parse_valued


def valued(batch: Batch, texts: list[str | None], shifts: bool) -> Batch:
    """Return the records that have a value, marked by it; see `with_values`."""
    some = np.array([i for i, text in enumerate(texts) if text is not None], np.int64)
    hashes = np.array([hash_of(text) for text in texts if text is not None], np.uint64)
    found = batch.take(some) if len(some) < len(texts) else batch
    if shifts:
        found = replace(found, sets=apart(found.sets, hashes))
    else:
        ranks = found.ranks if len(found.ranks) else np.empty((len(some), 0), np.uint64)
        found = replace(found, ranks=np.column_stack((ranks, hashes)))
    return replace(
        found,
        without_shingles=batch.without_shingles,
        halved=batch.halved,
        repeating=batch.repeating,
        without_value=len(texts) - len(some),
        left_ids=(*batch.left_ids, *(id_ for id_, t in zip(batch.ids, texts) if t is None)),
    )


def apart(sets: Ragged, hashes: np.ndarray) -> Ragged:
    """Return the sets with hashes[i] (uint64) added to each token of row i, modulo 2^64.

    A row stays in order, but for the tokens that pass 2^64 and so come first.

    >>> moved = apart(Ragged.from_rows([[1, 2, 9]]), np.array([2**64 - 5], np.uint64))
    >>> moved.values.tolist()
    [4, 18446744073709551612, 18446744073709551613]
    """
    sizes, starts = sets.sizes, sets.offsets[:-1]
    added = np.repeat(hashes, sizes)
    values = sets.values + added
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(values < added)))
    first = sizes - np.diff(ends[sets.offsets])  # the first token of each row that passes 2^64
    place = spans(np.zeros(len(sizes), np.int64), sizes) + np.repeat(first, sizes)
    place = place % np.repeat(np.maximum(sizes, 1), sizes) + np.repeat(starts, sizes)
    weights = None if sets.weights is None else sets.weights[place]
    return Ragged(values[place], sets.offsets, weights)


def rules_in(keep: str, names: Collection[str]) -> list[tuple[str, str | re.Pattern[str]]]:
    """Return the rules of --keep RULE,RULE…, each as a kind and what is behind its colon, or "".

    names: the rules; max:FIELD stands for any field.  A comma in a pattern belongs to it, unless a
    rule follows.  ValueError for an unknown rule.

    >>> rules_in("prefer:a,b,max:stars,first", ["first", "max:FIELD"])
    [('prefer', re.compile('a,b')), ('max', 'stars'), ('first', '')]
    """
    words = "|".join(name for name in names if ":" not in name)
    found: list[tuple[str, str | re.Pattern[str]]] = []
    for rule in re.split(rf",(?=(?:{words})(?:,|$)|(?:max|min|prefer):)", keep):
        kind, _, of = rule.partition(":")
        if kind == "prefer" and of:
            try:
                found.append((kind, re.compile(of)))
            except re.error as error:
                raise ValueError(f"{of!r} is not a regular expression: {error}") from None
        elif rule in names or (f"{kind}:FIELD" in names and of and "," not in of):
            found.append((kind, of))
        else:
            raise ValueError(not_one_of(rule.rpartition(",")[2], names))
    return found


NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")  # unlike float()
# What Python 3.9 reads, and the digits of nanoseconds; later versions read more.
TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:([T ][0-9]{2}(?::[0-9]{2})?)(?:(?<=:..)(:[0-9]{2})"
    r"(\.[0-9]{1,9})?)?(?:[Zz]|([+-][0-9]{2}):?([0-9]{2}))?)?"
)
_SIGN = np.uint64(1 << 63)
_DIGITS = Context(prec=60, traps=[])
_NO_NUMBER = math.nan, 0.0


def with_ranks(parse: Parser, fields: Fields) -> Parser:
    """Return a parser that also sets `Batch.ranks`, from the values of the fields in --keep."""

    def parse_ranked(block: Any) -> tuple[Batch, list[BadLine]]:
        batch, bad = parse(block)
        of_place = {place: row for row, place in enumerate(batch.places.tolist())}
        values = np.full((len(batch.ids), len(fields.ranked), 2), _NO_NUMBER)
        for number, line in lines_in(block):
            if number in of_place:
                row = row_of(line, EXACT)
                values[of_place[number]] = [number_of(fields.value(row, f)) for f in fields.ranked]
        return replace(batch, ranks=ranks(values.reshape(len(values), -1))), bad

    return parse_ranked


def number_of(value: Any) -> tuple[float, float]:
    """Return a value as the nearest float and what is left; NaN and 0 for no number or date.

    >>> [number_of(value)[0] for value in (7, "7.5", "1970-01-02", "1970-01-01T01:00+00:30", "?")]
    [7.0, 7.5, 86400.0, 1800.0, nan]
    >>> number_of(2**53 + 1), number_of("9007199254740993")
    ((9007199254740992.0, 1.0), (9007199254740992.0, 1.0))
    """
    if isinstance(value, str):
        return _split(_number_or_seconds(value.strip()))
    if type(value) is int and abs(value) <= 1 << 53:
        return float(value), 0.0
    if type(value) is float:
        return _split(Decimal(repr(value)))  # as in a text
    return _split(Decimal(value)) if type(value) in (int, Decimal) else _NO_NUMBER


def _split(number: Decimal | None) -> tuple[float, float]:
    nearest = math.nan if number is None else float(number)
    if number is None or not math.isfinite(nearest):
        return _NO_NUMBER
    return nearest, float(_DIGITS.subtract(number, Decimal(nearest)))


def _number_or_seconds(text: str) -> Decimal | None:
    if NUMBER.fullmatch(text):
        return _DIGITS.create_decimal(text)
    if not (found := TIME.fullmatch(text)):
        return None
    day, time, seconds, fraction, hours, minutes = found.groups("")
    with suppress(ValueError):
        zone = f"{hours or '+00'}:{minutes or '00'}"
        when = datetime.fromisoformat(f"{day}{time or 'T00'}{seconds}{zone}")
        return Decimal(int(when.timestamp())) + Decimal(fraction or 0)
    return None


def ranks(values: np.ndarray) -> np.ndarray:
    """Return integers (uint64) that compare as the values (float64) do; 0 for NaN.

    >>> order = ranks(np.array([np.nan, -np.inf, -2.0, -1e-300, 0.0, 3.0, np.inf])).tolist()
    >>> order == sorted(set(order)), order[0], order[4] == int(ranks(np.array([-0.0]))[0])
    (True, 0, True)
    """
    bits = (values + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    return np.where(np.isnan(values), np.uint64(0), np.where(bits & _SIGN, ~bits, bits | _SIGN))
