r"""Format and parse tagged ids, whose byte order is the order in which records are decided on.

    1 RANKS PLACE ID        --keep, with a rank for each of its rules; none for `first`
    1 RANKS ID \1 PLACE     … where the last rule is `smallest`
    1 ID                    pairs
    └ 0 for an old record (--against), which comes before all new ones

For each rule, RANKS has this number of hexadecimal digits; the smallest rank comes first:

    max:FIELD, min:FIELD    32    a value as integers (`reading.field_values`); ffff… for none
    prefer:REGEX             1    0 if the id matches, else 1
    longest                  8    2^32-1 less the number of shingles

With --across, and with --within for fingerprints, a hash of the record's value is at the very end,
in sixteen digits.  PLACE is the place in the input, in sixteen digits.  A \1 in an id becomes
\1 DEL, so that shorter ids still come first.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from itertools import repeat
from typing import NamedTuple, Protocol

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS
from neardup.reading.blocks import NEW
from neardup.reading.field_values import rules_in
from neardup.runtime.program import WireError, shown
from neardup.sets.ragged import Batch

OLD = b"0"
_MAX_TOKENS = (1 << 32) - 1
_NO_VALUE = np.uint64((1 << 64) - 1)
_PLACED = re.compile(rb"(?:0[0-7]|1[89a-f])[0-9a-f]{15}")  # places from NEW on are of new records
_VALUE = re.compile(rb"[0-9a-f]{16}")
_END, _ESCAPED = b"\1", b"\1\x7f"
_PLACE_DIGITS = _VALUE_DIGITS = 16


class Rank(Protocol):
    """A rule that decides which of several similar records is kept."""

    @property
    def width(self) -> int:
        """The number of hexadecimal digits of a rank."""
        ...

    def digits(self, batch: Batch) -> list[bytes]:
        """Return each record's rank in hexadecimal digits; the record of lowest rank is kept."""
        ...


class ByField(NamedTuple):
    """The rule `max:FIELD` or `min:FIELD`; the field has two columns in `Batch.ranks`."""

    largest: bool
    column: int  # the first
    width: int = 32

    def digits(self, batch: Batch) -> list[bytes]:
        values = batch.ranks[:, self.column : self.column + 2]
        if not len(batch.ranks):  # of an index, which has no fields
            values = np.zeros((len(batch.ids), 2), np.uint64)
        ranks = np.where(values[:, :1] == 0, _NO_VALUE, ~values if self.largest else values)
        return [b"%016x%016x" % (near, rest) for near, rest in ranks.tolist()]


class ById(NamedTuple):
    """The rule `prefer:REGEX`: records whose id matches come first."""

    pattern: re.Pattern[str]
    width: int = 1

    def digits(self, batch: Batch) -> list[bytes]:
        ids = (id_.decode("utf-8", "surrogateescape") for id_ in batch.ids)
        return [b"0" if self.pattern.search(id_) else b"1" for id_ in ids]


class ByShingles(NamedTuple):
    """The rule `longest`: records with more shingles come first."""

    width: int = 8

    def digits(self, batch: Batch) -> list[bytes]:
        return [b"%08x" % rest for rest in (_MAX_TOKENS - batch.sets.sizes).tolist()]


