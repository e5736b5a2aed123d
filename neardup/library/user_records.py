"""Records that a caller passes: texts or sets, with or without ids; errors name a position.

Columns of pandas, polars and Arrow, and arrays, are recognised by their methods, without importing
these packages.  Elements of sets become shingles:

    0 … 2^64-1      unchanged, as on a line of shingles; 7.0 is 7, as in Python
    strings         hashed as the words of a text with --shingle word:1
    tuples          hashed by their elements
    all others      numbered in the order given: equal elements of one call are one shingle
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from numbers import Number
from typing import Any

import numpy as np

from neardup.reading import blocks, cleaning, input_check, shingling, text_rows
from neardup.reading.input_format import InputFormat
from neardup.sets.hashing import WORD
from neardup.sets.ragged import Batch, Ragged, chunks
from neardup.sets.weighted_sets import bagged, counted

AS_LIST = ("to_pylist", "to_list", "tolist")  # Arrow; pandas and polars; numpy
AT_ONCE = blocks.BLOCK_BYTES >> 3  # elements; or eight times as many characters


class Elements(dict[Hashable, int]):
    """A mapping from the elements of sets to shingles (numbers), filled in the course of one call.

    >>> elements = Elements()
    >>> elements.of([7, 7.0, True]).tolist()
    [7, 7, 1]
    """

    def __init__(self) -> None:
        self._words = shingling.WordHashes()

    def of_records(self, records: list[Any]) -> np.ndarray:
        """Return the shingles of all elements of lists or arrays, uint64; the errors of `of`."""
        kinds = {record.dtype.kind if isinstance(record, np.ndarray) else "" for record in records}
        if kinds == {"u"} or kinds == {"i"}:
            values = np.concatenate(records)
            if kinds == {"u"} or not len(values) or values.min() >= 0:
                return values.astype(np.uint64)
        lists = (each.tolist() if isinstance(each, np.ndarray) else each for each in records)
        return self.of(list(chain.from_iterable(lists)))

    def of(self, elements: list[Any]) -> np.ndarray:
        """Return the shingle of each element, uint64; TypeError or ValueError for a bad one."""
        kinds = set(map(type, elements))
        if kinds == {str}:
            return self._of_words(elements)
        if kinds == {int} and min(elements) >= 0 and max(elements) < WORD:
            return np.array(elements, dtype=np.uint64)
        return np.array([self[element] for element in elements], dtype=np.uint64)

    def _of_words(self, words: list[str]) -> np.ndarray:
        units = shingling.numbers(
            b"".join([self._words[cleaning.whole(word).encode()] for word in words])
        )
        return shingling.runs(units, np.ones(len(words), np.int64), 1)[0]

    def __missing__(self, element: Any) -> int:
        self[element] = value = self._value(element)
        return value

    def _value(self, element: Any) -> int:
        if isinstance(element, str):
            return int(self._of_words([element])[0])
        if element is None or element != element:
            raise ValueError(f"{element} cannot be an element")
        if isinstance(element, tuple):
            return _hash(b"tuple", b"".join(self[part].to_bytes(8, "little") for part in element))
        if isinstance(element, Number):
            try:
                whole = int(element)  # type: ignore[call-overload]
                if whole == element:
                    return whole if 0 <= whole < WORD else _hash(b"int", b"%d" % whole)
            except (TypeError, ValueError, OverflowError):  # complex or infinite
                pass
        return _hash(b"other", b"%d" % len(self))


def _hash(kind: bytes, data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8, person=kind).digest(), "little")


@dataclass(frozen=True)
class UserRecords:
    """The n records of a caller: ids (None: positions are the ids), and texts or elements.

    Elements are a list, or integers in an array.
    """

    ids: "list[Hashable] | None"
    texts: bool
    records: list[Any]

    @classmethod
    def of(cls, records: Iterable[Any]) -> "UserRecords":
        """Check and convert the records of a caller; ValueError names the record at fault.

        >>> UserRecords.of([("a", "to be"), ("b", "or not")])
        UserRecords(ids=['a', 'b'], texts=True, records=['to be', 'or not'])
        """
        ids, found = apart(listed(records))
        texts = bool(found) and isinstance(found[0], str)
        kinds = set(map(type, found))
        if not (kinds <= {str} or (kinds == {np.ndarray} and all(map(_is_integers, found)))):
            found = [_checked(i, record, texts) for i, record in enumerate(found)]
        return cls(ids, texts, found)

    def __len__(self) -> int:
        return len(self.records)

    def batches(self, form: InputFormat, repeats: bool) -> Iterator[Batch]:
        """Yield batches without empty records; with `repeats`, tokens are weighted by count."""
        gather = counted if repeats else Ragged.from_unsorted
        if form.shingle is not None:
            found = self.batches_of_texts(form.shingle, form.clean, gather)
        else:
            found = self.batches_of_sets(bagged if form.bag else gather)
        return (batch for batch in found if batch.ids)

    def batches_of_texts(
        self, shingler: shingling.Shingler, clean: cleaning.Cleaning, gather: input_check.Gather
    ) -> Iterator[Batch]:
        """Yield batches of texts as shingles; records are numbered like the lines of one file."""
        sizes = np.array([len(text) for text in self.records], dtype=np.int64)
        for low, high in chunks(sizes + 1, blocks.BLOCK_BYTES):
            texts = [
                text_rows.Record(blocks.NEW + i, b"", self.records[i]) for i in range(low, high)
            ]
            yield text_rows.batch_of_texts(texts, shingler, clean, gather)

    def batches_of_sets(self, gather: input_check.Gather) -> Iterator[Batch]:
        """Yield batches of the sets of elements, without empty sets."""
        elements = Elements()
        sizes = np.array([len(record) for record in self.records], dtype=np.int64)
        for low, high in chunks(sizes + 1, AT_ONCE):
            some = self.records[low:high]
            try:
                values = elements.of_records(some)
            except (TypeError, ValueError):
                _refuse_elements(some, low, elements)
                raise
            full = np.flatnonzero(sizes[low:high])
            sets: Ragged = gather(values, sizes[low:high][full])
            yield Batch(
                [b""] * len(full),
                sets,
                places=(full + low).astype(np.uint64) + np.uint64(blocks.NEW),
            )


def listed(records: Any) -> list[Any]:
    """Convert records to a list; ValueError for a text, a dict, a table or a non-iterable."""
    kind = type(records)
    if isinstance(records, (str, bytes, bytearray)):
        raise ValueError(f"records: expected an iterable of records, got one {kind.__name__}")
    if isinstance(records, Mapping):
        raise ValueError("records: got a dict; give its items(), if its keys are the ids")
    if hasattr(kind, "columns") or hasattr(kind, "column_names"):
        raise ValueError(
            f"records: got a {kind.__name__}; give one column, such as table['text'], or its name "
            "to neardup.pairs, clusters or deduplicate: text='text'"
        )
    if len(shape := getattr(records, "shape", ())) > 1:
        raise ValueError(
            f"records: got an array of shape {shape}, but a set has no order of columns; if "
            "its rows are sets, give records.tolist(); for bit vectors, there is measure='hamming'"
        )
    found = as_list(records)
    if found is None:
        raise ValueError(f"records: expected an iterable of records, got {kind.__name__}")
    return found


def as_list(values: Any) -> "list[Any] | None":
    """Convert the values to a list, or return None if they are not iterable."""
    for name in AS_LIST:
        if callable(method := getattr(values, name, None)):
            values = method()
            break
    if isinstance(values, Iterable) and not isinstance(values, Sequence):  # may reuse a buffer
        return list(map(_copied, values))
    return list(values) if isinstance(values, Iterable) else None


def _copied(record: Any) -> Any:
    """Copy a record, or that of an (id, record) tuple, if it has a method `copy`."""
    if type(record) is tuple and len(record) == 2:
        return record[0], _copied(record[1])  # what can be an id never changes
    return record.copy() if hasattr(record, "copy") else record


def apart(records: list[Any]) -> "tuple[list[Hashable] | None, list[Any]]":
    """Split (id, record) tuples into ids and records; ids are None if no record is a tuple.

    ValueError if only some are, or a tuple or its id is invalid.
    """
    with_ids = bool(records) and isinstance(records[0], tuple)
    if len(set(map(type, records))) > 1:
        for i, record in enumerate(records):
            if isinstance(record, tuple) != with_ids:
                is_, others = ("is not", "is") if with_ids else ("is", "is not")
                raise ValueError(
                    f"record {i} {is_} a tuple (id, record), but record 0 {others}; give every "
                    "record an id, or none"
                )
    if not with_ids:
        return None, records
    plain = set(map(len, records)) == {2} and {type(record[0]) for record in records} <= {int, str}
    for i, record in enumerate(() if plain else records):
        if len(record) != 2:
            raise ValueError(
                f"record {i}: a tuple is (id, record), and this one has {len(record)} parts; use a "
                "list for the elements of a set"
            )
        try:
            hash(record[0])
        except TypeError:
            raise ValueError(f"record {i}: an id must be hashable, and this one is not") from None
        if record[0] is None or record[0] != record[0]:
            raise ValueError(f"record {i}: {record[0]} cannot be an id; use text or a number")
    ids, found = zip(*records)
    return list(ids), list(found)


def _is_integers(record: np.ndarray) -> bool:
    return record.ndim == 1 and record.dtype.kind in "iu"


def _checked(position: int, record: Any, texts: bool) -> Any:
    """Return a record as text or a list of elements; ValueError if neither, or unlike record 0."""
    elements, is_text = record, isinstance(record, str)
    if not is_text and not (isinstance(record, np.ndarray) and _is_integers(record)):
        elements = None if isinstance(record, (bytes, bytearray, Mapping)) else as_list(record)
    if elements is None:
        expected = "a text, or a set or list of hashables"
        raise ValueError(f"record {position}: expected {expected}, got {record!r:.60}")
    if is_text != texts:
        what = "is a text, and record 0 is not" if is_text else "is not a text, but record 0 is"
        raise ValueError(f"record {position} {what}; give texts only, or sets only")
    return elements


def _refuse_elements(records: list[Any], first: int, elements: Elements) -> None:
    """Raise a ValueError that names the first element that cannot be in a set."""
    for position, record in enumerate(records, first):
        for element in record:
            try:
                elements.of([element])
            except (TypeError, ValueError):
                raise ValueError(
                    f"record {position}: {element!r:.60} cannot be an element of a set; None, NaN "
                    "and values that are not hashable cannot"
                ) from None