class Tag(NamedTuple):
    """A format of tagged ids: ranks by the rules of --keep, the place in the input, and the id."""

    ranks: tuple[Rank, ...] = ()
    fields: tuple[str, ...] = ()  # whose values are ranks, in the order of the columns
    id_first: bool = False  # before the place: smaller ids are kept
    placed: bool = True
    valued: bool = False  # a hash of the value of --within or --across is at the end
    apart: bool = False  # records with one value are not a pair (--across)

    @property
    def _end(self) -> int | None:
        return -_VALUE_DIGITS if self.valued else None

    @property
    def _ranks_end(self) -> int:
        return 1 + sum(rank.width for rank in self.ranks)

    @property
    def place(self) -> slice:
        """The slice of a tagged id that is the record's place in the input."""
        if self.id_first:
            end = self._end
            return slice((end or 0) - _PLACE_DIGITS, end)
        return slice(self._ranks_end, self._ranks_end + _PLACE_DIGITS * self.placed)

    @property
    def _id(self) -> slice:
        if self.id_first:
            return slice(self._ranks_end, self.place.start - len(_END))
        return slice(self.place.stop, self._end)

    def tagged(self, batch: Batch) -> Batch:
        """Return a batch with tags on its ids: old or new and, in some formats, ranks and place."""
        columns = [rank.digits(batch) for rank in self.ranks]
        ranks = map(b"".join, zip(*columns)) if columns else repeat(b"")
        each = zip(ranks, batch.places.tolist(), batch.ids)
        if self.id_first:
            tagged = [
                b"%d%b%b\1%016x" % (place >= NEW, rank, id_.replace(_END, _ESCAPED), place)
                for rank, place, id_ in each
            ]
        elif self.placed:
            tagged = [
                b"%d%b%016x%b" % (place >= NEW, rank, place, id_) for rank, place, id_ in each
            ]
        else:
            tagged = [b"%d%b" % (place >= NEW, id_) for _, place, id_ in each]
        if self.valued:
            hashes = batch.ranks[:, -1].tolist()
            tagged = [b"%b%016x" % both for both in zip(tagged, hashes)]
        return Batch(tagged, batch.sets, places=batch.places)

    def id_of(self, tagged: bytes) -> bytes:
        """Return a tagged id without its tag.

        >>> tag_of("first").id_of(b"18000000000000007v1")
        b'v1'
        """
        return self.ids_of([tagged])[0]

    def ids_of(self, tagged: list[bytes]) -> list[bytes]:
        where = self._id
        ids = [id_[where] for id_ in tagged]
        return [id_.replace(_ESCAPED, _END) for id_ in ids] if self.id_first else ids

    def places(self, tagged: list[bytes]) -> np.ndarray:
        """Return the places in tagged ids (uint64); WireError for ids tagged with other options."""
        where = self.place
        parts = [id_[:1] + id_[where] for id_ in tagged]
        if not all(map(_PLACED.fullmatch, parts)):
            wrong = next(id_ for id_, part in zip(tagged, parts) if not _PLACED.fullmatch(part))
            raise WireError(
                "expected a record with its place, as reducer.py writes it when given the "
                f"same --output and --keep, got {shown(wrong)}"
            )
        places = bytes.fromhex(b"".join([part[1:] for part in parts]).decode())
        return np.frombuffer(places, dtype=">u8").astype(np.uint64)


class Priority(NamedTuple):
    help: str


PRIORITIES = {
    "first": Priority("the one that comes first in the input"),
    "longest": Priority("the one with the most shingles"),
    "smallest": Priority("the one with the smallest id, compared byte by byte"),
    "max:FIELD": Priority("the one with the largest number, or the latest date, in a field"),
    "min:FIELD": Priority("the smallest, or the earliest"),
    "prefer:REGEX": Priority("a record whose id matches"),
}
COLLECTION = Tag(placed=False)
VALUED = Tag(placed=False, valued=True)


def tag_of(keep: str) -> Tag:
    """Return the format of ids for --keep RULE,RULE…; each rule decides the ties of earlier rules.

    ValueError for an unknown rule.

    >>> tag_of("prefer:^gold/,max:stars,min:date").fields
    ('stars', 'date')
    """
    ranks: list[Rank] = []
    fields: list[str] = []
    rules = rules_in(keep, PRIORITIES)
    for number, (kind, of) in enumerate(rules, 1):
        if kind in ("first", "smallest") and number < len(rules):
            raise ValueError(f"{kind} leaves no ties; it must be the last rule")
        if isinstance(of, re.Pattern):
            ranks.append(ById(of))
        elif of:
            ranks.append(ByField(kind == "max", 2 * len(fields)))
            fields.append(of)
        elif kind == "longest":
            ranks.append(ByShingles())
    return Tag(tuple(ranks), tuple(fields), rules[-1][0] == "smallest")


def mark_of(options: object) -> int:
    """Return a 40-bit hash of options, to be XORed into keys on lines.

    A reducer with other options finds no key that is its own.
    """
    return int.from_bytes(
        blake2b(repr(options).encode(), digest_size=HASH_BITS // 8).digest(), "big"
    )


def is_old(tagged: bytes) -> bool:
    """Return whether a tagged id is that of an old record; WireError for an id without a tag."""
    if tagged[:1] not in (OLD, b"1"):
        raise WireError(
            f"expected a record of one of two collections, as mapper.py writes it when given "
            f"the same --output and --against, got {shown(tagged)}"
        )
    return tagged[:1] == OLD


def values_of(tagged: list[bytes]) -> np.ndarray:
    """Return the hashes of values in tagged ids (uint64); WireError for ids without one."""
    ends = list(map(hash_digits, tagged))
    if not all(map(_VALUE.fullmatch, ends)):
        wrong = next(id_ for id_, end in zip(tagged, ends) if not _VALUE.fullmatch(end))
        raise WireError(
            "expected a record with its value, as mapper.py writes it when given the same "
            f"--within or --across, got {shown(wrong)}"
        )
    return np.frombuffer(bytes.fromhex(b"".join(ends).decode()), ">u8").astype(np.uint64)


def hash_digits(tagged: bytes) -> bytes:
    return tagged[-_VALUE_DIGITS:]


def without_value(tagged: bytes) -> bytes:
    """Return a tagged id without the hash of its value."""
    return tagged[:-_VALUE_DIGITS]
